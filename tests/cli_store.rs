//! What users meet when the store, the disk or the worker goes wrong, and how they get on from there.

#![allow(clippy::unwrap_used, reason = "a test stops where it does not find what it expects")]

mod playground;
mod run_support;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use playground::{Done, N_TRIALS, Playground, SPEC};
use rare_workloads::protocol::frame::sha256_hex;
use run_support::Mount;

fn made() -> (Playground, Done) {
    let playground = Playground::new();
    playground.write("spec.yaml", SPEC);
    let done = playground.run(&["make", "spec.yaml"]).expect(0);
    (playground, done)
}

fn in_run(playground: &Playground, done: &Done, name: &str) -> PathBuf {
    playground.path().join(done.word("run")).join(name)
}

#[test]
fn a_full_disk_is_said_and_what_was_recorded_stays() {
    // Full before the first trial, within the trials, and after them; a report takes more.
    for size in ["64k", "88k", "208k"] {
        let playground = Playground::new();
        playground.write("spec.yaml", SPEC);
        let reports = playground.path().join("reports");
        fs::create_dir(&reports).unwrap();
        let Some(_mount) = Mount::tmpfs(&reports, &format!("size={size}")) else { return };
        let full = playground.run(&["make", "spec.yaml"]).expect(6);
        assert!(full.stderr.contains("error: cannot ") && full.stderr.contains("free some space"), "{}", full.stderr);
        playground.run(&["verify"]).expect(0);
        playground.run(&["list"]).expect(0);
        let grown = Command::new("mount").args(["-o", "remount,size=16m"]).arg(&reports).status().unwrap();
        assert!(grown.success());
        let done = playground.run(&["make", "spec.yaml"]).expect(0);
        assert_eq!(playground.records(&done).len(), N_TRIALS, "{}", done.stdout);
        playground.run(&["verify"]).expect(0);
    }
}

#[test]
fn a_read_only_store_can_be_read_and_is_not_written() {
    let playground = Playground::new();
    playground.write("spec.yaml", SPEC);
    let reports = playground.path().join("reports");
    fs::create_dir(&reports).unwrap();
    let Some(mount) = Mount::tmpfs(&reports, "size=16m") else { return };
    let hash = playground.run(&["make", "spec.yaml"]).expect(0).word("plan").to_owned();
    mount.read_only();
    playground.write("other.yaml", &SPEC.replace("key_ranges: 100", "key_ranges: 200"));
    for command in [&["make", "spec.yaml"][..], &["make", "other.yaml"], &["report", &hash], &["rerun", &hash]] {
        let refused = playground.run(command).expect(6);
        let advice = "make the folder writable, or choose another one";
        assert!(refused.stderr.contains("reports/small") && refused.stderr.contains(advice), "{}", refused.stderr);
    }
    for command in [&["verify"][..], &["list"], &["show", &hash]] {
        playground.run(command).expect(0);
    }
}

#[test]
fn a_make_whose_reader_left_completes() {
    let playground = Playground::new();
    playground.write("spec.yaml", SPEC);
    let (reader, writer) = std::io::pipe().unwrap();
    let child = playground.rare(&["make", "spec.yaml"]).stdout(writer.try_clone().unwrap()).stderr(writer).spawn();
    playground.wait_for_records(1);
    drop(reader);
    assert_eq!(child.unwrap().wait().unwrap().code(), Some(0));
    playground.run(&["verify"]).expect(0);
    let again = playground.run(&["make", "spec.yaml"]).expect(0);
    assert!(again.stdout.contains(&format!("no trial to run: all {N_TRIALS} are recorded")), "{}", again.stdout);
}

