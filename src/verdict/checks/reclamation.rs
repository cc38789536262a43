//! Check `reclamation`: what a scheme of reclamation costs, and whether it gives back what was removed while the trial lasts.
//!
//! Each structure that retires its nodes has probes under the plan's scheme, under `eager`, which holds as little as can
//! be, and under `none`, which holds everything: how much `none` holds at the end is how fast a scheme that never frees
//! grows. Where a structure has no `none`, each removal counts as one object, which is too few rather than too many.

use rare_workloads::{
    protocol::{Mix, Reclamation},
    structures::{self, Reclaims},
};

use super::{Check, Exhibit, Grade, Info, Verdict};
use crate::{
    plan::{Cell, Ground, Mode, Plan, Probe, probe::Change, probe::Setting},
    spec::value::{Parameter, Value},
    stats::describe::median,
    units::{Nanos, count},
    verdict::{
        Evidence,
        beside::{competing, unknown},
        evidence::{Probed, Replied},
        number::{bytes, mops, percent, ratio},
        probing::columns,
    },
};

/// Trials of each scheme, at most: the median of three is not moved by one trial in which a thread was stopped inside an
/// operation, and held up the epochs of all.
const N_TRIALS: u32 = 3;

/// Longest trial. Within it the slowest tree removes ten times what a scheme holds at any moment, and `none` does not
/// fill the memory.
const LONGEST: Nanos = Nanos(100_000_000);

/// A scheme that holds this share of what it was given grows with the trial. The most that a tree without fault held in 38
/// runs of six of them was 7 %, usually it is less than 1 %; `control-never-frees` holds all.
const FAIL_SHARE: f64 = 0.5;

/// From this share on it keeps up badly.
const WARN_SHARE: f64 = 0.25;

/// Fewer retired objects say nothing of growth: batches and epochs hold up to some thousands at any moment.
const MIN_RETIRED: f64 = 20_000.0;

/// With batches of its own choice a scheme is to be given so many of them.
const BATCHES_RETIRED: f64 = 8.0;

static INFO: Info = Info {
    name: "reclamation",
    title: "Reclamation keeps up",
    rule: "under the plan's scheme, the objects that a structure removed and has not given back do not grow with the trial, \
           and the plan does reclaim",
    threshold: "holding more than 25 % of the objects retired in a trial warns, more than 50 % fails (medians of up to 3 \
                trials of at most 100 ms); what is retired is what `none` holds for as many operations, or else one object \
                a removal, and must be 20,000 or more; a plan with no other scheme than `none` warns",
    source: "Brown, Good data structure experiments are R.A.R.E., sanity check 9; Kharal and Brown 2022",
    reason: "a structure that does not free is faster than one that does, until the memory is full: it saves the frees and \
             allocates fresh lines in order",
    remedy: "compare under a scheme that frees; if a scheme does not keep up, look for a thread that stays inside an \
             operation, or for nodes that are never retired to it",
};

/// See [`INFO`].
pub(super) struct Reclaiming;

impl Check for Reclaiming {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn probes(&self, ground: &Ground<'_>) -> Vec<Probe> {
        let n_trials = ground.n_trials().min(N_TRIALS);
        let of = |base: Setting| {
            let schemes = schemes(ground.plan(), Cell::of_setting(&base));
            let under = move |scheme| base.clone().with(Parameter::Reclamation, Value::Reclamation(scheme));
            schemes.into_iter().map(move |scheme| under(scheme).probe(INFO.name, Mode::Timed, n_trials))
        };
        retiring(ground.plan()).into_iter().map(|base| removing(base.at_most(LONGEST))).flat_map(of).collect()
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let probed = evidence.probes(INFO.name);
        if probed.is_empty() {
            return without_probes(evidence.plan);
        }
        let same = |a: &Probed, b: &Probed| a.cell.structure() == b.cell.structure();
        let of_structures: Vec<OfStructure> =
            probed.chunk_by(same).map(|probed| OfStructure::new(evidence, probed)).collect();
        let mut judged: Vec<Judged> = of_structures.iter().map(OfStructure::judge).collect();
        if never_reclaims(evidence.plan) {
            judged.push(Judged { grade: Grade::Warn, share: 0.0, finding: NEVER.to_owned() });
        }
        let grade = judged.iter().map(|judged| judged.grade).max().unwrap_or(Grade::Unknown);
        let mut findings: Vec<&Judged> = judged.iter().filter(|judged| judged.grade == grade).collect();
        findings.sort_by(|a, b| b.share.total_cmp(&a.share));
        // Of what is as it should be, the worst is enough.
        findings.truncate(if grade == Grade::Pass { 1 } else { findings.len() });
        let findings: Vec<&str> = findings.into_iter().map(|judged| judged.finding.as_str()).collect();
        let most = if grade == Grade::Pass { "the most is held by " } else { "" };
        let summary = format!("{most}{}", findings.join("; "));
        let exhibits = vec![exhibit(&of_structures)];
        Verdict { info: &INFO, grade, summary, rows: Vec::new(), exhibits }
    }
}

