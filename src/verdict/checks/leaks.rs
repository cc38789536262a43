//! Check `leaks`: what a structure allocates it gives back, and it touches nothing else.
//!
//! Two witnesses. Memcheck sees each lost block and each invalid access with its stack, on small trials under `system`,
//! the only allocator that it knows. The counting hook sees the balance of all blocks after the structure was dropped, so
//! that a machine without valgrind still gets an answer. That memcheck would notice is shown by a structure that leaks a
//! known number of bytes, in each run.

use std::collections::BTreeSet;

use rare_workloads::{
    protocol::{Accounting, Reclamation},
    structures::{self, Reclaims, controls::leak},
};

use super::{Check, Exhibit, Grade, Info, Row, Subject, Verdict};
use crate::{
    plan::{
        Cell, Ground, Mode, Probe,
        probe::{Change, Setting},
    },
    record::{
        Outcome, Watched,
        watched::{Blocks, Finding, FindingClass, Memcheck},
    },
    spec::value::{Allocator, Parameter, Pinning, Prefill, Threads, Value},
    units::BasisPoints,
    verdict::{
        Evidence,
        evidence::{Probed, Replied},
    },
};

/// Keys of the trials: few, so that nodes are removed and inserted again and again.
const KEYS: u64 = 64;

/// Threads of the trials. Valgrind runs one at a time; two are enough for each to meet what the other retired.
const THREADS: u32 = 2;

/// The structure that leaks.
const CONTROL: &str = "control-leak";

/// Its label, which tells it from the same structure as a subject.
const CONTROL_LABEL: &str = "control-of-memcheck";

/// Stacks that the report shows of each finding are no longer than this.
const MOST_FRAMES: usize = 6;

static INFO: Info = Info {
    name: "leaks",
    title: "Leaks and invalid accesses",
    rule: "memcheck sees no definite or indirect leak and no invalid access, and after the structure was dropped nothing of \
           it is allocated",
    threshold: "0 bytes, 0 accesses; a scheme that never frees leaks what was removed, and that is no fault of the structure",
    source: "Brown, Good data structure experiments are R.A.R.E., sanity check 7; valgrind's manual, chapter 4",
    reason: "a structure that does not free what it removes is faster than one that does, until memory runs out",
    remedy: "follow the stack of the finding; the trial can be repeated under valgrind by its request",
};

/// See [`INFO`].
pub(super) struct Leaks;

impl Check for Leaks {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn probes(&self, ground: &Ground<'_>) -> Vec<Probe> {
        let small: Vec<Setting> = schemes(ground);
        let control = ground
            .bases()
            .into_iter()
            .next()
            .map(|base| shrunk(base).with_structure(CONTROL).with_label(CONTROL_LABEL));
        let memcheck = small.iter().cloned().chain(control).map(|setting| setting.probe(INFO.name, Mode::Memcheck, 1));
        let balance = small.iter().cloned().map(|setting| setting.probe(INFO.name, Mode::Account, 1));
        memcheck.chain(balance).collect()
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let probed = evidence.probes(INFO.name);
        let (control, subjects): (Vec<Probed>, Vec<Probed>) =
            probed.into_iter().partition(|probed| probed.cell.structure().label == CONTROL_LABEL);
        let control = control.first().map_or_else(|| Err("it is not in the plan".to_owned()), control_holds);
        let mut judged = Judged::default();
        for subject in &subjects {
            judged.add(subject);
        }
        judged.verdict(control)
    }
}

/// Each structure once under each scheme that it has in the plan, small.
fn schemes(ground: &Ground<'_>) -> Vec<Setting> {
    let mut seen = BTreeSet::new();
    let mut settings = Vec::new();
    for base in ground.bases() {
        let used = base[Parameter::Structure as usize].clone();
        for cell in ground.cells().filter(|cell| *cell.value(Parameter::Structure) == used) {
            let scheme = cell.value(Parameter::Reclamation).clone();
            if seen.insert((used.clone(), scheme.clone())) {
                settings.push(shrunk(base.clone()).with(Parameter::Reclamation, scheme));
            }
        }
    }
    settings
}

fn shrunk(base: Setting) -> Setting {
    base.with(Parameter::KeyRange, Value::Count(KEYS))
        .with(Parameter::Prefill, Value::Prefill(Prefill::Share(BasisPoints(5_000))))
        .with(Parameter::Allocator, Value::Allocator(Allocator::Linked("system")))
        .with(Parameter::Pinning, Value::Pinning(Pinning::None))
        .with_threads(Threads::Count(THREADS))
        .with_mix(4_000, 4_000, 2_000)
}

