//! `rare doctor`: what this machine can and cannot honour.

use super::{
    arguments::StoreArguments,
    console::Console,
    exit::{Exit, Failure},
};
use crate::{
    host::{
        Machine,
        doctor::{self, Finding, Status},
    },
    run::Worker,
};

/// Prints every finding with its advice.
pub(super) fn doctor(console: &Console, arguments: &StoreArguments) -> Result<Exit, Failure> {
    let mut findings = doctor::examine(&Machine { reports: Some(&arguments.reports), ..Machine::here() });
    findings.push(worker());
    let width = findings.iter().map(|finding| finding.topic.len()).max().unwrap_or(0);
    for finding in &findings {
        console.line(format_args!("{:6}  {:width$}  {}", word(finding.status), finding.topic, finding.what));
        if let Some(advice) = &finding.advice {
            console.line(format_args!("{:6}  {:width$}  = help: {advice}", "", ""));
        }
    }
    Ok(Exit::Valid)
}

/// Tells whether the program that runs trials is there; looking does not build it.
fn worker() -> Finding {
    let topic = "worker";
    match Worker::present() {
        Some(worker) => {
            let what = format!("{} belongs to this build", worker.path.display());
            Finding { topic, status: Status::Good, what, advice: None }
        }
        None => Finding {
            topic,
            status: Status::Note,
            what: "there is none that belongs to this build".to_owned(),
            advice: Some("the first run builds it with `cargo`, where the source of this build is still in its place"),
        },
    }
}

fn word(status: Status) -> &'static str {
    match status {
        Status::Good => "good",
        Status::Note => "note",
        Status::Warn => "warn",
        Status::Cannot => "cannot",
    }
}
