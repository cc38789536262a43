//! Check `generator`: the very streams of this plan are drawn again and examined.
//!
//! Needs no trial: a stream is a function of the plan's seeds. What a generator does wrong it does in every stream, so the
//! first trials and few threads suffice.

use std::collections::BTreeSet;

use rare_workloads::{
    harness::{stream::draw_into, window::Operation},
    keys::ALIAS_KEYS_MAX,
    protocol::{self, AllocatorRequest, Distribution, GeneratorKind, Harness, Length, Request},
};

use super::{Check, Grade, Info, Row, Subject, Verdict};
use crate::{
    plan::{BlockKind, Cell, TrialId},
    spec::value::{Parameter, Threads, Value},
    stats::stream::{self, Draw, Finding, Promise},
    verdict::Evidence,
};

/// Draws of each stream: a thousand for each of the classes that its keys are sorted into.
const N_DRAWS: usize = 1 << 17;

/// Streams of each setting: enough to compare threads with each other.
const MAX_THREADS: u32 = 4;

/// Streams of a setting whose keys a worker draws beforehand, a tenth of a second each: two can be compared.
const MAX_SLOW_THREADS: u32 = 2;

/// Settings that are examined; a plan of more varies its key range finely, and its streams are alike.
const MAX_SETTINGS: usize = 12;

/// Chance of a false alarm in a report, nominal. The tails that it is compared with are approximations; that they are off
/// a hundred times still leaves 1 in a million.
const FALSE_ALARM: f64 = 1e-8;

static INFO: Info = Info {
    name: "generator",
    title: "Random generator",
    rule: "the keys and operations that the plan's seeds give are evenly spread over parts, bits and distinct keys (or \
           have the exact frequencies of the skewed distribution), do not depend on the draw before, keep the mix, and \
           differ between threads; and the kind of an operation does not depend on its key",
    threshold: "a p-value below 1e-8 over the number of examinations fails: a false alarm in fewer than 1 in a million \
                plans; 131,072 draws a stream, the first trial of each of at most 12 settings, at most 4 threads",
    source: "Kharal and Brown 2022; generators of public harnesses: keys of one parity, one draw for key and operation, an \
             exponent that was never stored",
    reason: "a thread that draws half of the keys only, or inserts other keys than it removes, measures another workload \
             than the one on the label",
    remedy: "set `harness.generator` to its default; if it was, this is a fault in rare: report it with the plan's hash",
};

/// See [`INFO`].
pub(super) struct Generator;

impl Check for Generator {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let settings = settings(evidence);
        let (mut examination, mut unknown) = (Examination::default(), Vec::new());
        for setting in settings.iter().take(MAX_SETTINGS) {
            // One setting after the other: the streams of all of them are large.
            match setting.streams(evidence) {
                Ok(streams) => examination.add(setting, &streams),
                Err(reason) => unknown.push(reason),
            }
        }
        let n_drawn = settings.len().min(MAX_SETTINGS) - unknown.len();
        let examined = examination.conclude();
        let mut summary = match (examined.rows.first(), unknown.first()) {
            (Some(row), _) => row.finding.clone(),
            (None, Some(reason)) => reason.clone(),
            (None, None) => examined.passed(n_drawn),
        };
        let n_left_out = settings.len().saturating_sub(MAX_SETTINGS);
        if n_left_out > 0 {
            summary.push_str(&format!("; {n_left_out} further settings were not drawn"));
        }
        let grade = if !examined.rows.is_empty() {
            Grade::Fail
        } else if !unknown.is_empty() || examined.n == 0 {
            Grade::Unknown
        } else {
            Grade::Pass
        };
        Verdict::new(&INFO, grade, summary, examined.rows)
    }
}

/// Cells whose streams differ by their seeds only.
struct Setting<'p> {
    /// The first of them.
    cell: Cell<'p>,
    promise: Promise,
}

fn settings<'p>(evidence: &Evidence<'p>) -> Vec<Setting<'p>> {
    let mut seen = BTreeSet::new();
    let cells = (0..).zip(&evidence.plan.cells).filter(|(_, columns)| {
        let deciding = [Parameter::Distribution, Parameter::KeyRange, Parameter::Mix, Parameter::Generator];
        seen.insert(deciding.map(|parameter| columns[parameter as usize]))
    });
    let setting = |(cell_idx, _)| {
        let cell = evidence.plan.cell(cell_idx);
        let promise = Promise { key_range: cell.key_range(), distribution: cell.distribution(), mix: cell.mix() };
        Setting { cell, promise }
    };
    cells.map(setting).collect()
}

