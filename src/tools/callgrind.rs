//! Reads what callgrind writes: the costs of each function itself, and of its source lines.
//!
//! Source: *Callgrind Format Specification*, version 1, in the valgrind manual. Costs of calls are skipped, since they are
//! the sum of what the called functions cost themselves; of the objects that functions come from nothing is kept.

use std::collections::{BTreeMap, HashMap};

use super::name;
use crate::record::watched::{FunctionCost, LineCost, Simulated};

/// Most functions that are kept. The totals are of all.
const FUNCTIONS_MAX: usize = 60;

/// Most lines of a function that are kept.
const LINES_MAX: usize = 12;

/// Most events that are read; callgrind has some twenty.
const EVENTS_MAX: usize = 64;

/// Why the output of callgrind gives no figures.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallgrindError {
    /// Nothing was written.
    #[error("callgrind wrote nothing: it did not start, or did not end by itself")]
    Empty,
    /// A part has no end.
    #[error("callgrind's output is cut: part {part} has no totals")]
    Cut {
        /// Which part, from 1.
        part: usize,
    },
    /// A line is not of the format.
    #[error("callgrind's output is garbled in line {line}: {what}")]
    Garbled {
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// Parts count different events.
    #[error("the parts of callgrind's output count different events: {0}, and {1}")]
    OtherEvents(String, String),
    /// What callgrind summed up is not the sum of what it listed.
    #[error("callgrind contradicts itself: {event} are {listed} as listed, {summed} as summed up")]
    Contradiction {
        /// Which event.
        event: String,
        /// The sum of the list.
        listed: u64,
        /// Its own sum.
        summed: u64,
    },
    /// Nothing was collected.
    #[error("callgrind collected nothing: no thread told it that its window began")]
    NothingCollected,
}

/// Reads what callgrind wrote, which may be several files and each of several parts; the costs of all are added.
///
/// # Errors
/// One [`CallgrindError`] for each way in which these are no figures. Never panics; takes memory in proportion to `files`.
pub fn read(files: &[&[u8]]) -> Result<Simulated, CallgrindError> {
    if files.iter().all(|file| file.iter().all(u8::is_ascii_whitespace)) {
        return Err(CallgrindError::Empty);
    }
    let texts: Vec<_> = files.iter().map(|file| String::from_utf8_lossy(file)).collect();
    let mut costs = Costs::default();
    for text in &texts {
        let mut reader = Reader::new(&mut costs);
        for (line_idx, line) in text.lines().enumerate() {
            reader.line(line).map_err(|fault| fault.at(line_idx + 1))?;
        }
        reader.end_part()?;
    }
    costs.finish()
}

/// A fault of a line, or of the whole.
enum Fault {
    Line(&'static str),
    Whole(CallgrindError),
}

impl Fault {
    fn at(self, line: usize) -> CallgrindError {
        match self {
            Self::Line(what) => CallgrindError::Garbled { line, what },
            Self::Whole(error) => error,
        }
    }
}

impl From<&'static str> for Fault {
    fn from(what: &'static str) -> Self {
        Self::Line(what)
    }
}

/// What all parts told. Costs are kept as short as they were written: those that are missing at the end are zero.
#[derive(Default)]
struct Costs<'t> {
    version: Option<&'t str>,
    caches: Vec<&'t str>,
    events: Vec<&'t str>,
    totals: Vec<u64>,
    n_parts: usize,
    /// By function, file and line, as positions in `names`.
    lines: HashMap<(u32, u32, u32), Vec<u64>>,
    names: Names<'t>,
}

/// Every name once.
#[derive(Default)]
struct Names<'t> {
    list: Vec<&'t str>,
    positions: HashMap<&'t str, u32>,
}

impl<'t> Names<'t> {
    fn intern(&mut self, name: &'t str) -> u32 {
        *self.positions.entry(name).or_insert_with(|| {
            self.list.push(name);
            // A text of four gigabytes would be needed to have more.
            u32::try_from(self.list.len() - 1).unwrap_or(u32::MAX)
        })
    }

    fn get(&self, position: u32) -> &'t str {
        self.list.get(position as usize).copied().unwrap_or_default()
    }
}

/// What the lines before a line say about it.
struct Reader<'r, 't> {
    costs: &'r mut Costs<'t>,
    /// Names by their numbers: of files and of functions.
    files: HashMap<u64, u32>,
    functions: HashMap<u64, u32>,
    file: Option<u32>,
    function: Option<u32>,
    /// The last position of each column.
    positions: Vec<u64>,
    /// Which column is the source line.
    line_column: usize,
    /// The next line of costs is of a call or a jump.
    skips: bool,
    part: Part,
}

/// State of a part.
#[derive(Default)]
struct Part {
    is_open: bool,
    listed: Vec<u64>,
    totals: Option<Vec<u64>>,
}

impl<'r, 't> Reader<'r, 't> {
    fn new(costs: &'r mut Costs<'t>) -> Self {
        Self {
            costs,
            files: HashMap::new(),
            functions: HashMap::new(),
            file: None,
            function: None,
            positions: vec![0],
            line_column: 0,
            skips: false,
            part: Part::default(),
        }
    }

