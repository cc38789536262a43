//! From the path of a spec to its plan, with everything that can be wrong on the way.

use std::{fs::File, io::Read, path::Path};

use super::{
    console::Console,
    exit::{Exit, Failure},
};
use crate::{
    diag::{Diagnostic, Severity, Source},
    plan::{Plan, PlanHash},
    spec::{self, Spec},
    verdict,
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
        Self::compile(console, read(path)?, quick)
    }

    /// Checks and plans the text of a spec; warnings and mistakes go to the console.
    pub fn compile(console: &Console, source: Source, quick: bool) -> Result<Self, Failure> {
        let compiled = spec::compile(&source, quick).map_err(|mistakes| refuse(console, &mistakes, &source))?;
        if !compiled.warnings.is_empty() {
            console.diagnostics(&compiled.warnings, &source);
        }
        if quick && changes_nothing(&source, &compiled.spec) {
            console.alert(format_args!("`--quick` changes nothing: `{}` has no `quick` block", source.name));
        }
        let plan = Plan::compile(&compiled.spec, verdict::probes).map_err(|error| match error.diagnostics() {
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

/// Tells whether a quick spec is the whole one.
fn changes_nothing(source: &Source, quick: &Spec) -> bool {
    spec::compile(source, false).is_ok_and(|whole| Spec { quick: true, ..whole.spec } == *quick)
}

/// No more of a file is read than this, in bytes: what is larger than a spec may be is refused by the compiler with its
/// size, and a device such as `/dev/zero` has no end.
const MAX_READ: u64 = 16 << 20;

/// Reads a spec file.
pub(super) fn read(path: &Path) -> Result<Source, Failure> {
    let cannot = |why: &dyn std::fmt::Display| {
        Failure::new(Exit::Wrong, format!("cannot read spec `{}`: {why}", path.display()))
    };
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_READ + 1).read_to_end(&mut bytes))
        .map_err(|error| cannot(&error).help("name a spec: a YAML file such as `specs/bst.yaml`"))?;
    if bytes.len() as u64 > MAX_READ {
        return Err(cannot(&"it is far too large to be one").help("name a spec: a YAML file of at most 1 MB"));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        cannot(&format_args!("byte {} is not UTF-8", error.utf8_error().valid_up_to()))
            .help("save the file as UTF-8 text")
    })?;
    Ok(Source { name: path.display().to_string(), text })
}

fn refuse(console: &Console, mistakes: &[Diagnostic], source: &Source) -> Failure {
    console.diagnostics(mistakes, source);
    Failure::new(Exit::Wrong, format!("`{}` has {}; nothing ran", source.name, count(mistakes)))
}

/// Says how many mistakes there are.
pub(super) fn count(diagnostics: &[Diagnostic]) -> String {
    let n = diagnostics.iter().filter(|diagnostic| diagnostic.severity() == Severity::Error).count();
    format!("{n} mistake{}", if n == 1 { "" } else { "s" })
}
