//! What skip lists share: nodes that are allocated exactly as tall as they are, and the drawing of heights.
//!
//! Must not know when a node may be followed or freed: that is each structure's protocol. Here is only how.
//!
//! A node is one allocation: a header and `height` links behind it. Pointers to nodes are thin, and the type of the
//! allocation, [`Tower`] of that height, is found again from the height when the node is freed, as
//! reclamation schemes expect.
//! Source of the heights: Pugh, Skip Lists: A Probabilistic Alternative to Balanced Trees, CACM 33(6), 1990.

mod alone;
mod levels;
mod link;

use std::{marker::PhantomData, mem, ptr::NonNull};

pub(super) use self::{
    alone::{Names, audit, free},
    levels::{Heights, Levels, MAX_LEVEL},
    link::{Link, Next},
};
use crate::{nodes, reclaim::AnyGuard};

/// Most links of a node. With one node in four on the next level it suits 4^16 keys, more than any memory holds.
pub(super) const TALLEST: usize = 16;

/// What every node begins with. `S` is what the structure keeps in it besides.
#[repr(C)]
pub(super) struct Node<S> {
    key: u64,
    /// Stored so that nodes have the size of a dictionary's.
    value: u64,
    state: S,
    height: u8,
}

/// A whole node with `N` links.
#[repr(C)]
pub(super) struct Tower<S, const N: usize> {
    node: Node<S>,
    links: [Next<S>; N],
}

/// The node that is before all keys and taller than any: the start of every level. Its key is never read.
pub(super) struct Head<S>(Tower<S, TALLEST>);

/// A node that stays allocated for `'g`.
pub(super) struct NodeRef<'g, S> {
    node: NonNull<Node<S>>,
    life: PhantomData<&'g Node<S>>,
}

/// A node that no other thread can see yet: freed when dropped, so that no path of an insertion leaks it.
pub(super) struct NewNode<S>(NonNull<Node<S>>);

/// Where a search came by on one level.
pub(super) struct Step<'g, S> {
    /// The last node with a smaller key, or the head.
    pub(super) left: NodeRef<'g, S>,
    /// What the link of `left` held.
    pub(super) right: Link<'g, S>,
}

/// Where a search came by on each level.
pub(super) struct Path<'g, S> {
    steps: [Step<'g, S>; TALLEST],
    n_levels: usize,
}

/// Runs `$body` with the constant `$n` equal to `$height`.
macro_rules! with_height {
    ($height:expr, $n:ident => $body:expr) => {
        with_height!($height, $n => $body; 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16)
    };
    ($height:expr, $n:ident => $body:expr; $($each:literal)*) => {
        match $height {
            $($each => {
                const $n: usize = $each;
                $body
            })*
            height => unreachable!("a node has 1 to {TALLEST} links, not {height}"),
        }
    };
}

impl<S> Head<S> {
    pub(super) fn new(state: S) -> Self {
        Self(Tower::new(0, 0, state))
    }

    #[inline]
    pub(super) fn node(&self) -> NodeRef<'_, S> {
        NodeRef { node: NonNull::from(&self.0).cast(), life: PhantomData }
    }
}

impl<S, const N: usize> Tower<S, N> {
    fn new(key: u64, value: u64, state: S) -> Self {
        let height = u8::try_from(N).expect("heights are at most TALLEST");
        Self { node: Node { key, value, state, height }, links: [const { Next::null() }; N] }
    }

    /// Returns the pointer under which the node is known. It may be used for all of the tower.
    fn allocate(self) -> NonNull<Node<S>> {
        NonNull::new(nodes::allocate(self)).expect("a node is somewhere").cast()
    }
}

impl<S> NewNode<S> {
    pub(super) fn new(key: u64, value: u64, height: usize, state: S) -> Self {
        Self(with_height!(height, N => Tower::<S, N>::new(key, value, state).allocate()))
    }

    /// Returns the node, for as long as it is not published.
    pub(super) fn node(&self) -> NodeRef<'_, S> {
        NodeRef { node: self.0, life: PhantomData }
    }

    /// Gives the node up, under the protection of a guard that was obtained before: it belongs to the structure now.
    pub(super) fn publish<'g>(self, _guard: &'g impl AnyGuard) -> NodeRef<'g, S> {
        let node = NodeRef { node: self.0, life: PhantomData };
        mem::forget(self);
        node
    }
}

impl<S> Drop for NewNode<S> {
    fn drop(&mut self) {
        let node = self.0.as_ptr();
        with_height!(self.node().height(), N => {
            // SAFETY: `new` allocated a node of this type, since the height is the same; a published node
            // never comes here.
            unsafe { nodes::free(node.cast::<Tower<S, N>>()) };
        });
    }
}