    fn line(&mut self, line: &'t str) -> Result<(), Fault> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if line.starts_with(|letter: char| letter.is_ascii_digit() || "+-*".contains(letter)) {
            return self.cost_line(line);
        }
        if let Some((key, value)) = line.split_once('=').filter(|(key, _)| is_word(key)) {
            return self.position(key, value.trim());
        }
        match line.split_once(':').filter(|(key, _)| is_word(key)) {
            Some((key, value)) => self.header(key, value.trim()),
            None => Err("it is neither a header, nor a position, nor costs".into()),
        }
    }

    fn header(&mut self, key: &str, value: &'t str) -> Result<(), Fault> {
        match key {
            // Both begin a part: `version` the first of a file, `part` each.
            "version" if value != "1" => return Err("it is of another version of the format".into()),
            "part" if self.part.is_open => self.end_part().map_err(Fault::Whole)?,
            "creator" => self.costs.version = value.strip_prefix("callgrind-").or(self.costs.version),
            "desc" if value.contains(" cache: ") => self.costs.cache(value),
            "positions" => self.columns(value)?,
            "events" => self.events(value)?,
            "totals" => {
                if !self.part.is_open || self.part.totals.is_some() {
                    return Err("totals without a part".into());
                }
                self.part.totals = Some(self.numbers(value.split_whitespace())?);
            }
            _ => {}
        }
        Ok(())
    }

    fn columns(&mut self, value: &str) -> Result<(), Fault> {
        let mut columns = value.split_whitespace();
        self.line_column = columns.clone().position(|column| column == "line").ok_or("there are no source lines")?;
        if columns.clone().count() > 2 || columns.any(|column| !["line", "instr"].contains(&column)) {
            return Err("there are unknown positions".into());
        }
        self.positions = vec![0; value.split_whitespace().count()];
        Ok(())
    }

    fn events(&mut self, value: &'t str) -> Result<(), Fault> {
        if self.part.is_open {
            self.end_part().map_err(Fault::Whole)?;
        }
        let events: Vec<&str> = value.split_whitespace().take(EVENTS_MAX + 1).collect();
        if events.is_empty() || events.len() > EVENTS_MAX {
            return Err("it names no events, or too many".into());
        }
        if self.costs.n_parts > 0 && self.costs.events != events {
            let (before, now) = (self.costs.events.join(" "), events.join(" "));
            let short = |text: String| name::readable(&text);
            return Err(Fault::Whole(CallgrindError::OtherEvents(short(before), short(now))));
        }
        self.costs.events = events;
        self.costs.n_parts += 1;
        self.part = Part { is_open: true, ..Part::default() };
        self.positions.fill(0);
        Ok(())
    }

    /// Takes a `key=value` line.
    fn position(&mut self, key: &str, value: &'t str) -> Result<(), Fault> {
        match key {
            // The file of a function, of what is inlined into it, and of the function again: each holds until the next.
            "fl" | "fi" | "fe" => self.file = Some(name_of(value, &mut self.files, &mut self.costs.names)?),
            "fn" => self.function = Some(name_of(value, &mut self.functions, &mut self.costs.names)?),
            // These define names which later lines refer to.
            "cfl" | "cfi" => _ = name_of(value, &mut self.files, &mut self.costs.names)?,
            "cfn" => _ = name_of(value, &mut self.functions, &mut self.costs.names)?,
            "calls" | "jump" | "jcnd" => self.skips = true,
            "ob" | "cob" => {}
            _ => return Err("it has an unknown key".into()),
        }
        Ok(())
    }

    fn cost_line(&mut self, line: &str) -> Result<(), Fault> {
        if !self.part.is_open {
            return Err("costs before their events".into());
        }
        let mut words = line.split_ascii_whitespace();
        for position in &mut self.positions {
            let word = words.next().ok_or("it has too few positions")?;
            *position = moved(*position, word).ok_or("a position is no number")?;
        }
        if std::mem::take(&mut self.skips) {
            return Ok(());
        }
        let costs = self.numbers(words)?;
        let function = self.function.ok_or("costs without a function")?;
        // A function without a file has no source.
        let file = self.file.unwrap_or_else(|| self.costs.names.intern("???"));
        let line = u32::try_from(self.positions[self.line_column]).map_err(|_| "its line number is too large")?;
        add(&mut self.part.listed, &costs)?;
        match self.costs.lines.entry((function, file, line)) {
            std::collections::hash_map::Entry::Occupied(entry) => add(entry.into_mut(), &costs)?,
            std::collections::hash_map::Entry::Vacant(entry) => _ = entry.insert(costs),
        }
        Ok(())
    }

    fn numbers<'w>(&self, words: impl Iterator<Item = &'w str>) -> Result<Vec<u64>, Fault> {
        let numbers: Option<Vec<u64>> = words.take(EVENTS_MAX + 1).map(number).collect();
        let mut numbers = numbers.ok_or("a cost is no number")?;
        if numbers.len() > self.costs.events.len() {
            return Err("it has more costs than there are events".into());
        }
        numbers.shrink_to_fit();
        Ok(numbers)
    }

    /// Ends a part: its totals must be there, and be the sum of what it listed.
    fn end_part(&mut self) -> Result<(), CallgrindError> {
        let part = std::mem::take(&mut self.part);
        let Some(totals) = part.totals.filter(|_| part.is_open) else {
            return Err(CallgrindError::Cut { part: self.costs.n_parts.max(1) });
        };
        for (at, event) in self.costs.events.iter().enumerate() {
            let of = |costs: &[u64]| costs.get(at).copied().unwrap_or(0);
            let (listed, summed) = (of(&part.listed), of(&totals));
            if listed != summed {
                return Err(CallgrindError::Contradiction { event: name::readable(event), listed, summed });
            }
        }
        add(&mut self.costs.totals, &totals).map_err(|_| CallgrindError::Garbled { line: 0, what: OVERFLOW })
    }
}

