//! The README tells the truth: its commands run, its paths exist, its table is that of the code.

#![allow(clippy::unwrap_used, reason = "a test stops where it does not find what it expects")]

mod playground;

use std::{fs, path::Path};

use playground::Playground;

fn readme() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap()
}

/// Returns the lines of the fenced shell block that contains `word`.
fn block(readme: &str, word: &str) -> Vec<String> {
    let block = readme
        .split("```sh\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .find(|block| block.contains(word));
    block.unwrap_or_else(|| panic!("no shell block with `{word}`")).lines().map(str::to_owned).collect()
}

#[test]
fn the_tour_runs() {
    let playground = Playground::new();
    let spec = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("specs/bst.yaml")).unwrap();
    // The same spec with fewer cells, so that a tour of a debug build stays short.
    let small = spec.replace("allocators: [system, jemalloc]", "allocators: system").replace("[100, 100k]", "100");
    assert_ne!(small, spec);
    playground.write("specs/bst.yaml", &small);
    let mut hash = String::new();
    for line in block(&readme(), "rare plan") {
        let command = line.split('#').next().unwrap().trim().replace("HASH", &hash);
        let arguments: Vec<&str> = command.split_whitespace().collect();
        assert_eq!(arguments[0], "rare", "{line}");
        let done = playground.run(&arguments[1..]);
        // A quick run on a busy machine may fail a check, which the tour then shows; it must not fail otherwise.
        let measured = ["make", "rerun"].contains(&arguments[1]);
        assert!(done.code == 0 || measured && done.code == 5, "{line}\n{}\n{}", done.stdout, done.stderr);
        if arguments[1] == "make" {
            hash = done.word("plan").to_owned();
        }
    }
}

#[test]
fn links_and_paths_exist() {
    let readme = readme();
    let linked = readme.split("](").skip(1).map(|rest| rest.split(')').next().unwrap());
    let quoted = readme.split('`').skip(1).step_by(2).filter(|text| text.ends_with('/') || text.ends_with(".rs"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for path in linked.chain(quoted) {
        let folders = ["", "workloads/src/structures"];
        assert!(folders.iter().any(|folder| root.join(folder).join(path).exists()), "`{path}` does not exist");
    }
}

#[test]
fn exit_codes_are_those_of_the_command() {
    let help = Playground::new().run(&["--help"]).expect(0).stdout;
    let codes = help.split("Exit codes:\n").nth(1).expect("the help lists the exit codes");
    let readme = readme();
    for line in codes.lines().filter(|line| !line.trim().is_empty()) {
        let (code, meaning) = line.trim().split_once("  ").expect("code and meaning");
        let row = format!("| {} | {} |", code.trim(), meaning.trim());
        assert!(readme.contains(&row), "the README lacks the row {row}");
    }
}

#[test]
fn ci_runs_the_readme_commands() {
    let ci = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(".ci/run")).unwrap();
    let commands = block(&readme(), "cargo test");
    assert!(commands.iter().any(|line| line.starts_with("cargo run --release -- make specs/bst.yaml")));
    assert!(commands.iter().any(|line| line.trim() == "cargo test"));
    assert!(ci.lines().any(|line| line.trim() == "cargo test"), ".ci/run does not call the README's test command");
}
