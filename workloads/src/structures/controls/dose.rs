//! How often a fault strikes: every n-th time that it could, counted by each thread for itself.

use crate::{families::set::Parameters, structures::ParameterInfo};

/// Makes the parameter `one_in`.
pub(super) const fn one_in(default: u64, meaning: &'static str) -> ParameterInfo {
    // A dose of one in a thousand million strikes no trial that anybody waits for.
    ParameterInfo { name: "one_in", default, range: (1, 1_000_000_000), meaning }
}

/// Reads a parameter.
pub(super) fn read(parameters: &Parameters, info: &ParameterInfo) -> u64 {
    let value = parameters.get(info.name).copied().unwrap_or(info.default);
    assert!((info.range.0..=info.range.1).contains(&value), "{} {value} is out of its range", info.name);
    value
}

/// Counts down to every n-th occasion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nth {
    /// Occasions up to the next n-th one, that one included; at least 1.
    left: u64,
    n: u64,
}

impl Nth {
    /// The first n-th occasion is `n` occasions away; `n` is at least 1.
    pub(super) fn new(n: u64) -> Self {
        Self { left: n, n }
    }

    /// Tells whether the next occasion is an n-th one.
    pub(super) fn is_next(self) -> bool {
        self.left == 1
    }

    /// Counts an occasion and tells whether it is an n-th one.
    pub(super) fn count(&mut self) -> bool {
        let is_nth = self.is_next();
        self.left = if is_nth { self.n } else { self.left - 1 };
        is_nth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strikes_every_nth_time() {
        let mut third = Nth::new(3);
        let struck: Vec<bool> = (0..7).map(|_| third.count()).collect();
        assert_eq!(struck, [false, false, true, false, false, true, false]);
        let mut each = Nth::new(1);
        assert!(each.is_next() && each.count() && each.is_next() && each.count());
    }
}
