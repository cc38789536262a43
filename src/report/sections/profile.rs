//! Section `profile`: where the time of each structure goes, as `perf record` sampled it.

use std::collections::{BTreeMap, BTreeSet};

use super::{Context, Section};
use crate::{
    record::{Watched, watched::Profile},
    report::{
        block::{Block, Cell, Figure, Table},
        number::{self, NONE, counted},
        plot::{self, Drawing},
        probed::{self, Naming, per_operation},
        symbol,
    },
    stats::validity,
    verdict::instruments::PROFILE,
};

pub(super) const SECTION: Section = Section { id: "profile", title: "Hot symbols", build };

/// Symbols of each structure in the table that all see.
const MAX_SYMBOLS: usize = 3;

/// Symbols behind the line of a structure.
const MAX_LISTED: usize = 12;

/// Lines that are listed of a structure.
const MAX_LINES: usize = 10;

/// Flame graphs of a report: each takes some tens of kilobytes.
const MAX_GRAPHS: usize = 12;

/// Symbols whose shares changed that are listed.
const MAX_CHANGES: usize = 8;

/// A structure with what was sampled of it.
struct Sampled<'a> {
    name: String,
    is_bound: bool,
    profile: &'a Profile,
}

fn build(context: &Context) -> Vec<Block> {
    let evidence = context.evidence;
    if !evidence.plan.instruments.iter().any(|name| name == PROFILE) {
        return vec![probed::not_asked(PROFILE, "Samples of call stacks were")];
    }
    let all = evidence.probes(PROFILE);
    let cells: Vec<_> = all.iter().map(|probed| probed.cell).collect();
    let naming = Naming::new(evidence, &cells);
    let (mut sampled, mut missing) = (Vec::new(), Vec::new());
    for one in &all {
        let name = naming.name(evidence, one.cell);
        let profile = probed::sole(evidence, one).and_then(|replied| match replied.trial.watched.as_deref() {
            Some(Watched::Profile(profile)) => Ok(profile),
            _ => Err("its record holds nothing of perf's".to_owned()),
        });
        match profile {
            Ok(profile) => {
                let is_bound = validity::stores_nothing(&one.cell.structure().name);
                sampled.push(Sampled { name, is_bound, profile });
            }
            Err(why) => missing.push((name, why)),
        }
    }
    let mut blocks = Vec::new();
    if !sampled.is_empty() {
        blocks.push(Block::Table(hottest(&sampled, &naming.common(evidence, &cells))));
    }
    blocks.extend(probed::missing("Not known", &missing));
    blocks.extend(sampled.iter().enumerate().map(|(idx, one)| details(idx, one)));
    blocks.extend(difference(&sampled));
    blocks
}

fn share(weight: u64, profile: &Profile) -> String {
    per_operation(weight, profile.weight).map_or(NONE.to_owned(), number::percent)
}

/// The few hottest symbols of every structure.
fn hottest(sampled: &[Sampled], configuration: &str) -> Table {
    let columns = [("structure", None), ("time", Some("share")), ("symbol", None), ("hottest lines", None)];
    let setting = if configuration.is_empty() { String::new() } else { format!(": {configuration}") };
    let mut table = Table::new(format!("Where the time goes{setting}"), &columns);
    for one in sampled {
        for (idx, hot) in one.profile.symbols.iter().take(MAX_SYMBOLS).enumerate() {
            let lines = hot.lines.iter().map(|line| (line.file.as_str(), line.line, share(line.weight, one.profile)));
            table.row(vec![
                Cell { again: idx > 0, ..Cell::new(&one.name) },
                Cell::new(share(hot.weight, one.profile)),
                Cell::code(symbol::short(&hot.symbol)),
                Cell::new(symbol::lines(lines)),
            ]);
        }
    }
    let mut events: Vec<&str> = Vec::new();
    for one in sampled {
        if !events.contains(&one.profile.event.as_str()) {
            events.push(&one.profile.event);
        }
    }
    let is_timer = events.iter().any(|event| event.starts_with("cpu-clock"));
    let skid = if is_timer {
        " A timer's sample falls a little behind the instruction that took the time, so lines are near, not exact."
    } else {
        ""
    };
    table.noted(format!(
        "Event really recorded: {}. Shares are of all samples of the window; a symbol's are those in which it is the innermost \
         frame, what is inlined told apart where debug information tells.{skid}",
        events.join(", ")
    ))
}

