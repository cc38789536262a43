//! Section `compare`: whether the counter that an explanation names moves with the time when the cause is taken away.
//!
//! Idea: Brown, Good data structure experiments are R.A.R.E.: an explanation is confirmed by an experiment made for it,
//! such as a skip list of one level.

use super::{Context, Section};
use crate::{
    plan::{COMPARE, Cell as PlanCell},
    record::Outcome,
    report::{
        block::{Block, Cell, Table, Tone},
        number::{self, NONE, counted},
        probed::{INSTRUCTIONS, SUMS, Simulation, Sum, amount},
    },
    spec::value::Parameter,
    stats::{Answer, Comparison, Interval, compare},
    verdict::evidence::Probed,
};

pub(super) const SECTION: Section = Section { id: "compare", title: "Explanations put to the test", build };

/// A counter that moves at least this share of what the time moves, on a log scale, accounts for most of it.
const MOST: f64 = 0.5;

/// One that moves less than this share, or the time less than this share of what it moves, has nothing to do with it.
const LITTLE: f64 = 0.1;

/// Ratio up to which a counter has not moved: data and code at other addresses change a simulation by less.
const UNMOVED: f64 = 1.05;

/// An interval of the time within so much of 1 tells that the time has not moved either.
const SAME: f64 = 1.1;

/// Misses for each operation below which they weigh nothing: at some hundred cycles each, about one cycle.
const RARE: f64 = 0.01;

const RULE: &str = "An explanation is confirmed if the time per operation changes (Mann-Whitney test, \
                    corrected by Holm over the comparisons of this section, below 0.05) and the predicted counter changes \
                    in the same direction and on a log scale by at least half as much. It is refuted if the time changes \
                    and the counter changes in the other direction or by less than a tenth as much; if the counter changes \
                    by more than 5 % and the interval of the time allows less than a tenth of that; or if the counter \
                    changes by no more than 5 % and the time, by its interval, by no more than 10 %. All else is undecided, \
                    and so are misses below 0.01 per operation. Counters are simulated by callgrind, one trial each; times \
                    come from the measured trials of the two cells.";

fn build(context: &Context) -> Vec<Block> {
    let probed = context.evidence.probes(COMPARE);
    let mut pairs: Vec<Pair> = probed.chunks_exact(2).map(|two| Pair::new(context, &two[0], &two[1])).collect();
    if pairs.is_empty() {
        return Vec::new();
    }
    correct(&mut pairs);
    let predicted = predicted(context);
    let mut blocks = Vec::new();
    for (idx, pair) in pairs.iter().enumerate() {
        // A plan does not tell what was predicted: without its spec nothing can be decided.
        let sum = predicted.get(idx).copied();
        blocks.push(pair.verdict(sum));
        blocks.push(Block::Table(pair.table(sum)));
    }
    blocks.push(Block::details("How this is decided: the rule of halves", vec![Block::paragraph(RULE)]));
    blocks
}

/// The predicted counters, in the order of the pairs.
fn predicted(context: &Context) -> Vec<&'static Sum> {
    let compares = context.evidence.spec.iter().flat_map(|spec| &spec.compare);
    let paired = compares.filter(|compare| context.evidence.plan.pair(compare).is_some());
    paired.filter_map(|compare| SUMS.into_iter().find(|sum| sum.word == compare.predicts)).collect()
}

/// Corrects the tests of all pairs for each other.
fn correct(pairs: &mut [Pair]) {
    let mut comparisons: Vec<Comparison> = pairs.iter().filter_map(|pair| pair.times.clone()).collect();
    compare::correct(&mut comparisons);
    let mut corrected = comparisons.into_iter();
    for pair in pairs.iter_mut().filter(|pair| pair.times.is_some()) {
        pair.times = corrected.next();
    }
}

/// What is known of the two cells of a comparison.
struct Pair<'a> {
    names: [String; 2],
    configuration: String,
    simulated: [Result<Simulation<'a>, String>; 2],
    /// Medians in operations per second.
    medians: [Option<f64>; 2],
    n_trials: [usize; 2],
    /// Threads of each cell.
    n_threads: [Option<usize>; 2],
    /// The changed cell against the base.
    times: Option<Comparison>,
}

