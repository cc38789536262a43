//! Everything that checks, claims and report sections may look at: read-only, all of it data.

use rare_workloads::protocol::Reply;

use crate::{
    plan::{BlockKind, Cell, Plan, PlanHash, Probe, TrialId},
    record::{Environment, Outcome, Trial},
    spec::{
        Spec,
        value::{Parameter, Pinning, Threads, Value},
    },
    stats::{Standing, Summary},
};

/// One run of one plan with what was made of it.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// File-safe name of the experiment.
    pub name: &'a str,
    /// Name of the run: its folder under `runs/`.
    pub run_name: &'a str,
    /// Whether the plan came from the spec's `quick` block: a try-out, marked everywhere.
    pub quick: bool,
    /// The spec as written; `None` after a rerun from a bare plan.
    pub spec_text: Option<&'a str>,
    /// The compiled spec: question, claims and names, which are not in the plan.
    pub spec: Option<&'a Spec>,
    /// What was to be executed.
    pub plan: &'a Plan,
    /// The plan's canonical bytes: the ones that `hash` is of.
    pub plan_bytes: &'a [u8],
    /// SHA-256 of `plan_bytes`.
    pub hash: PlanHash,
    /// Every record of the run, in the order of the journal.
    pub trials: &'a [Trial],
    /// The machine and the build.
    pub environment: &'a Environment,
    /// The records summarised; `summary.trials` is parallel to `trials`.
    pub summary: &'a Summary,
    /// Size of the journal on disk in bytes, if known.
    pub record_bytes: Option<u64>,
}

/// A record that has a reply and stands for its trial.
#[derive(Clone, Copy, Debug)]
pub struct Replied<'a> {
    /// Index of the record.
    pub record_idx: usize,
    /// The record.
    pub trial: &'a Trial,
    /// Its reply.
    pub reply: &'a Reply,
}

/// A probe with what came of its trials.
#[derive(Clone, Debug)]
pub struct Probed<'a> {
    /// The probe.
    pub probe: &'a Probe,
    /// Its cell.
    pub cell: Cell<'a>,
    /// Its trials with a reply, valid or not, at their last attempt.
    pub trials: Vec<Replied<'a>>,
    /// Its trials without one: index of the record, and the record.
    pub failures: Vec<(usize, &'a Trial)>,
}

impl<'a> Evidence<'a> {
    /// Iterates over the planned trials that have a reply, at their last attempt, in the order of the records.
    pub fn replied(&self) -> impl Iterator<Item = Replied<'a>> + use<'a> {
        let summaries = &self.summary.trials;
        self.trials.iter().zip(summaries).enumerate().filter_map(|(record_idx, (trial, summary))| {
            let stands = !matches!(summary.standing, Standing::Superseded | Standing::Foreign);
            match &trial.outcome {
                Outcome::Replied(reply) if stands => Some(Replied { record_idx, trial, reply }),
                _ => None,
            }
        })
    }

    /// Returns a value as a reader knows it: under the name that the spec gives it, if it gives one.
    pub fn value_text(&self, value: &Value) -> String {
        let named = match (value, self.spec) {
            (Value::Mix(mix), Some(spec)) => spec.mix_names.iter().find(|(named, _)| named == mix),
            _ => None,
        };
        named.map_or_else(|| value.to_string(), |(_, name)| name.clone())
    }

    /// Returns a value so that it is understood without its parameter's name beside it, in the least words: `1 thread`,
    /// `100k keys`, `jemalloc`.
    pub fn phrase(&self, parameter: Parameter, value: &Value) -> String {
        let text = self.value_text(value);
        match (parameter, value) {
            (Parameter::Structure | Parameter::Allocator | Parameter::Mix, _) => text,
            (Parameter::Threads, Value::Threads(Threads::Count(1))) => "1 thread".to_owned(),
            (Parameter::Threads, _) => format!("{text} threads"),
            (Parameter::KeyRange | Parameter::Distribution, _) => format!("{text} keys"),
            (Parameter::TrialLength, _) => format!("{text} trials"),
            (Parameter::Pinning, Value::Pinning(Pinning::Cpus(_))) => text,
            (Parameter::Pinning | Parameter::Reclamation, _) if text == "none" => format!("no {}", title(parameter)),
            (Parameter::Pinning | Parameter::Reclamation, _) => format!("{text} {}", title(parameter)),
            _ => format!("{} {text}", title(parameter)),
        }
    }

