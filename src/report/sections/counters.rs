//! Section `counters`: what an operation of each structure takes, as the processor counted it and as callgrind
//! simulated it.
//!
//! What was counted and what was simulated stand beside each other and are never mixed; what could not be counted is said
//! to be so, and is never zero. Idea of the table: Brown, Good data structure experiments are R.A.R.E., where it explains
//! the skip list.

use rare_workloads::protocol::{Count, Counter};

use super::{Context, Section};
use crate::{
    plan::Mode,
    report::{
        block::{Block, Cell, Table},
        number::{self, NONE, counted},
        probed::{self, INSTRUCTIONS, L1_MISSES, Naming, SUMS, Simulation, amount, per_operation},
        symbol,
    },
    stats::validity,
    verdict::{evidence::Probed, instruments::COUNTERS},
};

pub(super) const SECTION: Section = Section { id: "counters", title: "Counters", build };

/// Events of the processor that the table shows, and how it calls them.
const HARDWARE: [(&str, &str); 5] = [
    ("instructions", "instructions"),
    ("cycles", "cycles"),
    ("l1d-read-misses", "L1 read misses"),
    ("llc-read-misses", "LLC read misses"),
    ("branch-misses", "branch misses"),
];

/// Events of the kernel that are counted over the whole window.
const SOFTWARE: [&str; 3] = ["context-switches", "page-faults", "cpu-migrations"];

/// The CPU time of all threads in nanoseconds.
const CPU_TIME: &str = "task-clock";

/// Functions of each structure whose instructions are shown.
const MAX_FUNCTIONS: usize = 3;

/// Share of the instructions of a structure below which a function is not shown.
const MIN_SHARE: f64 = 0.01;

/// Below this ratio of the most to the fewest instructions no structure stands out.
const ALIKE: f64 = 1.05;

/// What is known of one structure in its base setting.
struct Row<'a> {
    name: String,
    /// It stores nothing: a bound, not a competitor.
    is_bound: bool,
    /// Operations of the trial, and its counters.
    counted: Option<(u64, &'a [Counter])>,
    simulated: Option<Simulation<'a>>,
}

fn build(context: &Context) -> Vec<Block> {
    let evidence = context.evidence;
    if !evidence.plan.instruments.iter().any(|name| name == COUNTERS) {
        return vec![probed::not_asked(COUNTERS, "Counts per operation were")];
    }
    let all = evidence.probes(COUNTERS);
    let cells: Vec<_> = all.iter().map(|probed| probed.cell).collect();
    let naming = Naming::new(evidence, &cells);
    let (rows, missing) = rows(context, &all, &naming);
    let mut blocks: Vec<Block> = outlier(&rows).map(Block::paragraph).into_iter().collect();
    if rows.iter().any(|row| row.counted.is_some() || row.simulated.is_some()) {
        blocks.push(Block::Table(hardware(&rows, &naming.common(evidence, &cells))));
    }
    blocks.extend(probed::missing("Not known", &missing));
    blocks.extend(software(&rows).map(Block::Table));
    blocks.extend(functions(&rows));
    blocks
}

/// Returns a row for each structure, and what is missing of which structure.
fn rows<'a>(context: &Context<'a>, all: &[Probed<'a>], naming: &Naming) -> (Vec<Row<'a>>, Vec<(String, String)>) {
    let (mut rows, mut missing): (Vec<Row>, Vec<(String, String)>) = (Vec::new(), Vec::new());
    let of_mode = |mode| all.iter().filter(move |probed| probed.probe.mode == mode);
    for one in of_mode(Mode::Counters) {
        let name = naming.name(context.evidence, one.cell);
        let mut lacks = |what: &str, why: String| missing.push((format!("{what} of {name}"), why));
        let counted = probed::sole(context.evidence, one).and_then(|replied| {
            let counters = replied.reply.counters.as_deref().ok_or("its reply holds no counters")?;
            Ok((probed::operations(&replied), counters))
        });
        let twin = of_mode(Mode::Simulate).find(|twin| twin.probe.setting == one.probe.setting);
        let simulated = twin.ok_or_else(|| "the plan asks for none".to_owned());
        let simulated = simulated.and_then(|twin| Simulation::of(context.evidence, twin));
        let is_bound = validity::stores_nothing(&one.cell.structure().name);
        let counted = counted.map_err(|why| lacks("counts", why)).ok();
        let simulated = simulated.map_err(|why| lacks("the simulation", why)).ok();
        rows.push(Row { name, is_bound, counted, simulated });
    }
    (rows, missing)
}

