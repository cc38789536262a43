//! The command line as its users meet it: every command with right and wrong input, and what it says of itself.

#![allow(clippy::unwrap_used, reason = "a test stops where it does not find what it expects")]

mod playground;
mod skip;

use std::{
    collections::BTreeSet,
    fs,
    os::unix::ffi::OsStringExt,
    path::Path,
    process::{Command, Stdio},
};

use playground::{Done, Playground, SPEC};
use skip::skip;

/// A plan of this version, made once by the command itself.
fn plan_json(playground: &Playground) -> String {
    playground.write("spec.yaml", SPEC);
    playground.run(&["plan", "spec.yaml", "--json"]).expect(0).stdout
}

/// Returns every path below a folder.
fn everything(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        found.insert(entry.path().display().to_string());
        if entry.path().is_dir() {
            found.extend(everything(&entry.path()));
        }
    }
    found
}

#[test]
fn refusals_say_what_where_and_what_to_do_and_leave_nothing() {
    let playground = Playground::new();
    let plan = plan_json(&playground);
    playground.write("empty.yaml", "");
    playground.write("torn.json", &plan[..300]);
    playground.write("newer.json", &plan.replace("\"format\":1", "\"format\":2"));
    playground.write("structure.json", &plan.replace("nm14", "bst99"));
    playground.write("check.json", &plan.replace("\"checksum\"", "\"chequesum\""));
    playground.write("instrument.json", &plan.replace("\"accounting\"", "\"abacus\""));
    playground.write("reclamation.json", &plan.replace("\"epoch\"", "\"hazard-pointers\""));
    playground.write("page.html", "<html>no plan here</html>");
    playground.write("templates/report.md.j2", "{% if");
    playground.write("others/readme.txt", "not a template");
    fs::write(playground.path().join("latin1.yaml"), b"name: caf\xe9").unwrap();
    fs::create_dir(playground.path().join("folder")).unwrap();
    let before = everything(playground.path());

    // Arguments, exit code, and what the first line names.
    let mut cases: Vec<(String, i32, &str)> = vec![
        ("make --templates templates spec.yaml".into(), 2, "report.md.j2"),
        ("make --templates others spec.yaml".into(), 2, "`others`"),
        ("make --templates nowhere spec.yaml".into(), 2, "`nowhere`"),
        ("make --reports spec.yaml spec.yaml".into(), 6, "`spec.yaml`"),
        ("rerun torn.json".into(), 2, "`torn.json`"),
        ("rerun newer.json".into(), 2, "format 2"),
        ("rerun structure.json".into(), 3, "`bst99`"),
        ("rerun check.json".into(), 3, "`chequesum`"),
        ("rerun instrument.json".into(), 3, "`abacus`"),
        ("rerun reclamation.json".into(), 2, "hazard-pointers"),
        ("rerun page.html".into(), 2, "`page.html`"),
        ("rerun latin1.yaml".into(), 2, "`latin1.yaml`"),
        ("rerun spec.yaml".into(), 2, "`spec.yaml`"),
        ("rerun folder".into(), 2, "`folder`"),
        ("verify abcdef".into(), 2, "`abcdef`"),
        ("explain prefil".into(), 2, "`prefil`"),
        ("explain nm41".into(), 2, "`nm41`"),
        ("list structure".into(), 2, "'structure'"),
        ("completions tcsh".into(), 2, "tcsh"),
        ("make".into(), 2, "required arguments"),
        ("frobnicate".into(), 2, "'frobnicate'"),
    ];
    for command in ["make", "run", "plan", "check"] {
        let wrong = [("nowhere.yaml", "`nowhere.yaml`"), ("folder", "`folder`"), ("latin1.yaml", "byte 9")];
        cases.extend(wrong.map(|(spec, named)| (format!("{command} {spec}"), 2, named)));
        cases.push((format!("{command} empty.yaml"), 2, "E0010"));
        cases.push((format!("{command} /dev/zero"), 2, "`/dev/zero`"));
    }
    for command in ["report", "rerun", "show"] {
        cases.push((format!("{command} abcdef"), 2, "`abcdef`"));
        cases.push((format!("{command} xyz"), 2, "`xyz`"));
    }
    for (arguments, code, named) in cases {
        let done = playground.run(&arguments.split(' ').collect::<Vec<_>>()).expect(code);
        let first = done.stderr.lines().next().unwrap_or_default();
        assert!(first.starts_with("error") && first.contains(named), "rare {arguments}:\n{}", done.stderr);
        let advice = ["= help: ", "Usage:", "possible values", "did you mean"];
        assert!(advice.iter().any(|word| done.stderr.contains(word)), "rare {arguments}:\n{}", done.stderr);
        assert_eq!(done.stdout, "", "rare {arguments}");
        assert_eq!(everything(playground.path()), before, "rare {arguments} left something");
    }
}

