//! Check `apples`: what is compared differs in its structure only.
//!
//! Looks at the plan and at what the structures state of themselves, and takes from the records only what no plan can say:
//! how many updates took effect, and how the harness was set.

use rare_workloads::{
    protocol::{Harness, Mix, Reclamation},
    structures::{self, Reclaims, Structure},
};

use super::{Check, Grade, Info, Row, Subject, Verdict};
use crate::{
    plan::{BlockKind, Cell},
    record::Outcome,
    spec::{
        describe,
        fields::{Default, FIELDS},
        value::Parameter,
        words,
    },
    stats::{Standing, validity},
    verdict::{Evidence, evidence::title},
};

/// Difference of the shares of effective updates that is no longer the same work, beyond chance.
const WARN_SHARE: f64 = 0.01;

/// Difference with which the structures hold different sets, or mean different things by their operations.
const FAIL_SHARE: f64 = 0.1;

/// Deviations of a binomial share that chance may take: 1 in 1.7 million.
const CHANCE: f64 = 5.0;

/// Parameters that an entry of a structure may fix for itself.
const OWN: [Parameter; 3] = [Parameter::Reclamation, Parameter::ObjectPool, Parameter::NodePadding];

static INFO: Info = Info {
    name: "apples",
    title: "Apples to apples",
    rule: "cells that stand beside each other differ in their structure only: same semantics and widths, same reclamation, \
           pooling and padding, all or none of them leaking, labels that tell parameters, the harness at its defaults; and \
           the same share of their operations takes effect",
    threshold: "any difference warns; semantics that differ without `allow: [semantics]` fail; shares of effective updates, \
                of all operations, that differ by over 1 point plus 5 standard deviations warn, by over 10 points fail",
    source: "the talk's apples-to-apples; Hoefler and Belli, SC'15, rule 9; the two shares: ours",
    reason: "a structure that leaks, pools, or finds most of its updates without effect does less work, and looks faster",
    remedy: "give all structures the same settings, or make the setting an axis; prefill to the share of inserts among the \
             updates, which keeps the set at its size",
};

/// See [`INFO`].
pub(super) struct Apples;

impl Check for Apples {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let groups = compared(evidence);
        let mut findings = Findings::default();
        let mut unknown = Vec::new();
        for group in &groups {
            match known(evidence, group) {
                Ok(members) => {
                    semantics(evidence, &members, &mut findings);
                    leaks(&members, &mut findings);
                    labels(&members, &mut findings);
                }
                Err(name) => unknown.push(format!("this version does not know `{name}`")),
            }
        }
        apart(evidence, &mut findings);
        harness(evidence, &mut findings);
        let n_judged = groups.iter().filter_map(|group| effective(evidence, group, &mut findings)).count();
        let n_updating = groups.iter().filter(|group| updates(evidence.plan.cell(group[0]).mix()) > 0).count();
        if n_judged < n_updating {
            let n_open = n_updating - n_judged;
            unknown
                .push(format!("no trials tell which updates took effect in {n_open} of {n_updating} configurations"));
        }
        verdict(evidence, groups.len(), findings, unknown)
    }
}

fn verdict(evidence: &Evidence, n_groups: usize, findings: Findings, unknown: Vec<String>) -> Verdict {
    let rows = findings.rows();
    let worst = rows.iter().map(|row| row.grade).max();
    let mut parts: Vec<String> = Vec::new();
    parts.extend(rows.iter().find(|row| Some(row.grade) == worst).map(|row| row.finding.clone()));
    parts.extend((rows.len() > 1).then(|| format!("{} findings in all", rows.len())));
    parts.extend(unknown.first().cloned());
    parts.push(match n_groups {
        0 => "no two structures share a configuration".to_owned(),
        _ => format!("{n_groups} configurations with structures side by side"),
    });
    parts.extend(at_once(evidence));
    let grade = worst.unwrap_or(if unknown.is_empty() { Grade::Pass } else { Grade::Unknown });
    Verdict::new(&INFO, grade, parts.join("; "), rows)
}

/// Groups of cells that the report compares, without those that store nothing.
fn compared(evidence: &Evidence) -> Vec<Vec<u32>> {
    let competes = |&&cell: &&u32| !validity::stores_nothing(&evidence.plan.cell(cell).structure().name);
    let groups = evidence.summary.groups.iter().map(|group| group.iter().filter(competes).copied().collect());
    groups.filter(|group: &Vec<u32>| group.len() > 1).collect()
}

/// A cell with its structure's statement.
struct Member<'p> {
    cell: Cell<'p>,
    structure: &'static Structure,
}

impl Member<'_> {
    fn label(&self) -> &str {
        &self.cell.structure().label
    }
}

fn known<'p>(evidence: &Evidence<'p>, group: &[u32]) -> Result<Vec<Member<'p>>, String> {
    let member = |&cell: &u32| {
        let cell = evidence.plan.cell(cell);
        let name = &cell.structure().name;
        structures::find(name).map(|structure| Member { cell, structure }).ok_or_else(|| name.clone())
    };
    group.iter().map(member).collect()
}

