//! One cell: all structures with the same keys, mix and threads, interleaved.

use std::collections::BTreeMap;

use rare_workloads::{
    protocol::Length,
    structures::{self, Adt},
};

use super::{
    BASE, NamedMix,
    chase::Chase,
    choice::Choice,
    shape, targets,
    trial::{Trial, median, rate},
};

/// What all its trials have in common.
#[derive(Clone, Copy)]
pub(super) struct Cell {
    /// Key range; half of it is prefilled.
    pub(super) n_keys: u64,
    pub(super) mix: NamedMix,
    pub(super) n_threads: u32,
}

/// Bytes per key by structure, as the allocator's hook counted them after the prefill.
pub(super) type BytesPerKey = BTreeMap<&'static str, f64>;

/// Counts what each structure has allocated when it holds half of the key range. One thread fills it: how many it is
/// makes no difference that matters.
pub(super) fn memory_of_all(choice: &Choice, n_keys: u64) -> BytesPerKey {
    let mut memory = BytesPerKey::new();
    for structure in choice.structures_at(n_keys) {
        let trial = Trial {
            structure,
            key_range: n_keys,
            prefill_keys: n_keys / 2,
            held_keys: n_keys / 2,
            mix: super::MIXES[0].mix,
            n_threads: 1,
            length: Length::Accounting { operations: 1 },
            seed: 0,
        };
        match trial.run() {
            Ok(reply) => {
                let bytes = reply.accounting.map(|accounting| accounting.prefilled.bytes);
                memory.extend(bytes.map(|bytes| (structure, bytes as f64 / (n_keys / 2).max(1) as f64)));
            }
            Err(why) => println!("  {structure:<20} bytes not counted: {why}"),
        }
    }
    memory
}

/// Measures and prints one cell; false if a trial failed.
pub(super) fn measure(choice: &Choice, cell: Cell, memory: &BytesPerKey, chase: &mut Chase) -> bool {
    let Cell { n_keys, mix, n_threads } = cell;
    println!("\n{n_keys} keys, insert/remove/contains {}, {n_threads} threads", mix.name);
    println!("  {:<20} {:>9} {:>8} {:>27} {:>9} {:>9}", "", "Mops/s", "to base", "target", "of bound", "bytes/key");
    let (rates, complete) = rates(choice, cell);
    let medians: BTreeMap<&str, f64> = rates.into_iter().map(|(name, rates)| (name, median(rates))).collect();
    let base = medians.get(BASE).copied();
    for name in choice.structures_at(n_keys) {
        let Some(&median) = medians.get(name) else { continue };
        let ratio = base.map_or_else(String::new, |base| format!("{:7.2}x", median / base));
        let target = targets::of(name, n_keys, mix.name, n_threads);
        let target = target.map_or_else(String::new, |target| target.judge(name, median, base));
        let bytes = memory.get(name).copied();
        let bound = bytes.and_then(|bytes| bound(name, n_keys, bytes, n_threads, chase));
        let part = bound.map_or_else(String::new, |bound| format!("{:.2}", median / bound));
        let bytes = bytes.map_or_else(String::new, |bytes| format!("{bytes:.1}"));
        println!("  {name:<20} {median:9.2} {ratio:>8} {target:>27} {part:>9} {bytes:>9}{}", remark(name));
    }
    complete
}

/// Runs all trials, round by round, and returns the throughputs by structure; false if one failed.
fn rates(choice: &Choice, cell: Cell) -> (BTreeMap<&'static str, Vec<f64>>, bool) {
    let (mut rates, mut complete) = (BTreeMap::<_, Vec<f64>>::new(), true);
    for round in 0..choice.n_rounds {
        for structure in choice.structures_at(cell.n_keys) {
            let trial = Trial {
                structure,
                key_range: cell.n_keys,
                prefill_keys: cell.n_keys / 2,
                held_keys: cell.n_keys / 2,
                mix: cell.mix.mix,
                n_threads: cell.n_threads,
                length: Length::Nanos(choice.window_ms * 1_000_000),
                seed: u64::from(round),
            };
            match trial.run() {
                Ok(reply) => rates.entry(structure).or_default().push(rate(&reply)),
                Err(why) => {
                    println!("  {structure:<20} failed: {why}");
                    complete = false;
                }
            }
        }
    }
    (rates, complete)
}

/// Returns the millions of searches per second that so many threads could make if each waited for nothing but one load
/// per node; `None` where there is no search, or the latency cannot be measured.
fn bound(name: &str, n_keys: u64, bytes_per_key: f64, n_threads: u32, chase: &mut Chase) -> Option<f64> {
    let n_present = (n_keys / 2).max(1);
    let depth = shape::of(name).depth(n_present)?;
    let latency_ns = chase.latency_ns((bytes_per_key * n_present as f64) as u64);
    let latency_ns = latency_ns.inspect_err(|why| println!("  {name:<20} no bound: {why}")).ok()?;
    Some(f64::from(n_threads) * 1e3 / (depth * latency_ns))
}

fn remark(name: &str) -> &'static str {
    let stores_nothing = structures::find(name).is_some_and(|structure| structure.info.semantics.adt == Adt::Nothing);
    if stores_nothing { "  (bound of the harness)" } else { "" }
}
