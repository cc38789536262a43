//! Hazard pointers: a thread announces each node before it reads it.
//!
//! Source: Michael, Hazard Pointers: Safe Memory Reclamation for Lock-Free Objects, TPDS 15(6), 2004: the announcement
//! (its figure 1), and Scan (its figure 3). Deviations: one domain for each instance. What a thread leaves behind when it
//! goes is put where any scan finds it, in place of a helper that looks through the records of others. The announced
//! addresses are sorted, not hashed. Slots are cleared when a guard is dropped, and when a thread goes it scans.
//!
//! A thread scans when it holds as many retired objects as twice the slots of all records, [`per_record`]: at least half
//! of them are then freed, so that a retirement pays for about two looks at a slot, and at most about
//! 2 * `N_SLOTS` * threads objects for each thread are retired and not freed, whatever other threads do.
//!
//! *Why (H) of [`super::any`] holds.* Say that a scan frees object X. Before, its thread had X, which was unlinked by a
//! write that happens before the retirement and so before the fence F with which the scan begins. Let a reader announce X
//! by the exchange S, and then, by sequentially consistent loads L, see that X was not unlinked: each L reads a link as it
//! was before a write that happens before the retirement of X. Such an L precedes that write in the link's order, which
//! happens before F, so L precedes F in the one order of sequentially consistent operations; and S precedes L, because the
//! reader executes it first. So S precedes F, and the loads of the scan, which come after F, see S, or what the reader has
//! announced in that slot since. If the reader had given X up by then, it will not read it again. If it had copied the
//! announcement to a slot of a higher number ([`AnyGuard::keep`]), then the copy was written before, with Release, and the
//! scan, which comes by the slots in ascending order and with Acquire, sees the copy.
//!
//! What the reader did with X happens before it is freed, because slots are overwritten with Release and scanned with
//! Acquire.

use std::{
    cell::{Cell, RefCell},
    iter, ptr,
    sync::{
        Arc, Mutex, PoisonError, TryLockError,
        atomic::{
            AtomicBool, AtomicUsize,
            Ordering::{Acquire, Relaxed, Release, SeqCst},
            fence,
        },
    },
};

use super::{
    AnyGuard, AnyLocal, AnyReclaimer,
    count::{Slot, Slots},
    order::order_after_updates,
};
use crate::{families::set::Parameters, nodes, sync::atomic::AtomicPtr};

/// Slots of a thread: those of a step, and two for each level of the tallest skip list.
pub(crate) const N_SLOTS: usize = 4 + 2 * 16;

/// Bits of a link that are not part of the address.
const TAGS: usize = 0b111;

/// Returns how many retired objects a thread holds for each record there is before it scans.
const fn per_record() -> usize {
    2 * N_SLOTS
}

/// Hazard pointers with a domain of its own.
pub struct Hazard {
    /// The newest record; records are never taken out, and freed with the domain.
    newest: AtomicPtr<Record>,
    n_records: AtomicUsize,
    /// What threads that are gone could not free yet.
    orphans: Mutex<Vec<Retired>>,
    slots: Slots,
}

/// The announcements of one thread, on lines of their own: only its owner writes them, all scans read them.
#[repr(align(128))]
struct Record {
    announced: [AtomicPtr<()>; N_SLOTS],
    is_taken: AtomicBool,
    /// The next older record; never changes.
    older: *const Record,
}

// SAFETY: `older` leads to a record of the same domain, which is freed after all threads that could follow it; the rest
// is atomic.
unsafe impl Send for Record {}
// SAFETY: likewise.
unsafe impl Sync for Record {}

/// A retired object, and how to free it.
struct Retired {
    object: *mut (),
    /// # Safety
    /// To be called once, when no thread reads the object any more.
    free: unsafe fn(*mut ()),
}

// SAFETY: made only by `retire`, whose objects are `Send`.
unsafe impl Send for Retired {}

