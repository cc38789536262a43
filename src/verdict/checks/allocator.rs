//! Check `allocator`: the allocator on the label is the one that served the process.

use super::{Check, Grade, Info, Replied, Verdict, failures};
use crate::{stats::Law, verdict::Evidence};

static INFO: Info = Info {
    name: "allocator",
    title: "Allocator",
    rule: "the allocator that served the worker is the one asked for, and a preloaded library is mapped with the \
           content asked for",
    threshold: "same name, same SHA-256",
    source: "the talk's system parameters; the loader only warns of a missing preload and goes on with another",
    reason: "numbers under another allocator's name; the allocator can decide which structure leads",
    remedy: "run `rare doctor`, check the path of the preload; the trial is excluded from every number",
};

/// See [`INFO`].
pub(super) struct Allocator;

impl Check for Allocator {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let findings = |replied: &Replied| {
            let mut findings = failures(evidence, replied, Law::Allocator);
            if replied.reply.allocator.evidence.is_empty() {
                findings.push((Grade::Fail, "the worker names an allocator without a proof".to_owned()));
            }
            findings
        };
        let held = |n_judged| format!("proven by the worker in all {n_judged} trials");
        Verdict::over_trials(&INFO, evidence, findings, held)
    }
}
