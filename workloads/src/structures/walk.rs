//! What every audit of an ordered structure has in common: counting keys, summing them, and judging their order.

use crate::protocol::Audit;

/// Broken invariants that are spelled out; the rest are only counted, so that a ruined structure of millions of keys
/// does not fill the memory with complaints.
const MAX_SPELLED: usize = 20;

/// An audit in progress.
pub(crate) struct Walk {
    audit: Audit,
    last: Option<u64>,
    n_violations: usize,
}

impl Walk {
    /// Starts with nothing seen.
    pub(crate) fn new() -> Self {
        Self { audit: Audit::default(), last: None, n_violations: 0 }
    }

    /// Counts the next key in order. `invariant` names the invariant that is broken when it does not exceed the last.
    pub(crate) fn key(&mut self, key: u64, invariant: &str) {
        if let Some(last) = self.last.filter(|&last| last >= key) {
            self.violation(format!("{invariant}: key {key} follows key {last}"));
        }
        self.last = Some(key);
        self.audit.size += 1;
        self.audit.key_sum = self.audit.key_sum.wrapping_add(key);
    }

    /// Begins another of several lists that are in order each for itself.
    pub(crate) fn next_list(&mut self) {
        self.last = None;
    }

    /// Complains unless `size` keys were seen.
    pub(crate) fn expect_size(&mut self, size: usize, invariant: &str) {
        let seen = self.audit.size;
        if size as u64 != seen {
            self.violation(format!("{invariant}: the structure counts {size} keys, the walk {seen}"));
        }
    }

    /// Notes a broken invariant.
    pub(crate) fn violation(&mut self, words: String) {
        self.n_violations += 1;
        if self.n_violations <= MAX_SPELLED {
            self.audit.violations.push(words);
        }
    }

    /// Returns what was found.
    pub(crate) fn finish(mut self) -> Audit {
        if self.n_violations > MAX_SPELLED {
            self.audit.violations.push(format!("and {} more", self.n_violations - MAX_SPELLED));
        }
        self.audit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complains_about_order_and_size() {
        let mut walk = Walk::new();
        for key in [3, 7, 7, 5, u64::MAX] {
            walk.key(key, "I1");
        }
        walk.expect_size(4, "I2");
        let audit = walk.finish();
        assert_eq!((audit.size, audit.key_sum), (5, 21));
        assert_eq!(
            audit.violations,
            ["I1: key 7 follows key 7", "I1: key 5 follows key 7", "I2: the structure counts 4 keys, the walk 5"]
        );
    }

    #[test]
    fn judges_the_order_of_each_list_for_itself() {
        let mut walk = Walk::new();
        for keys in [[3, 7], [5, 6], [2, 1]] {
            walk.next_list();
            keys.into_iter().for_each(|key| walk.key(key, "I1"));
        }
        let audit = walk.finish();
        assert_eq!((audit.size, audit.key_sum), (6, 24));
        assert_eq!(audit.violations, ["I1: key 1 follows key 2"]);
    }

    #[test]
    fn spells_only_the_first_complaints() {
        let mut walk = Walk::new();
        for _ in 0..100 {
            walk.key(1, "I1");
        }
        let audit = walk.finish();
        assert_eq!(audit.violations.len(), MAX_SPELLED + 1);
        assert_eq!(audit.violations.last().map(String::as_str), Some("and 79 more"));
    }
}
