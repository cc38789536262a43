//! Check `layout`: where the nodes of each structure lie.
//!
//! Judged from the first allocations of each thread while the structure is filled, listed by a hook in trials of their
//! own. How a structure came to lie decides how many lines and pages a search touches, and whose writes hit whose lines.

use std::collections::{BTreeMap, BTreeSet};

use rare_workloads::protocol::{AllocationPhase, Block, ThreadLayout};

use super::{Check, Exhibit, Grade, Info, Row, Subject, Verdict};
use crate::{
    plan::{
        Cell, Ground, Mode, Probe,
        probe::{Change, Setting},
    },
    record::Outcome,
    spec::value::{Parameter, Prefill, Value},
    units::BasisPoints,
    verdict::{
        Evidence,
        evidence::{Probed, Replied},
    },
};

/// Bytes of a cache line.
const LINE: u64 = 64;

/// Keys of the trials: each of some threads then allocates more than is listed.
const KEYS: u64 = 20_000;

/// A share of the lines that hold blocks of several threads, above which it is no accident of the borders between what
/// the allocator gives to each.
const SHARED_WARN: f64 = 0.05;

/// A share of neighbours of unlike kinds above which nodes and other objects alternate; two kinds in random order have
/// 0.5, nodes with a rare other object nearly 0.
const MIXED_WARN: f64 = 0.25;

/// Bytes of a node above which no word of it justifies its lines: an (a,b)-tree keeps eleven keys in 192.
const LARGE_WARN: u64 = 256;

/// Blocks that must be known of a structure before it is judged.
const BLOCKS_MIN: usize = 32;

static INFO: Info = Info {
    name: "layout",
    title: "Memory layout",
    rule: "threads do not share the lines of their nodes, and nodes lie together, not between other objects, and are not padded out of all \
           proportion",
    threshold: "more than 5 % of the lines of 64 bytes with blocks of several threads warn, and so do more than 25 % of \
                neighbouring blocks of unlike kinds, and nodes of more than 256 bytes in the median",
    source: "Brown, Good data structure experiments are R.A.R.E., sanity check 3 and errors 5 and 6",
    reason: "a search that meets a descriptor between any two nodes misses twice as often, whatever the algorithm",
    remedy: "allocate other objects apart from nodes or pool them; pad nodes; compare under another allocator",
};

/// See [`INFO`].
pub(super) struct Layout;

impl Check for Layout {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn probes(&self, ground: &Ground<'_>) -> Vec<Probe> {
        let mut settings: Vec<Setting> = Vec::new();
        for base in ground.bases() {
            let used = &base[Parameter::Structure as usize];
            let cells = ground.cells().filter(|cell| cell.value(Parameter::Structure) == used);
            let allocators: BTreeSet<Value> = cells.map(|cell| cell.value(Parameter::Allocator).clone()).collect();
            settings.extend(allocators.into_iter().map(|allocator| {
                base.clone()
                    .with(Parameter::Allocator, allocator)
                    .with(Parameter::KeyRange, Value::Count(KEYS))
                    .with(Parameter::Prefill, Value::Prefill(Prefill::Share(BasisPoints(5_000))))
            }));
        }
        settings.into_iter().map(|setting| setting.probe(INFO.name, Mode::Layout, 1)).collect()
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let probed = evidence.probes(INFO.name);
        let (mut rows, mut table, mut missing, mut n_judged) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for one in &probed {
            match found(one) {
                Ok((replied, layout)) => {
                    n_judged += usize::from(layout.is_some());
                    table.push(shown(one.cell, layout.as_ref()));
                    rows.extend(layout.iter().flat_map(|layout| layout.warnings(&replied)));
                }
                Err(why) => missing.push(why),
            }
        }
        let grade = match (rows.is_empty(), missing.is_empty(), n_judged) {
            (false, ..) => Grade::Warn,
            (true, true, 1..) => Grade::Pass,
            _ => Grade::Unknown,
        };
        let summary = match (rows.first(), missing.first()) {
            (Some(Row { finding, .. }), _) => format!("{} of {n_judged} layouts: {finding}", rows.len()),
            (None, Some(why)) => why.clone(),
            (None, None) if n_judged == 0 => "no structure allocates what can be listed".to_owned(),
            (None, None) => format!("nodes lie together and apart from other threads' in {n_judged} layouts"),
        };
        Verdict { info: &INFO, grade, summary, rows, exhibits: vec![exhibit(table)] }
    }
}

