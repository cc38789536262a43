//! Claims of the spec, decided anew from the data of each run.

use std::cmp::Ordering;

use super::evidence::Evidence;
use crate::{
    spec::model::Claim,
    stats::{ALPHA, Answer, CellSummary, Comparison, Interval, compare, mann_whitney},
    units::BasisPoints,
};

/// How a claim ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// The data bear it out.
    Holds,
    /// The data contradict it.
    Fails,
    /// The data do not tell.
    Undecided,
}

impl Decision {
    /// Returns the word of reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::Undecided => "undecided",
        }
    }
}

/// A claim and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimDecision<'a> {
    /// The claim.
    pub claim: &'a Claim,
    /// Holds if it holds in every cell of its scope, fails if it fails in any.
    pub decision: Decision,
    /// Why, in one sentence.
    pub reason: String,
    /// Each pair of cells in its scope, in plan order.
    pub pairs: Vec<PairDecision>,
}

/// A claim in one configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct PairDecision {
    /// Cell of the structure claimed faster.
    pub faster: u32,
    /// Cell of the structure claimed slower.
    pub slower: u32,
    /// What the two cells say.
    pub decision: Decision,
    /// Median of the first over that of the second; `None` where one has no trial that counts.
    pub ratio: Option<f64>,
    /// 95 % interval of the ratio.
    pub interval: Option<Interval>,
    /// Corrected p-value of the test that decided; `None` where one has no trial that counts.
    pub p: Option<f64>,
    /// Why it is undecided; empty otherwise.
    pub reason: String,
}

/// Decides every claim of the spec; empty if the spec is unknown.
pub fn decide<'a>(evidence: &Evidence<'a>) -> Vec<ClaimDecision<'a>> {
    let claims = evidence.spec.map_or(&[][..], |spec| &spec.claims);
    let pairs: Vec<Vec<(u32, u32)>> = claims.iter().map(|claim| pairs_in_scope(evidence, claim)).collect();
    // A claim with a margin needs a test of its own, beyond the comparisons of the report: it joins their correction.
    let with_margin = claims.iter().zip(&pairs).filter(|(claim, _)| claim.by.0 > 0);
    let n_tests = evidence.summary.comparisons.len() + with_margin.map(|(_, pairs)| pairs.len()).sum::<usize>();
    let decided = claims.iter().zip(&pairs).map(|(claim, pairs)| {
        let pairs = pairs.iter().map(|&pair| decide_pair(evidence, claim, pair, n_tests)).collect();
        conclude(evidence, claim, pairs)
    });
    decided.collect()
}

fn pairs_in_scope(evidence: &Evidence, claim: &Claim) -> Vec<(u32, u32)> {
    let mut in_scope = vec![false; evidence.plan.cells.len()];
    evidence.plan.matching(&claim.scope).for_each(|cell| in_scope[cell as usize] = true);
    let mut pairs = Vec::new();
    for group in &evidence.summary.groups {
        let with_label = |label: &str| {
            let of_label = |&&cell: &&u32| evidence.plan.cell(cell).structure().label == label;
            group.iter().find(of_label).copied()
        };
        if let (Some(faster), Some(slower)) = (with_label(&claim.faster), with_label(&claim.slower))
            && (in_scope[faster as usize] || in_scope[slower as usize])
        {
            pairs.push((faster, slower));
        }
    }
    pairs
}

