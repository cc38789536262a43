//! Check `fairness`: no thread starves.
//!
//! Trials of probes are left to whoever asks for them: under valgrind threads take turns, and under extreme contention
//! one keeps what it has.

use super::{Check, Grade, Info, Replied, Verdict};
use crate::{plan::BlockKind, verdict::Evidence};

/// Threads with equal work and a CPU each do about equally many operations; one that does less than half of another
/// waits for a lock, or for a CPU.
const WARN_RATIO: f64 = 0.5;

static INFO: Info = Info {
    name: "fairness",
    title: "Fairness among threads",
    rule: "every thread completes operations, and none far fewer than another",
    threshold: "0 operations fails; below half of the busiest thread's operations warns",
    source: "harnesses that drop a starved thread from the minimum and the average",
    reason: "a high sum can hide a thread that made no progress",
    remedy: "leave every thread a CPU of its own; if it stays, the structure or its lock is unfair: say so with the \
             number",
};

/// See [`INFO`].
pub(super) struct Fairness;

impl Check for Fairness {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let ratios = || evidence.replied().filter_map(|replied| ratio(&replied));
        let held = |n_judged: usize| match ratios().min_by(f64::total_cmp) {
            Some(least) => {
                format!("the least busy thread of all {n_judged} trials did {:.0} % of the busiest", least * 100.0)
            }
            None => format!("one thread a trial in all {n_judged} trials"),
        };
        Verdict::over_trials(&INFO, evidence, findings, held)
    }
}

/// Operations of the least busy thread over those of the busiest; `None` for one thread, and in a trial of a probe.
pub(crate) fn ratio(replied: &Replied) -> Option<f64> {
    if replied.trial.trial.kind == BlockKind::Probe {
        return None;
    }
    let operations = || replied.reply.threads.iter().map(|thread| thread.operations.attempted());
    let (least, most) = (operations().min()?, operations().max()?);
    (replied.reply.threads.len() > 1 && most > 0).then(|| least as f64 / most as f64)
}

fn findings(replied: &Replied) -> Vec<(Grade, String)> {
    if replied.trial.trial.kind == BlockKind::Probe {
        return Vec::new();
    }
    let idle = |(_, thread): &(usize, &rare_workloads::protocol::ThreadReply)| thread.operations.attempted() == 0;
    let mut findings: Vec<(Grade, String)> = replied
        .reply
        .threads
        .iter()
        .enumerate()
        .filter(idle)
        .map(|(thread_idx, _)| (Grade::Fail, format!("thread {thread_idx} completed no operation")))
        .collect();
    if let Some(ratio) = ratio(replied).filter(|&ratio| ratio < WARN_RATIO && findings.is_empty()) {
        let text = format!("the least busy thread did {:.0} % of the busiest one's operations", ratio * 100.0);
        findings.push((Grade::Warn, text));
    }
    findings
}