/// Tells whether memcheck found the leak of the control, to the byte; otherwise why that is not known.
fn control_holds(probed: &Probed) -> Result<String, String> {
    let [replied] = probed.trials.as_slice() else { return Err(why_missing(probed)) };
    let Some(seen) = memcheck(replied) else { return Err("its trial has no record of memcheck".to_owned()) };
    let parameters = &probed.cell.structure().parameters;
    let one_in = parameters.get("one_in").copied().unwrap_or(1).max(1);
    let removed = replied.reply.threads.iter().map(|thread| thread.operations.remove.effective);
    let blocks: u64 = removed.map(|removed| removed / one_in).sum();
    let planted = Blocks { bytes: blocks * leak::LEAK_BYTES as u64, blocks };
    if seen.definite == planted && blocks > 0 {
        Ok(format!("memcheck found the {} bytes in {blocks} blocks that `{CONTROL}` leaks, exactly", planted.bytes))
    } else {
        Err(format!(
            "memcheck found {} bytes in {} blocks of the {} bytes in {blocks} blocks that `{CONTROL}` leaks",
            seen.definite.bytes, seen.definite.blocks, planted.bytes
        ))
    }
}

fn memcheck<'t>(replied: &Replied<'t>) -> Option<&'t Memcheck> {
    match replied.trial.watched.as_deref() {
        Some(Watched::Memcheck(seen)) => Some(seen),
        _ => None,
    }
}

/// What was judged so far.
#[derive(Default)]
struct Judged {
    rows: Vec<Row>,
    table: Vec<Vec<String>>,
    findings: Vec<Vec<String>>,
    /// What is not known, each once.
    missing: Vec<String>,
    n_by_memcheck: usize,
    n_by_balance: usize,
    /// Bytes that are lost because the scheme never frees.
    n_as_planned: usize,
}

impl Judged {
    fn add(&mut self, probed: &Probed) {
        let by_memcheck = probed.probe.mode == Mode::Memcheck;
        let name = named(probed.cell);
        let [replied] = probed.trials.as_slice() else {
            let why = why_missing(probed);
            self.table.push(vec![name, witness(by_memcheck), "not known".to_owned(), why.clone(), String::new()]);
            if !self.missing.contains(&why) {
                self.missing.push(why);
            }
            return;
        };
        match (memcheck(replied), &replied.reply.accounting) {
            (Some(seen), _) => self.add_memcheck(probed.cell, replied, seen),
            (None, Some(accounting)) => self.add_balance(probed.cell, replied, accounting),
            (None, None) => self.missing.push(format!("{name}: the trial has neither witness")),
        }
    }

    fn add_memcheck(&mut self, cell: Cell, replied: &Replied, seen: &Memcheck) {
        let lost = Blocks {
            bytes: seen.definite.bytes + seen.indirect.bytes,
            blocks: seen.definite.blocks + seen.indirect.blocks,
        };
        let planned = lost.blocks > 0 && leaks_by_scheme(cell);
        self.n_by_memcheck += 1;
        self.n_as_planned += usize::from(planned);
        self.table.push(vec![
            named(cell),
            witness(true),
            format!("{} bytes in {} blocks", lost.bytes, lost.blocks),
            format!("{} invalid", seen.n_errors),
            if planned { "the scheme never frees" } else { "" }.to_owned(),
        ]);
        let mut fail = |finding: String| self.rows.push(row(replied, finding));
        if lost.blocks > 0 && !planned {
            fail(format!("memcheck: {} bytes in {} blocks are lost", lost.bytes, lost.blocks));
        }
        if seen.n_errors > 0 {
            fail(format!("memcheck: {} invalid accesses, frees or uses of uninitialised memory", seen.n_errors));
        }
        let shown = |finding: &&Finding| {
            let by_scheme = planned && finding.lost.is_some();
            !by_scheme && !matches!(finding.class, FindingClass::Reachable | FindingClass::PossibleLeak)
        };
        for finding in seen.findings.iter().filter(shown) {
            self.findings.push(vec![named(cell), finding.what.clone(), stack(finding)]);
        }
    }