/// Findings, each with the first cell and the number of configurations that it is true of.
#[derive(Default)]
struct Findings(Vec<(Grade, u32, String, usize)>);

impl Findings {
    fn add(&mut self, grade: Grade, cell: u32, text: String) {
        match self.0.iter_mut().find(|(.., known, _)| *known == text) {
            Some((.., n)) => *n += 1,
            None => self.0.push((grade, cell, text, 1)),
        }
    }

    fn rows(&self) -> Vec<Row> {
        let row = |(grade, cell, text, n): &(Grade, u32, String, usize)| {
            let finding = if *n > 1 { format!("{text}, in {n} configurations") } else { text.clone() };
            Row { subject: Subject::Cell(*cell), finding, grade: *grade }
        };
        self.0.iter().map(row).collect()
    }
}

fn semantics(evidence: &Evidence, members: &[Member], findings: &mut Findings) {
    let Some((first, others)) = members.split_first() else { return };
    // A plan does not hold what its spec allows; one that stands alone is taken at its word.
    let is_allowed = evidence.spec.is_none_or(|spec| spec.allow.contains(&"semantics"));
    let grade = if is_allowed { Grade::Warn } else { Grade::Fail };
    for other in others {
        let (a, b) = (&first.structure.info.semantics, &other.structure.info.semantics);
        if a != b {
            let (left, right) = (first.label(), other.label());
            let text = format!("`{left}` is {}, `{right}` is {}", describe(a), describe(b));
            findings.add(grade, other.cell.cell_idx().expect("it is of the plan"), text);
        }
    }
}

/// Without reclamation some structures leak what they remove, while others free it all the same.
fn leaks(members: &[Member], findings: &mut Findings) {
    let leaking = |member: &&Member| {
        member.cell.reclamation() == Reclamation::None && member.structure.info.reclaims == Reclaims::Deferred
    };
    let (leaky, sound): (Vec<&Member>, Vec<&Member>) = members.iter().partition(leaking);
    if let ([first, ..], [_, ..]) = (&leaky[..], &sound[..]) {
        let names = |members: &[&Member]| words::enumerate(members.iter().map(|member| member.label()));
        let text = format!("without reclamation {} leak what {} really free", names(&leaky), names(&sound));
        findings.add(Grade::Warn, first.cell.cell_idx().expect("it is of the plan"), text);
    }
}

/// A structure with other parameters than its defaults, under the plain name.
fn labels(members: &[Member], findings: &mut Findings) {
    for member in members {
        let used = member.cell.structure();
        let own = member.structure.info.parameters.iter();
        let changed: Vec<String> = own
            .filter_map(|info| Some((info, *used.parameters.get(info.name)?)))
            .filter(|(info, value)| *value != info.default)
            .map(|(info, value)| format!("{} {value} instead of {}", info.name, info.default))
            .collect();
        if !changed.is_empty() && used.label == used.name {
            let text = format!("`{}` has {}, and its label does not tell", used.label, changed.join(", "));
            findings.add(Grade::Warn, member.cell.cell_idx().expect("it is of the plan"), text);
        }
    }
}

/// Structures whose entries fix a setting for themselves stand in figures of their own, beside the others' and compared
/// with none of them.
fn apart(evidence: &Evidence, findings: &mut Findings) {
    let cells = || (0..).zip(&evidence.plan.cells);
    let structure = |columns: &[u32; Parameter::COUNT]| columns[Parameter::Structure as usize];
    for parameter in OWN {
        let taken = |used: u32| {
            let values = cells().filter(|(_, columns)| structure(columns) == used);
            let mut values: Vec<u32> = values.map(|(_, columns)| columns[parameter as usize]).collect();
            values.sort_unstable();
            values.dedup();
            values
        };
        let mut known: Vec<(u32, u32, Vec<u32>)> = Vec::new();
        for (cell, columns) in cells() {
            let stores = !validity::stores_nothing(&evidence.plan.cell(cell).structure().name);
            if stores && known.iter().all(|(_, used, _)| *used != structure(columns)) {
                known.push((cell, structure(columns), taken(structure(columns))));
            }
        }
        let Some(((first, _, usual), others)) = known.split_first() else { continue };
        for (cell, ..) in others.iter().filter(|(.., values)| values.iter().all(|value| !usual.contains(value))) {
            let own = |cell: u32| {
                let cell = evidence.plan.cell(cell);
                format!("`{}` under {}", cell.structure().label, evidence.phrase(parameter, cell.value(parameter)))
            };
            let text = format!(
                "{} and {} never share a {}, so that nothing compares them",
                own(*first),
                own(*cell),
                title(parameter)
            );
            findings.add(Grade::Warn, *cell, text);
        }
    }
}