impl<'a> Pair<'a> {
    fn new(context: &Context, base: &Probed<'a>, changed: &Probed<'a>) -> Self {
        let evidence = context.evidence;
        let cells = [base.cell, changed.cell];
        let differs = |it: &Parameter| cells[0].value(*it) != cells[1].value(*it);
        let phrases = |cell: PlanCell, parameters: &[Parameter]| {
            let phrases = parameters.iter().map(|&it| evidence.phrase(it, cell.value(it)));
            phrases.collect::<Vec<String>>().join(", ")
        };
        let (differing, alike): (Vec<Parameter>, Vec<Parameter>) = Parameter::ALL.into_iter().partition(differs);
        let varied = evidence.plan.varied();
        let alike: Vec<Parameter> = alike.into_iter().filter(|parameter| varied.contains(parameter)).collect();
        let summaries = [base, changed].map(|probed| {
            let cell =
                (0..evidence.plan.n_cells()).find(|&it| evidence.plan.cell(it).setting() == *probed.probe.setting);
            cell.map(|cell| evidence.summary.cell(cell))
        });
        let n_threads = |record_idx: usize| match &evidence.trials[record_idx].outcome {
            Outcome::Replied(reply) => Some(reply.threads.len()),
            Outcome::Failed { .. } => None,
        };
        let times = match summaries {
            [Some(base), Some(changed)] => Comparison::new((changed.cell, &changed.values), (base.cell, &base.values)),
            _ => None,
        };
        Self {
            names: cells.map(|cell| phrases(cell, &differing)),
            configuration: phrases(cells[0], &alike),
            simulated: [base, changed].map(|probed| Simulation::of(evidence, probed)),
            medians: summaries.map(|summary| Some(summary?.description.as_ref()?.median)),
            n_trials: summaries.map(|summary| summary.map_or(0, |summary| summary.values.len())),
            n_threads: summaries.map(|summary| n_threads(*summary?.records.first()?)),
            times,
        }
    }

    fn amounts(&self, sum: &Sum) -> [Option<f64>; 2] {
        [0, 1].map(|idx| self.simulated[idx].as_ref().ok()?.per_operation(sum))
    }

    /// Time of a thread for an operation in nanoseconds.
    fn nanos(&self) -> [Option<f64>; 2] {
        [0, 1].map(|idx| Some(self.n_threads[idx]? as f64 * 1e9 / self.medians[idx].filter(|it| *it > 0.0)?))
    }

    /// How the time moved; `None` where one of the cells has no trial that counts.
    fn time(&self) -> Option<Time> {
        let times = self.times.as_ref()?;
        let [base, changed] = self.n_threads;
        let threads = changed? as f64 / base? as f64;
        let of_throughput = |ratio: f64| (ratio > 0.0).then(|| threads / ratio);
        let ratio = of_throughput(times.ratio?)?;
        let interval = times.interval.and_then(|interval| {
            Some(Interval { low: of_throughput(interval.high)?, high: of_throughput(interval.low)? })
        });
        // The test is of the throughputs, which other numbers of threads change whatever an operation takes.
        let changes = if self.n_threads[0] == self.n_threads[1] {
            times.answer != Answer::NotDistinguishable
        } else {
            interval.is_some_and(|interval| interval.low > 1.0 || interval.high < 1.0)
        };
        Some(Time { ratio, interval, changes })
    }

    fn verdict(&self, sum: Option<&Sum>) -> Block {
        let [base, changed] = &self.names;
        let title = format!("{base} → {changed}");
        let Some(sum) = sum else {
            let text = "Undecided: the plan alone does not tell which counter was predicted, and its spec is not here.";
            return Block::callout(Tone::Unknown, title, text);
        };
        let finding = decide(sum, self.amounts(sum), self.time());
        let reason = self
            .simulated
            .iter()
            .zip(&self.names)
            .find_map(|(simulated, name)| simulated.as_ref().err().map(|why| format!(" Of {name}, {why}.")));
        let text = format!("{}{} {}", self.moved(sum), reason.unwrap_or_default(), finding.words(sum));
        Block::callout(finding.tone(), title, text)
    }

