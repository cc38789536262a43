//! The README tells the truth: its commands run, its paths exist, its table is that of the code.

#![allow(clippy::unwrap_used, reason = "a test stops where it does not find what it expects")]

mod playground;

use std::{env, fs, path::Path};

use playground::Playground;
use serde_json::Value;

fn repository(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

fn readme() -> String {
    repository("README.md")
}

/// Compares what stands between the markers of a section with what should; with `UPDATE_GOLDEN=1` writes it there.
fn check_section(name: &str, expected: &str) {
    let readme = readme();
    let marker = |line: &str| readme.find(line).unwrap_or_else(|| panic!("the README has no line `{line}`"));
    let begin = marker(&format!("<!-- {name}: written by `UPDATE_GOLDEN=1 cargo test --test readme` -->"));
    let begin = begin + readme[begin..].find('\n').unwrap() + 1;
    let end = marker(&format!("<!-- end of {name} -->"));
    let expected = format!("\n{expected}\n");
    if readme[begin..end] == expected {
        return;
    }
    assert_eq!(env::var("UPDATE_GOLDEN").as_deref(), Ok("1"), "section `{name}` of the README should be\n{expected}");
    // In one step, because other tests of this file read it at the same time.
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let written = path.with_extension("written");
    fs::write(&written, format!("{}{expected}{}", &readme[..begin], &readme[end..])).unwrap();
    fs::rename(written, path).unwrap();
}

/// The sections that are written from the code, in one test because it writes one file.
#[test]
fn sections_are_those_of_the_code() {
    let listed = Playground::new().run(&["list", "structures", "--json"]).expect(0).stdout;
    let structures: Vec<Value> = serde_json::from_str(&listed).unwrap();
    assert!(structures.iter().all(|it| !text(&it["name"]).starts_with("control-")), "controls are listed apart");
    let mut table =
        "| structure | source | progress | order | reclamation | parameters |\n|---|---|---|---|---|---|\n".to_owned();
    structures.iter().for_each(|structure| table += &row(structure));
    let deviations = structures.iter().filter_map(deviations).collect::<String>();
    let summary = "<details><summary>Where each deviates from its source</summary>";
    check_section("structures", &format!("{table}\n{summary}\n\n{deviations}\n</details>\n"));

    let file = repository("workloads/src/structures/mutex_btree.rs");
    let entry = &file[file.find("pub static STRUCTURE").unwrap()..];
    let entry = &entry[..entry.find("\n};\n").unwrap() + 4];
    check_section("entry", &format!("```rust\n{entry}```\n"));
}

/// A string of a listing, fit for a cell of a table.
fn text(value: &Value) -> String {
    value.as_str().unwrap().replace('|', "\\|")
}

/// The strings of a list.
fn texts(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(text).collect()
}

fn row(structure: &Value) -> String {
    let semantics = &structure["semantics"];
    let order = match semantics["adt"].as_str().unwrap() {
        "ordered-dictionary" => "yes",
        "hash-dictionary" => "no",
        "nothing" => "stores nothing",
        other => panic!("the README has no words for `{other}`"),
    };
    let usual = ["if-absent", "64", "64"];
    let stated = [text(&semantics["insert"]), semantics["key_bits"].to_string(), semantics["value_bits"].to_string()];
    assert!(stated == usual || order == "stores nothing", "the README says of all what is not so of {structure}");
    let reclamation = match structure["reclaims"].as_str().unwrap() {
        "deferred" => texts(&structure["reclamation"]).join(", "),
        "at-once" => "at once, under its lock".to_owned(),
        "own" => "a scheme of its own".to_owned(),
        "nothing" => "allocates nothing".to_owned(),
        other => panic!("the README has no words for `{other}`"),
    };
    let parameter =
        |it: &Value| format!("`{}` {} to {}, default {}", text(&it["name"]), it["min"], it["max"], it["default"]);
    let parameters: Vec<String> = structure["parameters"].as_array().unwrap().iter().map(parameter).collect();
    let [name, title, source, progress] = ["name", "title", "source", "progress"].map(|key| text(&structure[key]));
    format!("| `{name}`<br>{title} | {source} | {progress} | {order} | {reclamation} | {} |\n", parameters.join("; "))
}

/// A point with the deviations of a structure below it, if it has some.
fn deviations(structure: &Value) -> Option<String> {
    let deviations = texts(&structure["deviations"]);
    let points: String = deviations.iter().map(|deviation| format!("  - {deviation}\n")).collect();
    (!points.is_empty()).then(|| format!("- `{}`\n{points}", text(&structure["name"])))
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
    // The same spec with fewer cells, so that a tour of a debug build stays short.
    let mut small = repository("specs/bst.yaml");
    for (whole, part) in [("[system, jemalloc]", "system"), ("[compact, none]", "none"), ("[100, 100k]", "100")] {
        assert!(small.contains(whole), "specs/bst.yaml has no `{whole}`");
        small = small.replace(whole, part);
    }
    playground.write("specs/bst.yaml", &small);
    let mut hash = String::new();
    for line in block(&readme(), "rare plan") {
        let command = line.split('#').next().unwrap().trim().replace("HASH", &hash);
        let mut arguments: Vec<&str> = command.split_whitespace().collect();
        assert_eq!(arguments[0], "rare", "{line}");
        if arguments[1] == "selftest" {
            // All faults take two minutes; `.ci/run` plants them.
            arguments.extend(["--only", "checksum"]);
        }
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
