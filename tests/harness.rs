//! Settings of the harness from spec to verdict, as a user would run them: each is what the worker was asked for, and each
//! planted fault is caught by the check that is there for it.

#![allow(clippy::unwrap_used, reason = "a test stops where it does not find what it expects")]

mod playground;

use playground::{Done, Playground};

/// One structure, two threads, and `rest`.
fn spec(rest: &str) -> String {
    format!(
        "rare: 1\nname: harness\nquestion: Is it caught?\nstructures: nm14\nthreads: 2\nkey_ranges: 10k\n\
         mixes: {{insert: 50, remove: 50}}\nsanity_checks: [checksum, prefill, pinning, duration]\n{rest}\n"
    )
}

#[test]
fn every_setting_reaches_the_worker() {
    let playground = Playground::new();
    let settings = "pinning: none\ntrials: {count: 1, length: 30ms}\nharness:\n  \
                    time_check: [flag, every-op, every-10, every-100, every-1000]\n  padding: [128, 0]\n  \
                    generator: [xoshiro256++, fnv1a-alternating]";
    playground.write("spec.yaml", &spec(settings));
    let done = playground.run(&["run", "spec.yaml"]).expect(0);
    let records = playground.records(&done);
    // 20 cells, a measured and a counted trial of each.
    assert_eq!(records.len(), 40);
    let mut asked = std::collections::BTreeMap::new();
    for record in &records {
        let start = record.find(r#""harness":{"#).unwrap();
        let end = start + record[start..].find("generator").unwrap();
        let generator = if record.contains(r#""generator":"fnv1a-alternating""#) { "fnv1a" } else { "xoshiro" };
        *asked.entry(format!("{} {generator}", &record[start..end])).or_insert(0) += 1;
    }
    assert_eq!(asked.len(), 20, "{asked:?}");
    assert!(asked.values().all(|&n_trials| n_trials == 2), "{asked:?}");
    for part in [r#""flag""#, r#"{"every":1}"#, r#"{"every":10}"#, r#"{"every":1000}"#, r#""lines""#, r#""none""#] {
        assert!(asked.keys().any(|settings| settings.contains(part)), "{part} in {asked:?}");
    }
}

/// Makes the report of a run with a planted fault.
fn make(playground: &Playground, fault: &str, pinning: &str) -> (Done, String) {
    let rest = format!("pinning: {pinning}\ntrials: {{count: 1, length: 600ms}}\nharness: {{fault: {fault}}}");
    playground.write("spec.yaml", &spec(&rest));
    let done = playground.run(&["make", "spec.yaml"]);
    let report = playground.path().join("reports/harness").join(done.word("plan")).join("report.md");
    (done, std::fs::read_to_string(report).unwrap())
}

#[test]
fn every_planted_fault_is_caught() {
    let playground = Playground::new();
    for (fault, finding) in [
        ("prefill-with-replacement", "the walk finds"),
        ("late-thread", "threads start apart by"),
        // What the threads' CPU time shows on an idle machine, the sampler shows on any.
        ("nominal-time", ""),
    ] {
        let (done, report) = make(&playground, fault, "none");
        done.expect(5);
        assert!(report.contains(finding), "{fault}: {report}");
        let nominal = ["of CPU time within", "sampled after a thread's own stop"];
        assert!(fault != "nominal-time" || nominal.iter().any(|text| report.contains(text)), "{report}");
    }
    make(&playground, "none", "none").0.expect(0);
}

#[test]
fn rotated_pins_are_caught() {
    if std::thread::available_parallelism().unwrap().get() < 2 {
        eprintln!("one CPU is allowed: nothing to rotate");
        return;
    }
    let (done, report) = make(&Playground::new(), "rotated-pins", "compact");
    done.expect(5);
    assert!(report.contains("the kernel allows CPUs"), "{report}");
}

#[test]
fn what_cannot_be_measured_so_is_refused_before_anything_runs() {
    let playground = Playground::new();
    for (rest, reason) in [
        ("pinning: none\nharness: {fault: rotated-pins}", "the pins of the threads cannot be rotated"),
        (
            "pinning: none\ndistribution: {zipf: 0.99}\nharness: {generator: fnv1a-alternating}",
            "the generator `fnv1a-alternating` draws uniform keys only",
        ),
    ] {
        playground.write("spec.yaml", &spec(rest));
        let done = playground.run(&["run", "spec.yaml"]).expect(3);
        assert!(done.stderr.contains(reason), "{}", done.stderr);
    }
}