fn decide_pair(evidence: &Evidence, claim: &Claim, (faster, slower): (u32, u32), n_tests: usize) -> PairDecision {
    let (left, right) = (evidence.summary.cell(faster), evidence.summary.cell(slower));
    let mut pair = PairDecision {
        faster,
        slower,
        decision: Decision::Undecided,
        ratio: None,
        interval: None,
        p: None,
        reason: String::new(),
    };
    let Some(comparison) = Comparison::new((faster, &left.values), (slower, &right.values)) else {
        pair.reason = missing(evidence, if left.values.is_empty() { left } else { right });
        return pair;
    };
    (pair.ratio, pair.interval) = (comparison.ratio, comparison.interval);
    let (answer, p) = if claim.by.0 == 0 {
        answer_of_report(evidence, (faster, slower)).unwrap_or((comparison.answer, comparison.p))
    } else {
        answer_with_margin(&left.values, &right.values, claim.by, n_tests)
    };
    pair.p = Some(p);
    pair.decision = match answer {
        Answer::Faster => Decision::Holds,
        Answer::Slower => Decision::Fails,
        Answer::NotDistinguishable => Decision::Undecided,
    };
    if pair.decision == Decision::Undecided {
        pair.reason = if comparison.is_hopeless(n_tests) {
            format!(
                "{} and {} trials cannot decide one of {n_tests} comparisons; {} of each can",
                left.values.len(),
                right.values.len(),
                compare::trials_needed(n_tests)
            )
        } else {
            "not distinguishable".to_owned()
        };
    }
    pair
}

fn missing(evidence: &Evidence, cell: &CellSummary) -> String {
    format!("no trial counts of {}", evidence.cell_label(cell.cell))
}

/// The answer that the report's own comparison gives, seen from the structure claimed faster.
fn answer_of_report(evidence: &Evidence, (faster, slower): (u32, u32)) -> Option<(Answer, f64)> {
    let (comparison, mirrored) = evidence.summary.comparison(faster, slower)?;
    let answer = match comparison.answer {
        Answer::Faster if mirrored => Answer::Slower,
        Answer::Slower if mirrored => Answer::Faster,
        same => same,
    };
    Some((answer, comparison.p_holm))
}

/// Compares with the slower one's throughputs raised by the margin, corrected by Bonferroni over all tests.
fn answer_with_margin(faster: &[f64], slower: &[f64], by: BasisPoints, n_tests: usize) -> (Answer, f64) {
    let raised: Vec<f64> = slower.iter().map(|value| value * (1.0 + f64::from(by.0) / 10_000.0)).collect();
    let test = mann_whitney::test(faster, &raised).expect("both sides were compared before");
    let p = (test.p * n_tests as f64).min(1.0);
    let answer = match mann_whitney::cliffs_delta(faster, &raised).total_cmp(&0.0) {
        Ordering::Greater if p < ALPHA => Answer::Faster,
        Ordering::Less if p < ALPHA => Answer::Slower,
        _ => Answer::NotDistinguishable,
    };
    (answer, p)
}

fn conclude<'a>(evidence: &Evidence, claim: &'a Claim, pairs: Vec<PairDecision>) -> ClaimDecision<'a> {
    let count = |decision| pairs.iter().filter(|pair| pair.decision == decision).count();
    let (n_hold, n_fail, n_open) = (count(Decision::Holds), count(Decision::Fails), count(Decision::Undecided));
    let first = |decision: Decision| pairs.iter().find(|pair| pair.decision == decision).expect("counted above");
    let (decision, reason) = if pairs.is_empty() {
        (Decision::Undecided, "no pair of cells is in its scope".to_owned())
    } else if n_fail > 0 {
        let example = match evidence.configuration_label(first(Decision::Fails).slower) {
            label if label.is_empty() => String::new(),
            label => format!(", such as {label}"),
        };
        let flips = if n_hold > 0 { format!("; it holds in {n_hold}") } else { String::new() };
        (Decision::Fails, format!("fails in {n_fail} of {} configurations{example}{flips}", pairs.len()))
    } else if n_open > 0 {
        let example = &first(Decision::Undecided).reason;
        (Decision::Undecided, format!("undecided in {n_open} of {} configurations: {example}", pairs.len()))
    } else {
        let scope = if pairs.len() == 1 {
            "in the one configuration".to_owned()
        } else {
            format!("in all {} configurations", pairs.len())
        };
        (Decision::Holds, scope)
    };
    ClaimDecision { claim, decision, reason, pairs }
}
