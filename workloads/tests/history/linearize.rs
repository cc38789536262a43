//! Decides exactly, and in one pass, whether a history of a set that starts empty is linearizable.
//!
//! Sets are compositional: a history is linearizable if and only if, for each key, the operations on it are (Herlihy
//! and Wing, Linearizability: A Correctness Condition for Concurrent Objects, TOPLAS 1990, theorem 1, with each key as
//! an object). So each key is judged alone.
//!
//! Per key this is just-in-time linearization: Lowe, Testing for Linearizability, Concurrency and Computation: Practice
//! and Experience 29(4), 2017, section 5. Events are visited in order; an operation is linearized no sooner than the
//! response of some operation requires it. The state is whether the key is present, and which open operations are
//! linearized already. Open operations are a list, however many overlap and however long they last: a checker that
//! keeps a window of events accuses a correct set as soon as a thread is preempted within an operation.
//!
//! Lowe searches, because an operation's place must be guessed in general. One key of a set leaves nothing to guess.
//! Take a state from which the rest can be linearized, and the next response, that of an operation `o` which is open
//! and not linearized.
//! - L1 An ineffective operation that fits the state may be linearized at once: it changes nothing, so moving it ahead
//!   of all others leaves every other answer as it was.
//! - L2 Of the open effective operations of one kind (all inserts, or all removes), the one that responds first may go
//!   first: where another goes first, the two can trade places, since both were invoked and the later place is in time
//!   even for the one that responds first.
//! - L3 So if `o` fits the state, it may be linearized next: by L1, or by L2, for no open operation responds before it.
//!   If it does not fit, the state must change first, and by L2 the open effective operation that fits and responds
//!   first may do it; then `o` fits. If there is none, the history is not linearizable.
//!
//! Each step keeps the rest linearizable if it was, and is itself legal, so one state suffices for an exact answer.

use std::fmt;

use super::Operation;

/// Operations before the culprit that a message shows.
const N_SHOWN: usize = 12;

/// An operation that has no place in any order, with what led to it.
#[derive(Debug)]
pub struct Violation {
    /// The operation that cannot be linearized before it responds.
    pub culprit: Operation,
    /// Whether its key is present whichever way the operations before it are ordered.
    pub is_present: bool,
    /// Operations on the key that had responded, or had not but were invoked before the culprit responded.
    pub before: Vec<Operation>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let presence = if self.is_present { "present" } else { "absent" };
        writeln!(f, "not linearizable: {}", self.culprit)?;
        writeln!(f, "although the key can only be {presence} then; operations on the key before that:")?;
        self.before.iter().try_for_each(|operation| writeln!(f, "  {operation}"))
    }
}

/// Judges a history in any order.
///
/// # Errors
/// The first operation, in order of response, that cannot be linearized, of one of the keys where there is one.
pub fn check(operations: &[Operation]) -> Result<(), Box<Violation>> {
    let mut by_key: Vec<Operation> = operations.to_vec();
    by_key.sort_unstable_by_key(|operation| operation.key);
    by_key.chunk_by(|one, next| one.key == next.key).try_for_each(check_key)
}

/// Judges the operations on one key.
fn check_key(operations: &[Operation]) -> Result<(), Box<Violation>> {
    let mut events: Vec<Event> = Vec::with_capacity(2 * operations.len());
    for (idx, operation) in operations.iter().enumerate() {
        assert!(operation.invoked <= operation.responded, "no operation ends before it begins: {operation}");
        events.push(Event { stamp: operation.invoked, is_response: false, idx });
        events.push(Event { stamp: operation.responded, is_response: true, idx });
    }
    // Of one stamp, invocations come before responses: such operations overlap.
    events.sort_unstable_by_key(|event| (event.stamp, event.is_response));
    let mut state = State { operations, is_present: false, open: Vec::new() };
    for (event_idx, event) in events.iter().enumerate() {
        if !event.is_response {
            state.invoke(event.idx);
        } else if !state.respond(event.idx) {
            return Err(Box::new(state.accuse(event.idx, &events[..event_idx])));
        }
    }
    Ok(())
}

struct Event {
    stamp: u64,
    is_response: bool,
    idx: usize,
}

/// An operation that was invoked and has not responded.
struct Open {
    idx: usize,
    is_linearized: bool,
}

struct State<'h> {
    operations: &'h [Operation],
    is_present: bool,
    /// Each open operation that is ineffective and fits `is_present` is linearized (L1).
    open: Vec<Open>,
}

impl State<'_> {
    fn invoke(&mut self, idx: usize) {
        self.open.push(Open { idx, is_linearized: false });
        self.settle();
    }

    /// Linearizes an operation unless it was, and closes it. Returns false if it has no place.
    fn respond(&mut self, idx: usize) -> bool {
        let slot =
            self.open.iter().position(|open| open.idx == idx).expect("an operation responds once, after it began");
        let operation = &self.operations[idx];
        if !self.open[slot].is_linearized && operation.needs_present() != self.is_present {
            // L3: another operation must change the state first.
            let Some(other) = self.next_change() else { return false };
            self.change(other);
        }
        // If it is ineffective, then it fitted before, or fits since the change; either way it is linearized.
        if !self.open[slot].is_linearized {
            self.change(slot);
        }
        self.open.swap_remove(slot);
        true
    }

    /// Finds the effective operation that fits the state and responds first (L2).
    fn next_change(&self) -> Option<usize> {
        let fits = |open: &Open| {
            let operation = &self.operations[open.idx];
            !open.is_linearized && operation.is_effective() && operation.needs_present() == self.is_present
        };
        let candidates = self.open.iter().enumerate().filter(|(_, open)| fits(open));
        candidates.min_by_key(|(_, open)| self.operations[open.idx].responded).map(|(slot, _)| slot)
    }

    fn change(&mut self, slot: usize) {
        self.open[slot].is_linearized = true;
        self.is_present = !self.is_present;
        self.settle();
    }

    /// Linearizes what is ineffective and fits (L1).
    fn settle(&mut self) {
        for open in &mut self.open {
            let operation = &self.operations[open.idx];
            open.is_linearized |= !operation.is_effective() && operation.needs_present() == self.is_present;
        }
    }

    fn accuse(&self, idx: usize, events: &[Event]) -> Violation {
        let mut shown: Vec<usize> = self.open.iter().map(|open| open.idx).filter(|&open_idx| open_idx != idx).collect();
        let responded = events.iter().rev().filter(|event| event.is_response).map(|event| event.idx);
        shown.extend(responded.take(N_SHOWN));
        let mut before: Vec<Operation> = shown.into_iter().map(|idx| self.operations[idx]).collect();
        before.sort_by_key(|operation| operation.invoked);
        Violation { culprit: self.operations[idx], is_present: self.is_present, before }
    }
}