/// Settings of the harness that are kept to show what they spoil.
fn harness(evidence: &Evidence, findings: &mut Findings) {
    let mut is_planned = false;
    for field in FIELDS.iter().filter(|field| field.key.starts_with("harness.")) {
        let (Some(parameter), Default::Text(default)) = (field.parameter, field.default) else { continue };
        for (value_idx, value) in (0..).zip(&evidence.plan.values[parameter as usize]) {
            let takes = |columns: &[u32; Parameter::COUNT]| columns[parameter as usize] == value_idx;
            let cell = (0..).zip(&evidence.plan.cells).find(|(_, columns)| takes(columns));
            if let Some((cell, _)) = cell.filter(|_| value.to_string() != default) {
                is_planned = true;
                let text = format!(
                    "`{}: {value}` instead of `{default}`: figures under it carry a known mistake of harnesses",
                    field.key
                );
                findings.add(Grade::Warn, cell, text);
            }
        }
    }
    // What was asked of the workers beyond the plan. Probes plant such settings on purpose, and their cells are their own.
    let spoilt = |replied: &super::Replied| {
        let asked = replied.trial.request.harness;
        if is_planned { asked.fault.is_some() } else { asked != Harness::default() }
    };
    // Probes may change the harness: that is what some are for.
    let of_cells = |replied: &super::Replied| replied.trial.trial.kind != BlockKind::Probe;
    for replied in evidence.replied().filter(of_cells).filter(spoilt) {
        let asked = serde_json::to_string(&replied.trial.request.harness).expect("settings are plain data");
        let text = format!("the harness was set to {asked}: figures under it carry a known mistake of harnesses");
        findings.add(Grade::Warn, replied.trial.trial.cell, text);
    }
}

fn updates(mix: Mix) -> u32 {
    mix.insert + mix.remove
}

/// Compares the shares of operations that were effective updates; `None` if fewer than two cells have trials that count,
/// or there are no updates.
fn effective(evidence: &Evidence, group: &[u32], findings: &mut Findings) -> Option<()> {
    if updates(evidence.plan.cell(group[0]).mix()) == 0 {
        return None;
    }
    let mut shares: Vec<(u32, f64, f64)> =
        group.iter().filter_map(|&cell| effective_share(evidence, cell).map(|(share, n)| (cell, share, n))).collect();
    shares.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (&[(low, low_share, low_n), ..], &[.., (high, high_share, high_n)]) = (&shares[..], &shares[..]) else {
        return None;
    };
    let variance = low_share * (1.0 - low_share) / low_n + high_share * (1.0 - high_share) / high_n;
    let beyond = |bound: f64| high_share - low_share > bound + CHANCE * variance.sqrt();
    if beyond(WARN_SHARE) {
        let grade = if beyond(FAIL_SHARE) { Grade::Fail } else { Grade::Warn };
        let label = |cell: u32| &evidence.plan.cell(cell).structure().label;
        let (few, many) = (100.0 * low_share, 100.0 * high_share);
        let text = format!(
            "{few:.1} % of the operations of `{}` are updates that took effect, {many:.1} % of those of `{}`",
            label(low),
            label(high)
        );
        let configuration = evidence.configuration_label(low);
        let at = if configuration.is_empty() { String::new() } else { format!(" ({configuration})") };
        findings.add(grade, low, format!("{text}{at}"));
    }
    (shares.len() > 1).then_some(())
}

/// Effective updates over all operations of the trials of a cell that count, and the number of the operations.
fn effective_share(evidence: &Evidence, cell: u32) -> Option<(f64, f64)> {
    let (mut effective, mut attempted) = (0, 0);
    for &record_idx in &evidence.summary.cell(cell).records {
        debug_assert_eq!(evidence.summary.trials[record_idx].standing, Standing::Counted);
        let Outcome::Replied(reply) = &evidence.trials[record_idx].outcome else { continue };
        for thread in &reply.threads {
            effective += thread.operations.insert.effective + thread.operations.remove.effective;
            attempted += thread.operations.attempted();
        }
    }
    (attempted > 0).then(|| (effective as f64 / attempted as f64, attempted as f64))
}

/// Names the structures to which the scheme on the label means nothing.
fn at_once(evidence: &Evidence) -> Option<String> {
    let cells = (0..).zip(&evidence.plan.cells).map(|(cell, _)| evidence.plan.cell(cell).structure());
    let mut labels: Vec<&str> = cells
        .filter(|used| {
            structures::find(&used.name).is_some_and(|structure| structure.info.reclaims == Reclaims::AtOnce)
        })
        .map(|used| used.label.as_str())
        .collect();
    labels.dedup();
    labels.sort_unstable();
    labels.dedup();
    let one = labels.len() == 1;
    let (frees, asked) = if one { ("frees", "its") } else { ("free", "their") };
    (!labels.is_empty())
        .then(|| format!("{} {frees} at once, whatever scheme {asked} label names", words::enumerate(labels)))
}
