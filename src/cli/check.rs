//! `rare check`: every mistake of every spec, with and without its quick block.

use serde_json::json;

use super::{
    arguments::{CheckArguments, Format},
    console::Console,
    exit::{Exit, Failure},
    experiment,
};
use crate::{
    diag::{self, Diagnostic, Source},
    plan::Plan,
    spec,
};

/// Checks specs; prints diagnostics as text to standard error or as JSON to standard output.
pub(super) fn check(console: &Console, arguments: &CheckArguments) -> Result<Exit, Failure> {
    let mut exit = Exit::Valid;
    let mut documents = Vec::new();
    for path in &arguments.specs {
        let source = experiment::read(path)?;
        let checked = examine(&source);
        exit = exit.max(checked.exit);
        match arguments.format {
            Format::Json => documents.push(json!({
                "file": source.name,
                "plan": checked.plan,
                "diagnostics": diag::to_json(&checked.diagnostics, &source),
                "refused": checked.refused,
            })),
            Format::Text => print(console, &source, &checked),
        }
    }
    if arguments.format == Format::Json {
        console.line(serde_json::to_string_pretty(&documents).expect("a JSON value is always writable"));
    }
    Ok(exit)
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
    match Plan::compile(&compiled.spec) {
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
        console.alert(diag::render(&checked.diagnostics, source, console.color).trim_end());
    }
    match (&checked.refused, &checked.plan) {
        (Some(why), _) => console.alert(format_args!("error: {}: {why}", source.name)),
        (None, Some(hash)) if checked.exit == Exit::Valid => {
            console.line(format_args!("{}: ok, plan {}", source.name, &hash[..12]))
        }
        _ => {
            let n =
                checked.diagnostics.iter().filter(|diagnostic| diagnostic.severity() == diag::Severity::Error).count();
            console.alert(format_args!("{}: {n} mistake{}", source.name, if n == 1 { "" } else { "s" }));
        }
    }
}
