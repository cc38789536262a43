//! Reads the XML that memcheck writes, formats 4 to 6.
//!
//! Source: `docs/internals/xml-output-protocol4.txt` to `6.txt` of valgrind. Format 5 adds errors about descriptors, and 6
//! adds summaries, with which the sums made here must agree.

use std::collections::HashMap;

use super::{
    name,
    xml::{self, Broken, Element},
};
use crate::record::watched::{Blocks, Finding, FindingClass, Frame, Memcheck, Related, Suppressed};

/// Most findings that are kept: a report shows a handful, and the totals are of all.
const FINDINGS_MAX: usize = 100;

/// Most frames of a stack that are kept.
const FRAMES_MAX: usize = 8;

/// Formats that are read.
const PROTOCOLS: std::ops::RangeInclusive<u32> = 4..=6;

/// Why the output of memcheck says nothing about leaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemcheckError {
    /// Nothing was written.
    #[error("memcheck wrote nothing: it did not start")]
    Empty,
    /// It ends within the document.
    #[error("memcheck's output is cut after {bytes} bytes: it did not end by itself")]
    Cut {
        /// Bytes that came.
        bytes: usize,
    },
    /// Something follows the document.
    #[error("memcheck's output goes on after its end: more than one process wrote it")]
    Several,
    /// It is not what memcheck writes.
    #[error("memcheck's output is garbled: {0}")]
    Garbled(String),
    /// It is the output of something else.
    #[error("this is not the output of memcheck, but of `{0}`")]
    OtherTool(String),
    /// It is in a format that is not read.
    #[error("memcheck's output is in format {0:?}; formats 4 to 6 are read")]
    Protocol(Option<String>),
    /// The document is whole, but the program did not come to its end.
    #[error("memcheck ended before the program did: its last state is `{0}`")]
    Unfinished(String),
    /// The program was killed by a signal; under valgrind `SIGILL` mostly means an instruction that it does not know.
    #[error(
        "the program died of {signal} ({event}) under memcheck{}",
        if signal == "SIGILL" { ", which may not know an instruction of this processor" } else { "" }
    )]
    Fatal {
        /// Name of the signal.
        signal: String,
        /// What raised it, in valgrind's words.
        event: String,
        /// Where: the innermost frames that are the user's.
        frames: Vec<Frame>,
        /// What was seen until then. The leaks are what was allocated at the moment of death.
        seen: Box<Memcheck>,
    },
    /// Memcheck was started without the options that make it look for every leak.
    #[error("memcheck did not look for leaks: it was started without `{0}`")]
    NoLeakCheck(&'static str),
    /// What memcheck summed up is not the sum of what it listed.
    #[error("memcheck contradicts itself: {what} are {listed:?} as listed, {summed:?} as summed up")]
    Contradiction {
        /// Which blocks.
        what: &'static str,
        /// The sum of the list.
        listed: Blocks,
        /// Its own sum.
        summed: Blocks,
    },
}

/// Reads the output of memcheck, which must have watched one process to its end with `--leak-check=full
/// --show-leak-kinds=all`.
///
/// # Errors
/// One [`MemcheckError`] for each way in which it is not that. Never panics; takes memory in proportion to `bytes`.
pub fn read(bytes: &[u8]) -> Result<Memcheck, MemcheckError> {
    let mut parts = Parts::default();
    let root = xml::read(bytes, |element| parts.take(element)).map_err(|broken| match broken {
        Broken::Empty => MemcheckError::Empty,
        Broken::Cut => MemcheckError::Cut { bytes: bytes.len() },
        Broken::Trailing => MemcheckError::Several,
        Broken::Garbled(what) => MemcheckError::Garbled(what),
    })?;
    if root != "valgrindoutput" {
        return Err(MemcheckError::Garbled(format!("its root is `{}`", name::readable(&root))));
    }
    parts.finish()
}

/// What the elements below the root told.
#[derive(Default)]
struct Parts {
    protocol: Option<String>,
    tool: Option<String>,
    version: Option<String>,
    arguments: Vec<String>,
    state: Option<String>,
    findings: Vec<(String, Finding)>,
    fault: Option<MemcheckError>,
    times: HashMap<String, u64>,
    suppressed: Vec<Suppressed>,
    fatal: Option<(String, String, Vec<Frame>)>,
    summary: Option<[Option<Blocks>; 4]>,
}

