//! The sections that explain: counters, profile, layout and comparisons, from made-up trials of probes.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

mod report_common;

use rare::{
    plan::Mode,
    record::{
        FailureClass, Outcome, Watched,
        watched::{FunctionCost, LineCost, Profile, Simulated},
    },
    report::{Rendered, render},
    spec::{
        model::{Compare, Condition, Rule},
        value::{Parameter, Value},
    },
    tools::profile,
};
use rare_workloads::protocol::{AllocationPhase, Block, Count, Counter, Reply, ThreadLayout};
use report_common::{Case, HOSTILE, SMALL};

/// Instructions of an operation.
const INSTRUCTIONS: [(&str, u64); 2] = [("nm14", 100), ("mutex-btree", 200)];

const REASON: &str = "the machine has no such counter";

fn rule(structure: &str) -> Rule {
    Rule { at: 0..0, conditions: vec![(Parameter::Structure, vec![Condition::Named(structure.to_owned())])] }
}

/// A run with every explanation, told by made-up tools.
fn explained() -> Case {
    let mut case = Case::new(&SMALL);
    case.spec.checks = vec!["checksum", "layout"];
    case.spec.instruments = vec!["counters", "profile"];
    let (base, changed) = (rule("nm14"), rule("mutex-btree"));
    case.spec.compare = vec![Compare { at: 0..0, base, changed, predicts: "instructions" }];
    case.probe(|_| 4e6);
    for trial in &mut case.trials {
        let Some(probe) = case.plan.probe_of(trial.trial) else { continue };
        let structure = probe.cell().structure().name.clone();
        let Outcome::Replied(reply) = &mut trial.outcome else { unreachable!("made-up trials reply") };
        let operations: u64 = reply.threads.iter().map(|thread| thread.operations.attempted()).sum();
        match probe.mode {
            Mode::Counters => reply.counters = Some(counters(operations)),
            Mode::Simulate => trial.watched = Some(Box::new(Watched::Simulated(simulated(&structure, operations)))),
            Mode::Sample => trial.watched = Some(Box::new(Watched::Profile(sampled()))),
            Mode::Layout => reply.layout = Some(layout()),
            _ => {}
        }
    }
    case
}

fn counters(operations: u64) -> Vec<Counter> {
    let counter = |event: &str, count| Counter { event: event.to_owned(), count };
    vec![
        counter("task-clock", Count::Counted(250 * operations)),
        counter("page-faults:u", Count::Counted(77)),
        counter("context-switches", Count::Denied("kernel.perf_event_paranoid is 3".to_owned())),
        counter("cycles", Count::Counted(347 * operations)),
        counter("l1d-read-misses", Count::Multiplexed { estimate: operations / 8, running_ns: 63, enabled_ns: 100 }),
        counter("llc-read-misses", Count::Unsupported(REASON.to_owned())),
        counter("dtlb-read-misses", Count::Counted(operations / 4)),
    ]
}

fn simulated(structure: &str, operations: u64) -> Simulated {
    let instructions = INSTRUCTIONS.iter().find(|(name, _)| *name == structure).unwrap().1 * operations;
    let events = ["Ir", "Dr", "D1mr", "D1mw", "DLmr", "DLmw", "Bcm", "Bim"];
    let totals = vec![instructions, operations, operations / 4, operations / 4, 0, 0, operations / 2, 0];
    let costs = totals.iter().map(|total| total / 2).collect();
    let lines = vec![LineCost { file: "/x/workloads/src/structures/nm14.rs".to_owned(), line: 214, costs }];
    let costs = totals.iter().map(|total| total / 4 * 3).collect();
    Simulated {
        version: Some("3.19.0".to_owned()),
        caches: vec!["D1 cache: 49152 B, 64 B, 12-way associative".to_owned()],
        events: events.map(str::to_owned).to_vec(),
        totals,
        functions: vec![FunctionCost { function: "rare_workloads::structures::nm14::seek".to_owned(), costs, lines }],
        n_functions: 9,
    }
}

/// Samples that perf really took.
fn sampled() -> Profile {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/perf/nm14");
    profile::read(&std::fs::read(path).unwrap(), None).unwrap()
}

/// Two threads whose nodes alternate with other objects; the first of the second thread is on a line of the first's.
fn layout() -> Vec<ThreadLayout> {
    let block = |address, kind: Option<&str>| Block {
        address,
        size: 32,
        align: 8,
        usable: Some(40),
        kind: kind.map(str::to_owned),
        phase: AllocationPhase::Prefill,
    };
    let of_thread = |start: u64| -> Vec<Block> {
        let kinds = [Some("Node"), None].into_iter().cycle();
        (0..6).zip(kinds).map(|(idx, kind)| block(start + 32 * idx + if idx > 3 { 640 } else { 0 }, kind)).collect()
    };
    vec![ThreadLayout { blocks: of_thread(4096) }, ThreadLayout { blocks: of_thread(4096 + 192) }]
}