/// Returns the layout that a probe lists; `None` inside when it lists too few blocks to judge.
fn found<'t>(probed: &Probed<'t>) -> Result<(Replied<'t>, Option<Found>), String> {
    let [replied] = probed.trials.as_slice() else {
        return Err(match probed.failures.first().map(|(_, trial)| &trial.outcome) {
            Some(Outcome::Failed { detail, .. }) => format!("{}: {detail}", probed.cell.structure().label),
            _ => format!("{}: the planned trial has no record", probed.cell.structure().label),
        });
    };
    let layout = replied.reply.layout.as_ref();
    let layout = layout.ok_or_else(|| format!("{}: the reply lists no allocation", probed.cell.structure().label))?;
    Ok((*replied, Found::of(layout)))
}

/// What the first blocks of a structure's prefill look like.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Kinds with the bytes asked for, the bytes set aside (0 where the allocator does not tell), and how many.
    pub kinds: BTreeMap<(String, u64, u64), usize>,
    /// Share of the blocks no larger than a line that lie on two.
    pub straddling: f64,
    /// Share of the lines that hold blocks of several threads.
    pub shared: f64,
    /// Share of neighbours in memory, of one thread, that are of unlike kinds.
    pub mixed: f64,
    /// Bytes asked for by a node in the median. Where no block is known to be a node, the size that most blocks have; 0
    /// where there is none.
    pub node: u64,
    /// Bytes from the start of a block to the start of the next in memory, in the median.
    pub pitch: u64,
}

impl Found {
    /// Looks at the blocks of the prefill; `None` if there are too few.
    pub fn of(threads: &[ThreadLayout]) -> Option<Self> {
        let filled = |thread: &ThreadLayout| -> Vec<Block> {
            let blocks = thread.blocks.iter().filter(|block| block.phase == AllocationPhase::Prefill);
            blocks.cloned().collect()
        };
        let mut threads: Vec<Vec<Block>> = threads.iter().map(filled).collect();
        threads.iter_mut().for_each(|blocks| blocks.sort_by_key(|block| block.address));
        let all = || threads.iter().flatten();
        if all().count() < BLOCKS_MIN {
            return None;
        }
        let mut kinds = BTreeMap::new();
        for block in all() {
            *kinds.entry((kind(block), block.size, block.usable.unwrap_or(0))).or_insert(0) += 1;
        }
        let small = || all().filter(|block| block.size <= LINE);
        let straddling = share(small().filter(|block| lines(block).count() > 1).count(), small().count());
        let mut owners: BTreeMap<u64, BTreeSet<usize>> = BTreeMap::new();
        for (thread_idx, blocks) in threads.iter().enumerate() {
            for line in blocks.iter().flat_map(lines) {
                owners.entry(line).or_default().insert(thread_idx);
            }
        }
        let shared = share(owners.values().filter(|threads| threads.len() > 1).count(), owners.len());
        let neighbours = || threads.iter().flat_map(|blocks| blocks.windows(2));
        let unlike = |pair: &&[Block]| kind(&pair[0]) != kind(&pair[1]);
        let mixed = share(neighbours().filter(unlike).count(), neighbours().count());
        let pitches = neighbours().map(|pair| pair[1].address - pair[0].address).collect();
        let nodes: Vec<u64> = all().filter(|block| block.kind.is_some()).map(|block| block.size).collect();
        let node = if nodes.is_empty() { commonest(all()) } else { middle(nodes) };
        Some(Self { kinds, straddling, shared, mixed, node, pitch: middle(pitches) })
    }

    fn warnings(&self, replied: &Replied) -> Vec<Row> {
        let structure = &replied.trial.request.structure;
        let allocator = &replied.reply.allocator.name;
        let shared = (self.shared > SHARED_WARN).then(|| {
            format!(
                "{structure} under {allocator}: {} of its lines hold blocks of several threads",
                percent(self.shared)
            )
        });
        let mixed = (self.mixed > MIXED_WARN).then(|| {
            format!("{structure} under {allocator}: {} of neighbouring blocks are of unlike kinds", percent(self.mixed))
        });
        let row = |finding| Row { subject: Subject::of(replied), finding, grade: Grade::Warn };
        let large = (self.node > LARGE_WARN)
            .then(|| format!("{structure} under {allocator}: a node takes {} bytes", self.node));
        shared.into_iter().chain(mixed).chain(large).map(row).collect()
    }
}

