//! The main job as a user does it: make, edit, make again, kill, continue, rerun.

#![allow(clippy::unwrap_used, reason = "a test stops where it does not find what it expects")]

mod playground;

use std::{
    fs,
    process::Stdio,
    time::{Duration, Instant},
};

use playground::{Done, N_TRIALS, Playground, SPEC};

#[test]
fn make_writes_a_report_and_a_second_make_runs_nothing() {
    let playground = Playground::new();
    playground.write("spec.yaml", SPEC);
    let first = playground.run(&["make", "spec.yaml"]).expect(0);
    let hash = first.word("plan").to_owned();
    assert_eq!(hash.len(), 12);
    for file in ["report.md", "report.html", "plan.json", "spec.yaml", "data.csv", "manifest.json"] {
        let path = playground.path().join("reports/small").join(&hash).join(file);
        assert!(path.is_file(), "{} is missing", path.display());
    }
    assert_eq!(playground.records(&first).len(), N_TRIALS);
    let report = playground.path().join("reports/small").join(&hash).join("report.html");
    let bytes = fs::read(&report).unwrap();

    playground.write("spec.yaml", &format!("# a comment\n{SPEC}"));
    let second = playground.run(&["make", "spec.yaml"]).expect(0);
    assert_eq!(second.word("plan"), hash);
    assert_eq!(second.word("run"), first.word("run"));
    assert_eq!(playground.records(&second).len(), N_TRIALS);
    assert!(second.stdout.contains("no trial to run"), "{}", second.stdout);
    let again = fs::read(&report).unwrap();
    // The embedded spec shows the comment; the results are the same bytes when the spec is.
    playground.write("spec.yaml", SPEC);
    playground.run(&["make", "spec.yaml"]).expect(0);
    assert_ne!(again, bytes, "the report embeds the spec as it is");
    assert_eq!(fs::read(&report).unwrap(), bytes, "a report is a function of its data");

    playground.write("spec.yaml", &SPEC.replace("key_ranges: 100", "key_ranges: 128"));
    let third = playground.run(&["make", "spec.yaml"]).expect(0);
    assert_ne!(third.word("plan"), hash);
    playground.run(&["verify"]).expect(0);
    let listing = playground.run(&["list"]).expect(0).stdout;
    assert!(listing.contains(&hash) && listing.contains(third.word("plan")), "{listing}");
    let shown = playground.run(&["show", &hash[..6]]).expect(0).stdout;
    assert!(shown.contains(&hash), "{shown}");
}