const NEVER: &str =
    "the plan reclaims nothing: `none` is its only scheme, under which memory grows until the process ends";

/// Bases of the structures that hand what they remove to a scheme.
fn retiring(plan: &Plan) -> Vec<Setting> {
    let retires = |setting: &Setting| {
        let structure = structures::find(&Cell::of_setting(setting).structure().name);
        structure.is_some_and(|structure| structure.info.reclaims == Reclaims::Deferred)
    };
    competing(plan).into_iter().filter(retires).collect()
}

/// The setting, with as many insertions as removals if it has no removals to reclaim after.
fn removing(setting: Setting) -> Setting {
    let Mix { insert, remove, .. } = Cell::of_setting(&setting).mix();
    if insert.min(remove) > 0 { setting } else { setting.with_mix(Mix::WHOLE / 2, Mix::WHOLE / 2, 0) }
}

/// The plan's scheme for the structure of a base, the first that frees if there is one, and those to compare it with.
fn schemes(plan: &Plan, base: Cell<'_>) -> Vec<Reclamation> {
    let own = (0..plan.n_cells()).map(|cell| plan.cell(cell)).filter(|cell| cell.structure() == base.structure());
    let frees = own.map(|cell| cell.reclamation()).find(|&scheme| scheme != Reclamation::None);
    let mut schemes = vec![frees.unwrap_or(base.reclamation())];
    let structure = structures::find(&base.structure().name);
    for scheme in [Reclamation::Eager, Reclamation::None] {
        let is_supported = structure.is_some_and(|structure| structure.driver(scheme).is_some());
        if is_supported && !schemes.contains(&scheme) {
            schemes.push(scheme);
        }
    }
    schemes
}

fn never_reclaims(plan: &Plan) -> bool {
    let all = &plan.values[Parameter::Reclamation as usize];
    all.iter().all(|scheme| *scheme == Value::Reclamation(Reclamation::None)) && !retiring(plan).is_empty()
}

fn without_probes(plan: &Plan) -> Verdict {
    let own = |setting: &Setting| {
        let structure = structures::find(&Cell::of_setting(setting).structure().name);
        structure.is_none_or(|structure| structure.info.reclaims == Reclaims::Own)
    };
    if !retiring(plan).is_empty() {
        return unknown(&INFO, "the plan has no trials for it");
    }
    if competing(plan).iter().any(own) {
        return unknown(&INFO, "the structures reclaim by schemes of their own, which do not tell what they hold");
    }
    let summary = "no structure hands what it removes to a scheme".to_owned();
    Verdict { info: &INFO, grade: Grade::Pass, summary, rows: Vec::new(), exhibits: Vec::new() }
}

/// What was found of one structure, with the share that it holds.
struct Judged {
    grade: Grade,
    share: f64,
    finding: String,
}

/// One structure under each scheme, that of the plan first.
struct OfStructure {
    label: String,
    schemes: Vec<OfScheme>,
}

/// Medians over the trials of one scheme; `None` where no trial tells.
struct OfScheme {
    scheme: Reclamation,
    n_trials: usize,
    n_threads: Option<f64>,
    throughput: Option<f64>,
    operations: Option<f64>,
    removals: Option<f64>,
    unreclaimed: Option<f64>,
    /// Peak resident set less that before the structure was made, in bytes.
    peak: Option<f64>,
}

impl OfScheme {
    fn new(evidence: &Evidence, probed: &Probed) -> Self {
        let of_trials = |value: fn(&Replied) -> Option<u64>| {
            let values: Option<Vec<f64>> = evidence.valid(probed).map(|trial| Some(value(trial)? as f64)).collect();
            values.and_then(|values| median(&values))
        };
        Self {
            scheme: probed.cell.reclamation(),
            n_trials: evidence.valid(probed).count(),
            n_threads: of_trials(|trial| Some(trial.reply.threads.len() as u64)),
            throughput: median(&evidence.throughputs(probed)),
            operations: of_trials(|trial| Some(trial.reply.threads.iter().map(|it| it.operations.attempted()).sum())),
            removals: of_trials(|trial| {
                Some(trial.reply.threads.iter().map(|it| it.operations.remove.effective).sum())
            }),
            unreclaimed: of_trials(|trial| trial.reply.memory.unreclaimed_objects),
            peak: of_trials(|trial| {
                let memory = &trial.reply.memory;
                Some(memory.peak_bytes.saturating_sub(memory.harness_bytes))
            }),
        }
    }
}

