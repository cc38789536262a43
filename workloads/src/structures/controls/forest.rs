//! Binary search trees, each under a lock, whose nodes can be laid out and given back in more than one way.
//!
//! Source: the textbook's unbalanced tree; std::sync::RwLock. It is the sound base of the controls whose fault is in the
//! nodes: the layout is the type parameter `P`, the end of a node the type parameter `E`. A key belongs to the tree that
//! its hash chooses: under one lock for all, one thread may get most of the operations, which is the fault of another
//! control.
//! Progress: blocking; look-ups share a lock.
//! Deviations: none. Keys that come in order make trees as deep as they have keys; trials fill them in random order.
//! Reclamation: nodes are freed at once under the lock, so every scheme is the same.
//! Invariants: I1 keys strictly increase in a tree. I2 the number of keys of a tree is that of its insertions less its
//! removals. I3 a key is in the tree that its hash chooses.

use std::{
    marker::PhantomData,
    ops::{Deref, DerefMut},
    sync::{PoisonError, RwLock},
};

use super::dose::{self, Nth};
use crate::{
    families::set::{ConcurrentSet, Parameters, SetHandle},
    harness::SetDriver,
    protocol::{Audit, Reclamation},
    structures::{Adt, Info, Insert, Memory, ParameterInfo, Reclaims, Search, Semantics, Structure, walk::Walk},
};

/// The tree without a fault. In no registry: it is there to be compared with the controls.
pub static SOUND: Structure = Structure {
    info: Info {
        name: "locked-forest",
        title: "search trees with a lock each",
        source: "std::sync::RwLock over unbalanced binary search trees",
        progress: "blocking; look-ups share a lock",
        semantics: Semantics { adt: Adt::HashDictionary, insert: Insert::IfAbsent, key_bits: 64, value_bits: 64 },
        reclaims: Reclaims::AtOnce,
        memory: Memory::Own,
        search: Search::Logarithmic,
        deviations: &[],
        invariants: &[
            "I1 keys strictly increase in a tree",
            "I2 a tree counts its keys rightly",
            "I3 a key is in the tree that its hash chooses",
        ],
        parameters: &[],
    },
    drivers: &[
        (Reclamation::None, &SetDriver::<Forest<Packed, Freed>>::NEW),
        (Reclamation::Epoch, &SetDriver::<Forest<Packed, Freed>>::NEW),
    ],
};

/// What lies beside each field of a node: its alignment sets the fields apart.
pub trait Padding: Default + Send + Sync + 'static {}

/// Fields lie close.
#[derive(Default)]
pub struct Packed;

impl Padding for Packed {}

/// The end of a removed node that was chosen for it; the others are freed.
pub trait End: 'static {
    /// One removed node in so many is chosen.
    const ONE_IN: ParameterInfo;

    /// Puts an end to the node.
    fn end<N: FirstWord>(node: Box<N>);
}

/// A node whose first field is a word.
pub trait FirstWord {}

/// Every node is freed.
pub struct Freed;

impl End for Freed {
    const ONE_IN: ParameterInfo = dose::one_in(1, "");

    fn end<N: FirstWord>(node: Box<N>) {
        drop(node);
    }
}

/// A node.
#[repr(C)]
pub struct Node<P> {
    key: Field<u64, P>,
    value: Field<u64, P>,
    smaller: Field<Link<P>, P>,
    larger: Field<Link<P>, P>,
}

impl<P> FirstWord for Node<P> {}

type Link<P> = Option<Box<Node<P>>>;

/// A field, as far from the next as the padding wants.
#[repr(C)]
struct Field<T, P> {
    content: T,
    padding: P,
}

impl<T, P: Padding> Field<T, P> {
    fn new(content: T) -> Self {
        Self { content, padding: P::default() }
    }
}

impl<T, P> Deref for Field<T, P> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.content
    }
}

impl<T, P> DerefMut for Field<T, P> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.content
    }
}

impl<P: Padding> Node<P> {
    fn new(key: u64, value: u64) -> Self {
        Self { key: Field::new(key), value: Field::new(value), smaller: Field::new(None), larger: Field::new(None) }
    }

    fn child(&self, key: u64) -> &Link<P> {
        if key < *self.key { &self.smaller } else { &self.larger }
    }

    fn child_mut(&mut self, key: u64) -> &mut Link<P> {
        if key < *self.key { &mut self.smaller } else { &mut self.larger }
    }
}

/// So many that two threads seldom want the same one.
const N_TREES: usize = 256;

/// The trees.
pub struct Forest<P, E> {
    trees: Box<[Lines<RwLock<Tree<P>>>]>,
    one_in: u64,
    end: PhantomData<fn() -> E>,
}

/// A tree's lock and root have a pair of lines of their own.
#[repr(align(128))]
struct Lines<T>(T);

struct Tree<P> {
    root: Link<P>,
    n_keys: usize,
}

impl<P, E> Forest<P, E> {
    fn tree(&self, key: u64) -> &RwLock<Tree<P>> {
        &self.trees[tree_idx(key)].0
    }
}

