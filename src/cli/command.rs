//! Commands as the user types them again: to go on, to repeat, to write a report.

use std::{ffi::OsStr, path::Path};

use super::arguments::{MakeArguments, ReportingArguments, StoreArguments};
use crate::store::{PlanFolder, Store};

/// Returns `rare make …` or `rare run …` as it was given, but for what must not be repeated: `--fresh` would begin anew
/// instead of going on.
pub(super) fn make(verb: &str, arguments: &MakeArguments) -> String {
    let quick = if arguments.quick { " --quick" } else { "" };
    let retry = if arguments.retry_failed { " --retry-failed" } else { "" };
    format!("rare {verb}{quick}{retry}{} {}", options(&arguments.reporting), quoted(arguments.spec.as_os_str()))
}

/// Returns `rare VERB PLAN` with the options that find its store and templates again.
pub(super) fn of_plan(verb: &str, plan: &str, reporting: &ReportingArguments) -> String {
    format!("rare {verb}{} {}", options(reporting), quoted(OsStr::new(plan)))
}

/// Returns by what a plan of a store is called: its short hash, with its name where two names share a plan.
pub(super) fn reference(reports: &Path, folder: &PlanFolder) -> String {
    let is_unique = Store::open(reports).and_then(|store| store.find(folder.short())).is_ok();
    if is_unique { folder.short().to_owned() } else { format!("{}/{}", folder.name(), folder.short()) }
}

/// The options that differ from their defaults, each with a space before it.
fn options(reporting: &ReportingArguments) -> String {
    let reports = &reporting.store.reports;
    let reports = (reports != Path::new(StoreArguments::DEFAULT)).then_some(("reports", reports));
    let templates = reporting.templates.as_ref().map(|folder| ("templates", folder));
    let given = reports.into_iter().chain(templates);
    given.map(|(name, path)| format!(" --{name} {}", quoted(path.as_os_str()))).collect()
}

/// Writes a word so that a shell reads it as it is.
pub(super) fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "_-./+:,@%=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_shell() {
        for (word, expected) in [
            ("specs/bst.yaml", "specs/bst.yaml"),
            ("a b.yaml", "'a b.yaml'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
            ("$(x)", "'$(x)'"),
            ("ré", "ré"),
        ] {
            assert_eq!(quoted(OsStr::new(word)), expected);
        }
    }
}