impl Hazard {
    /// Iterates over all records, from the newest.
    fn records(&self) -> impl Iterator<Item = &Record> {
        // Acquire: pairs with the exchange in `push`, so that the record and the older ones are complete.
        let newest = self.newest.load(Acquire).cast_const();
        // SAFETY: null, or a record, which lives as long as the domain.
        let newest = unsafe { newest.as_ref() };
        // SAFETY: likewise.
        iter::successors(newest, |record| unsafe { record.older.as_ref() })
    }

    /// Takes a record that no thread has, or makes one.
    fn take_record(&self) -> &Record {
        // Acquire: pairs with the Release of the last owner, so that its cleared slots come before new announcements.
        let take = |record: &&Record| record.is_taken.compare_exchange(false, true, Acquire, Relaxed).is_ok();
        self.records().find(take).unwrap_or_else(|| self.push())
    }

    fn push(&self) -> &Record {
        let mut newest = self.newest.load(Relaxed);
        let record = Box::into_raw(Box::new(Record {
            announced: [const { AtomicPtr::new(ptr::null_mut()) }; N_SLOTS],
            is_taken: AtomicBool::new(true),
            older: newest,
        }));
        // SeqCst: publishes the record, and precedes its owner's announcements in the order on which (H) rests, so that a
        // scan that must see one finds the record.
        while let Err(found) = self.newest.compare_exchange(newest, record, SeqCst, Acquire) {
            newest = found;
            // SAFETY: the record is not published yet.
            unsafe { (*record).older = newest };
        }
        // Relaxed: it only decides how often threads scan.
        self.n_records.fetch_add(1, Relaxed);
        // SAFETY: it lives as long as the domain.
        unsafe { &*record }
    }
}

// SAFETY: (H) is proved above. An object is in the list of one thread, or among the orphans, and leaves it when it is
// freed. Retirement and freeing happen on one thread, or the orphans' lock is between them.
unsafe impl AnyReclaimer for Hazard {
    type Local<'r> = HazardLocal<'r>;

    fn with(_parameters: &Parameters) -> Self {
        Self {
            newest: AtomicPtr::new(ptr::null_mut()),
            n_records: AtomicUsize::new(0),
            orphans: Mutex::new(Vec::new()),
            slots: Slots::new(),
        }
    }

    fn register(&self) -> HazardLocal<'_> {
        let record = self.take_record();
        let room = per_record() * self.n_records.load(Relaxed);
        HazardLocal {
            domain: self,
            record,
            n_used: Cell::new(0),
            // Room for what is held before a scan, so that operations do not allocate unless threads come later.
            retired: RefCell::new(Vec::with_capacity(room)),
            announced: RefCell::new(Vec::with_capacity(room)),
            slot: self.slots.take(),
        }
    }

    fn unreclaimed(&self) -> u64 {
        self.slots.unreclaimed()
    }
}

impl Drop for Hazard {
    fn drop(&mut self) {
        for retired in self.orphans.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // SAFETY: no thread is registered, so nothing is announced; it is the only list with this object.
            unsafe { (retired.free)(retired.object) };
        }
        let mut record = *self.newest.get_mut();
        while !record.is_null() {
            // SAFETY: `push` boxed it, and no thread is left that could read it.
            let freed = unsafe { Box::from_raw(record) };
            record = freed.older.cast_mut();
        }
    }
}

/// A thread with a record.
pub struct HazardLocal<'r> {
    domain: &'r Hazard,
    record: &'r Record,
    /// Slots that the guard may have used: those below this number.
    n_used: Cell<usize>,
    retired: RefCell<Vec<Retired>>,
    /// The addresses that a scan found announced; kept for its memory.
    announced: RefCell<Vec<usize>>,
    slot: Arc<Slot>,
}

