//! Repairs what updates leave: wrong heights, imbalance, and routing nodes that have nothing to route.
//!
//! A node is *sound* if its height is one more than that of its higher child, its children differ by at most one in
//! height, and both are there unless its key is present; or if it is unlinked. The rule that makes all nodes sound in
//! the end: **whoever makes a node unsound answers for it**, that is, will lock it later and repair it if it still is.
//!
//! What decides on the soundness of a node changes under its lock, except for the heights of its children. A thread that
//! changes one of those, under the lock of the child, locks the parent *afterwards*, and makes sure under that lock that
//! it is still the parent ([`Balancer::lock_parent`]). So if a thread read the old height under the lock of the parent,
//! to judge it or to move the child elsewhere by a rotation, then the change is seen to later by the one who made it: at
//! the parent if that is still the same, else at the new one.

use super::node::{Link, Locked, Node, Ref};
use crate::reclaim::Guard;

/// What a node needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Nothing,
    /// To be given this height.
    Height(u64),
    /// To be unlinked: it routes to one side at most.
    Unlinking,
    /// To be rotated away from this side, which is too high.
    Rotation(usize),
}

/// Repairs, by an operation with a guard.
pub(super) struct Balancer<'g, G> {
    pub(super) holder: Ref<'g>,
    pub(super) guard: &'g G,
}

impl<'g, G: Guard> Balancer<'g, G> {
    /// Repairs a node for which the caller answers, and goes up as far as heights change.
    pub(super) fn repair(&self, node: Locked<'g>) {
        let mut locked = node;
        while locked.node() != self.holder {
            let node = locked.node();
            match need_of(&locked) {
                Need::Nothing => return,
                Need::Height(height) => {
                    locked.set_height(height);
                    drop(locked);
                    locked = self.lock_parent(node);
                }
                Need::Unlinking | Need::Rotation(_) => {
                    drop(locked);
                    locked = self.restructure(node);
                }
            }
        }
    }

    /// Locks the parent of a node: none of its child's parent link, its own links and its soundness changes then.
    pub(super) fn lock_parent(&self, node: Ref<'g>) -> Locked<'g> {
        loop {
            let parent = node.parent(self.guard).unwrap_or(self.holder).lock();
            if node.has_parent(self.address(parent.node())) {
                return parent;
            }
        }
    }

    /// Returns what the parent links of the children of a node hold.
    pub(super) fn address(&self, parent: Ref<'g>) -> *mut Node {
        if parent == self.holder { std::ptr::null_mut() } else { parent.as_ptr() }
    }

    /// Makes `child` the child of a node on that side, both ways.
    fn attach(&self, parent: &Locked<'g>, side: usize, child: Link<'g>) {
        parent.set_child(side, child.map_or(std::ptr::null_mut(), Ref::as_ptr));
        if let Some(child) = child {
            child.set_parent(self.address(parent.node()));
        }
    }

    /// Takes a node with one child at most out of the tree, and puts the child in its place. The caller answers for
    /// `parent`, and retires the node when it has let go of it ([`Self::retire`]).
    pub(super) fn unlink(&self, parent: &Locked<'g>, node: &Locked<'g>) {
        let splice = node.child(0).or(node.child(1));
        self.attach(parent, parent.node().side(node.node().key), splice);
        // The link first: whoever sees the node unlinked does not find it again.
        node.set_unlinked();
    }

    /// Retires a node.
    ///
    /// # Safety
    /// The calling thread has unlinked the node, which it no longer holds, and this is the only call for it.
    pub(super) unsafe fn retire(&self, node: Ref<'g>) {
        // SAFETY: nodes come from `Unpublished`, which allocates them; the address came from a link, hence from there. The
        // node was unlinked by this thread, once (I4), which calls this once; links of unlinked nodes never change.
        unsafe { self.guard.retire(node.as_ptr()) };
    }

    /// Unlinks or rotates a node if it still needs that. Returns a node for which the calling thread answers, locked.
    fn restructure(&self, node: Ref<'g>) -> Locked<'g> {
        let parent = self.lock_parent(node);
        let locked = node.lock();
        match need_of(&locked) {
            Need::Nothing | Need::Height(_) => locked,
            Need::Unlinking => {
                self.unlink(&parent, &locked);
                drop(locked);
                let above = parent.node();
                drop(parent);
                // SAFETY: unlinked just now.
                unsafe { self.retire(node) };
                above.lock()
            }
            Need::Rotation(heavy) => self.rotate(parent, locked, heavy),
        }
    }

    /// Rotates `top` away from its side `heavy`, by one rotation or two. Returns a node for which the calling thread
    /// answers, locked.
    ///
    /// The nodes that move up must be sound, so that the heights by which they are chosen are not far off: else they are
    /// repaired first, and nothing else is done.
    fn rotate(&self, parent: Locked<'g>, top: Locked<'g>, heavy: usize) -> Locked<'g> {
        let light = 1 - heavy;
        let pivot = top.child(heavy).expect("the higher side has a node, under the lock of its parent").lock();
        if need_of(&pivot) != Need::Nothing {
            drop(parent);
            return self.repair_below(top, pivot);
        }
        if pivot.word().height() <= height_of(top.child(light)) + 1 {
            return top;
        }
        let inner = match pivot.child(light) {
            Some(inner) if height_of(Some(inner)) > height_of(pivot.child(heavy)) => inner.lock(),
            _ => return self.rotate_once(parent, top, pivot, heavy),
        };
        if need_of(&inner) != Need::Nothing {
            drop((parent, pivot));
            return self.repair_below(top, inner);
        }
        self.rotate_twice(parent, top, pivot, inner, heavy)
    }

    /// Lets go of `top`, repairs a node below it, and returns `top`.
    #[cold]
    fn repair_below(&self, top: Locked<'g>, below: Locked<'g>) -> Locked<'g> {
        let node = top.node();
        drop(top);
        self.repair(below);
        node.lock()
    }

