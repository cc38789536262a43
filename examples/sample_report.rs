//! Renders a report of a run that never happened: to look at templates without measuring anything, and to time it.
//!
//! `cargo run --release --example sample_report -- FOLDER [usual|small|quick|hostile|bad|huge]`

#![allow(clippy::unwrap_used, reason = "a tool for those who work on reports")]

use std::{fs, path::PathBuf, time::Instant};

use rare::report;

#[path = "../tests/report_common/mod.rs"]
mod report_common;

use report_common::{Case, SMALL, USUAL};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("usage: sample_report FOLDER [KIND]"));
    let kind = arguments.next().unwrap_or_else(|| "usual".to_owned());
    let case = match kind.as_str() {
        "usual" => {
            let mut case = Case::new(&USUAL);
            case.claim("nm14", "crossbeam-skiplist", 0, Vec::new());
            case.claim("nm14", "harris01", 500, Vec::new());
            case
        }
        "small" => Case::new(&SMALL),
        "quick" => {
            let mut case = Case::new(&SMALL);
            case.quick = true;
            case
        }
        "hostile" => report_common::hostile(),
        "bad" => report_common::bad(),
        "huge" => report_common::huge(),
        other => panic!("unknown kind `{other}`"),
    };
    let started = Instant::now();
    let summary = case.summary();
    let summarised = started.elapsed();
    let started = Instant::now();
    let rendered = report::render(&case.evidence(&summary), None).unwrap();
    let took = started.elapsed();
    fs::create_dir_all(folder.join("figures")).unwrap();
    fs::write(folder.join("report.html"), &rendered.html).unwrap();
    fs::write(folder.join("report.md"), &rendered.markdown).unwrap();
    fs::write(folder.join("data.csv"), &rendered.csv).unwrap();
    for (name, svg) in &rendered.figures {
        fs::write(folder.join("figures").join(name), svg).unwrap();
    }
    println!(
        "{} records: summarised in {summarised:.2?}, rendered in {took:.2?}; page {} kB, Markdown {} kB",
        case.trials.len(),
        rendered.html.len() / 1000,
        rendered.markdown.len() / 1000
    );
}