impl Setting<'_> {
    /// Draws the streams of the first trial, thread by thread.
    ///
    /// # Errors
    /// In words, if this version cannot draw them.
    fn streams(&self, evidence: &Evidence) -> Result<Vec<Vec<Draw>>, String> {
        let trial =
            TrialId { kind: BlockKind::Measure, cell: self.cell.cell_idx().expect("it is of the plan"), trial_idx: 0 };
        let is_slow = self.promise.distribution != Distribution::Uniform && self.promise.key_range > ALIAS_KEYS_MAX;
        let most = if is_slow { MAX_SLOW_THREADS } else { MAX_THREADS };
        let n_threads = match self.cell.threads() {
            Threads::Count(n_threads) => n_threads.min(most),
            Threads::All => most,
        };
        let request = self.request(evidence.plan.seed(trial), n_threads)?;
        let stream = |thread_idx| {
            let mut draws = Vec::with_capacity(N_DRAWS);
            draw_into(&request, thread_idx, N_DRAWS as u64, &mut |key, operation| {
                let kind = match operation {
                    Operation::Insert => 0,
                    Operation::Remove => 1,
                    Operation::Contains => 2,
                    Operation::Range(_) => 3,
                };
                draws.push(Draw { key, kind });
            })?;
            Ok(draws)
        };
        (0..n_threads).map(stream).collect()
    }

    /// What a worker would be asked, but for what its streams do not depend on.
    fn request(&self, seed: u64, n_threads: u32) -> Result<Request, String> {
        let cell = self.cell;
        let generator = match cell.value(Parameter::Generator) {
            Value::Word("xoshiro256++") => GeneratorKind::Xoshiro,
            Value::Word("fnv1a-alternating") => GeneratorKind::Fnv1aAlternating,
            other => return Err(format!("this version cannot draw the streams of `{other}`")),
        };
        Ok(Request {
            format: protocol::FORMAT,
            structure: cell.structure().name.clone(),
            structure_parameters: cell.structure().parameters.clone(),
            reclamation: cell.reclamation(),
            allocator: AllocatorRequest { name: "system".to_owned(), preload: None },
            cpus: vec![None; n_threads as usize],
            key_range: cell.key_range(),
            mix: cell.mix(),
            range_keys: cell.range_keys(),
            distribution: cell.distribution(),
            prefill_keys: 0,
            length: Length::Operations { operations: N_DRAWS as u64 },
            seed,
            nice: 0,
            nodes: cell.nodes(),
            harness: Harness { generator, ..Harness::default() },
            watch: None,
        })
    }
}

/// What all examinations gave.
struct Examined {
    n: usize,
    n_streams: usize,
    smallest_p: f64,
    rows: Vec<Row>,
}

/// Examinations so far.
#[derive(Default)]
struct Examination {
    n_streams: usize,
    /// Each with its cell and whose stream it is of.
    findings: Vec<(u32, String, Finding)>,
}

impl Examination {
    /// Examines the streams of a setting, one of each thread.
    fn add(&mut self, setting: &Setting, streams: &[Vec<Draw>]) {
        let (cell, promise) = (setting.cell.cell_idx().expect("it is of the plan"), &setting.promise);
        self.n_streams += streams.len();
        for (thread_idx, draws) in streams.iter().enumerate() {
            let of_thread = stream::examine(promise, draws).into_iter();
            self.findings.extend(of_thread.map(|found| (cell, format!("thread {thread_idx}: "), found)));
            let others = streams[..thread_idx].iter().map(|other| stream::compare(promise, other, draws));
            self.findings.extend(others.map(|found| (cell, String::new(), found)));
        }
    }

    /// Tells which findings are no chance, over all of them together.
    fn conclude(&self) -> Examined {
        let bound = FALSE_ALARM / self.findings.len().max(1) as f64;
        let row = |(cell, who, Finding { p, text }): &(u32, String, Finding)| Row {
            subject: Subject::Cell(*cell),
            finding: format!("{who}{text} (p {p:.0e})"),
            grade: Grade::Fail,
        };
        Examined {
            n: self.findings.len(),
            n_streams: self.n_streams,
            smallest_p: self.findings.iter().map(|(.., found)| found.p).fold(1.0, f64::min),
            rows: self.findings.iter().filter(|(.., found)| found.p < bound).map(row).collect(),
        }
    }
}

impl Examined {
    fn passed(&self, n_settings: usize) -> String {
        if self.n == 0 {
            return "no stream could be drawn".to_owned();
        }
        format!(
            "{} examinations of {} streams, {N_DRAWS} draws each, of {n_settings} settings: smallest p {:.1e}",
            self.n, self.n_streams, self.smallest_p
        )
    }
}