/// Multiplies by 2^64 over the golden ratio (Knuth, The Art of Computer Programming, volume 3, section 6.4), so that
/// neighbouring keys come to different trees.
fn tree_idx(key: u64) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - N_TREES.ilog2())) as usize
}

impl<P: Padding> Tree<P> {
    fn contains(&self, key: u64) -> bool {
        let mut link = &self.root;
        while let Some(node) = link {
            if *node.key == key {
                return true;
            }
            link = node.child(key);
        }
        false
    }

    /// Returns the link that leads to the key, or that would.
    fn link_to(&mut self, key: u64) -> &mut Link<P> {
        let mut link = &mut self.root;
        while link.as_ref().is_some_and(|node| *node.key != key) {
            link = link.as_mut().expect("it was looked at just now").child_mut(key);
        }
        link
    }

    fn insert(&mut self, key: u64, value: u64) -> bool {
        let link = self.link_to(key);
        let is_absent = link.is_none();
        if is_absent {
            *link = Some(Box::new(Node::new(key, value)));
            self.n_keys += 1;
        }
        is_absent
    }

    /// Takes the node of a key out, without children.
    fn take(&mut self, key: u64) -> Link<P> {
        let link = self.link_to(key);
        let mut node = link.take()?;
        *link = match (node.smaller.take(), node.larger.take()) {
            (None, only) | (only, None) => only,
            (smaller, mut larger) => {
                let mut next = take_least(&mut larger);
                *next.smaller = smaller;
                *next.larger = larger;
                Some(next)
            }
        };
        self.n_keys -= 1;
        Some(node)
    }
}

/// Checks I1 to I3 of the tree of that number.
fn audit_tree<P>(tree: &Tree<P>, idx: usize, walk: &mut Walk) {
    let (mut link, mut above, mut n_keys) = (&tree.root, Vec::new(), 0);
    walk.next_list();
    loop {
        while let Some(node) = link {
            above.push(node);
            link = &node.smaller;
        }
        let Some(node) = above.pop() else { break };
        walk.key(*node.key, "I1");
        n_keys += 1;
        if tree_idx(*node.key) != idx {
            walk.violation(format!("I3: key {} is in tree {idx}", *node.key));
        }
        link = &node.larger;
    }
    if n_keys != tree.n_keys {
        walk.violation(format!("I2: tree {idx} counts {} keys, the walk {n_keys}", tree.n_keys));
    }
}

/// Takes the node of the least key out of a subtree that has one.
fn take_least<P>(subtree: &mut Link<P>) -> Box<Node<P>> {
    let mut link = subtree;
    while link.as_ref().is_some_and(|node| node.smaller.is_some()) {
        link = &mut link.as_mut().expect("it was looked at just now").smaller;
    }
    let mut least = link.take().expect("the subtree has a node");
    *link = least.larger.take();
    least
}

impl<P> Drop for Tree<P> {
    /// Without recursion: a tree may be as deep as it has keys.
    fn drop(&mut self) {
        let mut rest: Vec<Box<Node<P>>> = self.root.take().into_iter().collect();
        while let Some(mut node) = rest.pop() {
            rest.extend(node.smaller.take());
            rest.extend(node.larger.take());
        }
    }
}

impl<P: Padding, E: End> ConcurrentSet for Forest<P, E> {
    type Handle<'s> = Handle<'s, P, E>;

    fn new(parameters: &Parameters) -> Self {
        let tree = |_| Lines(RwLock::new(Tree { root: None, n_keys: 0 }));
        Self { trees: (0..N_TREES).map(tree).collect(), one_in: dose::read(parameters, &E::ONE_IN), end: PhantomData }
    }

    fn handle(&self) -> Handle<'_, P, E> {
        Handle { forest: self, removed: Nth::new(self.one_in) }
    }

    fn audit(&mut self) -> Audit {
        let mut walk = Walk::new();
        for (idx, Lines(tree)) in self.trees.iter_mut().enumerate() {
            audit_tree(tree.get_mut().unwrap_or_else(PoisonError::into_inner), idx, &mut walk);
        }
        walk.finish()
    }

    fn unreclaimed(&self) -> Option<u64> {
        Some(0)
    }
}

/// A thread's access.
pub struct Handle<'s, P, E> {
    forest: &'s Forest<P, E>,
    /// Counts removed nodes.
    removed: Nth,
}

impl<P: Padding, E: End> SetHandle for Handle<'_, P, E> {
    fn insert(&mut self, key: u64, value: u64) -> bool {
        self.forest.tree(key).write().unwrap_or_else(PoisonError::into_inner).insert(key, value)
    }

    fn remove(&mut self, key: u64) -> bool {
        let mut tree = self.forest.tree(key).write().unwrap_or_else(PoisonError::into_inner);
        let Some(node) = tree.take(key) else { return false };
        if self.removed.count() {
            E::end(node);
        }
        true
    }

    fn contains(&mut self, key: u64) -> bool {
        self.forest.tree(key).read().unwrap_or_else(PoisonError::into_inner).contains(key)
    }
}
