//! From the path of a spec to its plan, with everything that can be wrong on the way.

use std::{fs, path::Path};

use super::{
    console::Console,
    exit::{Exit, Failure},
};
use crate::{
    diag::{self, Diagnostic, Source},
    plan::{Plan, PlanHash},
    spec::{self, Spec},
};

/// A spec and the plan it compiles to.
pub(super) struct Experiment {
    /// The file as read.
    pub source: Source,
    /// The compiled spec.
    pub spec: Spec,
    /// Its plan.
    pub plan: Plan,
    /// The hash of the plan.
    pub hash: PlanHash,
}

impl Experiment {
    /// Reads, checks and plans a spec; warnings and mistakes go to the console.
    pub fn load(console: &Console, path: &Path, quick: bool) -> Result<Self, Failure> {
        let source = read(path)?;
        let compiled = spec::compile(&source, quick).map_err(|mistakes| refuse(console, &mistakes, &source))?;
        if !compiled.warnings.is_empty() {
            console.alert(diag::render(&compiled.warnings, &source, console.color).trim_end());
        }
        let plan = Plan::compile(&compiled.spec).map_err(|error| match error.diagnostics() {
            over if over.is_empty() => Failure::from_error(Exit::OverLimit, &error),
            mistakes => refuse(console, &mistakes, &source),
        })?;
        // What the compiler let pass as possible on some machine may be over a limit on this one.
        let estimate = plan.estimate(super::n_cpus());
        estimate.check(&compiled.spec.limits).map_err(|error| Failure::from_error(Exit::OverLimit, &error))?;
        let hash = plan.hash();
        Ok(Self { source, spec: compiled.spec, plan, hash })
    }
}

/// Reads a spec file.
pub(super) fn read(path: &Path) -> Result<Source, Failure> {
    let cannot = |why: &dyn std::fmt::Display| {
        Failure::new(Exit::Wrong, format!("cannot read spec `{}`: {why}", path.display()))
    };
    let bytes = fs::read(path).map_err(|error| cannot(&error))?;
    let text = String::from_utf8(bytes)
        .map_err(|error| cannot(&format_args!("byte {} is not UTF-8", error.utf8_error().valid_up_to())))?;
    Ok(Source { name: path.display().to_string(), text })
}

fn refuse(console: &Console, mistakes: &[Diagnostic], source: &Source) -> Failure {
    console.alert(diag::render(mistakes, source, console.color).trim_end());
    let n = mistakes.len();
    Failure::new(
        Exit::Wrong,
        format!("`{}` has {n} mistake{}; nothing ran", source.name, if n == 1 { "" } else { "s" }),
    )
}