impl HazardLocal<'_> {
    /// Frees every object of this thread, and those of threads that are gone, that no thread has announced.
    fn scan(&self) {
        let mut retired = self.retired.borrow_mut();
        match self.domain.orphans.try_lock() {
            Ok(mut orphans) => retired.append(&mut orphans),
            Err(TryLockError::Poisoned(poisoned)) => retired.append(&mut poisoned.into_inner()),
            // Another thread adopts them.
            Err(TryLockError::WouldBlock) => {}
        }
        // F of the proof: pairs with the exchange in `protect`.
        fence(SeqCst);
        let mut announced = self.announced.borrow_mut();
        announced.clear();
        for record in self.domain.records() {
            // In ascending order, see the proof. Acquire: pairs with the Release that ends a reader's use of an object.
            let addresses = record.announced.iter().map(|slot| slot.load(Acquire).addr());
            announced.extend(addresses.filter(|&address| address != 0));
        }
        announced.sort_unstable();
        let n_before = retired.len();
        retired.retain(|object| {
            let is_announced = announced.binary_search(&object.object.addr()).is_ok();
            if !is_announced {
                // SAFETY: it was unlinked and retired, nobody has announced it, and it leaves the one list it is in.
                unsafe { (object.free)(object.object) };
            }
            is_announced
        });
        self.slot.count_freed((n_before - retired.len()) as u64);
    }

    /// Gives up what the slots protect.
    fn clear(&self) {
        for slot in &self.record.announced[..self.n_used.replace(0)] {
            // Release: pairs with the Acquire of scans, so that the use of the object happens before it is freed.
            slot.store(ptr::null_mut(), Release);
        }
    }
}

impl Drop for HazardLocal<'_> {
    fn drop(&mut self) {
        self.clear();
        self.scan();
        let left = self.retired.get_mut();
        if !left.is_empty() {
            self.domain.orphans.lock().unwrap_or_else(PoisonError::into_inner).append(left);
        }
        // Release: pairs with the Acquire in `take_record`.
        self.record.is_taken.store(false, Release);
    }
}

impl AnyLocal for HazardLocal<'_> {
    type Guard<'l>
        = HazardGuard<'l>
    where
        Self: 'l;

    #[inline]
    fn pin(&mut self) -> HazardGuard<'_> {
        // A guard that was leaked has left its announcements; it cannot be used any more.
        self.clear();
        order_after_updates();
        HazardGuard { local: self }
    }
}

/// A thread that may announce nodes.
pub struct HazardGuard<'l> {
    local: &'l HazardLocal<'l>,
}

impl HazardGuard<'_> {
    /// Notes that the slot is in use, and returns it.
    #[inline]
    fn slot(&self, slot: usize) -> &AtomicPtr<()> {
        self.local.n_used.set(self.local.n_used.get().max(slot + 1));
        &self.local.record.announced[slot]
    }
}

impl AnyGuard for HazardGuard<'_> {
    const PROTECTS_ALL: bool = false;

    #[inline]
    fn protect<T>(&self, source: &AtomicPtr<T>, slot: usize) -> *mut T {
        const { assert!(align_of::<T>() > TAGS, "tags would be taken for parts of the address") };
        let slot = self.slot(slot);
        let mut word = source.load(Acquire);
        loop {
            let address = word.map_addr(|address| address & !TAGS);
            if address.is_null() {
                return word;
            }
            // An exchange, because on x86-64 it is the cheapest full barrier.
            slot.swap(address.cast(), SeqCst);
            let again = source.load(SeqCst);
            if again == word {
                return word;
            }
            word = again;
        }
    }

    #[inline]
    fn keep<T>(&self, object: *mut T, slot: usize) {
        let address = object.map_addr(|address| address & !TAGS);
        // Release: comes before the lower slot is used again, see the proof.
        self.slot(slot).store(address.cast(), Release);
    }

    #[inline]
    fn look<T>(&self, source: &AtomicPtr<T>) -> *mut T {
        source.load(Acquire)
    }

    unsafe fn retire<T: Send>(&self, object: *mut T) {
        /// # Safety
        /// `object` was retired as a `T`; the rest as [`Retired::free`] says.
        unsafe fn free_as<T>(object: *mut ()) {
            // SAFETY: see above.
            unsafe { nodes::free(object.cast::<T>()) };
        }
        self.local.slot.count_retired();
        let n_retired = {
            let mut retired = self.local.retired.borrow_mut();
            retired.push(Retired { object: object.cast(), free: free_as::<T> });
            retired.len()
        };
        if n_retired >= per_record() * self.local.domain.n_records.load(Relaxed) {
            self.local.scan();
        }
    }
}

impl Drop for HazardGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.local.clear();
    }
}
