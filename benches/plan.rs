//! Bounds on what a large plan costs: prints each figure and ends with 1 when one is over its bound.

use std::{
    fs,
    process::ExitCode,
    time::{Duration, Instant},
};

use rare::{
    plan::{Plan, PlanError},
    spec::{
        Spec,
        model::Condition,
        value::{Parameter, Value},
    },
    units::{BasisPoints, Bytes, Nanos},
};

#[allow(dead_code, reason = "shared with the tests, which use the rest")]
#[path = "../tests/plan/specs.rs"]
mod specs;

/// A person waits for `rare plan` without noticing.
const MAX_EXPANSION: Duration = Duration::from_secs(1);
/// A plan must fit beside everything else on a small machine.
const MAX_PEAK: Bytes = Bytes(200_000_000);
/// A slip in a spec is answered at once.
const MAX_REFUSAL: Duration = Duration::from_millis(100);

fn main() -> ExitCode {
    let refusal = refuse_a_billion();
    let expansion = expand_a_hundred_thousand();
    let peak = peak_memory();
    let figures = [
        ("refuse 10^9 cells", format!("{refusal:?}"), refusal <= MAX_REFUSAL, format!("{MAX_REFUSAL:?}")),
        (
            "expand and hash 10^5 cells",
            format!("{expansion:?}"),
            expansion <= MAX_EXPANSION,
            format!("{MAX_EXPANSION:?}"),
        ),
        (
            "peak memory",
            format!("{} MB", peak.0 / 1_000_000),
            peak <= MAX_PEAK,
            format!("{} MB", MAX_PEAK.0 / 1_000_000),
        ),
    ];
    for (what, measured, is_within, bound) in &figures {
        let verdict = if *is_within { "ok" } else { "OVER" };
        println!("{what:<28} {measured:>14}   bound {bound:>8}   {verdict}");
    }
    if figures.iter().all(|(_, _, is_within, _)| *is_within) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn refuse_a_billion() -> Duration {
    let counts = |unit: u64| (1..=1_000).map(|it| Value::Count(it * unit)).collect();
    let spec = specs::with_axes([
        (Parameter::KeyRange, counts(1_000)),
        (Parameter::Threads, (1..=1_000).map(specs::threads).collect()),
        (Parameter::TrialLength, (1..=1_000).map(|it| Value::Duration(Nanos(it * 1_000_000))).collect()),
    ]);
    let begin = Instant::now();
    let refusal = Plan::compile(&spec, rare::verdict::probes);
    let elapsed = begin.elapsed();
    assert!(matches!(refusal, Err(PlanError::OverLimit { count: 1_000_000_000, .. })), "it was not refused");
    elapsed
}

fn expand_a_hundred_thousand() -> Duration {
    let spec = hundred_thousand_cells();
    let begin = Instant::now();
    let plan = Plan::compile(&spec, rare::verdict::probes).expect("it is within its limits");
    let hash = plan.hash();
    let elapsed = begin.elapsed();
    assert_eq!(plan.n_cells(), 100_000);
    println!("plan {hash} of {} trials, {} bytes", plan.n_trials(), plan.canonical().len());
    elapsed
}

/// Ten axes, a rule that every cell is asked, and five trials of each cell.
fn hundred_thousand_cells() -> Spec {
    let usual_and_some = |parameter, n_more: usize| {
        (parameter, [vec![specs::usual(parameter)], specs::unusual(parameter)[..n_more].to_vec()].concat())
    };
    let labels = ["a", "b", "c", "d", "e"].map(|label| specs::labelled("nm14", label)).to_vec();
    let mut spec = specs::with_axes([
        (Parameter::Structure, labels),
        usual_and_some(Parameter::Allocator, 4),
        usual_and_some(Parameter::Pinning, 1),
        (Parameter::Threads, (1..=5).map(specs::threads).collect()),
        (Parameter::KeyRange, (1..=25).map(|it| Value::Count(it * 1_000)).collect()),
        usual_and_some(Parameter::Mix, 1),
        usual_and_some(Parameter::Aslr, 1),
        (Parameter::EnvironmentPadding, [0, 64].map(|it| Value::Bytes(Bytes(it))).to_vec()),
        usual_and_some(Parameter::HugePages, 1),
        (Parameter::Priority, [0, 5].map(Value::Nice).to_vec()),
    ]);
    // Of 200,000 cells the rule leaves out half.
    spec.exclude.push(specs::rule(0, [(Parameter::Priority, Condition::Over(0))]));
    spec.limits.cells = 200_000;
    spec.n_trials = 5;
    spec.claims.push(specs::claim(0, "a", "b", specs::rule(0, [])));
    spec.claims[0].by = BasisPoints(500);
    spec
}

/// The peak resident set of this process: VmHWM.
fn peak_memory() -> Bytes {
    let status = fs::read_to_string("/proc/self/status").expect("Linux tells a process its own status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the status has VmHWM");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("VmHWM is in kB");
    Bytes(kib * 1024)
}
