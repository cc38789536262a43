//! Nodes of the tree, and what their edges hold.
//!
//! Here is where pointers are followed. A [`Link`] is loaded only from an edge of the entry, or of a node that was
//! obtained from a link under the same guard; that is the fact (L) on which the comments below rest.

use std::{hint::select_unpredictable, marker::PhantomData, ops::Range, ptr};

use super::scx::Info;
use crate::sync::atomic::{
    AtomicPtr,
    Ordering::{Relaxed, Release},
};
use crate::{
    nodes,
    reclaim::Guard,
    structures::fan::{self, Fan, MAX_SIZE},
};

/// The edge leads to a leaf.
const LEAF: usize = 1;

/// A node that routes. All but its info word and its edges is written before it is published, and never again.
#[repr(C, align(64))]
pub(super) struct Internal {
    info: Info,
    /// Child `i` has the keys below `keys[i]` that child `i - 1` has not. Filled up with the largest key.
    keys: [u64; MAX_SIZE - 1],
    children: [Edge; MAX_SIZE],
    n_children: u8,
    is_tagged: bool,
}

/// A node that holds keys, which increase. It never changes.
///
/// Aligned only as info words need it: every update allocates one, and allocators serve wishes for lines much slower.
#[repr(C, align(16))]
pub(super) struct Leaf {
    n_keys: usize,
    /// Filled up with the largest key.
    keys: [u64; MAX_SIZE],
    values: [u64; MAX_SIZE],
}

/// An edge: a [`Word`] that records swing.
struct Edge(AtomicPtr<Internal>);

/// An address, and in its low bit whether it is a leaf's. It cannot be followed: nothing says that the node still exists.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Word(*mut Internal);

/// What an edge held when it was loaded under a guard that lives for `'g`: it can be followed so long.
#[derive(Clone, Copy)]
pub(super) struct Link<'g> {
    pub(super) word: Word,
    guard: PhantomData<&'g ()>,
}