#[test]
fn a_check_reads_every_file_and_speaks_to_editors() {
    let playground = Playground::new();
    playground.write("right.yaml", SPEC);
    playground.write("wrong.yaml", &SPEC.replace("nm14", "nm15"));
    let files = ["check", "nowhere.yaml", "wrong.yaml", "right.yaml"];
    let text = playground.run(&files).expect(2);
    assert!(text.stdout.starts_with("right.yaml: ok, plan "), "{}", text.stdout);
    assert!(text.stderr.contains("`nowhere.yaml`") && text.stderr.contains("wrong.yaml: 1 mistake"), "{}", text.stderr);

    let json = playground.run(&[&files[..], &["--format", "json"]].concat()).expect(2);
    let documents: Vec<serde_json::Value> = serde_json::from_str(&json.stdout).unwrap();
    let names: Vec<&str> = documents.iter().map(|document| document["file"].as_str().unwrap()).collect();
    assert_eq!(names, ["nowhere.yaml", "wrong.yaml", "right.yaml"]);
    assert!(documents[0]["refused"].as_str().unwrap().contains("cannot read"));
    assert_eq!(documents[1]["diagnostics"][0]["line"], 4);
    assert_eq!(documents[2]["plan"].as_str().unwrap().len(), 64);
}

/// A reader that went away is no failure of ours; a device that takes nothing is.
#[test]
fn every_command_notices_where_its_output_goes() {
    let playground = Playground::new();
    playground.write("spec.yaml", SPEC);
    let hash = playground.run(&["make", "spec.yaml"]).expect(0).word("plan").to_owned();
    let commands = [
        "make spec.yaml",
        "run spec.yaml",
        "check spec.yaml",
        "check --format json spec.yaml",
        "plan spec.yaml",
        "plan --json spec.yaml",
        "plan --yaml spec.yaml",
        "plan --explain spec.yaml",
        &format!("report {hash}"),
        &format!("show {hash}"),
        "list",
        "list structures",
        "list --json",
        "verify",
        "explain",
        "explain E0207",
        "explain nm14",
        "schema",
        "doctor",
        "completions zsh",
        "man",
        "--help",
        "--version",
    ];
    for command in commands {
        let arguments: Vec<&str> = command.split(' ').collect();
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let done = Done::of(playground.rare(&arguments).stdout(full).output().unwrap()).expect(6);
        assert!(done.stderr.contains("standard output") && !done.stderr.contains("bug"), "{command}: {}", done.stderr);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let done = Done::of(playground.rare(&arguments).stdout(writer).output().unwrap());
        assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{command}");
    }
    playground.run(&["verify"]).expect(0);
}

#[test]
fn an_environment_without_anything_will_do() {
    let playground = Playground::new();
    playground.write("spec.yaml", SPEC);
    let lock = playground.path().join("machine.lock");
    let mut bare = playground.rare(&["make", "spec.yaml"]);
    Done::of(bare.env_clear().env("PATH", "").env("RARE_MACHINE_LOCK", lock).output().unwrap()).expect(0);
    let named = Done::of(playground.rare(&["make", "spec.yaml"]).env("RARE_WORKER", "/nowhere").output().unwrap());
    let named = named.expect(3);
    assert!(named.stderr.contains("RARE_WORKER names `/nowhere`"), "{}", named.stderr);
    let foreign = playground.rare(&["make", "spec.yaml"]).env("RARE_WORKER", "/bin/true").output().unwrap();
    let foreign = Done::of(foreign).expect(3);
    assert!(foreign.stderr.contains("unset it") && !foreign.stderr.contains("remove"), "{}", foreign.stderr);
}

/// Runs `rare` on a terminal of its own; `None` where there is no `script`.
fn on_a_terminal(playground: &Playground, arguments: &str, variables: &[(&str, &str)]) -> Option<String> {
    let rare = env!("CARGO_BIN_EXE_rare");
    let mut command = Command::new("script");
    command.args(["-qec", &format!("stty cols 110; '{rare}' {arguments}"), "/dev/null"]);
    command.current_dir(playground.path()).env("RARE_MACHINE_LOCK", playground.path().join("machine.lock"));
    command.env_remove("NO_COLOR").env("TERM", "xterm").envs(variables.iter().copied()).stdin(Stdio::null());
    match command.output() {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(_) => {
            skip("there is no `script` to make a terminal");
            None
        }
    }
}

