//! Section `layout`: the first blocks of memory of each structure under each allocator, as they lie on the cache lines.
//!
//! Only draws: the check `layout` judges the same blocks.

use std::collections::{BTreeMap, BTreeSet};

use rare_workloads::protocol::{AllocationPhase, Block as Allocated, ThreadLayout};

use super::{Context, Section};
use crate::{
    report::{
        block::Block,
        figures,
        number::counted,
        plot::{Blocks, Kind, LINE, Lane, Placed},
        probed::{self, Naming},
        text,
    },
    verdict::checks::layout,
};

pub(super) const SECTION: Section = Section { id: "layout", title: "Memory layout", build };

/// Blocks of a thread that are drawn.
const MAX_BLOCKS: usize = 64;

/// Threads of a structure that are drawn: two can share a line.
const MAX_THREADS: usize = 2;

/// Panels of the figure; the table of the check has every layout.
const MAX_PANELS: usize = 12;

fn build(context: &Context) -> Vec<Block> {
    let evidence = context.evidence;
    let probed = evidence.probes("layout");
    if probed.is_empty() {
        let text =
            "The first blocks of each thread were not listed; `sanity_checks: [layout]` in the spec asks for them.";
        return vec![Block::paragraph(text)];
    }
    let cells: Vec<_> = probed.iter().map(|one| one.cell).collect();
    let naming = Naming::new(evidence, &cells);
    let (mut panels, mut missing, mut silent) = (Vec::new(), Vec::new(), Vec::new());
    for one in &probed {
        let name = naming.name(evidence, one.cell);
        let threads = probed::sole(evidence, one)
            .and_then(|replied| replied.reply.layout.as_deref().ok_or("its reply lists no block".to_owned()));
        match threads {
            Ok(threads) if threads.iter().all(|thread| filled(thread).next().is_none()) => silent.push(name),
            Ok(threads) => panels.push(panel(&name, threads)),
            Err(why) => missing.push((name, why)),
        }
    }
    let mut blocks = Vec::new();
    let n_left_out = panels.len().saturating_sub(MAX_PANELS);
    panels.truncate(MAX_PANELS);
    if !panels.is_empty() {
        blocks.push(figure(panels));
    }
    blocks.extend(probed::missing("Not known", &missing));
    if !silent.is_empty() {
        let silent = silent.join(", ");
        blocks.push(Block::paragraph(format!("No block could be listed while these were filled: {silent}.")));
    }
    if n_left_out > 0 {
        let left_out = counted(n_left_out, "further layout");
        blocks.push(Block::paragraph(format!("The table of the check has {left_out}, which the figure leaves out.")));
    }
    blocks
}

fn figure(panels: Vec<Blocks>) -> Block {
    let n_columns = panels.len().min(2);
    let mut grid: Vec<Vec<Option<Blocks>>> = Vec::new();
    for panel in panels {
        match grid.last_mut() {
            Some(row) if row.len() < n_columns => row.push(Some(panel)),
            _ => grid.push(vec![Some(panel)]),
        }
    }
    if let Some(last) = grid.last_mut() {
        last.resize(n_columns, None);
    }
    let caption = format!(
        "By address, of the blocks that each thread allocated first while the structure was filled; from the lowest \
         address on, at most {MAX_BLOCKS} of each of the first {MAX_THREADS} threads. Upright strokes are the borders of cache lines of {LINE} bytes; a block \
         begins at its thick edge, and its letter is its kind. Three dots stand for one line or more on which no block of the \
         thread begins or ends. What is grey and has no letter belongs to another thread."
    );
    figures::drawn("layout.svg".to_owned(), "The first blocks of each thread".to_owned(), caption, &grid)
}

fn filled(thread: &ThreadLayout) -> impl Iterator<Item = &Allocated> {
    thread.blocks.iter().filter(|block| block.phase == AllocationPhase::Prefill)
}