impl Row<'_> {
    /// Returns a counter, and whether it leaves the kernel out.
    fn counter(&self, event: &str) -> Option<(&Count, bool)> {
        let (_, counters) = self.counted?;
        let found = counters.iter().find(|counter| base_name(&counter.event) == event)?;
        Some((&found.count, found.event != event))
    }

    /// Returns what was counted of an event for each operation, extrapolated or not.
    fn counted_per_operation(&self, event: &str) -> Option<f64> {
        let (operations, _) = self.counted?;
        per_operation(value(self.counter(event)?.0)?, operations)
    }

    fn counted_cell(&self, event: &str) -> Cell {
        let cell = Cell::new(amount(self.counted_per_operation(event)));
        match self.counter(event) {
            Some((count, is_part)) => cell.note(remarks(count, is_part)),
            None => cell,
        }
    }
}

/// Returns the name of an event without the mark that the kernel was left out.
fn base_name(event: &str) -> &str {
    event.strip_suffix(":u").unwrap_or(event)
}

fn value(count: &Count) -> Option<u64> {
    match count {
        Count::Counted(count) => Some(*count),
        Count::Multiplexed { estimate, .. } => Some(*estimate),
        Count::Unsupported(_) | Count::Denied(_) => None,
    }
}

/// What a reader must know of a count.
fn remarks(count: &Count, is_part: bool) -> String {
    let share = match count {
        Count::Multiplexed { running_ns, enabled_ns, .. } if *enabled_ns > 0 => {
            let share = *running_ns as f64 / *enabled_ns as f64;
            Some(format!("multiplexed, {} of the time", number::percent(share)))
        }
        Count::Unsupported(_) => Some("not supported".to_owned()),
        Count::Denied(_) => Some("not permitted".to_owned()),
        _ => None,
    };
    let part = (is_part && value(count).is_some()).then(|| "without the kernel".to_owned());
    share.into_iter().chain(part).collect::<Vec<String>>().join("; ")
}

/// The structures with the most and the fewest instructions.
fn outlier(rows: &[Row]) -> Option<String> {
    let competing: Vec<&Row> = rows.iter().filter(|row| !row.is_bound).collect();
    let by_counting = |row: &Row| row.counted_per_operation("instructions");
    let by_simulation = |row: &Row| row.simulated?.per_operation(&INSTRUCTIONS);
    let is_counted = competing.iter().all(|row| by_counting(row).is_some());
    let of = |row: &Row| if is_counted { by_counting(row) } else { by_simulation(row) };
    let mut known: Vec<(&Row, f64)> = competing.iter().filter_map(|row| Some((*row, of(row)?))).collect();
    // Stable, so that of equals the first in the plan is named.
    known.sort_by(|a, b| a.1.total_cmp(&b.1));
    let [(fewest, low), .., (most, high)] = known.as_slice() else { return None };
    let source = if is_counted { "counted" } else { "simulated" };
    if *low <= 0.0 || high / low < ALIKE {
        return Some(format!(
            "No structure stands out: an operation takes {} to {} instructions ({source}).",
            amount(Some(*low)),
            amount(Some(*high))
        ));
    }
    let misses = |row: &Row| {
        if is_counted { row.counted_per_operation("l1d-read-misses") } else { row.simulated?.per_operation(&L1_MISSES) }
    };
    let misses = match (misses(most), misses(fewest)) {
        (Some(most), Some(fewest)) => {
            format!("; their misses of the first-level cache are {} and {}", amount(Some(most)), amount(Some(fewest)))
        }
        _ => String::new(),
    };
    Some(format!(
        "{} takes the most instructions per operation, {}, and {} the fewest, {} ({source}): {} as many{misses}.{}",
        most.name,
        amount(Some(*high)),
        fewest.name,
        amount(Some(*low)),
        number::ratio(high / low),
        hottest(most),
    ))
}

