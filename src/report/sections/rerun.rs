//! Section `rerun`: the exact commands, what they cost, and the plan itself.

use super::{Context, Section};
use crate::report::{
    block::{Block, Definition},
    embed,
    number::{bytes, wall},
};

pub(super) const SECTION: Section = Section { id: "rerun", title: "How to rerun", build };

fn build(context: &Context) -> Vec<Block> {
    let evidence = context.evidence;
    let hash = evidence.hash.short();
    let commands = format!(
        "# the same plan, from its hash (where the plan is stored) or from this page\nrare rerun {hash}\nrare rerun report.html\n\n\
         # check that the records are whole\nrare verify {hash}"
    );
    let entry =
        |term: &str, text: String, code: bool| Definition { term: term.to_owned(), text, note: String::new(), code };
    let planned = evidence.plan.n_trials();
    let spent: u64 = evidence.trials.iter().map(|trial| trial.wall.0).sum();
    let expected = match evidence.trials.len() {
        0 => "not known: no trial ran".to_owned(),
        n_records => format!(
            "{} of trials, as on this machine",
            wall((u128::from(spent) * planned as u128 / n_records as u128).try_into().unwrap_or(u64::MAX))
        ),
    };
    let disk = evidence.record_bytes.map_or("not known".to_owned(), |size| format!("{} of records", bytes(size)));
    let peak = evidence.replied().map(|replied| replied.reply.memory.peak_bytes).max();
    let entries = vec![
        entry("plan hash", evidence.hash.to_string(), true),
        entry("experiment", evidence.name.to_owned(), true),
        entry("run", evidence.run_name.to_owned(), true),
        entry("trials", planned.to_string(), false),
        entry("expected time", expected, false),
        entry("disk", disk, false),
        entry("memory of the largest trial", peak.map_or("not known".to_owned(), bytes), false),
        entry(
            "reproduced when",
            "the checks pass and each comparison gives the same answer; absolute numbers differ between machines"
                .to_owned(),
            false,
        ),
    ];
    vec![
        Block::Code { language: "sh", text: commands },
        Block::Definitions { entries },
        embed::embed(evidence.plan_bytes, evidence.spec_text, evidence.environment),
    ]
}
