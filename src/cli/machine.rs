//! `rare doctor`: what this machine can and cannot honour.

use super::{
    arguments::StoreArguments,
    console::Console,
    exit::{Exit, Failure},
};
use crate::host::{
    Machine,
    doctor::{self, Status},
};

/// Prints every finding with its advice.
pub(super) fn doctor(console: &Console, arguments: &StoreArguments) -> Result<Exit, Failure> {
    let findings = doctor::examine(&Machine { reports: Some(&arguments.reports), ..Machine::here() });
    let width = findings.iter().map(|finding| finding.topic.len()).max().unwrap_or(0);
    for finding in &findings {
        console.line(format_args!("{:6}  {:width$}  {}", word(finding.status), finding.topic, finding.what));
        if let Some(advice) = &finding.advice {
            console.line(format_args!("{:6}  {:width$}  = help: {advice}", "", ""));
        }
    }
    Ok(Exit::Valid)
}

fn word(status: Status) -> &'static str {
    match status {
        Status::Good => "good",
        Status::Note => "note",
        Status::Warn => "warn",
        Status::Cannot => "cannot",
    }
}