impl OfScheme {
    /// Objects that threads may hold back at any moment because they hand them over in batches.
    fn in_batches(&self) -> f64 {
        match self.scheme {
            Reclamation::Hyaline { batch } => f64::from(batch) * self.n_threads.unwrap_or(1.0),
            _ => 0.0,
        }
    }
}

impl OfStructure {
    /// `probed` has the probes of one structure, that of the plan's scheme first.
    fn new(evidence: &Evidence, probed: &[Probed]) -> Self {
        let schemes = probed.iter().map(|probed| OfScheme::new(evidence, probed)).collect();
        Self { label: probed[0].cell.structure().label.clone(), schemes }
    }

    /// Objects retired in a trial of `of`, for as many operations as it did.
    fn retired(&self, of: &OfScheme) -> Option<f64> {
        let without = self.schemes.iter().find(|other| other.scheme == Reclamation::None);
        let a_operation = without.and_then(|none| Some(none.unreclaimed? / none.operations.filter(|&n| n > 0.0)?));
        match a_operation {
            Some(a_operation) => Some(a_operation * of.operations?),
            // At least what is held was retired.
            None => Some(of.removals?.max(of.unreclaimed.unwrap_or(0.0))),
        }
    }

    fn judge(&self) -> Judged {
        let (own, label) = (&self.schemes[0], &self.label);
        let unknown = |finding: String| Judged { grade: Grade::Unknown, share: 0.0, finding };
        if own.scheme == Reclamation::None {
            let finding = format!("{label}, which is measured under `none` alone");
            return Judged { grade: Grade::Pass, share: 0.0, finding };
        }
        let Some(held) = own.unreclaimed else {
            return unknown(format!("{label}: no trial under `{}` tells what it holds", own.scheme));
        };
        let retired = self.retired(own).unwrap_or(0.0);
        if retired < MIN_RETIRED.max(own.in_batches() * BATCHES_RETIRED) {
            return unknown(format!("{label}: {} objects retired in a trial are too few to tell", objects(retired)));
        }
        let share = held / retired;
        let grade = match share {
            share if share > FAIL_SHARE => Grade::Fail,
            share if share > WARN_SHARE => Grade::Warn,
            _ => Grade::Pass,
        };
        let finding = format!(
            "{label}: {} of {} objects retired in a trial under `{}` ({})",
            objects(held),
            objects(retired),
            own.scheme,
            percent(share)
        );
        Judged { grade, share, finding }
    }
}

/// A median of counts, rounded.
fn objects(number: f64) -> String {
    count(number.round() as u64)
}

fn exhibit(of_structures: &[OfStructure]) -> Exhibit {
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "unknown".to_owned());
    let mut rows = Vec::new();
    for structure in of_structures {
        let own = structure.schemes[0].throughput;
        for (idx, of) in structure.schemes.iter().enumerate() {
            let role = if idx == 0 { "the plan's" } else { "to compare" };
            rows.push(vec![
                structure.label.clone(),
                format!("{} ({role})", of.scheme),
                of.n_trials.to_string(),
                or_none(of.throughput.map(mops)),
                or_none(of.throughput.zip(own).map(|(of, own)| ratio(of / own))),
                or_none(of.unreclaimed.map(objects)),
                or_none(structure.retired(of).map(objects)),
                or_none(of.peak.map(|peak| bytes(peak as u64))),
            ]);
        }
    }
    Exhibit {
        title: "The price of reclamation".to_owned(),
        columns: columns(&[
            ("structure", None),
            ("scheme", None),
            ("trials", Some("")),
            ("throughput", Some("Mops/s")),
            ("over the plan's scheme", Some("")),
            ("held at the end", Some("objects")),
            ("retired", Some("objects")),
            ("peak memory", None),
        ]),
        rows,
        note: "Medians. Under `none` all that is retired is held, which is how a scheme that never frees would grow. Peak \
               memory is the resident set without what the harness had before the structure was made."
            .to_owned(),
    }
}
