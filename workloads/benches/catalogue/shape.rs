//! How many dependent loads of nodes a search takes: the depth of each kind of structure.
//!
//! Estimates, not measurements: expected values for keys inserted in random order, of which the structure holds
//! `n` = half of the key range. Each counts distinct nodes on the way, one load each, whatever a node's size: the lines
//! of one node are fetched together, and what is read twice is cached the second time. Reads of locks, versions and
//! marks beside the link are on the same lines and count nothing.

/// A kind of structure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shape {
    /// Keys in the leaves, never balanced: the expected depth of a leaf, and the leaf.
    ExternalTree,
    /// Keys in all nodes, never balanced: the mean of successful and unsuccessful searches.
    InternalTree,
    /// Keys in all nodes, heights of siblings differ by one at most: within 2 % of a perfect tree, by experience (Knuth,
    /// The Art of Computer Programming, volume 3, 6.2.3).
    AvlTree,
    /// Nodes of at most so many keys, which after random insertions are ln 2 full (Yao, On Random 2-3 Trees, 1978).
    WideTree(u32),
    /// One node in so many of a level is on the next. On each level a search steps over the nodes between two of the
    /// level above that are left of the key, and looks at one more unless that is of the level above.
    SkipList(u32),
    /// A search passes half of the keys.
    List,
    /// The bucket, and the entry.
    ChainedTable,
    /// The entry alone, as if its place were known.
    Table,
    /// No search.
    Nothing,
}

/// Returns the shape of that structure; `Nothing` for those that have none.
pub(super) fn of(structure: &str) -> Shape {
    match structure {
        "nm14" | "efrb10" | "dgt15" => Shape::ExternalTree,
        "hj12" | "citrus14" => Shape::InternalTree,
        "bcco10" => Shape::AvlTree,
        "abtree17" | "occ-abtree22" | "mutex-btree" | "rwlock-btree" => Shape::WideTree(11),
        "scc-tree" => Shape::WideTree(14),
        "fraser03" | "hlls07" => Shape::SkipList(4),
        "crossbeam-skiplist" => Shape::SkipList(2),
        "harris01" | "michael02" | "lazy05" => Shape::List,
        "michael-hash02" => Shape::ChainedTable,
        "dashmap" | "scc-hash" | "papaya" => Shape::Table,
        _ => Shape::Nothing,
    }
}

impl Shape {
    /// Returns the expected number of nodes that a search in `n` keys loads one after the other, at least 1; `None` where
    /// there is no search.
    pub(super) fn depth(self, n: u64) -> Option<f64> {
        /// Euler's.
        const GAMMA: f64 = 0.577_215_664_9;
        let n = n.max(1) as f64;
        let harmonic = n.ln() + GAMMA + 1.0 / (2.0 * n);
        let depth = match self {
            Self::ExternalTree => 2.0 * (harmonic - 1.0) + 1.0,
            Self::InternalTree => {
                let successful = 2.0 * (1.0 + 1.0 / n) * harmonic - 3.0;
                let unsuccessful = 2.0 * (harmonic + 1.0 / (n + 1.0) - 1.0);
                f64::midpoint(successful, unsuccessful)
            }
            Self::AvlTree => n.log2(),
            Self::WideTree(width) => n.log(f64::from(width) * std::f64::consts::LN_2),
            Self::SkipList(inverse) => {
                let inverse = f64::from(inverse);
                (inverse - 1.0 / inverse) * n.log(inverse)
            }
            Self::List => n / 2.0,
            Self::ChainedTable => 2.0,
            Self::Table => 1.0,
            Self::Nothing => return None,
        };
        Some(depth.max(1.0))
    }

    /// Returns how the depth is estimated, in words.
    pub(super) fn formula(self) -> String {
        match self {
            Self::ExternalTree => "2 (H(n) - 1) + 1 nodes, external tree of random insertions".to_owned(),
            Self::InternalTree => {
                "mean of 2 (1 + 1/n) H(n) - 3 and 2 (H(n+1) - 1) nodes, internal tree of random insertions".to_owned()
            }
            Self::AvlTree => "log2 n nodes, AVL tree".to_owned(),
            Self::WideTree(width) => {
                format!("log n to the base {width} ln 2 nodes, tree of at most {width} keys a node")
            }
            Self::SkipList(inverse) => {
                format!("({inverse} - 1/{inverse}) log n to the base {inverse} nodes, skip list of chance 1/{inverse}")
            }
            Self::List => "n/2 nodes, sorted list".to_owned(),
            Self::ChainedTable => "2 loads, bucket and entry".to_owned(),
            Self::Table => "1 load, as if the place of an entry were known".to_owned(),
            Self::Nothing => "no search".to_owned(),
        }
    }
}
