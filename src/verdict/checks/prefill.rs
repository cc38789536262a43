//! Check `prefill`: the structure was as full as the plan says, and all threads filled it.

use super::{Check, Grade, Info, Replied, Verdict, failures};
use crate::{stats::Law, verdict::Evidence};

/// Below this many keys a thread, one may have come too late to insert any.
const MIN_KEYS_PER_THREAD: u64 = 1000;

static INFO: Info = Info {
    name: "prefill",
    title: "Prefill",
    rule: "the structure holds exactly the planned keys when the window opens, inserted by every thread",
    threshold: "0 keys off; a thread without an insert warns from 1,000 keys a thread on",
    source: "Kharal and Brown 2022; the talk's harness",
    reason: "a structure that starts emptier has shorter paths, and one filled by a single thread has another memory \
             layout than one filled by all",
    remedy: "lengthen the time-out of the prefill or lower the number of keys; the trial is excluded from every number",
};

/// See [`INFO`].
pub(super) struct Prefill;

impl Check for Prefill {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let findings = |replied: &Replied| {
            let mut findings = failures(evidence, replied, Law::Prefill);
            findings.extend(idle_threads(replied));
            findings
        };
        let held = |n_judged| format!("reached exactly in all {n_judged} trials");
        Verdict::over_trials(&INFO, evidence, findings, held)
    }
}

fn idle_threads(replied: &Replied) -> Option<(Grade, String)> {
    let prefill = &replied.reply.prefill;
    let n_threads = prefill.per_thread.len();
    let n_idle = prefill.per_thread.iter().filter(|&&keys| keys == 0).count();
    let enough = prefill.target / (n_threads.max(1) as u64) >= MIN_KEYS_PER_THREAD;
    (enough && n_idle > 0).then(|| (Grade::Warn, format!("{n_idle} of {n_threads} threads inserted no key")))
}
