//! Keys and children of an internal node of a relaxed (a,b)-tree in the making, and what repairs do to them.
//!
//! The shape is that of Larsen and Fagerberg, Efficient Rebalancing of B-trees with Relaxed Balance, 1996, with the a and b
//! of Brown's trees. It knows nothing of threads.

mod visit;

use std::{hint::select_unpredictable, ops::Range};

pub(super) use self::visit::Visit;

/// The a of the trees: fewest children or keys of a node other than the root, at rest.
pub(super) const MIN_SIZE: usize = 2;
/// The b of the trees: most children or keys of a node.
pub(super) const MAX_SIZE: usize = 11;

/// Returns the position of the child to which `key` belongs, given a node's keys, filled up with the largest key.
///
/// All keys are compared, without branches, which would be mispredicted at every node; each selects a position, because a
/// sum of comparisons is compiled to a far longer chain of vector instructions. The largest key goes where the second
/// largest goes: the right half of a division has two keys or more, so its first one, which comes between the halves, is
/// not the largest; only keys that fill up are.
#[inline]
pub(super) fn side(keys: &[u64; MAX_SIZE - 1], key: u64) -> usize {
    let key = key.min(u64::MAX - 1);
    keys.iter().enumerate().fold(0, |side, (idx, &other)| select_unpredictable(other <= key, idx + 1, side))
}

/// Children and the keys between them; room for one child too many.
#[derive(Clone)]
pub(super) struct Fan<W> {
    /// Child `i` has the keys below `keys[i]` that child `i - 1` has not.
    keys: [u64; MAX_SIZE],
    children: [W; MAX_SIZE + 1],
    n_children: usize,
}

impl<W: Copy> Fan<W> {
    pub(super) fn of_one(child: W) -> Self {
        Self { keys: [0; MAX_SIZE], children: [child; MAX_SIZE + 1], n_children: 1 }
    }

    /// Makes the fan of a node with these keys, given its children by position.
    pub(super) fn of(keys: &[u64], child: impl Fn(usize) -> W) -> Self {
        let mut fan = Self::of_one(child(0));
        fan.keys[..keys.len()].copy_from_slice(keys);
        for side in 1..=keys.len() {
            fan.children[side] = child(side);
        }
        fan.n_children = keys.len() + 1;
        fan
    }

    pub(super) fn n_children(&self) -> usize {
        self.n_children
    }

    /// Returns the key between a child and the next.
    pub(super) fn key(&self, side: usize) -> u64 {
        self.keys[side]
    }

    /// Returns the keys between these children.
    pub(super) fn keys(&self, sides: Range<usize>) -> &[u64] {
        &self.keys[sides.start..sides.end - 1]
    }

    pub(super) fn child(&self, side: usize) -> W {
        self.children[side]
    }

    /// Puts `right` beside a child, which keeps the keys below `key`.
    pub(super) fn split(&mut self, side: usize, key: u64, right: W) {
        self.keys.copy_within(side..self.n_children - 1, side + 1);
        self.keys[side] = key;
        self.children.copy_within(side + 1..self.n_children, side + 2);
        self.children[side + 1] = right;
        self.n_children += 1;
    }

    /// Puts the two children of `fork` in the place of a child.
    pub(super) fn absorb(&mut self, side: usize, fork: &Self) {
        self.children[side] = fork.children[0];
        self.split(side, fork.keys[0], fork.children[1]);
    }

    /// Puts one node in the place of a child and the next.
    pub(super) fn join(&mut self, side: usize, joined: W) {
        self.children[side] = joined;
        self.keys.copy_within(side + 1..self.n_children - 1, side);
        self.children.copy_within(side + 2..self.n_children, side + 1);
        self.n_children -= 1;
    }

    /// Puts two nodes in the place of a child and the next.
    pub(super) fn redivide(&mut self, side: usize, left: W, key: u64, right: W) {
        self.children[side] = left;
        self.keys[side] = key;
        self.children[side + 1] = right;
    }

    /// Appends the children of a right neighbour, which has the keys from `key` on.
    pub(super) fn append(&mut self, key: u64, right: &Self) {
        self.keys[self.n_children - 1] = key;
        self.keys[self.n_children..][..right.n_children - 1].copy_from_slice(&right.keys[..right.n_children - 1]);
        self.children[self.n_children..][..right.n_children].copy_from_slice(&right.children[..right.n_children]);
        self.n_children += right.n_children;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(fan: &Fan<u8>) -> (Vec<u64>, Vec<u8>) {
        (fan.keys(0..fan.n_children()).to_vec(), (0..fan.n_children()).map(|side| fan.child(side)).collect())
    }

    #[test]
    fn every_key_has_its_side() {
        let mut keys = [u64::MAX; MAX_SIZE - 1];
        keys[..3].copy_from_slice(&[10, 20, u64::MAX - 1]);
        let sides = [0, 9, 10, 11, 20, u64::MAX - 2, u64::MAX - 1, u64::MAX].map(|key| side(&keys, key));
        assert_eq!(sides, [0, 0, 1, 1, 2, 2, 3, 3]);
        assert_eq!((side(&[5; MAX_SIZE - 1], 5), side(&[5; MAX_SIZE - 1], 4)), (MAX_SIZE - 1, 0));
    }

    #[test]
    fn children_and_keys_move_together() {
        let mut fan = Fan::of(&[10, 20], |side| side as u8);
        fan.split(1, 15, 7);
        assert_eq!(shown(&fan), (vec![10, 15, 20], vec![0, 1, 7, 2]));
        fan.join(0, 8);
        assert_eq!(shown(&fan), (vec![15, 20], vec![8, 7, 2]));
        fan.absorb(2, &Fan::of(&[30], |side| 20 + side as u8));
        assert_eq!(shown(&fan), (vec![15, 20, 30], vec![8, 7, 20, 21]));
        fan.redivide(0, 3, 12, 4);
        assert_eq!(shown(&fan), (vec![12, 20, 30], vec![3, 4, 20, 21]));
        fan.append(40, &Fan::of(&[50], |side| 30 + side as u8));
        assert_eq!(shown(&fan), (vec![12, 20, 30, 40, 50], vec![3, 4, 20, 21, 30, 31]));
        fan.join(4, 9);
        assert_eq!(shown(&fan), (vec![12, 20, 30, 40], vec![3, 4, 20, 21, 9]));
        assert_eq!(fan.keys(1..4), [20, 30]);
    }
}