#[test]
fn a_terminal_gets_one_line_that_redraws_itself_and_colours_unless_told_not_to() {
    let playground = Playground::new();
    let mixes = "{half-and-half: {insert: 50, remove: 50}, readers: {contains: 100}}";
    // Trials longer than the pause between two drawings, so that each of them is drawn.
    let spec = SPEC.replace("{insert: 50, remove: 50}", mixes).replace("count: 2", "count: 1").replace("30ms", "150ms");
    playground.write("spec.yaml", &spec);
    playground.write("wrong.yaml", &SPEC.replace("nm14", "nm15"));
    let Some(drawn) = on_a_terminal(&playground, "make spec.yaml", &[]) else { return };
    for part in ["/16", " left", "ops/s, now ", "half-and-half", "ran 16 trials", "plan    "] {
        assert!(drawn.contains(part), "lacks `{part}`: {drawn}");
    }
    assert!(!drawn.contains("50% insert"), "a mix has a name: {drawn}");
    let plain = on_a_terminal(&playground, "make --fresh spec.yaml", &[("TERM", "dumb")]).unwrap();
    assert!(plain.contains("running 16 of 16 trials") && !plain.contains('\x1b'), "{plain}");
    let quiet = on_a_terminal(&playground, "make --fresh --quiet spec.yaml", &[]).unwrap();
    assert!(quiet.starts_with("ran 16 trials") && !quiet.contains('\x1b'), "{quiet}");

    let coloured = |variables: &[(&str, &str)]| on_a_terminal(&playground, "check wrong.yaml", variables).unwrap();
    assert!(coloured(&[]).contains("\x1b["));
    assert!(coloured(&[("NO_COLOR", "")]).contains("\x1b["), "an empty NO_COLOR says nothing");
    for variable in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        assert!(!coloured(&[variable]).contains('\x1b'), "{variable:?}");
    }
}

#[test]
fn hints_work_as_they_are_printed() {
    let playground = Playground::new();
    let reports = playground.path().join("my reports");
    playground.write("specs/my first.yaml", SPEC);
    let made = playground.run(&["make", "specs/my first.yaml", "--reports", reports.to_str().unwrap()]).expect(0);
    assert!(reports.join("small").is_dir(), "an absolute folder is used as it is");
    let hint = made.stdout.lines().find_map(|line| line.strip_prefix("again   rare ")).unwrap().to_owned();
    let shell = |hint: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("'{}' {hint}", env!("CARGO_BIN_EXE_rare"))]).current_dir(playground.path());
        shell.env("RARE_MACHINE_LOCK", playground.path().join("machine.lock"));
        Done::of(shell.output().unwrap())
    };
    let again = shell(&hint).expect(0);
    assert_eq!(again.word("plan"), made.word("plan"));
    assert!(again.stdout.starts_with("ran 12 trials\n"), "{}", again.stdout);
    // `rare run` says how to get the report.
    let ran = playground.run(&["run", "specs/my first.yaml", "--reports", "my reports"]).expect(0);
    let hint = ran.stdout.lines().find_map(|line| line.strip_prefix("report  rare ")).unwrap();
    shell(hint).expect(0);
}

#[test]
fn a_hostile_name_does_not_act_on_the_terminal() {
    let playground = Playground::new();
    let plan = plan_json(&playground).replace("\"label\":\"nm14\"", "\"label\":\"\\u001b[2Jnm14\u{202e}\"");
    let hostile = playground.write("hostile.json", &plan);
    let done = playground.run(&["rerun", hostile.to_str().unwrap()]).expect(0);
    let shown = playground.run(&["show", done.word("plan")]).expect(0);
    for text in [&done.stdout, &done.stderr, &shown.stdout] {
        assert!(!text.contains(['\x1b', '\u{202e}']), "{text:?}");
    }
    assert!(shown.stdout.contains("␛[2Jnm14"), "{}", shown.stdout);
    let path = std::ffi::OsString::from_vec(b"\x1b[2J\xff.yaml".to_vec());
    let missing = Done::of(playground.rare(&["make"]).arg(path).output().unwrap()).expect(2);
    assert!(missing.stderr.contains("␛[2J") && !missing.stderr.contains('\x1b'), "{}", missing.stderr);
}

