//! Sets of CPU or node numbers, in the list format of the kernel: `0-3,8,10-11`.
//!
//! Strict: a list that is read wrongly pins threads wrongly, so everything unusual is an error.

use std::{collections::BTreeSet, fmt, str::FromStr};

/// Largest number accepted. The kernel's own limit is 8,192 CPUs; a torn or foreign text must not allocate memory.
const MAX: u32 = 65_535;

/// A set of CPU numbers, in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuList(pub BTreeSet<u32>);

impl CpuList {
    /// Returns whether `cpu` is in the set.
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.contains(&cpu)
    }

    /// Returns the numbers that are in both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        self.0.intersection(&other.0).copied().collect()
    }

    /// Iterates in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// Returns how many numbers the set holds.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A text that is not a kernel list.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a kernel CPU list such as `0-3,8`: {cause}")]
pub struct CpuListError {
    text: String,
    cause: &'static str,
}

impl FromStr for CpuList {
    type Err = CpuListError;

    /// Reads ascending numbers and ranges without blanks, signs or repetition. An empty text is the empty set.
    fn from_str(text: &str) -> Result<Self, CpuListError> {
        let fail = |cause| CpuListError { text: text.to_owned(), cause };
        let mut list = BTreeSet::new();
        if text.is_empty() {
            return Ok(Self(list));
        }
        let mut least = 0;
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first = number(first).map_err(fail)?;
            let last = number(last).map_err(fail)?;
            if last < first {
                return Err(fail("a range runs backwards"));
            }
            if first < least {
                return Err(fail("it does not ascend"));
            }
            least = last + 1;
            list.extend(first..=last);
        }
        Ok(Self(list))
    }
}

fn number(text: &str) -> Result<u32, &'static str> {
    // `parse` alone would accept a sign.
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("a part is not a number");
    }
    match text.parse() {
        Ok(number) if number <= MAX => Ok(number),
        _ => Err("a number is too large for a CPU"),
    }
}

impl FromIterator<u32> for CpuList {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl fmt::Display for CpuList {
    /// Writes the shortest kernel list; the empty set is an empty text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut separator = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while let Some(next) = cpus.next_if(|&next| next == last + 1) {
                last = next;
            }
            match last - first {
                0 => write!(f, "{separator}{first}")?,
                _ => write!(f, "{separator}{first}-{last}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_kernel_lists() {
        for (text, count) in [("", 0), ("0", 1), ("0-3,8,10-11", 7), ("0,2,4", 3), ("4-7", 4), ("0-255", 256)] {
            let list: CpuList = text.parse().unwrap();
            assert_eq!(list.len(), count, "{text}");
            assert_eq!(list.to_string(), text);
        }
        let list: CpuList = "0,1,2,8-8".parse().unwrap();
        assert_eq!(list.to_string(), "0-2,8");
    }

    #[test]
    fn refuses_everything_else() {
        let bad = [
            " 0",
            "0 ",
            "0, 1",
            "-1",
            "+1",
            "1-",
            "3-1",
            "0-2,2",
            "5,4",
            "1,,2",
            "0-3:1/2",
            "x",
            "0x3",
            "99999999999",
            "0-4000000000",
            "1-2-3",
            "\n",
        ];
        for text in bad {
            assert!(text.parse::<CpuList>().is_err(), "{text:?} was accepted");
        }
    }
}