/// Where the instructions of a structure are, in one sentence with a space before it; empty if that is not known.
fn hottest(row: &Row) -> String {
    let hottest = || {
        let simulated = row.simulated?;
        let function = simulated.seen.functions.first()?;
        let share = simulated.share(&function.costs)?;
        let name = symbol::short(&function.function);
        Some(format!(" Of {}'s, callgrind finds {} in {name}.", row.name, number::percent(share)))
    };
    hottest().unwrap_or_default()
}

fn hardware(rows: &[Row], configuration: &str) -> Table {
    let is_known = |event: &str| rows.iter().any(|row| row.counted_per_operation(event).is_some());
    let shown: Vec<(&str, &str)> = HARDWARE.into_iter().filter(|(event, _)| is_known(event)).collect();
    let is_simulated = rows.iter().any(|row| row.simulated.is_some());
    let mut columns = vec![("structure", None)];
    columns.extend(shown.iter().map(|(_, title)| (*title, Some("counted"))));
    if is_simulated {
        columns.extend(SUMS.iter().map(|sum| (sum.title, Some("simulated"))));
    }
    let setting = if configuration.is_empty() { String::new() } else { format!(": {configuration}") };
    let mut table = Table::new(format!("What an operation takes{setting}"), &columns);
    for row in rows {
        let bound = if row.is_bound { "bound of the harness" } else { "" };
        let mut cells = vec![Cell::new(&row.name).note(bound)];
        cells.extend(shown.iter().map(|(event, _)| row.counted_cell(event)));
        if is_simulated {
            let simulated = |sum| row.simulated.and_then(|simulated| simulated.per_operation(sum));
            cells.extend(SUMS.map(|sum| Cell::new(amount(simulated(sum)))));
        }
        table.row(cells);
    }
    table.noted([uncounted(rows), simulation(rows)].concat().trim_end())
}

/// How the counted columns came to be, and why others are not there.
fn uncounted(rows: &[Row]) -> String {
    let counters: Vec<&Counter> =
        rows.iter().filter_map(|row| row.counted).flat_map(|(_, counters)| counters).collect();
    if counters.is_empty() {
        return String::new();
    }
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for counter in &counters {
        let (Count::Unsupported(reason) | Count::Denied(reason)) = &counter.count else { continue };
        let event = base_name(&counter.event);
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, events)) if events.contains(&event) => {}
            Some((_, events)) => events.push(event),
            None => reasons.push((reason, vec![event])),
        }
    }
    let reasons: Vec<String> =
        reasons.iter().map(|(reason, events)| format!("Not counted: {} ({reason}). ", events.join(", "))).collect();
    let has_hardware = counters
        .iter()
        .any(|it| HARDWARE.iter().any(|(event, _)| base_name(&it.event) == *event) && value(&it.count).is_some());
    let how = if has_hardware {
        "Counted: by the processor over the windows of all threads of one trial, divided by the operations of that trial. "
    } else {
        ""
    };
    format!("{how}{}", reasons.concat())
}

