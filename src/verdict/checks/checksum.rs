//! Check `checksum`: no key is lost, doubled or made up.

use super::{Check, Info, Verdict, failures};
use crate::{stats::Law, verdict::Evidence};

static INFO: Info = Info {
    name: "checksum",
    title: "Key checksums",
    rule: "size and key sum of the structure's own walk equal the prefill plus effective inserts minus effective \
           removes, and no invariant is broken",
    threshold: "0 keys and a key sum difference of 0, in every trial",
    source: "the talk's sixth sanity check",
    reason: "a structure that loses or doubles keys does other work than the one it is compared with",
    remedy: "read the fault, run the trial alone under `threads: 1`, then look for a race in the structure; the trial \
             is excluded from every number",
};

/// See [`INFO`].
pub(super) struct Checksum;

impl Check for Checksum {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let held = |n_judged| format!("size and key sum agree before and after the window in all {n_judged} trials");
        Verdict::over_trials(&INFO, evidence, |replied| failures(evidence, replied, Law::Checksum), held)
    }
}