#[test]
fn the_man_page_and_the_completions_are_whole() {
    let playground = Playground::new();
    let help = playground.run(&["--help"]).expect(0).stdout;
    let commands: Vec<&str> = help
        .split("Commands:\n")
        .nth(1)
        .unwrap()
        .lines()
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .map(|line| line.split_whitespace().next().unwrap())
        .filter(|&command| command != "help")
        .collect();
    assert!(commands.len() >= 14, "{commands:?}");
    let page = playground.run(&["man"]).expect(0).stdout;
    for command in &commands {
        assert!(page.contains(&format!(".SS \"rare {command}")), "{command}: {page}");
    }
    for section in ["COMMANDS", "\"EXIT STATUS\"", "ENVIRONMENT", "FILES", "EXAMPLES"] {
        assert!(page.contains(&format!(".SH {section}\n")), "no section {section}");
    }
    let codes = help.split("Exit codes:\n").nth(1).unwrap().lines().filter(|line| !line.trim().is_empty());
    for code in codes {
        let (code, meaning) = code.trim().split_once("  ").unwrap();
        assert!(page.contains(&format!("\\fB{code}\\fR\n{meaning}\n")), "{code} {meaning}");
    }
    for variable in ["RARE_WORKER", "RARE_MACHINE_LOCK", "NO_COLOR"] {
        assert!(page.contains(&format!("\\fB{variable}\\fR")), "{variable}");
    }
    assert!(!page.contains("RARE_ALLOCATOR"), "what workers are told is no setting");

    for shell in ["bash", "zsh", "fish"] {
        let script = playground.run(&["completions", shell]).expect(0).stdout;
        for word in commands.iter().chain(&["retry-failed", "templates", "resume"]) {
            assert!(script.contains(word), "{shell}: {word}");
        }
        let path = playground.write("script", &script);
        match Command::new(shell).arg("-n").arg(path).output() {
            Ok(output) => assert!(output.status.success(), "{shell}: {}", String::from_utf8_lossy(&output.stderr)),
            Err(_) => println!("{shell} is not installed: its completions are not parsed"),
        }
    }
}

/// Every structure says the same of itself wherever it is listed, and fits a terminal of 100 columns.
#[test]
fn the_catalogue_is_whole_in_every_listing() {
    let playground = Playground::new();
    let read = |arguments: &[&str]| playground.run(arguments).expect(0).stdout;
    let json = |arguments: &[&str]| serde_json::from_str::<serde_json::Value>(&read(arguments)).unwrap();
    let listed = read(&["list", "structures"]);
    assert!(listed.lines().all(|line| line.chars().count() <= 100), "{listed}");
    let short = read(&["list"]);
    let structures = json(&["list", "structures", "--json"]);
    assert!(structures.as_array().unwrap().len() > 20);
    for structure in structures.as_array().unwrap() {
        let heading = format!("{}: {}", structure["name"].as_str().unwrap(), structure["title"].as_str().unwrap());
        assert!(listed.contains(&format!("{heading}\n  source       ")), "{heading} is not in\n{listed}");
        assert!(short.contains(&format!("\n  {} ", structure["name"].as_str().unwrap())), "{heading}: {short}");
    }
    let all = json(&["list", "--json"]);
    for kind in ["structures", "allocators", "reclamation", "checks", "plans"] {
        assert_eq!(json(&["list", kind, "--json"]), all[kind], "{kind}");
    }
    let nm14 = read(&["explain", "nm14"]);
    for part in ["Natarajan and Mittal", "deviations from the source\n  - ", "invariants\n  I1 ", "[nm14]"] {
        assert!(nm14.contains(part), "`{part}` is not in\n{nm14}");
    }
    let hash = read(&["explain", "michael-hash02"]);
    assert!(hash.contains("parameters   buckets (1 to "), "{hash}");
}

#[test]
fn everything_that_is_listed_can_be_explained() {
    let playground = Playground::new();
    let index = playground.run(&["explain"]).expect(0).stdout;
    let terms = index.lines().filter_map(|line| line.strip_prefix("  ")).map(|line| line.split(' ').next().unwrap());
    let terms: Vec<&str> = terms.collect();
    assert!(terms.contains(&"prefill") && terms.contains(&"E0207") && terms.contains(&"nm14"), "{terms:?}");
    for term in terms {
        let text = playground.run(&["explain", term]).expect(0).stdout;
        assert!(text.starts_with(term) && text.lines().count() >= 3, "{text}");
    }
    let schema = playground.run(&["schema"]).expect(0).stdout;
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    assert!(schema["properties"]["structures"].is_object());
}
