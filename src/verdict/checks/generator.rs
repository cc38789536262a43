//! Check `generator`: the very streams of this plan are drawn again and examined.
//!
//! Needs no trial: a stream is a function of the plan's seeds. What a generator does wrong it does in every stream, so the
//! first trials and few threads suffice.

use std::collections::BTreeSet;

use rare_workloads::{
    harness::window::{Generator as Window, NoRanges, Operation, Ranges, SizedRanges},
    keys::{KeyPlan, KeySource, ThreadKeys},
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
        let judged: Vec<&Setting> = settings.iter().filter(|setting| setting.is_known()).take(MAX_SETTINGS).collect();
        let unknown = settings.iter().find(|setting| !setting.is_known());
        let streams = judged.iter().map(|setting| (setting.cell.cell_idx, setting.promise, setting.streams(evidence)));
        let examined = examine(streams);
        let n_left_out = settings.len() - judged.len();
        let mut summary = match examined.rows.first() {
            Some(row) => row.finding.clone(),
            None => examined.passed(judged.len()),
        };
        if n_left_out > 0 {
            summary.push_str(&format!("; {n_left_out} further settings were not drawn"));
        }
        let grade = match (examined.rows.is_empty(), unknown) {
            (false, _) => Grade::Fail,
            (true, Some(setting)) => {
                summary = format!("this version cannot draw the streams of `{}`", setting.generator);
                Grade::Unknown
            }
            (true, None) if examined.n == 0 => Grade::Unknown,
            (true, None) => Grade::Pass,
        };
        Verdict { info: &INFO, grade, summary, rows: examined.rows }
    }
}

/// Cells whose streams differ by their seeds only.
struct Setting<'p> {
    /// The first of them.
    cell: Cell<'p>,
    promise: Promise,
    generator: &'p Value,
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
        Setting { cell, promise, generator: cell.value(Parameter::Generator) }
    };
    cells.map(setting).collect()
}

impl Setting<'_> {
    /// Tells whether its generator can be run outside of a worker.
    fn is_known(&self) -> bool {
        *self.generator == Value::Word("xoshiro256++")
    }

    /// Draws the streams of the first trial, thread by thread.
    fn streams(&self, evidence: &Evidence) -> Vec<Vec<Draw>> {
        let trial = TrialId { kind: BlockKind::Measure, cell: self.cell.cell_idx, trial_idx: 0 };
        let seed = evidence.plan.seed(trial);
        let n_threads = match self.cell.threads() {
            Threads::Count(n_threads) => n_threads.min(MAX_THREADS),
            Threads::All => MAX_THREADS,
        };
        let keys = KeyPlan::new(self.promise.distribution, self.promise.key_range);
        let stream = |thread_idx| match keys.thread(seed, thread_idx) {
            ThreadKeys::Uniform(keys) => self.draw(keys, seed, thread_idx),
            ThreadKeys::Alias(keys) => self.draw(keys, seed, thread_idx),
            ThreadKeys::Stream(keys) => self.draw(keys, seed, thread_idx),
        };
        (0..n_threads).map(stream).collect()
    }

    fn draw(&self, keys: impl KeySource, seed: u64, thread_idx: u32) -> Vec<Draw> {
        let mix = self.promise.mix;
        match self.cell.range_keys() {
            Some(n_keys) => take(Window::with_ranges(keys, mix, SizedRanges::new(mix, n_keys), seed, thread_idx)),
            None => take(Window::with_ranges(keys, mix, NoRanges, seed, thread_idx)),
        }
    }
}

fn take<K: KeySource, R: Ranges>(mut window: Window<K, R>) -> Vec<Draw> {
    let draw = |_| {
        let (key, operation) = window.draw();
        let kind = match operation {
            Operation::Insert => 0,
            Operation::Remove => 1,
            Operation::Contains => 2,
            Operation::Range(_) => 3,
        };
        Draw { key, kind }
    };
    (0..N_DRAWS).map(draw).collect()
}

/// What all examinations gave.
struct Examined {
    n: usize,
    n_streams: usize,
    smallest_p: f64,
    rows: Vec<Row>,
}

/// Examines the streams of each setting, one of each thread.
fn examine(settings: impl Iterator<Item = (u32, Promise, Vec<Vec<Draw>>)>) -> Examined {
    let (mut findings, mut n_streams) = (Vec::new(), 0);
    for (cell, promise, streams) in settings {
        n_streams += streams.len();
        for (thread_idx, draws) in streams.iter().enumerate() {
            let of_thread = stream::examine(&promise, draws).into_iter();
            findings.extend(of_thread.map(|found| (cell, format!("thread {thread_idx}: "), found)));
            let others = streams[..thread_idx].iter().map(|other| stream::compare(&promise, other, draws));
            findings.extend(others.map(|found| (cell, String::new(), found)));
        }
    }
    let bound = FALSE_ALARM / findings.len().max(1) as f64;
    let row = |(cell, who, Finding { p, text }): &(u32, String, Finding)| Row {
        subject: Subject::Cell(*cell),
        finding: format!("{who}{text} (p {p:.0e})"),
        grade: Grade::Fail,
    };
    Examined {
        n: findings.len(),
        n_streams,
        smallest_p: findings.iter().map(|(.., found)| found.p).fold(1.0, f64::min),
        rows: findings.iter().filter(|(.., found)| found.p < bound).map(row).collect(),
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
