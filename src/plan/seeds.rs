//! Seeds of trials and of orders.
//!
//! A seed is the first eight bytes, big-endian, of SHA-256 of the canonical JSON of what it belongs to; [`walk`] states
//! that in full. So anyone can recompute it with `sha256sum`, and no two purposes share a stream.

use sha2::{Digest, Sha256};

use super::{
    json::JsonWriter,
    model::{BlockKind, Plan, TrialId},
    walk,
};

impl Plan {
    /// Returns the seed of one trial, from which the worker derives those of its threads and phases.
    ///
    /// It is drawn from the plan's seed, the content of the trial's cell, the kind and the trial's index:
    /// `{"cell":{every parameter},"kind":"measure","purpose":"trial","seed":"1","trial":0}`, with the members `mode` and
    /// `probe` (its purpose) where it is of a probe.
    ///
    /// # Panics
    /// If the plan has no such cell.
    pub fn seed(&self, trial: TrialId) -> u64 {
        drawn_from(|writer| walk::trial_seed(self, trial, writer))
    }

    /// Returns the seed of the stream that shuffles one block:
    /// `{"kind":"measure","purpose":"order","seed":"1","trial":0}`.
    pub(super) fn order_seed(&self, kind: BlockKind, trial_idx: u32) -> u64 {
        drawn_from(|writer| walk::order_seed(self, kind, trial_idx, writer))
    }
}

fn drawn_from(content: impl FnOnce(&mut JsonWriter)) -> u64 {
    let mut writer = JsonWriter::default();
    content(&mut writer);
    let digest: [u8; 32] = Sha256::digest(&writer.bytes).into();
    u64::from_be_bytes(digest[..8].try_into().expect("eight bytes are eight bytes"))
}
