//! Walking a relaxed (a,b)-tree alone: where a subtree is, and what must hold of the keys in its root.

use std::fmt;

use crate::structures::walk::Walk;

/// A subtree to visit, which `link` leads to.
#[derive(Clone, Copy)]
pub(in crate::structures) struct Visit<L> {
    pub(in crate::structures) link: L,
    /// The keys it may hold: from `low` on, below `high`; `None` where unbounded.
    low: u64,
    high: Option<u64>,
    /// Untagged nodes above it.
    pub(in crate::structures) depth: usize,
    pub(in crate::structures) is_root: bool,
}

impl<L> Visit<L> {
    /// The whole tree.
    pub(in crate::structures) fn root(link: L) -> Self {
        Self { link, low: 0, high: None, depth: 0, is_root: true }
    }

    /// Returns the visits of the children from left to right, given the keys between them.
    pub(in crate::structures) fn children(
        &self,
        keys: &[u64],
        is_tagged: bool,
        child: impl Fn(usize) -> L,
    ) -> impl DoubleEndedIterator<Item = Self> {
        (0..=keys.len()).map(move |side| Self {
            link: child(side),
            low: if side == 0 { self.low } else { keys[side - 1] },
            high: keys.get(side).copied().or(self.high),
            depth: self.depth + usize::from(!is_tagged),
            is_root: false,
        })
    }

    /// Complains unless the keys of an internal node are as they must be, which both trees call I1 and I2.
    pub(in crate::structures) fn expect_routes(&self, keys: &[u64], walk: &mut Walk) {
        if !keys.is_sorted_by(|one, next| one < next) {
            walk.violation(format!("I1: the keys of {self} do not increase"));
        }
        if keys.last() == Some(&u64::MAX) {
            walk.violation(format!("I1: the largest key is one of those between the children of {self}"));
        }
        for &key in keys {
            self.expect_in_range(key, walk);
        }
    }

    /// Complains unless the node may hold the key, which both trees call I2.
    pub(in crate::structures) fn expect_in_range(&self, key: u64, walk: &mut Walk) {
        if key < self.low || self.high.is_some_and(|high| key >= high) {
            walk.violation(format!("I2: {self} holds key {key}, and may not from {:?} on", self.high));
        }
    }
}

impl<L> fmt::Display for Visit<L> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the node of keys from {} on at depth {}", self.low, self.depth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(check: impl Fn(&mut Walk)) -> Vec<String> {
        let mut walk = Walk::new();
        check(&mut walk);
        walk.finish().violations
    }

    #[test]
    fn children_divide_the_range() {
        let root = Visit::root(9);
        let children: Vec<_> = root.children(&[10, 20], true, |side| side).collect();
        assert_eq!(children.iter().map(|child| child.link).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(children[1].children(&[], false, |_| 0).next().map(|below| below.depth), Some(1), "one is tagged");
        let held = |child: &Visit<usize>| {
            [0, 9, 10, 19, 20, u64::MAX].map(|key| complaints(|walk| child.expect_in_range(key, walk)).is_empty())
        };
        assert_eq!(held(&children[0]), [true, true, false, false, false, false]);
        assert_eq!(held(&children[1]), [false, false, true, true, false, false]);
        assert_eq!(held(&children[2]), [false, false, false, false, true, true]);
    }

    #[test]
    fn wrong_routes_are_seen() {
        let root = Visit::root(0);
        let of = |keys: &[u64]| complaints(|walk| root.expect_routes(keys, walk));
        assert!(of(&[1, 2]).is_empty());
        assert_eq!(of(&[2, 2]), ["I1: the keys of the node of keys from 0 on at depth 0 do not increase"]);
        let largest =
            "I1: the largest key is one of those between the children of the node of keys from 0 on at depth 0";
        assert_eq!(of(&[u64::MAX]), [largest]);
    }
}