/// The size that more than half of the blocks have; 0 if there is none.
fn commonest<'b>(blocks: impl Iterator<Item = &'b Block>) -> u64 {
    let mut of_size: BTreeMap<u64, usize> = BTreeMap::new();
    blocks.for_each(|block| *of_size.entry(block.size).or_insert(0) += 1);
    let n_blocks: usize = of_size.values().sum();
    of_size.into_iter().find(|(_, n)| 2 * n > n_blocks).map_or(0, |(size, _)| size)
}

/// The middle one of some numbers; 0 of none.
fn middle(mut numbers: Vec<u64>) -> u64 {
    numbers.sort_unstable();
    numbers.get(numbers.len() / 2).copied().unwrap_or(0)
}

/// Returns what a block is, as far as it is known: blocks of no known type are told apart by their sizes.
pub fn kind(block: &Block) -> String {
    block.kind.clone().unwrap_or_else(|| format!("{} bytes", block.size))
}

/// The lines on which a block lies.
fn lines(block: &Block) -> impl Iterator<Item = u64> + use<> {
    let last = block.address + block.size.max(1) - 1;
    block.address / LINE..=last / LINE
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn shown(cell: Cell, layout: Option<&Found>) -> Vec<String> {
    let mut row = vec![cell.structure().label.clone(), cell.value(Parameter::Allocator).to_string()];
    let Some(layout) = layout else {
        row.extend(["too few blocks to judge".to_owned()].into_iter().chain(std::iter::repeat_n(String::new(), 4)));
        return row;
    };
    let kinds = layout.kinds.iter().map(|((kind, size, usable), n)| match usable {
        0 => format!("{n} × {kind}, {size} B"),
        usable => format!("{n} × {kind}, {size} of {usable} B"),
    });
    row.push(kinds.collect::<Vec<String>>().join("; "));
    row.extend([layout.straddling, layout.shared, layout.mixed].map(percent));
    row.push(layout.pitch.to_string());
    row
}

fn exhibit(rows: Vec<Vec<String>>) -> Exhibit {
    let columns = [
        ("Structure", None),
        ("Allocator", None),
        ("Blocks", None),
        ("On two lines", None),
        ("Lines shared", None),
        ("Unlike neighbours", None),
        ("Pitch", Some("B")),
    ];
    Exhibit {
        title: "The first blocks of each thread".to_owned(),
        columns: columns.map(|(title, unit)| (title.to_owned(), unit)).to_vec(),
        rows,
        note: "While the structure was filled. Blocks: how many of which type, the bytes asked for and set aside. On two \
               lines: blocks that would fit a line of 64 bytes and lie on two. Lines shared: by blocks of several threads. \
               Unlike neighbours: blocks next to each other in memory of different types. Pitch: from the start of a block \
               to that of the next, in the median."
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(address: u64, size: u64, kind: &str) -> Block {
        Block { address, size, align: 8, usable: None, kind: Some(kind.to_owned()), phase: AllocationPhase::Prefill }
    }

    fn found(threads: &[&[Block]]) -> Found {
        let threads: Vec<ThreadLayout> =
            threads.iter().map(|blocks| ThreadLayout { blocks: blocks.to_vec() }).collect();
        Found::of(&threads).unwrap()
    }

    #[test]
    fn nodes_in_a_row_are_clean() {
        let blocks: Vec<Block> = (0..64).map(|idx| block(4096 + 32 * idx, 32, "Node")).collect();
        let layout = found(&[&blocks]);
        assert_eq!((layout.straddling, layout.shared, layout.mixed, layout.pitch), (0.0, 0.0, 0.0, 32));
    }

    #[test]
    fn descriptors_between_nodes_are_seen() {
        let kinds = ["Node", "Descriptor"];
        let blocks: Vec<Block> = (0..64).map(|idx| block(4096 + 48 * idx, 48, kinds[idx as usize % 2])).collect();
        let layout = found(&[&blocks]);
        assert_eq!(layout.mixed, 1.0);
        assert_eq!(layout.straddling, 0.5, "at 48 bytes a piece, two of four lie on two lines");
    }

    #[test]
    fn lines_of_two_threads_are_seen() {
        let of_thread = |idx: u64| (0..32).map(|n| block(4096 + 64 * n + 32 * idx, 24, "Node")).collect::<Vec<Block>>();
        assert_eq!(found(&[&of_thread(0), &of_thread(1)]).shared, 1.0);
    }

    #[test]
    fn few_blocks_are_not_judged() {
        let blocks: Vec<Block> = (0..8).map(|idx| block(4096 + 32 * idx, 32, "Node")).collect();
        assert_eq!(Found::of(&[ThreadLayout { blocks }]), None);
    }
}