    /// Returns what tells a cell from the others of its plan: structure, then every varied parameter.
    pub fn cell_label(&self, cell: u32) -> String {
        let structure = self.plan.cell(cell).structure().label.clone();
        match self.configuration_label(cell) {
            configuration if configuration.is_empty() => structure,
            configuration => format!("{structure}, {configuration}"),
        }
    }

    /// Returns what tells the trial's cell from the others: for a trial of a probe, what the probe is for, its structure,
    /// and how its cell differs from those of the other probes for the same; `None` if the plan has no such trial.
    pub fn trial_label(&self, trial: TrialId) -> Option<String> {
        let cell = self.plan.cell_of(trial)?;
        let Some(probe) = self.plan.probe_of(trial) else { return Some(self.cell_label(trial.cell)) };
        let others = || self.plan.probes.iter().filter(|other| other.purpose == probe.purpose);
        let is_varied = |&parameter: &Parameter| {
            parameter != Parameter::Structure
                && others().any(|other| other.cell().value(parameter) != cell.value(parameter))
        };
        let varied = Parameter::ALL.into_iter().filter(is_varied);
        let parts = varied.map(|parameter| self.phrase(parameter, cell.value(parameter)));
        let parts: Vec<String> = [cell.structure().label.clone()].into_iter().chain(parts).collect();
        Some(format!("{}: {}", probe.purpose, parts.join(", ")))
    }

    /// Returns the probes for a purpose with what came of their trials, in the order of the plan.
    pub fn probes(&self, purpose: &str) -> Vec<Probed<'a>> {
        let of_purpose = (0..).zip(&self.plan.probes).filter(|(_, probe)| probe.purpose == purpose);
        let mut probed: Vec<(u32, Probed<'a>)> = of_purpose
            .map(|(idx, probe)| (idx, Probed { probe, cell: probe.cell(), trials: Vec::new(), failures: Vec::new() }))
            .collect();
        for (record_idx, (trial, summary)) in self.trials.iter().zip(&self.summary.trials).enumerate() {
            let is_of =
                |(idx, _): &&mut (u32, Probed)| trial.trial.kind == BlockKind::Probe && trial.trial.cell == *idx;
            let Some((_, holder)) = probed.iter_mut().find(is_of) else { continue };
            match (&trial.outcome, summary.standing) {
                (_, Standing::Superseded | Standing::Foreign) => {}
                (Outcome::Replied(reply), _) => holder.trials.push(Replied { record_idx, trial, reply }),
                (Outcome::Failed { .. }, _) => holder.failures.push((record_idx, trial)),
            }
        }
        probed.into_iter().map(|(_, probed)| probed).collect()
    }

    /// Iterates over the valid trials of a probe.
    pub fn valid<'p>(&self, probed: &'p Probed<'a>) -> impl Iterator<Item = &'p Replied<'a>> + use<'p, 'a> {
        let summaries = &self.summary.trials;
        let is_valid = move |replied: &&Replied| summaries[replied.record_idx].standing == Standing::Instrumented;
        probed.trials.iter().filter(is_valid)
    }

    /// Iterates over the valid timed trials of a probe, each with its throughput in operations per second.
    pub fn valid_timed<'p>(
        &self,
        probed: &'p Probed<'a>,
    ) -> impl Iterator<Item = (&'p Replied<'a>, f64)> + use<'p, 'a> {
        let summaries = &self.summary.trials;
        self.valid(probed).filter_map(move |replied| Some((replied, summaries[replied.record_idx].throughput?)))
    }

    /// Returns the throughputs of the valid timed trials of a probe, in operations per second.
    pub fn throughputs(&self, probed: &Probed<'a>) -> Vec<f64> {
        self.valid_timed(probed).map(|(_, throughput)| throughput).collect()
    }

    /// Returns the varied parameters of a cell but for its structure, such as `2 threads, 100k keys`; empty if there
    /// are none.
    pub fn configuration_label(&self, cell: u32) -> String {
        let cell = self.plan.cell(cell);
        let part = |parameter| self.phrase(parameter, cell.value(parameter));
        let varied = self.plan.varied().into_iter().filter(|&parameter| parameter != Parameter::Structure);
        varied.map(part).collect::<Vec<String>>().join(", ")
    }
}

/// Returns the name of a parameter in running text: `key_range` is `key range`.
pub fn title(parameter: Parameter) -> String {
    parameter.name().replace('_', " ")
}