impl<S> Clone for NodeRef<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for NodeRef<'_, S> {}

impl<S> PartialEq for NodeRef<'_, S> {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}

impl<'g, S> NodeRef<'g, S> {
    #[inline]
    fn header(self) -> &'g Node<S> {
        // SAFETY: the type promises that the node stays allocated for 'g; its fields are written before it is published.
        unsafe { self.node.as_ref() }
    }

    #[inline]
    pub(super) fn key(self) -> u64 {
        self.header().key
    }

    #[inline]
    pub(super) fn state(self) -> &'g S {
        &self.header().state
    }

    /// Returns the number of links.
    #[inline]
    pub(super) fn height(self) -> usize {
        usize::from(self.header().height)
    }

    /// Returns the link of that level.
    ///
    /// # Panics
    /// If the node is not so tall: a structure that followed a link of a level to a lower node would read beyond it.
    #[inline]
    pub(super) fn next(self, level: usize) -> &'g Next<S> {
        assert!(level < self.height(), "a node of height {} is not on level {level}", self.height());
        // SAFETY: a node is a tower, where the links lie right behind the header (`LINKS_FOLLOW`).
        let links = unsafe { self.node.add(1) }.cast::<Next<S>>();
        // SAFETY: it has `height` links, and `level` is less.
        let link = unsafe { links.add(level) };
        // SAFETY: inside the node, which stays allocated for 'g; links are atomic and written before it is published.
        unsafe { link.as_ref() }
    }

    /// Hands the node to `guard`.
    ///
    /// # Safety
    /// The node came from [`NewNode`], is unreachable on every level and stays so, and is retired once. The links by
    /// which other unlinked nodes lead to it are as [`AnyGuard::retire`] asks.
    pub(super) unsafe fn retire(self, guard: &impl AnyGuard)
    where
        S: Send,
    {
        let node = self.node.as_ptr();
        with_height!(self.height(), N => {
            // SAFETY: the node was allocated with this type, since the height is the same; the rest is the caller's promise.
            unsafe { guard.retire(node.cast::<Tower<S, N>>()) };
        });
    }
}

impl<S> NodeRef<'_, S> {
    /// Where links lie in a tower, whatever the height.
    const LINKS_FOLLOW: () = assert!(mem::offset_of!(Tower<S, 1>, links) == size_of::<Node<S>>());
}

impl<S> Clone for Step<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Step<'_, S> {}

impl<'g, S> Path<'g, S> {
    /// Starts a path that comes down from level `n_levels - 1`, with nothing found.
    #[inline]
    pub(super) fn new(head: NodeRef<'g, S>, n_levels: usize) -> Self {
        let () = NodeRef::<S>::LINKS_FOLLOW;
        Self { steps: [Step { left: head, right: Link::NULL }; TALLEST], n_levels }
    }

    /// Returns how many levels the search came by.
    #[inline]
    pub(super) fn n_levels(&self) -> usize {
        self.n_levels
    }

    #[inline]
    pub(super) fn set(&mut self, level: usize, left: NodeRef<'g, S>, right: Link<'g, S>) {
        self.steps[level] = Step { left, right };
    }

    #[inline]
    pub(super) fn step(&self, level: usize) -> Step<'g, S> {
        debug_assert!(level < self.n_levels, "level {level} of {}", self.n_levels);
        self.steps[level]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reclaim::Alone;

    #[test]
    fn a_node_is_as_large_as_it_is_tall() {
        assert_eq!(size_of::<Tower<u8, 1>>(), 32);
        assert_eq!(size_of::<Tower<[u8; 3], 4>>(), 56);
    }

    #[test]
    fn every_height_has_its_links_and_is_freed() {
        // SAFETY: nothing is shared with another thread.
        let guard = unsafe { Alone::new() };
        for height in 1..=TALLEST {
            let nodes = [0, 1].map(|key| NewNode::new(key, 7, height, 3_u8));
            let [one, other] = nodes.each_ref().map(NewNode::node);
            assert_eq!((other.key(), *other.state(), other.height()), (1, 3, height));
            for level in 0..height {
                one.next(level).prepare(Link::to(other));
            }
            assert!((0..height).all(|level| one.next(level).load(&guard) == Link::to(other)));
            let [one, _] = nodes;
            let one = one.publish(&guard);
            // SAFETY: nothing leads to it.
            unsafe { one.retire(&guard) };
        }
    }

    #[test]
    #[should_panic(expected = "a node of height 2 is not on level 2")]
    fn no_link_beyond_the_height() {
        NewNode::new(0, 0, 2, ()).node().next(2);
    }
}
