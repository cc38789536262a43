//! Quantities with their units, and how a spec writes them.
//!
//! Pure. Everything is an integer in a base unit (nanoseconds, bytes, counts, basis points), so that hashed data holds
//! no float and `3s` equals `3000ms`.

mod parse;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use parse::{Fault, Malformed, Quantity};

/// A duration in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub u64);

/// A size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A share in basis points, 10,000 to the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BasisPoints(pub u32);

impl fmt::Display for Nanos {
    /// Writes the shortest exact form that a spec accepts, such as `3s`, `200ms`, `1500us`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 6] = [
            (3_600_000_000_000, "h"),
            (60_000_000_000, "m"),
            (1_000_000_000, "s"),
            (1_000_000, "ms"),
            (1_000, "us"),
            (1, "ns"),
        ];
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let (size, unit) =
            UNITS.into_iter().find(|(size, _)| self.0.is_multiple_of(*size)).expect("1 divides every number");
        write!(f, "{}{unit}", self.0 / size)
    }
}

impl fmt::Display for Bytes {
    /// Writes the shortest exact form that a spec accepts, such as `64KiB`, `100B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")];
        if self.0 == 0 {
            return f.write_str("0B");
        }
        let (size, unit) =
            UNITS.into_iter().find(|(size, _)| self.0.is_multiple_of(*size)).expect("1 divides every number");
        write!(f, "{}{unit}", self.0 / size)
    }
}

impl fmt::Display for BasisPoints {
    /// Writes a percentage without superfluous digits, such as `50%`, `2.5%`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 100, self.0 % 100);
        match rest {
            0 => write!(f, "{whole}%"),
            _ if rest % 10 == 0 => write!(f, "{whole}.{}%", rest / 10),
            _ => write!(f, "{whole}.{rest:02}%"),
        }
    }
}

/// A count as a spec writes it: `100`, `100k`, `10M`, exact.
pub fn count(number: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")];
    match UNITS.into_iter().find(|(size, _)| number != 0 && number.is_multiple_of(*size)) {
        Some((size, unit)) => format!("{}{unit}", number / size),
        None => number.to_string(),
    }
}