#[test]
fn a_killed_make_is_completed_by_the_next() {
    let playground = Playground::new();
    playground.write("spec.yaml", &SPEC.replace("30ms", "200ms"));
    let mut child =
        playground.rare(&["make", "spec.yaml"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    playground.wait_for_records(3);
    child.kill().unwrap();
    child.wait().unwrap();
    let done = playground.run(&["make", "spec.yaml"]).expect(0);
    let records = playground.records(&done);
    assert_eq!(records.len(), N_TRIALS);
    let mut trials: Vec<&str> = records.iter().map(|line| trial_of(line)).collect();
    trials.sort_unstable();
    trials.dedup();
    assert_eq!(trials.len(), N_TRIALS, "a trial was recorded twice");
    assert!(!done.stdout.contains("ran 12 trials"), "it ran everything again: {}", done.stdout);
}

#[test]
fn range_queries_are_measured_and_reported() {
    let playground = Playground::new();
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/specs/ranges.yaml")).unwrap();
    // Without the check of the window's length: tests run side by side, and take the CPUs from each other.
    playground.write("ranges.yaml", &(text + "sanity_checks: [checksum, prefill, identity]\n"));
    // Two trials of a cell decide no claim, so none can fail.
    let made = playground.run(&["make", "ranges.yaml", "--quick"]).expect(0);
    let folder = playground.path().join("reports/ranges").join(made.word("plan"));
    let report = fs::read_to_string(folder.join("report.md")).unwrap();
    for part in ["keys per range query", "A range query is one operation", "5% range", "mutex-btree", "rwlock-btree"] {
        assert!(report.contains(part), "{part} is missing");
    }
    let mut table = csv::Reader::from_path(folder.join("data.csv")).unwrap();
    let header = table.headers().unwrap().clone();
    let mut n_rows = 0;
    for row in table.records().map(Result::unwrap) {
        let field = |name: &str| &row[header.iter().position(|column| column == name).expect(name)];
        let number = |name: &str| field(name).parse::<f64>().expect(name);
        assert_eq!(field("faults"), "");
        // Half of the keys are there.
        let due = if field("range_query") == "10 keys" { 5.0 } else { 500.0 };
        let keys = number("range_keys") / number("range_attempted");
        assert!((due * 0.8..due * 1.2).contains(&keys), "{keys} keys per query instead of about {due}");
        let all = ["insert", "remove", "contains", "range"].map(|kind| number(&format!("{kind}_attempted")));
        let share = all[3] / all.iter().sum::<f64>();
        assert!((0.04..0.06).contains(&share), "{share} of the operations are range queries");
        n_rows += 1;
    }
    assert_eq!(n_rows, playground.records(&made).len());
}

fn trial_of(line: &str) -> &str {
    let rest = line.split_once("\"trial\":\"").expect("a record names its trial").1;
    rest.split('"').next().unwrap()
}

#[test]
fn an_interrupt_leaves_a_consistent_store() {
    let playground = Playground::new();
    playground.write("spec.yaml", &SPEC.replace("30ms", "300ms"));
    let child = playground.rare(&["make", "spec.yaml"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    playground.wait_for_records(2);
    // SAFETY: sends a signal to a child that has not been waited for, so its number is still its own.
    unsafe { libc::kill(i32::try_from(child.id()).unwrap(), libc::SIGINT) };
    let done = Done::of(child.wait_with_output().unwrap()).expect(130);
    assert!(done.stderr.contains("rare make spec.yaml"), "says how to go on: {}", done.stderr);
    playground.run(&["verify"]).expect(0);
    playground.run(&["make", "spec.yaml"]).expect(0);
}

#[test]
fn a_second_make_names_the_one_that_measures() {
    let playground = Playground::new();
    playground.write("spec.yaml", &SPEC.replace("30ms", "500ms"));
    let mut first =
        playground.rare(&["make", "spec.yaml"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    playground.wait_for_records(1);
    let since = Instant::now();
    let second = playground.run(&["make", "spec.yaml"]).expect(6);
    assert!(since.elapsed() < Duration::from_secs(2), "it waited");
    assert!(second.stderr.contains(&first.id().to_string()), "names the holder: {}", second.stderr);
    first.kill().unwrap();
    first.wait().unwrap();
}

#[test]
fn a_rerun_measures_again_and_compares_the_environments() {
    let playground = Playground::new();
    playground.write("spec.yaml", SPEC);
    let first = playground.run(&["make", "spec.yaml"]).expect(0);
    let hash = first.word("plan").to_owned();
    let rerun = playground.run(&["rerun", &hash[..8]]).expect(0);
    assert_eq!(rerun.word("plan"), hash);
    assert_ne!(rerun.word("run"), first.word("run"));
    assert!(rerun.stdout.contains("environment"), "{}", rerun.stdout);

    // A published report is enough on another machine.
    let elsewhere = Playground::new();
    let report = playground.path().join("reports/small").join(&hash).join("report.html");
    let copied = elsewhere.write("published.html", &fs::read_to_string(report).unwrap());
    let from_html = elsewhere.run(&["rerun", copied.to_str().unwrap()]).expect(0);
    assert_eq!(from_html.word("plan"), hash);
    assert!(from_html.stdout.contains("the run that the page shows"), "{}", from_html.stdout);
    let plan = playground.path().join("reports/small").join(&hash).join("plan.json");
    let from_plan = elsewhere.run(&["rerun", plan.to_str().unwrap()]).expect(0);
    assert_eq!(from_plan.word("plan"), hash);
    let newest = rerun.word("run").rsplit('/').next().unwrap();
    assert!(from_plan.stdout.contains(&format!("run {newest}")), "{}", from_plan.stdout);
}

#[test]
fn refusals_have_their_codes() {
    let playground = Playground::new();
    playground.write("wrong.yaml", &SPEC.replace("nm14", "nm15"));
    let wrong = playground.run(&["make", "wrong.yaml"]).expect(2);
    assert!(wrong.stderr.contains("wrong.yaml:4:14") && wrong.stderr.contains("nm14"), "{}", wrong.stderr);
    // Ten axes of up to ten values each: some 10^9 cells.
    let many = |key: &str, unit: &str| {
        format!("{key}: [{}]\n", (1..=10).map(|n| format!("{n}{unit}")).collect::<Vec<_>>().join(", "))
    };
    let axes = [
        many("threads", ""),
        many("key_ranges", "k"),
        many("environment_padding", "KiB"),
        many("priority", ""),
        many("prefill", "%"),
    ];
    let huge = SPEC.replace("threads: [1, 2]\n", "").replace("key_ranges: 100\n", &axes.concat()).replace(
        "length: 30ms",
        &format!("length: [{}]", (1..=10_000).map(|n| format!("{n}ms")).collect::<Vec<_>>().join(", ")),
    );
    playground.write("huge.yaml", &huge);
    let since = Instant::now();
    let refused = playground.run(&["plan", "huge.yaml"]).expect(7);
    assert!(
        since.elapsed() < Duration::from_secs(5) && refused.stderr.contains("2000000000 cells"),
        "{}",
        refused.stderr
    );
    playground.write("pinned.yaml", &SPEC.replace("pinning: none", "pinning: {cpus: [4000, 4001]}"));
    let pinned = playground.run(&["make", "pinned.yaml"]).expect(3);
    assert!(pinned.stderr.contains("4000"), "{}", pinned.stderr);
    let preload = SPEC.replace("key_ranges", "allocators: {preload: /nowhere/libmalloc.so}\nkey_ranges");
    playground.write("preload.yaml", &preload);
    let missing = playground.run(&["make", "preload.yaml"]).expect(3);
    assert!(missing.stderr.contains("/nowhere/libmalloc.so"), "{}", missing.stderr);
    assert!(!playground.path().join("reports/small").exists(), "a refusal leaves nothing behind");
    playground.run(&["make", "nowhere.yaml"]).expect(2);
    playground.run(&["show", "abcdef"]).expect(2);
    playground.run(&["frobnicate"]).expect(2);
}

#[test]
fn a_reader_that_leaves_is_no_error_and_a_full_disk_is() {
    let playground = Playground::new();
    playground.write("spec.yaml", SPEC);
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let done = Done::of(playground.rare(&["plan", "spec.yaml"]).stdout(full).output().unwrap()).expect(6);
    assert!(done.stderr.contains("standard output"), "{}", done.stderr);
    let mut child = playground.rare(&["plan", "spec.yaml", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