fn panel(name: &str, threads: &[ThreadLayout]) -> Blocks {
    let kinds = kinds(threads);
    let placed = |thread: &ThreadLayout, is_own: bool| -> Vec<Placed> {
        let placed = |block: &Allocated| Placed {
            address: block.address,
            size: block.size.max(1),
            kind_idx: kinds.iter().position(|(kind, _)| *kind == layout::kind(block)).unwrap_or(0),
            is_own,
        };
        // An address at the end of memory is nobody's block, and has no line after it.
        let mut placed: Vec<Placed> =
            filled(thread).map(placed).filter(|it| it.address.checked_add(it.size).is_some()).collect();
        placed.sort_by_key(|block| block.address);
        placed
    };
    let lane = |(thread_idx, thread): (usize, &ThreadLayout)| {
        let mut blocks = placed(thread, true);
        let name = format!("thread {thread_idx}: {} listed", counted(blocks.len(), "block"));
        blocks.truncate(MAX_BLOCKS);
        let own: BTreeSet<u64> = blocks.iter().flat_map(|block| [block.lines().0, block.lines().1]).collect();
        let others = threads.iter().enumerate().filter(|(idx, _)| *idx != thread_idx);
        let others = others.flat_map(|(_, other)| placed(other, false));
        blocks.extend(others.filter(|block| own.contains(&block.lines().0) || own.contains(&block.lines().1)));
        Lane { name, blocks }
    };
    let lanes: Vec<Lane> =
        threads.iter().enumerate().take(MAX_THREADS).map(lane).filter(|it| !it.blocks.is_empty()).collect();
    let kinds: Vec<Kind> = kinds.into_iter().map(|(_, kind)| kind).collect();
    let told: Vec<String> = lanes.iter().map(|lane| format!("{}: {}", lane.name, told(lane, &kinds))).collect();
    Blocks { heading: text::visible(name), told: text::visible(&format!("{name}; {}", told.join("; "))), kinds, lanes }
}

/// The letters of a lane in order of address, with dots where lines are left out.
fn told(lane: &Lane, kinds: &[Kind]) -> String {
    let mut told = String::new();
    let own: Vec<&Placed> = lane.blocks.iter().filter(|block| block.is_own).collect();
    for (idx, block) in own.iter().enumerate() {
        if idx > 0 && block.lines().0 > own[idx - 1].lines().1 + 1 {
            told.push('…');
        }
        told.push(kinds[block.kind_idx].letter);
    }
    told
}

/// Returns the kinds of blocks, each with a letter of its own and the bytes that its blocks take.
fn kinds(threads: &[ThreadLayout]) -> Vec<(String, Kind)> {
    let mut sizes: BTreeMap<String, BTreeSet<(u64, Option<u64>)>> = BTreeMap::new();
    for block in threads.iter().flat_map(filled) {
        sizes.entry(layout::kind(block)).or_default().insert((block.size, block.usable));
    }
    let mut taken = BTreeSet::new();
    let letter = |name: &str, taken: &mut BTreeSet<char>| {
        let own = name.chars().filter(char::is_ascii_alphabetic).map(|letter| letter.to_ascii_uppercase());
        // Blocks of no known type are numbered, so that letters are nodes.
        let own = own.filter(|_| is_type(name)).chain(('1'..='9').filter(|_| !is_type(name)));
        let letter = own.chain('A'..='Z').find(|letter| !taken.contains(letter)).unwrap_or('?');
        taken.insert(letter);
        letter
    };
    let size = |&(size, usable): &(u64, Option<u64>)| match usable {
        Some(usable) if usable != size => format!("{size} of {usable} B"),
        _ => format!("{size} B"),
    };
    let named = |(name, sizes): (String, BTreeSet<(u64, Option<u64>)>)| {
        let letter = letter(&name, &mut taken);
        let mut shown: Vec<String> = sizes.iter().take(3).map(size).collect();
        if sizes.len() > shown.len() {
            shown.push("…".to_owned());
        }
        let of = if is_type(&name) { &name } else { "of no known type" };
        let text = text::visible(&format!("{of}: {}", shown.join(", ")));
        (name, Kind { letter, name: text })
    };
    // Nodes first, so that they have the same colour wherever there is one type of them.
    let (known, unknown): (Vec<_>, Vec<_>) = sizes.into_iter().partition(|(name, _)| is_type(name));
    known.into_iter().chain(unknown).map(named).collect()
}

/// Tells whether the name of a kind is that of a type: blocks of no known type are named by their size.
fn is_type(name: &str) -> bool {
    !name.starts_with(|letter: char| letter.is_ascii_digit())
}