/// All that is known of one structure.
fn details(idx: usize, one: &Sampled) -> Block {
    let profile = one.profile;
    let samples = counted(usize::try_from(profile.samples).unwrap_or(usize::MAX), "sample");
    let lost = if profile.lost == 0 { "none lost".to_owned() } else { format!("{} lost", profile.lost) };
    let threads = counted(profile.threads as usize, "thread");
    let summary = format!("{}: {samples} of {} from {threads}, {lost}", one.name, profile.event);
    let mut blocks = Vec::new();
    let title = format!("Flame graph of {}", one.name);
    let told = format!("{title}: {}", told(profile));
    if let Some(drawing) = (idx < MAX_GRAPHS).then(|| plot::flame(profile, &told)).flatten() {
        let caption = "A frame is as wide as its share of the samples, and stands on what called it. Left out are frames \
                       below half a percent and the outermost ones that most samples have in common.";
        blocks.push(figure(format!("flame-{}.svg", idx + 1), title, caption.to_owned(), drawing));
    }
    let mut symbols = Table::new("Symbols", &[("time", Some("share")), ("samples", Some("")), ("symbol", None)]);
    for hot in profile.symbols.iter().take(MAX_LISTED) {
        symbols.row(vec![
            Cell::new(share(hot.weight, profile)),
            Cell::new(hot.samples.to_string()),
            Cell::code(symbol::short(&hot.symbol)),
        ]);
    }
    let n_more = usize::try_from(profile.n_symbols).unwrap_or(usize::MAX).saturating_sub(symbols.rows.len());
    let note = if n_more > 0 {
        format!("{} with fewer samples are left out.", counted(n_more, "symbol"))
    } else {
        String::new()
    };
    blocks.push(Block::Table(symbols.noted(note)));
    blocks.extend(lines(profile).map(Block::Table));
    Block::details(summary, blocks)
}

/// The hottest symbols in words.
fn told(profile: &Profile) -> String {
    let hot = profile.symbols.iter().take(MAX_SYMBOLS);
    let hot: Vec<String> =
        hot.map(|it| format!("{} {}", symbol::short(&it.symbol), share(it.weight, profile))).collect();
    hot.join(", ")
}

fn lines(profile: &Profile) -> Option<Table> {
    let all = profile.symbols.iter().flat_map(|hot| hot.lines.iter().map(move |line| (hot, line)));
    let mut all: Vec<_> = all.collect();
    // Stable: of equals the one of the hotter symbol is first.
    all.sort_by_key(|(_, line)| std::cmp::Reverse(line.weight));
    let columns = [("time", Some("share")), ("samples", Some("")), ("line", None), ("symbol", None)];
    let mut table = Table::new("Source lines", &columns);
    for (hot, line) in all.into_iter().take(MAX_LINES) {
        table.row(vec![
            Cell::new(share(line.weight, profile)),
            Cell::new(line.samples.to_string()),
            Cell::code(format!("{}:{}", symbol::file(&line.file), line.line)),
            Cell::code(symbol::short(&hot.symbol)),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

fn figure(file: String, title: String, caption: String, drawing: Drawing) -> Block {
    let Drawing { inline, standalone } = drawing;
    Block::Figure(Figure { file, title, caption, n_columns: 1, inline, standalone })
}

/// What becomes of each frame from the first structure to the second.
fn difference(sampled: &[Sampled]) -> Option<Block> {
    let mut competing = sampled.iter().filter(|one| !one.is_bound);
    let (before, after) = (competing.next()?, competing.next()?);
    let title = format!("Flame graph of {} against {}", after.name, before.name);
    let changes = changes(before, after);
    let drawing = plot::difference(before.profile, after.profile, &title)?;
    let caption = format!(
        "The samples of {}; orange: a larger share than in {}, blue: a smaller one, grey: the same. What only {} has is not \
         drawn; the table has it.",
        after.name, before.name, before.name
    );
    let figure = figure("flame-difference.svg".to_owned(), title, caption, drawing);
    let summary = format!("{} against {}: where their time differs", after.name, before.name);
    Some(Block::details(summary, vec![figure, Block::Table(changes)]))
}

fn changes(before: &Sampled, after: &Sampled) -> Table {
    let sides = [before, after].map(|one| shares(one.profile));
    let symbols: BTreeSet<&str> = sides.iter().flat_map(|shares| shares.keys().copied()).collect();
    // A symbol is known to have no sample only where all are listed.
    let absent = [before, after].map(|one| (one.profile.n_symbols <= one.profile.symbols.len() as u64).then_some(0.0));
    let share_of = |side: usize, symbol: &str| sides[side].get(symbol).copied().or(absent[side]);
    let of = |symbol| (symbol, [share_of(0, symbol), share_of(1, symbol)]);
    let difference = |[before, after]: [Option<f64>; 2]| Some(after? - before?);
    let mut all: Vec<(&str, [Option<f64>; 2])> = symbols.into_iter().map(of).collect();
    let size = |shares| difference(shares).map_or(0.0, f64::abs);
    all.sort_by(|(_, a), (_, b)| size(*b).total_cmp(&size(*a)));
    let columns = [
        (before.name.clone(), Some("share")),
        (after.name.clone(), Some("share")),
        ("difference".to_owned(), Some("points")),
        ("symbol".to_owned(), None),
    ];
    let mut table = Table::new("Symbols whose shares differ most", &columns);
    for (symbol, shares) in all.into_iter().take(MAX_CHANGES) {
        let [before, after] = shares.map(|share| Cell::new(share.map_or(NONE.to_owned(), number::percent)));
        let points = difference(shares).map_or(NONE.to_owned(), |points| format!("{:+.1}", 100.0 * points));
        table.row(vec![before, after, Cell::new(points), Cell::code(symbol::short(symbol))]);
    }
    table
}

/// The share of each symbol that is listed.
fn shares(profile: &Profile) -> BTreeMap<&str, f64> {
    let share = |weight| per_operation(weight, profile.weight).unwrap_or(0.0);
    let mut shares: BTreeMap<&str, f64> = BTreeMap::new();
    for hot in &profile.symbols {
        *shares.entry(&hot.symbol).or_default() += share(hot.weight);
    }
    shares
}