const OVERFLOW: &str = "the sum of costs overflows";

fn add(sum: &mut Vec<u64>, costs: &[u64]) -> Result<(), &'static str> {
    if sum.len() < costs.len() {
        sum.resize(costs.len(), 0);
    }
    for (sum, cost) in sum.iter_mut().zip(costs) {
        *sum = sum.checked_add(*cost).ok_or(OVERFLOW)?;
    }
    Ok(())
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Reads a decimal or hexadecimal number.
fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

/// Returns the position that a word names: absolute, or relative to the last one.
fn moved(last: u64, word: &str) -> Option<u64> {
    match word.as_bytes().first()? {
        b'+' => last.checked_add(number(&word[1..])?),
        b'-' => last.checked_sub(number(&word[1..])?),
        b'*' => (word.len() == 1).then_some(last),
        _ => number(word),
    }
}

/// Returns the position of a name: `name`, `(12) name`, which also gives it a number, or `(12)`, which refers to that.
fn name_of<'t>(value: &'t str, numbered: &mut HashMap<u64, u32>, names: &mut Names<'t>) -> Result<u32, &'static str> {
    let compressed = value.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    let compressed = compressed.and_then(|(digits, name)| Some((digits.parse::<u64>().ok()?, name.trim())));
    match compressed {
        Some((key, "")) => numbered.get(&key).copied().ok_or("it refers to a name that was not given"),
        Some((key, name)) => Ok(*numbered.entry(key).insert_entry(names.intern(name)).get()),
        None => Ok(names.intern(value)),
    }
}

impl<'t> Costs<'t> {
    /// Keeps the description of a cache.
    fn cache(&mut self, description: &'t str) {
        /// One for instructions, one for data, one behind both.
        const CACHES_MAX: usize = 3;
        if self.caches.len() < CACHES_MAX && !self.caches.contains(&description) {
            self.caches.push(description);
        }
    }
}

/// Lines of a function: file, line, costs.
type Lines = Vec<(u32, u32, Vec<u64>)>;

impl Costs<'_> {
    fn finish(self) -> Result<Simulated, CallgrindError> {
        let first = |costs: &[u64]| costs.first().copied().unwrap_or(0);
        if self.totals.iter().all(|total| *total == 0) {
            return Err(CallgrindError::NothingCollected);
        }
        let n_events = self.events.len();
        let padded = |mut costs: Vec<u64>| {
            costs.resize(n_events, 0);
            costs
        };
        let mut functions: BTreeMap<u32, (Vec<u64>, Lines)> = BTreeMap::new();
        for ((function, file, line), costs) in self.lines {
            let (sum, lines) = functions.entry(function).or_default();
            // The sum of all has not overflown.
            let _ = add(sum, &costs);
            lines.push((file, line, costs));
        }
        let mut functions: Vec<_> =
            functions.into_iter().filter(|(_, (sum, _))| sum.iter().any(|cost| *cost > 0)).collect();
        let n_functions = functions.len() as u64;
        functions.sort_by_key(|(function, (sum, _))| (std::cmp::Reverse(first(sum)), self.names.get(*function)));
        functions.truncate(FUNCTIONS_MAX);
        let function = |(function, (costs, mut lines)): (u32, (Vec<u64>, Lines))| {
            lines.retain(|(_, line, _)| *line > 0);
            lines.sort_by_key(|(file, line, costs)| (std::cmp::Reverse(first(costs)), self.names.get(*file), *line));
            lines.truncate(LINES_MAX);
            let line = |(file, line, costs)| LineCost {
                file: name::readable(self.names.get(file)),
                line,
                costs: padded(costs),
            };
            FunctionCost {
                function: name::readable(self.names.get(function)),
                costs: padded(costs),
                lines: lines.into_iter().map(line).collect(),
            }
        };
        Ok(Simulated {
            version: self.version.map(name::readable),
            caches: self.caches.iter().map(|cache| name::readable(cache)).collect(),
            events: self.events.iter().map(|event| name::readable(event)).collect(),
            totals: padded(self.totals),
            functions: functions.into_iter().map(function).collect(),
            n_functions,
        })
    }
}