impl Parts {
    fn take(&mut self, element: Element) {
        match element.name.as_str() {
            "protocolversion" => self.protocol = Some(element.text),
            "tool" => self.tool = Some(element.text),
            "preamble" => self.version = element.all("line").find_map(|line| version(&line.text)),
            "args" => {
                let given = element.child("vargv").into_iter().flat_map(|given| given.all("arg"));
                self.arguments = given.map(|argument| argument.text.clone()).collect();
            }
            "status" => self.state = element.text_of("state").map(str::to_owned),
            "error" => match finding(&element) {
                Ok(finding) => self.findings.push(finding),
                Err(what) => _ = self.fault.get_or_insert(MemcheckError::Garbled(what)),
            },
            "errorcounts" => {
                let counts = element
                    .all("pair")
                    .filter_map(|pair| Some((pair.text_of("unique")?.to_owned(), pair.number("count")?)));
                self.times.extend(counts);
            }
            "suppcounts" => {
                let used = element.all("pair").filter_map(|pair| {
                    Some(Suppressed { name: pair.text_of("name")?.to_owned(), times: pair.number("count")? })
                });
                self.suppressed = used.collect();
            }
            "fatal_signal" => {
                let word = |name| element.text_of(name).unwrap_or("an unnamed cause").to_owned();
                let frames = element.child("stack").map(frames).unwrap_or_default();
                self.fatal = Some((word("signame"), word("event"), name::users(&frames, FRAMES_MAX)));
            }
            "leak_summary" => self.summary = Some(KINDS.map(|(_, _, name)| blocks(element.child(name)?))),
            _ => {}
        }
    }

    fn finish(mut self) -> Result<Memcheck, MemcheckError> {
        let protocol = self.protocol.as_deref().and_then(|text| text.parse().ok());
        let Some(protocol) = protocol.filter(|protocol| PROTOCOLS.contains(protocol)) else {
            return Err(MemcheckError::Protocol(self.protocol));
        };
        let tool = self.tool.take().unwrap_or_else(|| "nothing that is named".to_owned());
        if tool != "memcheck" {
            return Err(MemcheckError::OtherTool(tool));
        }
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if self.state.as_deref() != Some("FINISHED") {
            return Err(MemcheckError::Unfinished(self.state.unwrap_or_else(|| "none".to_owned())));
        }
        let required = ["--leak-check=full", "--show-leak-kinds=all"];
        let lacking = required.into_iter().find(|option| !self.arguments.iter().any(|given| given == option));
        let (fatal, summary) = (self.fatal.take(), self.summary.take());
        let seen = self.into_seen(protocol);
        if let Some((signal, event, frames)) = fatal {
            return Err(MemcheckError::Fatal { signal, event, frames, seen: Box::new(seen) });
        }
        if let Some(lacking) = lacking {
            return Err(MemcheckError::NoLeakCheck(lacking));
        }
        agree(&seen, summary.unwrap_or_default())?;
        Ok(seen)
    }

    fn into_seen(self, protocol: u32) -> Memcheck {
        let mut seen = Memcheck {
            version: self.version,
            protocol,
            definite: Blocks::default(),
            indirect: Blocks::default(),
            possible: Blocks::default(),
            reachable: Blocks::default(),
            n_errors: 0,
            findings: Vec::new(),
            n_findings: self.findings.len() as u64,
            suppressed: self.suppressed,
        };
        for (unique, mut finding) in self.findings {
            match (leaked(&mut seen, finding.class), finding.lost) {
                (Some(total), Some(lost)) => {
                    total.bytes = total.bytes.saturating_add(lost.bytes);
                    total.blocks = total.blocks.saturating_add(lost.blocks);
                }
                _ => {
                    finding.times = self.times.get(&unique).copied();
                    // What is listed was seen at least once, whatever the count says.
                    seen.n_errors = seen.n_errors.saturating_add(finding.times.unwrap_or(1).max(1));
                }
            }
            seen.findings.push(finding);
        }
        // Stable: within a class memcheck's own order stays.
        seen.findings.sort_by_key(|finding| finding.class);
        seen.findings.truncate(FINDINGS_MAX);
        seen
    }
}

/// Leaks by class, memcheck's word for the finding, and the element of the summary.
const KINDS: [(FindingClass, &str, &str); 4] = [
    (FindingClass::DefiniteLeak, "Leak_DefinitelyLost", "definitely_lost"),
    (FindingClass::IndirectLeak, "Leak_IndirectlyLost", "indirectly_lost"),
    (FindingClass::PossibleLeak, "Leak_PossiblyLost", "possibly_lost"),
    (FindingClass::Reachable, "Leak_StillReachable", "still_reachable"),
];

/// Returns the total that a class of leaks counts for; `None` for what is no leak.
fn leaked(seen: &mut Memcheck, class: FindingClass) -> Option<&mut Blocks> {
    match class {
        FindingClass::DefiniteLeak => Some(&mut seen.definite),
        FindingClass::IndirectLeak => Some(&mut seen.indirect),
        FindingClass::PossibleLeak => Some(&mut seen.possible),
        FindingClass::Reachable => Some(&mut seen.reachable),
        _ => None,
    }
}