/// A node that a link leads to.
#[derive(Clone, Copy)]
pub(super) enum Node<'g> {
    Leaf(&'g Leaf),
    Internal(&'g Internal),
}

/// Nodes that were made and not published yet: freed when dropped.
pub(super) struct Drafts {
    words: [Word; 3],
    n_words: usize,
}

impl Internal {
    /// Makes a node of one child and no key.
    pub(super) fn over(child: Word) -> Self {
        Self::of(&Fan::of_one(child), 0..1)
    }

    /// Makes an untagged node of these children, at least one and at most [`MAX_SIZE`].
    pub(super) fn of(fan: &Fan<Word>, sides: Range<usize>) -> Self {
        let mut keys = [u64::MAX; MAX_SIZE - 1];
        keys[..sides.len() - 1].copy_from_slice(fan.keys(sides.clone()));
        let child = |idx: usize| if idx < sides.len() { fan.child(sides.start + idx) } else { Word::NULL };
        Self {
            info: Info::idle(),
            keys,
            children: std::array::from_fn(|idx| Edge(AtomicPtr::new(child(idx).0))),
            n_children: sides.len() as u8,
            is_tagged: false,
        }
    }

    pub(super) fn is_tagged(&self) -> bool {
        self.is_tagged
    }

    pub(super) fn n_children(&self) -> usize {
        usize::from(self.n_children)
    }

    /// Returns the keys; there is one less than children.
    pub(super) fn keys(&self) -> &[u64] {
        &self.keys[..self.n_children() - 1]
    }

    pub(super) fn info(&self) -> &Info {
        &self.info
    }

    /// Returns the position of the child to which `key` belongs.
    #[inline]
    pub(super) fn side(&self, key: u64) -> usize {
        fan::side(&self.keys, key)
    }

    /// Loads the link to a child.
    #[inline]
    pub(super) fn child<'g>(&'g self, side: usize, guard: &'g impl Guard) -> Link<'g> {
        // Acquire, by the guard: pairs with the Release in `swing`.
        Link { word: Word(guard.load(&self.children[side].0)), guard: PhantomData }
    }

    /// Loads keys and children.
    pub(super) fn fan(&self, guard: &impl Guard) -> Fan<Word> {
        Fan::of(self.keys(), |side| self.child(side, guard).word)
    }

    /// Changes the edge to a child if it leads to `old`.
    pub(super) fn swing(&self, side: usize, old: Word, new: Word) {
        // Release: publishes the new nodes, which a helper has from the record; pairs with the Acquire in `child`. If it
        // fails, another helper has swung the edge.
        _ = self.children[side].0.compare_exchange(old.0, new.0, Release, Relaxed);
    }
}

impl Leaf {
    /// Makes a leaf of at most [`MAX_SIZE`] entries in the order of their keys.
    pub(super) fn new(entries: &[(u64, u64)]) -> Self {
        let field = |of: fn(&(u64, u64)) -> u64| std::array::from_fn(|slot| entries.get(slot).map_or(u64::MAX, of));
        Self { n_keys: entries.len(), keys: field(|entry| entry.0), values: field(|entry| entry.1) }
    }

    /// Makes a leaf that has one more entry, of a key that this one has not; this one is not full.
    ///
    /// Every slot selects, without branches and loops of unforeseeable length, as [`Leaf::without`] does.
    #[inline]
    pub(super) fn with(&self, key: u64, value: u64) -> Self {
        let place = self.place(key);
        let field = |old: &[u64; MAX_SIZE], new: u64| {
            std::array::from_fn(|slot| {
                let moved = select_unpredictable(slot > place, old[slot.saturating_sub(1)], old[slot]);
                select_unpredictable(slot == place, new, moved)
            })
        };
        Self { n_keys: self.n_keys + 1, keys: field(&self.keys, key), values: field(&self.values, value) }
    }

    /// Makes a leaf without a key that this one has.
    #[inline]
    pub(super) fn without(&self, key: u64) -> Self {
        let place = self.place(key);
        let field = |old: &[u64; MAX_SIZE]| {
            let after = |slot: usize| old.get(slot + 1).copied().unwrap_or(u64::MAX);
            std::array::from_fn(|slot| select_unpredictable(slot < place, old[slot], after(slot)))
        };
        Self { n_keys: self.n_keys - 1, keys: field(&self.keys), values: field(&self.values) }
    }

    /// Returns the slot where `key` is or would be.
    #[inline]
    fn place(&self, key: u64) -> usize {
        let slots = self.keys.iter().enumerate();
        slots.fold(0, |place, (slot, &other)| select_unpredictable(other < key, slot + 1, place))
    }

    pub(super) fn is_full(&self) -> bool {
        self.n_keys == MAX_SIZE
    }

    pub(super) fn keys(&self) -> &[u64] {
        &self.keys[..self.n_keys]
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (u64, u64)> {
        self.keys().iter().copied().zip(self.values)
    }

    /// Tells whether the leaf holds the key. Without branches, which would be mispredicted.
    #[inline]
    pub(super) fn holds(&self, key: u64) -> bool {
        let slots = self.keys.iter().enumerate();
        let matches = slots.fold(0, |matches, (slot, &other)| matches | u32::from(other == key) << slot);
        matches & ((1 << self.n_keys) - 1) != 0
    }
}

impl Word {
    const NULL: Self = Self(ptr::null_mut());

    /// Allocates a leaf.
    pub(super) fn of_leaf(leaf: Leaf) -> Self {
        Self::of_leaf_at(nodes::allocate(leaf))
    }

    fn is_leaf(self) -> bool {
        self.0.addr() & LEAF != 0
    }

    /// Returns the word of the leaf at this address.
    pub(super) fn of_leaf_at(address: *mut Leaf) -> Self {
        Self(address.cast::<Internal>().map_addr(|address| address | LEAF))
    }

    /// Returns the address of the leaf that the word leads to.
    pub(super) fn leaf(self) -> *mut Leaf {
        self.0.map_addr(|address| address & !LEAF).cast()
    }

    /// Hands the node to `guard`.
    ///
    /// # Safety
    /// The node was unlinked by the calling thread (I4), which calls this once for it.
    pub(super) unsafe fn retire(self, guard: &impl Guard) {
        if self.is_leaf() {
            // SAFETY: nodes are allocated in `of_leaf` and `Drafts`; the rest is the caller's promise, and that
            // edges of unlinked nodes never change is I4.
            unsafe { guard.retire(self.leaf()) };
        } else {
            // SAFETY: likewise.
            unsafe { guard.retire(self.0) };
        }
    }
}

impl<'g> Link<'g> {
    /// Returns the node.
    #[inline]
    pub(super) fn node(self) -> Node<'g> {
        if self.word.is_leaf() {
            // SAFETY: an edge with LEAF leads to a leaf, which was written before it was published. By (L) and the argument
            // at `Abtree17::seek`, the guard keeps it allocated for 'g.
            Node::Leaf(unsafe { &*self.word.leaf() })
        } else {
            // SAFETY: as above; an edge below `n_children` is never null (I1), and without LEAF leads to an internal
            // node.
            Node::Internal(unsafe { &*self.word.0 })
        }
    }
}

impl Drafts {
    pub(super) fn new() -> Self {
        Self { words: [Word::NULL; 3], n_words: 0 }
    }

    fn push(&mut self, word: Word) -> Word {
        self.words[self.n_words] = word;
        self.n_words += 1;
        word
    }

    /// Drafts a leaf.
    pub(super) fn leaf(&mut self, leaf: Leaf) -> Word {
        self.push(Word::of_leaf(leaf))
    }

    /// Drafts an untagged node of these children.
    pub(super) fn internal(&mut self, fan: &Fan<Word>, sides: Range<usize>) -> Word {
        self.push(Word(nodes::allocate(Internal::of(fan, sides))))
    }

    /// Drafts a node of two children.
    pub(super) fn fork(&mut self, (left, key, right): (Word, u64, Word), is_tagged: bool) -> Word {
        let mut fan = Fan::of_one(left);
        fan.split(0, key, right);
        self.push(Word(nodes::allocate(Internal { is_tagged, ..Internal::of(&fan, 0..2) })))
    }

    /// Drafts two nodes that share the children, and returns the key between them.
    pub(super) fn halves(&mut self, fan: &Fan<Word>) -> (Word, u64, Word) {
        let middle = fan.n_children() / 2;
        (self.internal(fan, 0..middle), fan.key(middle - 1), self.internal(fan, middle..fan.n_children()))
    }

    /// Drafts two leaves that share the entries, and returns the first key of the right one.
    pub(super) fn half_leaves(&mut self, entries: &[(u64, u64)]) -> (Word, u64, Word) {
        let (left, right) = entries.split_at(entries.len() / 2);
        (self.leaf(Leaf::new(left)), right[0].0, self.leaf(Leaf::new(right)))
    }

    /// Gives the nodes up: they belong to the tree now.
    pub(super) fn publish(mut self) {
        self.n_words = 0;
    }
}

impl Drop for Drafts {
    fn drop(&mut self) {
        for word in &self.words[..self.n_words] {
            if word.is_leaf() {
                // SAFETY: it was allocated in `of_leaf`, and was never published (`publish`).
                unsafe { nodes::free(word.leaf()) };
            } else {
                // SAFETY: it was allocated by these methods, and was never published.
                unsafe { nodes::free(word.0) };
            }
        }
    }
}
