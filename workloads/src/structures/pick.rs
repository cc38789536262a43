//! One of two children, without waiting for the comparison that decides which.
//!
//! A step of a search tree reads the key of a node and then a link. By an index the load of the link waits for the
//! comparison, and so for another load before; by a branch half of the guesses are wrong. Loading both links beside the
//! key, which shares their cache line, and picking one by a conditional move leaves one load and two short instructions
//! between a node and the next.

use std::hint;

/// Returns the first of two links that were loaded, or with `is_right` the second.
#[inline]
pub(super) fn pick<L>(is_right: bool, [left, right]: [L; 2]) -> L {
    hint::select_unpredictable(is_right, right, left)
}