#[test]
fn a_damaged_journal_is_named_repaired_and_completed() {
    let (playground, done) = made();
    let journal = in_run(&playground, &done, "trials.jsonl");
    let mut bytes = fs::read(&journal).unwrap();
    let ends: Vec<usize> = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at).collect();
    // Record 3 begins behind the end of record 2.
    let offset = ends[2] + 1;
    bytes[offset + 200] ^= 1;
    fs::write(&journal, bytes).unwrap();

    let place = format!("record 3, byte {offset}");
    let hash = done.word("plan");
    for command in [&["make", "spec.yaml"][..], &["report", hash]] {
        let refused = playground.run(command).expect(6);
        assert!(refused.stderr.starts_with("error: ") && refused.stderr.contains(&place), "{}", refused.stderr);
        assert!(refused.stderr.contains("verify --repair"), "{}", refused.stderr);
    }
    for command in [&["verify"][..], &["list"], &["show", hash]] {
        let told = playground.run(command).expect(6).stdout;
        assert!(told.contains("damaged") && told.contains(&place), "{command:?}: {told}");
    }
    let repaired = playground.run(&["verify", "--repair"]).expect(0).stdout;
    assert!(repaired.contains("kept 11 records, lost 1") && repaired.contains(&format!("byte {offset}")), "{repaired}");
    assert!(journal.with_extension("jsonl.damaged").is_file());
    let shown = playground.run(&["show", hash]).expect(0).stdout;
    assert!(shown.contains("11 trials, 1 missing") && shown.contains("goes on with it"), "{shown}");
    let completed = playground.run(&["make", "spec.yaml"]).expect(0);
    assert!(completed.stdout.starts_with("ran 1 trial, 11 were recorded before\n"), "{}", completed.stdout);
    assert_eq!(playground.records(&completed).len(), N_TRIALS);
    playground.run(&["verify"]).expect(0);
}

#[test]
fn a_journal_without_its_header_is_given_up_and_does_not_stop_the_rest() {
    let (playground, done) = made();
    let journal = in_run(&playground, &done, "trials.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, text.replacen("\"format\":1", "\"format\":0", 1)).unwrap();
    for command in [&["make", "spec.yaml"][..], &["verify", "--repair"]] {
        let refused = playground.run(command).expect(6);
        assert!(
            refused.stderr.contains("record 0, byte 0") && refused.stderr.contains("--fresh"),
            "{}",
            refused.stderr
        );
        assert!(!refused.stderr.contains("keeps the good records"), "{}", refused.stderr);
    }
    let fresh = playground.run(&["make", "--fresh", "spec.yaml"]).expect(0);
    assert_eq!(playground.records(&fresh).len(), N_TRIALS);
    fs::remove_dir_all(playground.path().join(done.word("run"))).unwrap();
    playground.run(&["make", "spec.yaml"]).expect(0);
    playground.run(&["verify"]).expect(0);
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let (playground, done) = made();
    let environment = in_run(&playground, &done, "environment.json");
    let journal = in_run(&playground, &done, "trials.jsonl");
    let refused = |path: &Path, newer: &str, commands: &[&[&str]]| {
        let original = fs::read_to_string(path).unwrap();
        fs::write(path, newer).unwrap();
        for command in commands {
            let told = playground.run(command).expect(6);
            let told = told.stdout + &told.stderr;
            let name = path.file_name().unwrap().to_str().unwrap();
            assert!(told.contains(name) && told.contains("has format 2, this rare knows up to 1"), "{told}");
        }
        assert_eq!(fs::read_to_string(path).unwrap(), newer, "it was changed");
        fs::write(path, original).unwrap();
    };
    let hash = done.word("plan").to_owned();
    let commands = [&["make", "spec.yaml"][..], &["report", &hash], &["verify"], &["show", &hash], &["list"]];
    let text = fs::read_to_string(&environment).unwrap();
    refused(&environment, &text.replacen("\"format\": 1", "\"format\": 2", 1), &commands);

    // A header of the next format whose digest holds.
    let text = fs::read_to_string(&journal).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let header = first.split_once("\"record\":").unwrap().1.strip_suffix('}').unwrap();
    let header = header.replacen("\"format\":1", "\"format\":2", 1);
    let digest = sha256_hex(format!("\n0\n{header}").as_bytes());
    refused(&journal, &format!("{{\"sha256\":\"{digest}\",\"seq\":0,\"record\":{header}}}\n{rest}"), &commands);

    let manifest = playground.path().join("reports/small").join(&hash).join("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    refused(&manifest, &text.replacen("\"format\": 1", "\"format\": 2", 1), &[&["verify"]]);
    playground.run(&["verify"]).expect(0);
}