    fn add_balance(&mut self, cell: Cell, replied: &Replied, accounting: &Accounting) {
        let left = accounting.after_drop;
        let planned = left.blocks > 0 && leaks_by_scheme(cell);
        self.n_by_balance += 1;
        self.n_as_planned += usize::from(planned);
        self.table.push(vec![
            named(cell),
            witness(false),
            format!("{} bytes in {} blocks", left.bytes, left.blocks),
            String::new(),
            if planned { "the scheme never frees" } else { "" }.to_owned(),
        ]);
        if (left.blocks, left.bytes) != (0, 0) && !planned {
            let finding = format!("{} bytes in {} blocks are allocated after the drop", left.bytes, left.blocks);
            self.rows.push(row(replied, finding));
        }
    }

    fn verdict(self, control: Result<String, String>) -> Verdict {
        let missing = match &control {
            Ok(_) => self.missing.clone(),
            Err(why) if self.n_by_memcheck > 0 => vec![format!("that memcheck would notice is not shown: {why}")],
            Err(_) => self.missing.clone(),
        };
        let grade = match (self.rows.is_empty(), missing.is_empty()) {
            (false, _) => Grade::Fail,
            (true, true) if self.n_by_memcheck + self.n_by_balance == 0 => Grade::Unknown,
            (true, true) => Grade::Pass,
            (true, false) => Grade::Unknown,
        };
        let balance = match self.n_by_balance {
            0 => String::new(),
            n => format!("; after the drop nothing is left in {n} counted trials that free at all"),
        };
        let summary = match (self.rows.first(), missing.first(), &control) {
            (Some(row), ..) => row.finding.clone(),
            (None, Some(why), _) if self.n_by_balance > 0 => format!("{why}{balance}"),
            (None, Some(why), _) => why.clone(),
            (None, None, Ok(proof)) => {
                let as_planned = match self.n_as_planned {
                    0 => "",
                    _ => ", but for what schemes that never free leave by design",
                };
                format!("nothing is lost in {} trials under memcheck{as_planned}; {proof}{balance}", self.n_by_memcheck)
            }
            (None, None, Err(why)) => why.clone(),
        };
        Verdict { info: &INFO, grade, summary, rows: self.rows, exhibits: exhibits(self.table, self.findings, control) }
    }
}

fn exhibits(table: Vec<Vec<String>>, findings: Vec<Vec<String>>, control: Result<String, String>) -> Vec<Exhibit> {
    let columns = |titles: &[&str]| titles.iter().map(|title| ((*title).to_owned(), None)).collect();
    let note = match control {
        Ok(proof) => format!("Control: {proof}."),
        Err(why) => format!("Control: {why}."),
    };
    let mut exhibits = vec![Exhibit {
        title: "What each witness saw".to_owned(),
        columns: columns(&["Structure", "Witness", "Lost", "Accesses", "Remark"]),
        rows: table,
        note: format!(
            "{note} {KEYS} keys, {THREADS} threads, 80 % updates; memcheck knows the allocator `system` only."
        ),
    }];
    if !findings.is_empty() {
        exhibits.push(Exhibit {
            title: "Findings of memcheck".to_owned(),
            columns: columns(&["Structure", "What", "Where"]),
            rows: findings,
            note: "Innermost frame first.".to_owned(),
        });
    }
    exhibits
}

/// Tells whether a structure leaves what it removes because its scheme never frees.
fn leaks_by_scheme(cell: Cell) -> bool {
    let reclaims = structures::find(&cell.structure().name).map(|structure| structure.info.reclaims);
    cell.reclamation() == Reclamation::None && reclaims == Some(Reclaims::Deferred)
}

fn named(cell: Cell) -> String {
    format!("{}, {}", cell.structure().label, cell.reclamation())
}

fn witness(by_memcheck: bool) -> String {
    if by_memcheck { "memcheck" } else { "balance after drop" }.to_owned()
}

fn why_missing(probed: &Probed) -> String {
    match probed.failures.first().map(|(_, trial)| &trial.outcome) {
        Some(Outcome::Failed { detail, .. }) => detail.clone(),
        _ => "a planned trial has no record".to_owned(),
    }
}

fn row(replied: &Replied, finding: String) -> Row {
    Row { subject: Subject::of(replied), finding, grade: Grade::Fail }
}

fn stack(finding: &Finding) -> String {
    let frames = finding.frames.iter().take(MOST_FRAMES).map(|frame| {
        let function = frame.function.as_deref().unwrap_or("an unknown function");
        match (&frame.file, frame.line) {
            (Some(file), Some(line)) => format!("{function} ({file}:{line})"),
            _ => function.to_owned(),
        }
    });
    frames.collect::<Vec<String>>().join(" ← ")
}
