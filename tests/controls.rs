//! Controls from spec to verdict, as a user would run them: wrong keys end red and with exit code 5, unfairness is warned
//! of, and what is neither passes.

#![allow(clippy::unwrap_used, reason = "a test stops where it does not find what it expects")]

mod playground;

use playground::{Done, Playground};

/// One cell of one trial, and its accounting trial.
fn spec(control: &str) -> String {
    format!(
        "rare: 1\nname: controls\nquestion: Is it caught?\nstructures: [{control}]\nthreads: 2\npinning: none\n\
         key_ranges: 1000\nmixes: {{insert: 50, remove: 50}}\ntrials: {{count: 1, length: 200ms}}\n\
         sanity_checks: [checksum, prefill, allocator, fairness]\n"
    )
}

/// Makes the report of a spec.
fn make(playground: &Playground, control: &str) -> (Done, String) {
    playground.write("spec.yaml", &spec(control));
    let done = playground.run(&["make", "spec.yaml"]);
    let report = playground.path().join("reports/controls").join(done.word("plan")).join("report.md");
    let text = std::fs::read_to_string(report).unwrap();
    (done, text)
}

#[test]
fn wrong_keys_end_red_and_with_code_5() {
    let playground = Playground::new();
    for control in [
        "{use: control-lost-update, one_in: 1000}",
        "{use: control-double-remove, one_in: 100}",
        "{use: control-size-drift, one_in: 1000}",
    ] {
        let (done, report) = make(&playground, control);
        let done = done.expect(5);
        assert!(report.contains("after the window: the walk finds"), "{control}: {}\n{report}", done.stdout);
    }
}

#[test]
fn what_is_not_wrong_is_not_red() {
    let playground = Playground::new();
    for control in ["control-leak", "control-never-frees", "control-false-sharing", "control-decay"] {
        make(&playground, control).0.expect(0);
    }
}

#[test]
fn an_unfair_structure_is_warned_of() {
    let playground = Playground::new();
    let (done, report) = make(&playground, "control-unfair");
    done.expect(0);
    assert!(report.contains("the least busy thread did"), "{report}");
}
