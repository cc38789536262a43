//! Reads what `perf script` prints with the arguments of [`super::perf::Perf::script`], and folds it.
//!
//! ```text
//!  9555 30699.302204:    1001001 cpu-clock:ppp:
//! <tab>          2bb252 _ZN14rare_workloads10structures4nm143get17h8624615797943e60E+0x222 (/path/of/rare-worker)
//! <tab>           891f5 start_thread+0x305 (/usr/lib/x86_64-linux-gnu/libc.so.6)
//!
//!  9555 30699.402204: PERF_RECORD_LOST lost 3
//! ```
//!
//! A sample is a thread, a time, what it stands for, the event, and its stack, innermost frame first, up to an empty line.
//! The text has no mark at its end: whether `perf script` ended well, only its exit status tells.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
};

use super::{lines::Lines, name};
use crate::record::watched::{Frame, HotLine, HotSymbol, Profile, Stack};

/// Most symbols that are kept.
const SYMBOLS_MAX: usize = 60;

/// Most lines of a symbol that are kept.
const LINES_MAX: usize = 12;

/// Most distinct stacks that are kept: the rest are too thin to be seen.
const STACKS_MAX: usize = 1_000;

/// Deepest stack that is kept, inlined frames included, counted from the outermost frame.
const DEPTH_MAX: usize = 256;

/// Why there is no profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// There is no sample.
    #[error("perf took no samples{}", if *.lost > 0 { ", and lost some" } else { ": the window is too short, or did not begin" })]
    NoSamples {
        /// Samples that were lost.
        lost: u64,
    },
    /// The text ends within a sample.
    #[error("perf's samples are cut in line {line}")]
    Cut {
        /// Line, from 1.
        line: usize,
    },
    /// A line is not of the format.
    #[error("perf's samples are garbled in line {line}: {what}")]
    Garbled {
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        what: &'static str,
    },
}

/// The program that was sampled, with what names its source lines.
pub struct Program<'p, 'e> {
    /// Its absolute path, as perf names it.
    pub path: &'p str,
    /// Its debug information.
    pub lines: &'p Lines<'e>,
}

/// Reads samples. Without `program` no lines are named, and inlined functions count for what they are inlined into.
///
/// A sample counts for the innermost function of the user's that was inlined where it fell, or else for the symbol.
///
/// # Errors
/// One [`ProfileError`] for each way in which there is nothing to read. Never panics; takes memory in proportion to
/// `bytes`, if the names and inlined frames of `program` are counted once.
pub fn read(bytes: &[u8], program: Option<&Program<'_, '_>>) -> Result<Profile, ProfileError> {
    let text = String::from_utf8_lossy(bytes);
    let mut reader = Reader { program, ..Reader::default() };
    let mut n_lines = 0;
    for line in text.lines() {
        n_lines += 1;
        reader.line(line).map_err(|what| ProfileError::Garbled { line: n_lines, what })?;
    }
    // The empty line after the last sample.
    if reader.sample.is_some() || !(text.is_empty() || text.ends_with('\n')) {
        return Err(ProfileError::Cut { line: n_lines });
    }
    reader.finish()
}

/// A sample whose stack is being read.
struct Sample<'t> {
    period: u64,
    /// Symbol with its offset and its object, innermost first.
    frames: Vec<(&'t str, &'t str)>,
}

#[derive(Default)]
struct Reader<'r, 'e, 't> {
    program: Option<&'r Program<'r, 'e>>,
    sample: Option<Sample<'t>>,
    events: BTreeSet<&'t str>,
    threads: BTreeSet<u64>,
    n_samples: u64,
    weight: u64,
    /// By the two kinds of record that tell of the same losses.
    lost: [u64; 2],
    names: Vec<String>,
    positions: HashMap<String, u32>,
    /// What each line of a frame became: positions in `names`, outermost first, and the innermost line.
    frames: HashMap<(&'t str, &'t str), Expanded>,
    stacks: HashMap<Vec<u32>, u64>,
    symbols: HashMap<u32, Weights>,
}

/// One frame of perf, with what is inlined there.
#[derive(Clone, Default)]
struct Expanded {
    names: Vec<u32>,
    line: Option<(String, u32)>,
}

#[derive(Default)]
struct Weights {
    samples: u64,
    weight: u64,
    lines: HashMap<(String, u32), (u64, u64)>,
}

type Wrong = &'static str;

impl<'t> Reader<'_, '_, 't> {
    fn line(&mut self, line: &'t str) -> Result<(), Wrong> {
        if line.starts_with('#') {
            return Ok(());
        }
        if line.trim().is_empty() {
            return match self.sample.take() {
                Some(sample) => self.count(sample),
                None => Ok(()),
            };
        }
        match &mut self.sample {
            Some(sample) => {
                sample.frames.push(frame(line)?);
                Ok(())
            }
            None => self.head(line),
        }
    }

