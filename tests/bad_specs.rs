//! Each file of `specs/bad/` holds one fault, is named after it, and has the text that a person sees beside it.
//!
//! `UPDATE_GOLDEN=1 cargo test --test bad_specs` rewrites the texts.

use std::{collections::BTreeSet, fs, path::PathBuf};

use rare::{
    diag::{self, Diagnostic, Source, codes},
    plan::Plan,
    spec,
};

/// Codes without a file, and why.
const WITHOUT_FILE: &[(&str, &str)] = &[
    ("E0106", "no name of a structure is reserved at present; a unit test reserves one"),
    ("E0002", "a file of a megabyte; a unit test makes one"),
    ("W0301", "a warning; the tests of the compiler show it"),
];

fn files() -> Vec<PathBuf> {
    let folder = fs::read_dir("specs/bad").expect("tests run in the root of the package");
    let files = folder.map(|entry| entry.expect("the folder can be listed").path());
    let mut files: Vec<PathBuf> = files.filter(|file| file.extension().is_some_and(|it| it == "yaml")).collect();
    files.sort();
    files
}

/// What `rare check` finds: the mistakes of the spec, or else those that only its plan shows.
fn faults(source: &Source) -> Vec<Diagnostic> {
    match spec::compile(source, false) {
        Ok(compiled) => Plan::compile(&compiled.spec, rare::verdict::probes)
            .err()
            .map(|error| error.diagnostics())
            .unwrap_or_default(),
        Err(found) => found,
    }
}

fn read(file: &PathBuf) -> Source {
    Source { name: file.display().to_string(), text: fs::read_to_string(file).expect("specs are UTF-8") }
}

#[test]
fn each_bad_spec_has_one_fault_and_its_text() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = Vec::new();
    for file in files() {
        let source = read(&file);
        let faults = faults(&source);
        if faults.len() != 1 {
            wrong.push(format!(
                "{} has {} faults:\n{}",
                source.name,
                faults.len(),
                diag::render(&faults, &source, false)
            ));
        }
        let rendered = diag::render(&faults, &source, false);
        let golden = file.with_extension("expected");
        if update {
            fs::write(&golden, &rendered).expect("the folder is writable");
        }
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        if rendered != expected {
            wrong.push(format!("{}\nexpected:\n{expected}\nfound:\n{rendered}", source.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn each_code_has_a_bad_spec_or_a_reason() {
    let shown: BTreeSet<&str> =
        files().iter().flat_map(|file| faults(&read(file))).map(|fault| fault.code.id).collect();
    let excused: BTreeSet<&str> = WITHOUT_FILE.iter().map(|(code, _)| *code).collect();
    let known: BTreeSet<&str> = codes::all().map(|code| code.id).collect();
    let missing: Vec<&&str> = known.iter().filter(|code| !shown.contains(*code) && !excused.contains(*code)).collect();
    assert!(missing.is_empty(), "no bad spec for {missing:?}");
    let superfluous: Vec<&&str> =
        excused.iter().filter(|code| shown.contains(*code) || !known.contains(*code)).collect();
    assert!(superfluous.is_empty(), "excused without need: {superfluous:?}");
    assert!(files().len() >= 45);
}

#[test]
fn no_expected_text_is_left_over() {
    for entry in fs::read_dir("specs/bad").expect("tests run in the root of the package") {
        let file = entry.expect("the folder can be listed").path();
        assert!(file.with_extension("yaml").exists(), "{} has no spec", file.display());
    }
}

/// Completes an example: the keys that every spec needs are left out where they do not matter.
fn completed(example: &str) -> String {
    if example.starts_with("rare:") || example.starts_with(['%', '#']) {
        return example.to_owned();
    }
    let needed = [("rare:", "rare: 1\n"), ("name:", "name: example\n"), ("structures:", "structures: [nm14]\n")];
    let missing = needed.iter().filter(|(key, _)| !example.lines().any(|line| line.starts_with(key)));
    missing.map(|(_, line)| *line).chain([example]).collect()
}

#[test]
fn the_examples_of_each_code_show_it() {
    let mut wrong = Vec::new();
    for code in codes::all().filter(|code| !code.wrong.is_empty()) {
        for (example, expected) in [(code.wrong, vec![code.id]), (code.right, vec![])] {
            let source = Source { name: code.id.to_owned(), text: completed(example) };
            let found = faults(&source);
            if found.iter().map(|fault| fault.code.id).collect::<Vec<_>>() != expected {
                wrong.push(format!("{}: {example}{}", code.id, diag::render(&found, &source, false)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
