//! Check `pinning`: each thread ran on the CPU it was to run on, by the kernel's word.

use super::{Check, Info, Verdict, failures};
use crate::{stats::Law, verdict::Evidence};

static INFO: Info = Info {
    name: "pinning",
    title: "Thread pinning",
    rule: "the kernel allows each pinned thread exactly the CPU asked for, it was there at start and end, and no two \
           threads share one",
    threshold: "0 threads elsewhere",
    source: "the talk's system parameters; Gramoli 2015",
    reason: "pinning alone turned the talk's opening comparison round; an echo of the request proves nothing",
    remedy: "run `rare doctor` and look at the container's CPU set; the trial is excluded from every number",
};

/// See [`INFO`].
pub(super) struct Pinning;

impl Check for Pinning {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let n_pinned =
            evidence.replied().filter(|replied| replied.trial.request.cpus.iter().any(Option::is_some)).count();
        let held = |n_judged: usize| match n_pinned {
            0 => format!("threads float in all {n_judged} trials, as the plan says: no pin to prove"),
            _ if n_pinned == n_judged => format!("read back from the kernel in all {n_judged} trials"),
            _ => format!(
                "read back from the kernel in {n_pinned} trials; threads float in {}, as planned",
                n_judged - n_pinned
            ),
        };
        Verdict::over_trials(&INFO, evidence, |replied| failures(evidence, replied, Law::Pinning), held)
    }
}