    /// Takes the first line of a sample, or a loss.
    fn head(&mut self, line: &'t str) -> Result<(), Wrong> {
        let mut rest = line.trim();
        let mut word = || {
            let (word, others) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            rest = others.trim_start();
            word
        };
        let thread = word().parse::<i64>().map_err(|_| "a sample does not begin with a thread")?;
        word().strip_suffix(':').ok_or("a sample has no time")?;
        let period = word();
        for (at, kind) in ["PERF_RECORD_LOST", "PERF_RECORD_LOST_SAMPLES"].into_iter().enumerate() {
            if period == kind {
                let lost = word() == "lost";
                let lost = word().parse::<u64>().ok().filter(|_| lost).ok_or("a loss has no number")?;
                self.lost[at] = self.lost[at].saturating_add(lost);
                return Ok(());
            }
        }
        let period = period.parse::<u64>().map_err(|_| "a sample does not tell what it stands for")?;
        let event = word().strip_suffix(':').filter(|event| !event.is_empty()).ok_or("a sample has no event")?;
        // Where stacks are not recorded, the only frame follows on the line.
        let frames = if rest.is_empty() { Vec::new() } else { vec![frame(rest)?] };
        self.events.insert(event);
        // Perf tells -1 of a thread that it does not know.
        self.threads.extend(u64::try_from(thread));
        self.sample = Some(Sample { period, frames });
        Ok(())
    }

    fn count(&mut self, sample: Sample<'t>) -> Result<(), Wrong> {
        self.n_samples += 1;
        self.weight = self.weight.checked_add(sample.period).ok_or("the sum of all samples overflows")?;
        let mut stack = Vec::new();
        for (depth, &(symbol, object)) in sample.frames.iter().enumerate().rev() {
            let is_leaf = depth == 0;
            let frame = self.expand(symbol, object, is_leaf);
            stack.extend(frame.names.iter().take(DEPTH_MAX.saturating_sub(stack.len())));
            if is_leaf {
                let line = frame.line.clone();
                let innermost = frame.names.last().copied();
                self.hit(innermost.unwrap_or_default(), line, sample.period);
            }
        }
        if sample.frames.is_empty() {
            let unknown = self.name("[no stack]".to_owned());
            stack.push(unknown);
            self.hit(unknown, None, sample.period);
        }
        *self.stacks.entry(stack).or_default() += sample.period;
        Ok(())
    }

    /// Counts a sample for the symbol in which it fell.
    fn hit(&mut self, symbol: u32, line: Option<(String, u32)>, period: u64) {
        // The sums cannot overflow, for that of all samples has not.
        let weights = self.symbols.entry(symbol).or_default();
        weights.samples += 1;
        weights.weight += period;
        if let Some(line) = line {
            let (samples, weight) = weights.lines.entry(line).or_default();
            *samples += 1;
            *weight += period;
        }
    }

    fn name(&mut self, name: String) -> u32 {
        if let Some(position) = self.positions.get(&name) {
            return *position;
        }
        // A text of four gigabytes would be needed to have more.
        let position = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(name.clone());
        self.positions.insert(name, position);
        position
    }

    /// Returns the functions at one frame of perf. A caller's frame is where it will go on: the call lies before that.
    fn expand(&mut self, symbol: &'t str, object: &'t str, is_leaf: bool) -> Expanded {
        if !is_leaf && let Some(known) = self.frames.get(&(symbol, object)) {
            return known.clone();
        }
        let (function, offset) = split(symbol);
        let program = self.program.filter(|program| program.path == object);
        let offset = offset.and_then(|offset| if is_leaf { Some(offset) } else { offset.checked_sub(1) });
        let inlined = match (program, offset) {
            (Some(program), Some(offset)) => program.lines.frames(function, offset),
            _ => Vec::new(),
        };
        let expanded = self.names_of(function, object, &inlined);
        if !is_leaf {
            self.frames.insert((symbol, object), expanded.clone());
        }
        expanded
    }

    fn names_of(&mut self, function: &str, object: &str, inlined: &[Frame]) -> Expanded {
        let symbol = if object.starts_with("[kernel") {
            format!("{} [kernel]", name::readable(function))
        } else if function == "[unknown]" {
            let object = object.rsplit('/').next().unwrap_or_default();
            format!("[unknown] in {}", name::readable(object))
        } else {
            name::readable(function)
        };
        let mut names = vec![self.name(symbol)];
        let users: Vec<&Frame> = inlined.iter().filter(|frame| name::is_users(frame)).collect();
        // The last frame is the symbol itself.
        let within = inlined.len().saturating_sub(1);
        for frame in inlined[..within].iter().rev().filter(|frame| name::is_users(frame)) {
            if let Some(name) = inlined_name(frame) {
                names.push(self.name(name));
            }
        }
        let innermost = users.first().copied().or(inlined.first());
        let line = innermost.and_then(|frame| Some((frame.file.clone()?, frame.line?)));
        Expanded { names, line }
    }