fn agree(seen: &Memcheck, summary: [Option<Blocks>; 4]) -> Result<(), MemcheckError> {
    let listed = [seen.definite, seen.indirect, seen.possible, seen.reachable];
    for ((listed, summed), (_, _, what)) in listed.into_iter().zip(summary).zip(KINDS) {
        if let Some(summed) = summed.filter(|summed| *summed != listed) {
            return Err(MemcheckError::Contradiction { what, listed, summed });
        }
    }
    Ok(())
}

/// Reads one `error` element, and its unique number.
fn finding(element: &Element) -> Result<(String, Finding), String> {
    let text = |name| element.text_of(name).map(str::to_owned);
    let kind = text("kind").ok_or("a finding without a kind")?;
    let unique = text("unique").ok_or("a finding without a number")?;
    let long = element.child("xwhat");
    let what = long.and_then(|long| long.text_of("text")).map(str::to_owned).or_else(|| text("what"));
    let what = what.ok_or("a finding without a sentence")?;
    let class = class(&kind);
    let lost = match class {
        FindingClass::DefiniteLeak
        | FindingClass::IndirectLeak
        | FindingClass::PossibleLeak
        | FindingClass::Reachable => {
            let lost = long.and_then(|long| lost(&what, long));
            Some(lost.ok_or("a leak without its bytes and blocks")?)
        }
        _ => None,
    };
    let (stack, related) = stacks(element);
    Ok((unique, Finding { class, kind, what: name::readable(&what), times: None, lost, frames: stack, related }))
}

/// Returns what is lost directly. Memcheck's number includes what is lost through it, which it lists once more.
fn lost(what: &str, long: &Element) -> Option<Blocks> {
    let blocks = long.number("leakedblocks")?;
    // `3,072 (96 direct, 2,976 indirect) bytes in 96 blocks are definitely lost in loss record 1 of 1`
    let direct = what.split_once(" direct, ").map(|(before, _)| before.rsplit_once('(').map(|(_, number)| number));
    let bytes = match direct {
        Some(number) => number?.replace(',', "").parse().ok()?,
        None => long.number("leakedbytes")?,
    };
    Some(Blocks { bytes, blocks })
}

/// Reads the stack of a finding, and the further sentences with theirs: a stack belongs to the sentence before it.
fn stacks(element: &Element) -> (Vec<Frame>, Vec<Related>) {
    let mut first = None;
    let mut related: Vec<Related> = Vec::new();
    for child in &element.children {
        match child.name.as_str() {
            "auxwhat" | "xauxwhat" => {
                let text = child.text_of("text").unwrap_or(&child.text);
                related.push(Related { what: name::readable(text), frames: Vec::new() });
            }
            "origin" => {
                let frames = child.child("stack").map(frames).unwrap_or_default();
                let what = name::readable(child.text_of("what").unwrap_or("origin"));
                related.push(Related { what, frames: name::users(&frames, FRAMES_MAX) });
            }
            "stack" => {
                let frames = name::users(&frames(child), FRAMES_MAX);
                match related.last_mut() {
                    Some(related) => related.frames = frames,
                    None => first = first.or(Some(frames)),
                }
            }
            _ => {}
        }
    }
    (first.unwrap_or_default(), related)
}

fn frames(stack: &Element) -> Vec<Frame> {
    let frame = |frame: &Element| {
        let text = |name| frame.text_of(name).filter(|text| !text.is_empty());
        let file = text("file").map(|file| match text("dir") {
            Some(folder) => format!("{folder}/{file}"),
            None => file.to_owned(),
        });
        // What memcheck calls a function that was inlined and whose name it cannot read.
        let function = text("fn").filter(|name| *name != "UnknownInlinedFun").map(name::readable);
        let line = text("line").and_then(|line| line.parse().ok());
        Frame { function, file, line, object: text("obj").map(str::to_owned) }
    };
    stack.all("frame").map(frame).collect()
}

fn class(kind: &str) -> FindingClass {
    if let Some((class, ..)) = KINDS.iter().find(|(_, word, _)| *word == kind) {
        return *class;
    }
    match kind {
        "InvalidRead" | "InvalidWrite" | "InvalidJump" => FindingClass::InvalidAccess,
        "InvalidFree" | "MismatchedFree" => FindingClass::InvalidFree,
        kind if kind.starts_with("MismatchedAllocateDeallocate") => FindingClass::InvalidFree,
        "UninitCondition" | "UninitValue" | "SyscallParam" => FindingClass::Uninitialised,
        _ => FindingClass::Other,
    }
}

fn blocks(element: &Element) -> Option<Blocks> {
    let blocks = element.number("in_blocks").or_else(|| element.number("blocks"))?;
    Some(Blocks { bytes: element.number("bytes")?, blocks })
}

/// Finds valgrind's version in a line of the preamble: `Using Valgrind-3.19.0 and LibVEX; …`.
fn version(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("Valgrind-")?;
    rest.split_whitespace().next().map(name::readable)
}
