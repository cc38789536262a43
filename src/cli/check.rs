//! `rare check`: every mistake of every spec, with and without its quick block.

use std::path::Path;

use serde_json::{Value, json};

use super::{
    arguments::{CheckArguments, Format},
    console::Console,
    exit::{Exit, Failure},
    experiment,
};
use crate::{
    diag::{self, Diagnostic, Source},
    plan::Plan,
    spec, verdict,
};

/// Checks specs; prints diagnostics as text to standard error or as JSON to standard output.
pub(super) fn check(console: &Console, arguments: &CheckArguments) -> Result<Exit, Failure> {
    let mut exit = Exit::Valid;
    let mut documents = Vec::new();
    let json = arguments.format == Format::Json;
    for path in &arguments.specs {
        // A file that cannot be read must not hide the mistakes of the next one.
        let source = match experiment::read(path) {
            Ok(source) => source,
            Err(failure) => {
                exit = exit.max(failure.exit);
                console.failure(&failure);
                documents.extend(json.then(|| unreadable(path, &failure)));
                continue;
            }
        };
        let checked = examine(&source);
        exit = exit.max(checked.exit);
        if json {
            documents.push(document(&source, &checked));
        } else {
            print(console, &source, &checked);
        }
    }
    if json {
        console.write(serde_json::to_string_pretty(&documents).expect("a JSON value is always writable") + "\n");
    }
    Ok(exit)
}

/// One spec for an editor.
fn document(source: &Source, checked: &Checked) -> Value {
    json!({
        "file": source.name,
        "plan": checked.plan,
        "diagnostics": diag::to_json(&checked.diagnostics, source),
        "refused": checked.refused,
    })
}

/// A file that could not be read, in the same shape.
fn unreadable(path: &Path, failure: &Failure) -> Value {
    json!({ "file": path.display().to_string(), "plan": null, "diagnostics": [], "refused": failure.what })
}

/// What a check found in one spec.
struct Checked {
    diagnostics: Vec<Diagnostic>,
    /// Why the plan is refused although the spec is right.
    refused: Option<String>,
    /// Hash of the plan if all is well.
    plan: Option<String>,
    exit: Exit,
}

fn examine(source: &Source) -> Checked {
    let mut full = plan_of(source, false);
    // The quick variant is checked too, so that `--quick` never fails on a spec that passed; what both share is said once.
    let quick = plan_of(source, true);
    full.diagnostics
        .extend(quick.diagnostics.into_iter().filter(|found| !full.diagnostics.contains(found)).collect::<Vec<_>>());
    full.refused = full.refused.or(quick.refused);
    full.exit = full.exit.max(quick.exit);
    full
}

fn plan_of(source: &Source, quick: bool) -> Checked {
    let compiled = match spec::compile(source, quick) {
        Ok(compiled) => compiled,
        Err(diagnostics) => return Checked { diagnostics, refused: None, plan: None, exit: Exit::Wrong },
    };
    let mut checked = Checked { diagnostics: compiled.warnings, refused: None, plan: None, exit: Exit::Valid };
    match Plan::compile(&compiled.spec, verdict::probes) {
        Ok(plan) => checked.plan = Some(plan.hash().to_string()),
        Err(error) => {
            let mistakes = error.diagnostics();
            checked.exit = if mistakes.is_empty() { Exit::OverLimit } else { Exit::Wrong };
            checked.refused = mistakes.is_empty().then(|| error.to_string());
            checked.diagnostics.extend(mistakes);
        }
    }
    checked
}

fn print(console: &Console, source: &Source, checked: &Checked) {
    if !checked.diagnostics.is_empty() {
        console.diagnostics(&checked.diagnostics, source);
    }
    match (&checked.refused, &checked.plan) {
        (Some(why), _) => console.alert(format_args!("error: {}: {why}", source.name)),
        (None, Some(hash)) if checked.exit == Exit::Valid => {
            console.line(format_args!("{}: ok, plan {}", source.name, &hash[..12]))
        }
        _ => console.alert(format_args!("{}: {}", source.name, experiment::count(&checked.diagnostics))),
    }
}
