//! Real trials by the real worker, judged: every law must hold of what a worker really answers.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

mod report_common;

use std::{
    collections::BTreeMap,
    fs::File,
    io::Write,
    process::{Command, Stdio},
};

use rare::{
    diag::Source,
    plan::{BlockKind, Plan, TrialId},
    record::{FailureClass, Interference, Outcome, Trial},
    report::{embedded_plan, render},
    spec::{
        self,
        value::{Allocator, Threads},
    },
    stats::{Standing, summarise},
    units::Nanos,
    verdict::{Evidence, Grade, judge},
};
use rare_workloads::protocol::{
    ALLOCATOR_VARIABLE, AllocatorRequest, FORMAT, Length, Request,
    frame::{self, Frame},
};

const SPEC: &str = "
rare: 1
name: real
question: Does every law hold of what a worker really answers?
family: set
structures: [nm14, harris01, crossbeam-skiplist, mutex-btree, rwlock-btree, noop]
allow: [semantics]
allocators: [system, mimalloc]
reclamation: epoch
pinning: none
threads: [1, 2]
key_ranges: 200
mixes: {insert: 30, remove: 30, contains: 40}
instruments: [accounting]
sanity_checks: [checksum, prefill, pinning, duration, allocator, fairness, identity, variance, generator, interference]
trials: {count: 1, length: 30ms}
";

fn request(plan: &Plan, id: TrialId) -> Request {
    let cell = plan.cell(id.cell);
    let (Allocator::Linked(allocator), Threads::Count(threads)) = (cell.allocator(), cell.threads()) else {
        unreachable!("the spec above has counts and linked allocators only")
    };
    Request {
        format: FORMAT,
        structure: cell.structure().name.clone(),
        structure_parameters: BTreeMap::new(),
        reclamation: cell.reclamation(),
        allocator: AllocatorRequest { name: (*allocator).to_owned(), preload: None },
        cpus: vec![None; threads as usize],
        key_range: cell.key_range(),
        mix: cell.mix(),
        range_keys: None,
        distribution: cell.distribution(),
        prefill_keys: cell.prefill().keys(cell.key_range()),
        length: match id.kind {
            BlockKind::Measure => Length::Nanos(cell.trial_length().0),
            BlockKind::Account => Length::Accounting { operations: 2000 },
            BlockKind::Probe => unreachable!("this plan has no probes"),
        },
        seed: plan.seed(id),
        nice: i32::from(cell.priority()),
        nodes: cell.nodes(),
        harness: rare_workloads::protocol::Harness::default(),
        watch: None,
    }
}

/// Runs the worker; a shell opens descriptor 3 for it.
fn run(request: &Request) -> Outcome {
    let reply_path = tempfile::NamedTempFile::new().unwrap();
    let mut child = Command::new("sh")
        .args(["-c", "exec \"$0\" 3>\"$1\"", env!("CARGO_BIN_EXE_rare-worker")])
        .arg(reply_path.path())
        .env(ALLOCATOR_VARIABLE, &request.allocator.name)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&serde_json::to_vec(request).unwrap()).unwrap();
    let output = child.wait_with_output().unwrap();
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut File::open(reply_path.path()).unwrap(), &mut bytes).unwrap();
    let failed = |detail: String| Outcome::Failed {
        class: FailureClass::BadReply,
        detail,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    match frame::decode(&bytes) {
        Ok(Frame::Reply(reply)) => Outcome::Replied(reply),
        Ok(Frame::Refusal(reason)) => failed(reason),
        Err(error) => failed(error.to_string()),
    }
}

#[test]
fn every_law_holds_of_real_trials() {
    let source = Source { name: "real.yaml".to_owned(), text: SPEC.to_owned() };
    let spec =
        spec::compile(&source, false).map_err(|mistakes| rare::diag::render(&mistakes, &source, false)).unwrap().spec;
    let plan = Plan::compile(&spec, |_, _| Vec::new()).unwrap();
    let trial = |(position, id): (u32, TrialId)| {
        let request = request(&plan, id);
        let outcome = run(&request);
        let (started, wall) = ("2026-12-01T10:15:00.000Z".to_owned(), Nanos(1));
        Trial {
            trial: id,
            position,
            attempt: 0,
            started,
            wall,
            request,
            outcome,
            interference: Interference::default(),
            watched: None,
        }
    };
    let trials: Vec<Trial> = (0..).zip(plan.trials()).map(trial).collect();
    let summary = summarise(&plan, &trials);
    for (trial, judged) in trials.iter().zip(&summary.trials) {
        let counts = matches!(judged.standing, Standing::Counted | Standing::Instrumented);
        assert!(counts, "{}: {judged:?} {:?}", trial.trial, trial.outcome);
    }
    assert!(trials.iter().any(|trial| trial.trial.kind == BlockKind::Account), "accounting trials are planned");
    let plan_bytes = plan.canonical();
    let environment = report_common::environment();
    let evidence = Evidence {
        name: &spec.name,
        run_name: "now",
        quick: false,
        spec_text: Some(SPEC),
        spec: Some(&spec),
        plan: &plan,
        plan_bytes: &plan_bytes,
        hash: plan.hash(),
        trials: &trials,
        environment: &environment,
        summary: &summary,
        record_bytes: None,
    };
    for verdict in judge(&evidence) {
        // What the scheduler of a busy machine does to timing and fairness is not this test's matter; what else happened on
        // it was not recorded.
        match verdict.info.name {
            "duration" | "fairness" | "variance" => {}
            "interference" => assert_ne!(verdict.grade, Grade::Pass, "nothing of it was recorded: {verdict:?}"),
            _ => assert_eq!(verdict.grade, Grade::Pass, "{verdict:?}"),
        }
    }
    // The bound of the harness competes with no structure.
    let n_structures = 5;
    assert_eq!(summary.comparisons.len(), summary.groups.len() * n_structures * (n_structures - 1) / 2);
    let html = render(&evidence, None).unwrap().html;
    let embedded = embedded_plan(&html).unwrap();
    assert_eq!(embedded, plan_bytes);
    assert_eq!(Plan::from_canonical(&embedded).unwrap().hash(), plan.hash());
    if let Some(folder) = std::env::var_os("RARE_KEEP_REPORT") {
        std::fs::write(std::path::Path::new(&folder).join("report.html"), html).unwrap();
    }
}