    fn finish(self) -> Result<Profile, ProfileError> {
        let lost = self.lost[0].max(self.lost[1]);
        if self.n_samples == 0 {
            return Err(ProfileError::NoSamples { lost });
        }
        let (n_symbols, n_stacks) = (self.symbols.len() as u64, self.stacks.len() as u64);
        let (names, stacks) = heaviest(&self.names, self.stacks);
        let mut symbols: Vec<HotSymbol> =
            self.symbols.into_iter().map(|(position, weights)| hot(&self.names[position as usize], weights)).collect();
        symbols.sort_by(|a, b| (Reverse(a.weight), &a.symbol).cmp(&(Reverse(b.weight), &b.symbol)));
        symbols.truncate(SYMBOLS_MAX);
        let events: Vec<String> = self.events.iter().take(8).map(|event| name::readable(event)).collect();
        Ok(Profile {
            event: events.join(", "),
            samples: self.n_samples,
            weight: self.weight,
            lost,
            threads: u32::try_from(self.threads.len()).unwrap_or(u32::MAX),
            symbols,
            n_symbols,
            names,
            stacks,
            n_stacks,
        })
    }
}

/// Names an inlined function. Of these, debug information of lines alone tells only the last part of the name, with the
/// types that it was made for, and many functions are called `load`: so the source file stands beside it, and not the types.
fn inlined_name(frame: &Frame) -> Option<String> {
    let function = frame.function.as_deref()?;
    if function.contains("::") && !function.contains('<') {
        return Some(function.to_owned());
    }
    let function = function.split('<').next().filter(|name| !name.is_empty()).unwrap_or(function);
    let mut parts: Vec<&str> = frame.file.as_deref()?.rsplit('/').take(3).collect();
    // `src` says nothing, but the crate that it is of does.
    if parts.get(1) != Some(&"src") {
        parts.truncate(2);
    }
    parts.reverse();
    Some(format!("{function} ({})", parts.join("/")))
}

fn hot(symbol: &str, weights: Weights) -> HotSymbol {
    let line = |((file, line), (samples, weight))| HotLine { file, line, samples, weight };
    let mut lines: Vec<HotLine> = weights.lines.into_iter().map(line).collect();
    lines.sort_by(|a, b| (Reverse(a.weight), &a.file, a.line).cmp(&(Reverse(b.weight), &b.file, b.line)));
    lines.truncate(LINES_MAX);
    HotSymbol { symbol: symbol.to_owned(), samples: weights.samples, weight: weights.weight, lines }
}

/// Returns the heaviest stacks, and the names that occur in them in the order of their first occurrence.
fn heaviest(names: &[String], stacks: HashMap<Vec<u32>, u64>) -> (Vec<String>, Vec<Stack>) {
    let mut stacks: Vec<(Vec<u32>, u64)> = stacks.into_iter().collect();
    let words = |frames: &[u32]| frames.iter().map(|position| &names[*position as usize]).collect::<Vec<_>>();
    stacks.sort_by(|(a, heavy), (b, heavier)| heavier.cmp(heavy).then_with(|| words(a).cmp(&words(b))));
    stacks.truncate(STACKS_MAX);
    let (mut kept, mut renamed) = (Vec::new(), HashMap::new());
    let mut rename = |position: u32| {
        *renamed.entry(position).or_insert_with(|| {
            kept.push(names[position as usize].clone());
            u32::try_from(kept.len() - 1).unwrap_or(u32::MAX)
        })
    };
    let stacks = stacks
        .into_iter()
        .map(|(frames, weight)| Stack { frames: frames.into_iter().map(&mut rename).collect(), weight });
    let stacks = stacks.collect();
    (kept, stacks)
}

/// Reads one line of a stack: address, symbol with offset, object in parentheses.
fn frame(line: &str) -> Result<(&str, &str), Wrong> {
    let line = line.trim();
    let (address, rest) = line.split_once(' ').ok_or("a frame has no symbol")?;
    if address.is_empty() || !address.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err("a frame does not begin with an address");
    }
    let (symbol, object) = rest.trim_start().split_once(" (").ok_or("a frame has no object")?;
    let object = object.strip_suffix(')').ok_or("the object of a frame does not end")?;
    Ok((symbol, object))
}

/// Splits `name+0x12` into name and offset.
fn split(symbol: &str) -> (&str, Option<u64>) {
    match symbol.rsplit_once("+0x") {
        Some((name, digits)) => match u64::from_str_radix(digits, 16) {
            Ok(offset) => (name, Some(offset)),
            Err(_) => (symbol, None),
        },
        None => (symbol, None),
    }
}