#[test]
fn a_new_name_costs_no_trial() {
    let (playground, done) = made();
    playground.write("spec.yaml", &SPEC.replace("name: small", "name: renamed"));
    let renamed = playground.run(&["make", "spec.yaml"]).expect(0);
    assert!(renamed.stdout.starts_with("no trial to run: all 12 are recorded\n"), "{}", renamed.stdout);
    assert!(renamed.stderr.contains("from its other name `small`"), "{}", renamed.stderr);
    assert!(renamed.word("run").starts_with("reports/renamed/"), "{}", renamed.stdout);
    assert_eq!(playground.records(&renamed), playground.records(&done));
    playground.run(&["verify"]).expect(0);
    // Two names share the hash now: the hint tells them apart, and so does the error.
    let hash = done.word("plan");
    assert!(renamed.stdout.contains(&format!("again   rare rerun renamed/{hash}\n")), "{}", renamed.stdout);
    let ambiguous = playground.run(&["show", hash]).expect(2);
    for name in ["small", "renamed"] {
        assert!(ambiguous.stderr.contains(&format!("{name}/{hash}")), "{}", ambiguous.stderr);
        playground.run(&["show", &format!("{name}/{hash}")]).expect(0);
    }
}

#[test]
fn another_run_on_the_machine_leaves_nothing_behind() {
    let (playground, _) = made();
    let lock = fs::File::options().write(true).open(playground.path().join("machine.lock")).unwrap();
    lock.lock().unwrap();
    playground.write("other.yaml", &SPEC.replace("small", "other").replace("key_ranges: 100", "key_ranges: 200"));
    let refused = playground.run(&["make", "other.yaml"]).expect(6);
    assert!(refused.stderr.contains("one run measures at a time"), "{}", refused.stderr);
    assert!(!playground.path().join("reports/other").exists());
    // A run without anything to measure does not need the machine, and one that needs it spoils nothing.
    playground.run(&["make", "spec.yaml"]).expect(0);
    playground.run(&["make", "--fresh", "spec.yaml"]).expect(6);
    let verified = playground.run(&["verify"]).expect(0).stdout;
    assert!(!verified.contains("without a manifest"), "{verified}");
    drop(lock);
    playground.run(&["make", "other.yaml"]).expect(0);
}

#[test]
fn a_quick_run_is_marked_and_is_another_plan() {
    let (playground, done) = made();
    let same = playground.run(&["make", "--quick", "spec.yaml"]).expect(0);
    assert!(same.stderr.contains("`--quick` changes nothing: `spec.yaml`"), "{}", same.stderr);
    assert_eq!(same.word("plan"), done.word("plan"));
    playground.write("spec.yaml", &format!("{SPEC}quick: {{trials: {{count: 1, length: 20ms}}}}\n"));
    let quick = playground.run(&["make", "--quick", "spec.yaml"]).expect(0);
    assert!(!quick.stderr.contains("changes nothing"), "{}", quick.stderr);
    assert_ne!(quick.word("plan"), done.word("plan"));
    let page = |done: &Done, name: &str| {
        let folder = playground.path().join("reports/small").join(done.word("plan"));
        fs::read_to_string(folder.join(name)).unwrap().to_lowercase()
    };
    for (name, n_marks) in [("report.md", 5), ("report.html", 5)] {
        assert!(page(&quick, name).matches("quick run").count() >= n_marks, "{name} of a quick run is not marked");
    }
    // The whole plan is what it was, and its report does not claim to be quick.
    let whole = playground.run(&["make", "spec.yaml"]).expect(0);
    assert_eq!(whole.word("plan"), done.word("plan"));
    assert!(!page(&whole, "report.md").contains("quick run"));
}