fn rendered(case: &Case) -> Rendered {
    let summary = case.summary();
    render(&case.evidence(&summary), None).unwrap()
}

/// The part of the Markdown under a heading.
fn section(case: &Case, title: &str) -> String {
    let markdown = rendered(case).markdown;
    let (_, rest) = markdown.split_once(&format!("\n## {title}\n")).unwrap_or_else(|| panic!("no section {title}"));
    rest.split("\n## ").next().unwrap().to_owned()
}

/// The cells of the first row of a table that begins with a text.
fn row(section: &str, start: &str) -> Vec<String> {
    let row = section.lines().find(|line| line.starts_with(&format!("| {start}"))).unwrap();
    row.trim_matches('|').split('|').map(|cell| cell.trim().replace('\\', "")).collect()
}

#[track_caller]
fn assert_has(text: &str, parts: &[&str]) {
    let text = text.replace('\\', "");
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

#[test]
fn counts_are_for_each_operation_of_their_own_trial() {
    let counters = section(&explained(), "Counters");
    assert_eq!(
        row(&counters, "structure"),
        [
            "structure",
            "cycles (counted)",
            "L1 read misses (counted)",
            "instructions (simulated)",
            "L1 misses (simulated)",
            "LLC misses (simulated)",
            "branch misses (simulated)"
        ],
        "no column for what nobody counted"
    );
    assert_eq!(
        row(&counters, "nm14"),
        ["nm14", "347", "0.125 (multiplexed, 63.0 % of the time)", "100", "0.500", "0", "0.500"]
    );
    assert_has(&counters, &[&format!("Not counted: llc-read-misses ({REASON})"), "12-way associative", "3.19.0"]);
}

#[test]
fn the_outlier_is_named_with_figures_and_its_hottest_function() {
    assert_has(
        &section(&explained(), "Counters"),
        &[
            "mutex-btree takes the most instructions per operation, 200, and nm14 the fewest, 100 (simulated): 2.00× as many",
            "callgrind finds 75.0 % in structures::nm14::seek",
            "workloads/src/structures/nm14.rs:214 (50.0 %)",
        ],
    );
}

#[test]
fn events_of_the_kernel_stand_apart_and_nothing_missing_is_zero() {
    let counters = section(&explained(), "Counters");
    let (_, kernel) = counters.split_once("Events of the kernel").unwrap();
    let row = row(kernel, "nm14");
    assert_eq!(row[2..], ["250", "– (not permitted)", "77 (without the kernel)", "–", "0.250"]);
    assert_has(&counters, &["context-switches (kernel.perf_event_paranoid is 3)"]);
}

#[test]
fn what_was_not_asked_for_is_said_with_how_to_ask() {
    let case = Case::new(&SMALL);
    assert_has(&section(&case, "Counters"), &["`instruments: [counters]`"]);
    assert_has(&section(&case, "Hot symbols"), &["`instruments: [profile]`"]);
    assert_has(&section(&case, "Memory layout"), &["`sanity_checks: [layout]`"]);
    assert!(!rendered(&case).markdown.contains("## Explanations put to the test"), "nothing was to be explained");
}

#[test]
fn tools_that_are_missing_are_named_with_their_reason() {
    let mut case = explained();
    for trial in case.trials.iter_mut().filter(|trial| case.plan.probe_of(trial.trial).is_some()) {
        let detail = "valgrind is not in the search path".to_owned();
        trial.outcome = Outcome::Failed { class: FailureClass::NoTool, detail, stderr: String::new() };
        trial.watched = None;
    }
    for title in ["Counters", "Hot symbols", "Memory layout", "Explanations put to the test"] {
        let section = section(&case, title);
        assert_has(&section, &["valgrind is not in the search path"]);
    }
    let counters = section(&case, "Counters");
    assert!(!counters.contains("| nm14"), "no table of nothing: {counters}");
    assert_has(&section(&case, "Explanations put to the test"), &["undecided: one of the two is not known"]);
}

#[test]
fn invalid_trials_explain_nothing() {
    let mut case = explained();
    let sampled = |mode: Option<Mode>| mode == Some(Mode::Sample);
    let spoil = |reply: &mut Reply| reply.audit_after.size += 1;
    for trial in &mut case.trials {
        let mode = case.plan.probe_of(trial.trial).map(|probe| probe.mode);
        if let (true, Outcome::Replied(reply)) = (sampled(mode), &mut trial.outcome) {
            spoil(reply);
        }
    }
    let profile = section(&case, "Hot symbols");
    assert_has(&profile, &["its trial is invalid"]);
    assert!(!profile.contains("flame-1.svg"));
}

#[test]
fn profiles_have_symbols_and_flame_graphs_in_both_formats() {
    let Rendered { html, markdown, figures, .. } = rendered(&explained());
    for name in ["flame-1.svg", "flame-2.svg", "flame-difference.svg"] {
        let (_, svg) = figures.iter().find(|(file, _)| file == name).unwrap_or_else(|| panic!("no {name}"));
        assert!(svg.starts_with("<svg ") && svg.contains("xmlns") && !svg.contains("var("), "{name}");
        assert!(markdown.contains(&format!("(figures/{name})")));
    }
    assert_eq!(html.matches("class=\"panel flame\"").count(), 3);
    assert!(!html.contains(" style=") && !html.contains("onclick") && !html.contains("rgb("));
    let profile = section(&explained(), "Hot symbols");
    assert_has(
        &profile,
        &["Event really recorded: cpu-clock:ppp", "nm14: 34 samples of cpu-clock:ppp from 2 threads", "none lost"],
    );
    let row = row(&profile, "nm14");
    assert!(row[1].ends_with(" %") && row[2].starts_with('`'), "{row:?}");
}

#[test]
fn blocks_are_drawn_and_told_in_order_of_address() {
    let Rendered { html, figures, .. } = rendered(&explained());
    assert!(
        html.contains("thread 0: 6 blocks listed: N1N1…N1"),
        "letters for nodes, digits for the rest, dots for gaps"
    );
    let (_, svg) = figures.iter().find(|(file, _)| file == "layout.svg").unwrap();
    for part in ["Node: 32 of 40 B", "of no known type: 32 of 40 B", "thread 1: 6 blocks listed"] {
        assert!(svg.contains(part), "{part}");
    }
}

#[test]
fn comparisons_are_decided_by_counter_and_time() {
    let mut case = explained();
    let compared = section(&case, "Explanations put to the test");
    assert_has(
        &compared,
        &[
            "✅ nm14 → mutex-btree",
            "Instructions per operation rose by 100.0 % (100 to 200, simulated) and the time rose by",
            "This confirms the explanation",
            "the rule of halves",
        ],
    );
    assert_eq!(row(&compared, "**instructions")[1..4], ["100", "200", "2.00×"]);
    // The same times with a counter that moves the other way.
    case.spec.compare[0].predicts = "branch-misses";
    for trial in &mut case.trials {
        if let Some(Watched::Simulated(seen)) = trial.watched.as_deref_mut()
            && trial.request.structure == "mutex-btree"
        {
            seen.totals[6] /= 4;
        }
    }
    assert_has(&section(&case, "Explanations put to the test"), &["❌", "refutes", "opposite directions"]);
}

#[test]
fn a_bare_plan_does_not_tell_what_was_predicted() {
    let case = explained();
    let summary = case.summary();
    let mut evidence = case.evidence(&summary);
    evidence.spec = None;
    let markdown = render(&evidence, None).unwrap().markdown;
    assert!(markdown.contains("does not tell which counter was predicted") && !markdown.contains("confirms"));
}

#[test]
fn hostile_names_open_no_tag() {
    let page = |name: &str| {
        let mut case = explained();
        let relabel = |value: &mut Value| {
            if let Value::Structure(structure) = value {
                structure.label = format!("{}{name}", structure.name);
            }
        };
        case.plan.values[Parameter::Structure as usize].iter_mut().for_each(relabel);
        for probe in &mut case.plan.probes {
            relabel(&mut probe.setting[Parameter::Structure as usize]);
        }
        for trial in &mut case.trials {
            match trial.watched.as_deref_mut() {
                Some(Watched::Profile(profile)) => {
                    profile.event.push_str(name);
                    profile
                        .names
                        .iter_mut()
                        .chain(profile.symbols.iter_mut().map(|hot| &mut hot.symbol))
                        .for_each(|known| *known = format!("{name}{known}"));
                }
                Some(Watched::Simulated(seen)) => seen.functions[0].function = name.to_owned(),
                _ => {}
            }
            if let Outcome::Replied(reply) = &mut trial.outcome {
                let blocks = reply.layout.iter_mut().flatten().flat_map(|thread| &mut thread.blocks);
                blocks.filter_map(|block| block.kind.as_mut()).for_each(|kind| kind.push_str(name));
            }
        }
        rendered(&case).html
    };
    let (plain, hostile) = (page("plain"), page(HOSTILE));
    for tag in ["<script", "<svg", "<table", "</table>", "<rect", "<details", "<h1", "<h2", "<td"] {
        assert_eq!(plain.matches(tag).count(), hostile.matches(tag).count(), "{tag}");
    }
}

#[test]
fn same_evidence_gives_the_same_bytes() {
    assert_eq!(rendered(&explained()), rendered(&explained()));
}