    /// By how much counter and time moved, in one sentence.
    fn moved(&self, sum: &Sum) -> String {
        let amounts = self.amounts(sum);
        let counter = match (amounts, ratio(amounts)) {
            ([base, changed], Some(ratio)) => {
                format!(
                    "{} per operation {} ({} to {}, simulated)",
                    sum.title,
                    change(ratio),
                    amount(base),
                    amount(changed)
                )
            }
            ([Some(base), Some(changed)], None) => {
                format!(
                    "{} per operation went from {} to {} (simulated)",
                    sum.title,
                    amount(Some(base)),
                    amount(Some(changed))
                )
            }
            _ => format!("{} per operation are not known", sum.title),
        };
        let time = match (self.nanos(), self.time()) {
            ([Some(base), Some(changed)], Some(time)) => {
                let interval = time.interval.map_or(String::new(), |interval| {
                    format!(", 95 % interval of the ratio {}", number::ratio_interval(interval))
                });
                format!("the time {} ({base:.1} to {changed:.1} ns{interval})", change(time.ratio))
            }
            _ => "the time is not known".to_owned(),
        };
        let mut letters = format!("{counter} and {time}.").chars().collect::<Vec<char>>();
        letters[0] = letters[0].to_ascii_uppercase();
        letters.into_iter().collect()
    }

    fn table(&self, predicted: Option<&Sum>) -> Table {
        let [base, changed] = &self.names;
        let columns = [
            ("per operation".to_owned(), None),
            (base.clone(), Some("")),
            (changed.clone(), Some("")),
            ("changed / base".to_owned(), Some("")),
            ("95 % interval".to_owned(), Some("")),
        ];
        let mut table = Table::new(&self.configuration, &columns);
        let shown = |ratio: Option<f64>| Cell::new(ratio.map_or(NONE.to_owned(), number::ratio));
        for sum in SUMS {
            let amounts = self.amounts(sum);
            let is_predicted = predicted.is_some_and(|predicted| predicted.word == sum.word);
            let title = Cell::new(sum.title).note(if is_predicted { "predicted, simulated" } else { "simulated" });
            let title = if is_predicted { title.strong() } else { title };
            let [base, changed] = amounts.map(|it| Cell::new(amount(it)));
            table.row(vec![title, base, changed, shown(ratio(amounts)), Cell::new(NONE)]);
        }
        let interval = |it: Option<Interval>| Cell::new(it.map_or(NONE.to_owned(), number::ratio_interval));
        let time = self.time();
        let [base, changed] = self.nanos().map(|it| Cell::new(it.map_or(NONE.to_owned(), |it| number::fixed(it, 1))));
        let title = Cell::new("time of a thread in ns").note("measured");
        table.row(vec![
            title,
            base,
            changed,
            shown(time.map(|time| time.ratio)),
            interval(time.and_then(|time| time.interval)),
        ]);
        let [base, changed] = self.medians.map(|it| Cell::new(it.map_or(NONE.to_owned(), number::mops)));
        let times = self.times.as_ref();
        table.row(vec![
            Cell::new("throughput in Mops/s").note("measured"),
            base,
            changed,
            shown(times.and_then(|times| times.ratio)),
            interval(times.and_then(|times| times.interval)),
        ]);
        let test = times.map_or(String::new(), |times| {
            format!(" Mann-Whitney test of the throughputs, corrected: p = {}.", number::p_value(times.p_holm))
        });
        let [base, changed] = self.n_trials.map(|n| counted(n, "trial"));
        table.noted(format!("Medians over {base} and {changed}.{test}"))
    }
}

/// How the time per operation moved from the base to the changed cell.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Time {
    ratio: f64,
    interval: Option<Interval>,
    /// Whether the trials tell the two apart.
    changes: bool,
}

