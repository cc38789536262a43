//! How many levels there are, and how tall nodes become.

use super::TALLEST;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use crate::{families::set::Parameters, rng::Xoshiro256PlusPlus, structures::ParameterInfo};

/// A node on a level is on the next with a chance of 1 in 2^2.
///
/// Pugh's analysis gives 1/4 the same expected number of steps as 1/2, with 1.33 links in a node instead of 2: smaller
/// nodes, and a third of the handshakes or locks above the lowest level.
const BITS_PER_LEVEL: u32 = 2;

/// The parameter of every skip list.
pub(in super::super) const MAX_LEVEL: ParameterInfo = ParameterInfo {
    name: "max_level",
    default: 12,
    range: (1, TALLEST as u64),
    meaning: "levels; 1 flattens it to a sorted list. One node in four of a level is also on the next, so 12 suit 4^12 or \
              17 million keys, more than half of the largest usual range of 10 million; further levels would be walked \
              and be empty",
};

/// Where the seeds of heights begin; an instance counts its handles from here. Any number will do, but streams of keys
/// should begin elsewhere.
const SEED: u64 = 0x7465_7277_6f6c_6c73;

/// The levels of one instance.
pub(in super::super) struct Levels {
    max: usize,
    /// Only a hint, and never lowered: above it searches would find nothing but the head.
    in_use: AtomicUsize,
    n_handles: AtomicU64,
}

impl Levels {
    pub(in super::super) fn new(parameters: &Parameters) -> Self {
        let max = parameters.get(MAX_LEVEL.name).copied().unwrap_or(MAX_LEVEL.default);
        let max = usize::try_from(max).expect("it was validated against its range");
        assert!((1..=TALLEST).contains(&max), "max_level {max} is out of its range");
        Self { max, in_use: AtomicUsize::new(1), n_handles: AtomicU64::new(0) }
    }

    /// Returns the number of levels that nodes may have.
    pub(in super::super) fn max(&self) -> usize {
        self.max
    }

    /// Returns the number of levels from which a search should come down. It may be too low: a search that must come
    /// by a level says so.
    #[inline]
    pub(in super::super) fn in_use(&self) -> usize {
        // Relaxed: a hint.
        self.in_use.load(Relaxed)
    }

    /// Notes that there will be a node of that height.
    #[inline]
    pub(in super::super) fn note(&self, height: usize) {
        if height > self.in_use() {
            self.in_use.fetch_max(height, Relaxed);
        }
    }

    /// Makes the generator of a handle. Handles of one instance draw from unlike streams; the n-th handles of two
    /// instances draw the same.
    pub(in super::super) fn heights(&self) -> Heights {
        let handle_idx = self.n_handles.fetch_add(1, Relaxed);
        Heights { rng: Xoshiro256PlusPlus::new(SEED.wrapping_add(handle_idx)), max: self.max as u32 }
    }
}

/// The generator of heights of one handle.
pub(in super::super) struct Heights {
    rng: Xoshiro256PlusPlus,
    max: u32,
}

impl Heights {
    /// Draws the height of a node, 1 to the number of levels.
    #[inline]
    pub(in super::super) fn draw(&mut self) -> usize {
        (1 + self.rng.next_u64().trailing_zeros() / BITS_PER_LEVEL).min(self.max) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(max: u64) -> Levels {
        Levels::new(&Parameters::from([("max_level".to_owned(), max)]))
    }

    #[test]
    fn one_node_in_four_is_on_the_next_level() {
        const N_DRAWS: u32 = 1 << 20;
        let mut heights = levels(5).heights();
        let mut n_of_height = [0_u32; 6];
        for _ in 0..N_DRAWS {
            n_of_height[heights.draw()] += 1;
        }
        assert_eq!(n_of_height[0], 0);
        let mut n_left = N_DRAWS;
        for (height, &n) in n_of_height.iter().enumerate().skip(1) {
            let due = if height == 5 { n_left } else { n_left / 4 * 3 };
            // Five standard deviations of a count, which are at most the root of what is due.
            assert!(f64::from(n.abs_diff(due)) <= 5.0 * f64::from(due).sqrt(), "{n} of height {height}, not {due}");
            n_left /= 4;
        }
    }

    #[test]
    fn handles_draw_from_unlike_streams_and_instances_alike() {
        let draws = |heights: &mut Heights| (0..64).map(|_| heights.draw()).collect::<Vec<_>>();
        let (one, other) = (levels(16), levels(16));
        let (first, second) = (draws(&mut one.heights()), draws(&mut one.heights()));
        assert_ne!(first, second);
        assert_eq!([first, second], [draws(&mut other.heights()), draws(&mut other.heights())]);
    }

    #[test]
    fn one_level_is_a_list() {
        let mut heights = levels(1).heights();
        assert!((0..1000).all(|_| heights.draw() == 1));
    }

    #[test]
    fn the_default_is_that_of_the_registry() {
        assert_eq!(Levels::new(&Parameters::new()).max() as u64, MAX_LEVEL.default);
    }
}