fn simulation(rows: &[Row]) -> String {
    let Some(first) = rows.iter().find_map(|row| row.simulated) else { return String::new() };
    let mut caches: Vec<&str> = Vec::new();
    for cache in rows.iter().filter_map(|row| row.simulated).flat_map(|simulated| &simulated.seen.caches) {
        if !caches.contains(&cache.as_str()) {
            caches.push(cache);
        }
    }
    let version = first.seen.version.as_deref().map_or(String::new(), |version| format!(" {version}"));
    let caches = if caches.is_empty() { "they are not known".to_owned() } else { caches.join("; ") };
    let operations = Mode::Simulate.operations().map_or(String::new(), |it| format!(" of {it} operations a thread"));
    format!(
        "Simulated: by callgrind{version} in a trial of its own{operations}, with threads that take turns, no prefetching \
         and two levels of cache ({caches}). Neither tells misses of a second level among three."
    )
}

/// Events of the kernel, and what else the processor counted.
fn software(rows: &[Row]) -> Option<Table> {
    let counted_rows: Vec<(&Row, u64, &[Counter])> =
        rows.iter().filter_map(|row| row.counted.map(|(operations, counters)| (row, operations, counters))).collect();
    let mut further: Vec<&str> = Vec::new();
    for counter in counted_rows.iter().flat_map(|(_, _, counters)| *counters) {
        let event = base_name(&counter.event);
        let is_elsewhere =
            HARDWARE.iter().any(|(known, _)| *known == event) || SOFTWARE.contains(&event) || event == CPU_TIME;
        if !is_elsewhere && value(&counter.count).is_some() && !further.contains(&event) {
            further.push(event);
        }
    }
    let mut columns = vec![("structure", None), ("operations", Some("")), ("CPU time per operation", Some("ns"))];
    columns.extend(SOFTWARE.map(|event| (event, Some("in all"))));
    columns.extend(further.iter().map(|event| (*event, Some("per operation"))));
    let mut table = Table::new("Events of the kernel in the counted trials", &columns);
    for (row, operations, _) in &counted_rows {
        let whole = |event: &&str| {
            let count = row.counter(event);
            let text = count.and_then(|(count, _)| value(count)).map_or(NONE.to_owned(), |count| count.to_string());
            Cell::new(text).note(count.map(|(count, is_part)| remarks(count, is_part)).unwrap_or_default())
        };
        let mut cells = vec![Cell::new(&row.name), Cell::new(operations.to_string()), row.counted_cell(CPU_TIME)];
        cells.extend(SOFTWARE.iter().map(whole));
        cells.extend(further.iter().map(|event| row.counted_cell(event)));
        table.row(cells);
    }
    let note = format!("Over the windows of all threads, which do not hold prefill and audits. {NONE}: not counted.");
    (!counted_rows.is_empty()).then(|| table.noted(note))
}

/// The functions in which callgrind counted the most instructions.
fn functions(rows: &[Row]) -> Option<Block> {
    let columns = [("structure", None), ("instructions", Some("share")), ("function", None), ("hottest lines", None)];
    let mut table = Table::new("", &columns);
    for row in rows {
        let Some(simulated) = row.simulated else { continue };
        let share = |costs: &[u64]| simulated.share(costs).map_or(NONE.to_owned(), number::percent);
        let hot = |costs: &[u64]| simulated.share(costs).is_some_and(|share| share >= MIN_SHARE);
        let functions = simulated.seen.functions.iter().filter(|function| hot(&function.costs));
        for (idx, function) in functions.take(MAX_FUNCTIONS).enumerate() {
            let lines = function.lines.iter().map(|it| (it.file.as_str(), it.line, share(&it.costs)));
            table.row(vec![
                Cell { again: idx > 0, ..Cell::new(&row.name) },
                Cell::new(share(&function.costs)),
                Cell::code(symbol::short(&function.function)),
                Cell::new(symbol::lines(lines)),
            ]);
        }
    }
    if table.rows.is_empty() {
        return None;
    }
    let n = counted(table.rows.len(), "function");
    let table = table
        .noted("Of all instructions that callgrind counted within the windows, without those of the functions called.");
    Some(Block::details(format!("Where the instructions are: {n}"), vec![Block::Table(table)]))
}