/// What became of an explanation.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Finding {
    /// The counter moved this far relative to the time.
    Confirmed(f64),
    Refuted(&'static str),
    Undecided(&'static str),
}

fn ratio(amounts: [Option<f64>; 2]) -> Option<f64> {
    let [Some(base), Some(changed)] = amounts else { return None };
    (base > 0.0 && changed > 0.0).then(|| changed / base)
}

/// Applies [`RULE`].
fn decide(sum: &Sum, amounts: [Option<f64>; 2], time: Option<Time>) -> Finding {
    let ([Some(base), Some(changed)], Some(time)) = (amounts, time) else {
        return Finding::Undecided("one of the two is not known");
    };
    if sum.word != INSTRUCTIONS.word && base.max(changed) < RARE {
        return Finding::Undecided("they are too rare in either cell to weigh anything");
    }
    let Some(counter) = ratio(amounts).map(f64::ln) else {
        return Finding::Undecided("a change from or to nothing has no ratio");
    };
    if time.changes && time.ratio != 1.0 {
        return match counter / time.ratio.ln() {
            share if share >= MOST => Finding::Confirmed(share),
            share if share < -LITTLE => Finding::Refuted("they moved in opposite directions"),
            share if share < LITTLE => Finding::Refuted("the time moved and the counter hardly did"),
            _ => Finding::Undecided("the counter moved with the time, but by less than half as much"),
        };
    }
    let followed = |interval: Interval| (interval.low.ln() / counter).max(interval.high.ln() / counter);
    let is_still = counter.abs() <= UNMOVED.ln();
    match time.interval {
        Some(interval) if is_still && interval.low > 1.0 / SAME && interval.high < SAME => {
            Finding::Refuted("neither moved, so what was changed is not the cause")
        }
        _ if is_still => {
            Finding::Undecided("the counter hardly moved, and the trials do not tell whether the time did")
        }
        Some(interval) if followed(interval) < LITTLE => Finding::Refuted("the counter moved and the time did not"),
        Some(_) => Finding::Undecided("the trials do not tell whether the time moved"),
        None => Finding::Undecided("the trials are too few to tell whether the time moved"),
    }
}

impl Finding {
    fn tone(self) -> Tone {
        match self {
            Self::Confirmed(_) => Tone::Good,
            Self::Refuted(_) => Tone::Bad,
            Self::Undecided(_) => Tone::Unknown,
        }
    }

    fn words(self, sum: &Sum) -> String {
        match self {
            Self::Confirmed(share) => format!(
                "This confirms the explanation: on a log scale {} moved {} as far as the time, in the same direction.",
                sum.title,
                number::ratio(share)
            ),
            Self::Refuted(why) => format!("This refutes the explanation: {why}."),
            Self::Undecided(why) => format!("This leaves the explanation undecided: {why}."),
        }
    }
}

/// Writes a ratio as a change.
fn change(ratio: f64) -> String {
    match ratio {
        ratio if (ratio - 1.0).abs() < 0.000_5 => "stayed the same".to_owned(),
        ratio if ratio < 1.0 => format!("fell by {}", number::percent(1.0 - ratio)),
        ratio if ratio > 2.0 => format!("rose to {}", number::ratio(ratio)),
        ratio => format!("rose by {}", number::percent(ratio - 1.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::probed::L1_MISSES;

    fn time(ratio: f64, interval: Option<(f64, f64)>, changes: bool) -> Option<Time> {
        Some(Time { ratio, interval: interval.map(|(low, high)| Interval { low, high }), changes })
    }

    fn found(base: f64, changed: f64, time: Option<Time>) -> Finding {
        decide(&INSTRUCTIONS, [Some(base), Some(changed)], time)
    }

    #[test]
    fn what_moves_together_confirms() {
        assert!(matches!(found(700.0, 307.0, time(0.5, None, true)), Finding::Confirmed(share) if share > 1.1));
        assert!(matches!(found(307.0, 700.0, time(2.0, None, true)), Finding::Confirmed(_)));
        assert!(matches!(found(100.0, 71.0, time(0.5, None, true)), Finding::Undecided(_)), "just below a half");
    }

    #[test]
    fn what_moves_apart_refutes() {
        assert!(matches!(found(100.0, 150.0, time(0.5, None, true)), Finding::Refuted(_)));
        assert!(matches!(found(100.0, 100.0, time(0.5, None, true)), Finding::Refuted(_)));
        assert!(matches!(found(100.0, 50.0, time(1.0, Some((0.98, 1.02)), false)), Finding::Refuted(_)));
        assert!(
            matches!(found(100.0, 102.0, time(1.0, Some((0.95, 1.05)), false)), Finding::Refuted(_)),
            "neither moved"
        );
    }

    #[test]
    fn what_is_not_known_decides_nothing() {
        for (finding, why) in [
            (found(100.0, 50.0, None), "no times"),
            (found(100.0, 50.0, time(0.9, None, false)), "too few trials"),
            (found(100.0, 50.0, time(0.9, Some((0.7, 1.2)), false)), "wide interval"),
            (found(100.0, 102.0, time(1.0, Some((0.8, 1.2)), false)), "the time may have moved"),
            (found(100.0, 102.0, time(1.0, None, false)), "too few trials to see that nothing moved"),
            (decide(&INSTRUCTIONS, [None, Some(1.0)], time(0.5, None, true)), "no counter"),
            (decide(&L1_MISSES, [Some(0.009), Some(0.001)], time(0.5, None, true)), "misses that weigh nothing"),
            (decide(&L1_MISSES, [Some(0.5), Some(0.0)], time(0.5, None, true)), "a fall to nothing"),
        ] {
            assert!(matches!(finding, Finding::Undecided(_)), "{why}: {finding:?}");
        }
    }
}