/// A worker that dies at once as long as the file `broken` is there, and is the real one otherwise.
fn fragile_worker(playground: &Playground) -> PathBuf {
    let broken = playground.path().join("broken");
    let real = env!("CARGO_BIN_EXE_rare-worker");
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" != --identity ] && [ -e '{}' ]; then kill -9 $$; fi\nexec '{real}' \"$@\"\n",
        broken.display()
    );
    let path = playground.write("fragile-worker", &script);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn failed_trials_are_tried_again_only_when_asked() {
    let playground = Playground::new();
    playground.write("spec.yaml", SPEC);
    let broken = playground.write("broken", "");
    let worker = fragile_worker(&playground);
    let run = |arguments: &[&str]| Done::of(playground.rare(arguments).env("RARE_WORKER", &worker).output().unwrap());
    let failed = run(&["make", "spec.yaml"]).expect(4);
    assert!(
        failed.stderr.contains("failed, killed: ") && failed.stderr.contains("every trial fails"),
        "{}",
        failed.stderr
    );
    assert!(failed.stdout.contains("10 failed, 2 missing"), "{}", failed.stdout);
    fs::remove_file(&broken).unwrap();
    let rest = run(&["make", "spec.yaml"]).expect(4);
    assert!(rest.stdout.starts_with("ran 2 trials, 10 were recorded before\n"), "{}", rest.stdout);
    let shown = run(&["show", rest.word("plan")]).expect(0).stdout;
    assert!(shown.contains("complete, 12 trials, 10 failed") && shown.contains("nothing to run"), "{shown}");
    let retried = run(&["make", "--retry-failed", "spec.yaml"]).expect(0);
    assert!(retried.stdout.starts_with("ran 10 trials, 2 were recorded before\n"), "{}", retried.stdout);
    assert_eq!(retried.word("run"), rest.word("run"));
    playground.run(&["verify"]).expect(0);
    // The worker proper is another program: what the fragile one measured is stale, and said to be.
    let shown = playground.run(&["show", rest.word("plan")]).expect(0).stdout;
    assert!(shown.contains("complete, 12 trials\n") && shown.contains("not continued"), "{shown}");
    let anew = playground.run(&["make", "spec.yaml"]).expect(0);
    assert!(
        anew.stderr.contains("is not continued: ") && anew.stdout.starts_with("ran 12 trials\n"),
        "{}",
        anew.stderr
    );
}

#[test]
fn an_interrupted_rerun_is_resumed_where_it_stopped() {
    let playground = Playground::new();
    playground.write("spec.yaml", &SPEC.replace("30ms", "120ms"));
    let plan = playground.run(&["plan", "--json", "spec.yaml"]).expect(0).stdout;
    // What lies beside a plan is its spec only if it makes the plan.
    playground.write("elsewhere/spec.yaml", &SPEC.replace("name: small", "name: another"));
    playground.write("elsewhere/plan.json", &plan);
    let rerun =
        playground.rare(&["rerun", "elsewhere/plan.json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let rerun = rerun.unwrap();
    playground.wait_for_records(2);
    // SAFETY: sends a signal to a child that has not been waited for, so its number is still its own.
    unsafe { libc::kill(i32::try_from(rerun.id()).unwrap(), libc::SIGTERM) };
    let stopped = Done::of(rerun.wait_with_output().unwrap()).expect(143);
    let hint = stopped.stderr.split("`rare ").nth(1).and_then(|rest| rest.split('`').next());
    let hint = hint.unwrap_or_else(|| panic!("says how to go on: {}", stopped.stderr)).to_owned();
    assert!(hint.starts_with("rerun --resume rerun/"), "{hint}");
    assert!(!playground.path().join("reports/another").exists());
    let resumed = playground.run(&hint.split(' ').collect::<Vec<_>>()).expect(0);
    assert!(resumed.stdout.contains("were recorded before"), "{}", resumed.stdout);
    assert_eq!(playground.records(&resumed).len(), N_TRIALS);
    // Without `--resume` a rerun measures again, and under the name that the plan has here.
    let again = playground.run(&["rerun", "elsewhere/plan.json"]).expect(0);
    assert!(again.stdout.starts_with("ran 12 trials\n") && again.word("run").starts_with("reports/rerun/"));
}