    /// Puts `pivot` in the place of `top`, and `top` under it, on its light side.
    fn rotate_once(&self, parent: Locked<'g>, top: Locked<'g>, pivot: Locked<'g>, heavy: usize) -> Locked<'g> {
        let light = 1 - heavy;
        let side = parent.node().side(top.node().key);
        top.begin_to_shrink();
        self.attach(&top, heavy, pivot.child(light));
        self.attach(&pivot, light, Some(top.node()));
        self.attach(&parent, side, Some(pivot.node()));
        top.end_to_shrink(fitting_height(&top));
        pivot.set_height(fitting_height(&pivot));
        self.settle(parent, [Some(top), Some(pivot), None])
    }

    /// Puts `inner`, the child of `pivot` on the light side, in the place of `top`, and both under it.
    fn rotate_twice(
        &self,
        parent: Locked<'g>,
        top: Locked<'g>,
        pivot: Locked<'g>,
        inner: Locked<'g>,
        heavy: usize,
    ) -> Locked<'g> {
        let light = 1 - heavy;
        let side = parent.node().side(top.node().key);
        top.begin_to_shrink();
        pivot.begin_to_shrink();
        self.attach(&top, heavy, inner.child(light));
        self.attach(&pivot, light, inner.child(heavy));
        self.attach(&inner, light, Some(top.node()));
        self.attach(&inner, heavy, Some(pivot.node()));
        self.attach(&parent, side, Some(inner.node()));
        top.end_to_shrink(fitting_height(&top));
        pivot.end_to_shrink(fitting_height(&pivot));
        inner.set_height(fitting_height(&inner));
        self.settle(parent, [Some(top), Some(pivot), Some(inner)])
    }

    /// Lets go of the nodes that a rotation has moved, from the lowest to the highest, and repairs those that it has
    /// left unsound. Returns the parent, locked.
    fn settle(&self, parent: Locked<'g>, moved: [Option<Locked<'g>>; 3]) -> Locked<'g> {
        let unsound = moved.map(|moved| moved.filter(|node| need_of(node) != Need::Nothing).map(|node| node.node()));
        if unsound.iter().all(Option::is_none) {
            return parent;
        }
        let above = parent.node();
        drop(parent);
        for node in unsound.into_iter().flatten() {
            self.repair(node.lock());
        }
        above.lock()
    }
}

fn height_of(link: Link<'_>) -> u64 {
    link.map_or(0, |node| node.word().height())
}

/// Returns the height that a node should have.
fn fitting_height(node: &Locked<'_>) -> u64 {
    1 + height_of(node.child(0)).max(height_of(node.child(1)))
}

/// Judges a node.
fn need_of(node: &Locked<'_>) -> Need {
    let word = node.word();
    let children = [node.child(0), node.child(1)];
    if word.is_unlinked() {
        return Need::Nothing;
    }
    if !word.is_present() && children.iter().any(Option::is_none) {
        return Need::Unlinking;
    }
    let [left, right] = children.map(height_of);
    if left.abs_diff(right) > 1 {
        return Need::Rotation(usize::from(right > left));
    }
    let height = 1 + left.max(right);
    if height == word.height() { Need::Nothing } else { Need::Height(height) }
}
