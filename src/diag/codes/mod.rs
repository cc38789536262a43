//! The registry of codes: one entry a code, with all that `rare explain` says about it.
//!
//! A code is never reused and never changes its meaning. Examples are compiled by a test: the wrong one gives the code,
//! the right one is clean.

mod meaning;
mod shape;
mod yaml;

pub use meaning::*;
pub use shape::*;
pub use yaml::*;

use super::Severity;

/// A kind of mistake.
#[derive(Debug)]
pub struct Code {
    /// `E` (error) or `W` (warning) and four digits.
    pub id: &'static str,
    /// The mistake in a few words.
    pub title: &'static str,
    /// Why it is a mistake and how to think about it, Markdown.
    pub explanation: &'static str,
    /// A spec with the mistake. The keys every spec needs are left out where they do not matter.
    pub wrong: &'static str,
    /// The same without it.
    pub right: &'static str,
}

impl Code {
    /// Returns how bad it is: the letter says it.
    pub fn severity(&self) -> Severity {
        if self.id.starts_with('W') { Severity::Warning } else { Severity::Error }
    }
}

impl PartialEq for Code {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Code {}

/// Iterates over every code, in order.
pub fn all() -> impl Iterator<Item = &'static Code> {
    yaml::ALL.iter().chain(shape::ALL).chain(meaning::ALL).copied()
}

/// Returns the code of that name; case does not matter.
pub fn find(id: &str) -> Option<&'static Code> {
    all().find(|code| code.id.eq_ignore_ascii_case(id))
}

/// Declares codes and lists them.
macro_rules! codes {
    ($($name:ident = $id:literal, $title:literal, $explanation:literal,
        wrong: $wrong:literal, right: $right:literal;)*) => {
        $(
            #[doc = concat!($id, ": ", $title, ".")]
            pub static $name: $crate::diag::codes::Code = $crate::diag::codes::Code {
                id: $id,
                title: $title,
                explanation: $explanation,
                wrong: $wrong,
                right: $right,
            };
        )*
        /// Every code of this file, in order.
        pub(super) static ALL: &[&$crate::diag::codes::Code] = &[$(&$name),*];
    };
}
use codes;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_ascend_within_their_letter() {
        let ids: Vec<&str> = all().map(|code| code.id).collect();
        for letter in ["E", "W"] {
            let of_letter: Vec<&str> = ids.iter().copied().filter(|id| id.starts_with(letter)).collect();
            assert!(of_letter.is_sorted_by(|a, b| a < b), "{of_letter:?}");
            assert!(of_letter.iter().all(|id| id.len() == 5));
        }
    }

    #[test]
    fn titles_follow_the_style() {
        for code in all() {
            assert!(!code.title.ends_with('.'), "{}", code.id);
            assert!(code.explanation.ends_with('.'), "{}", code.id);
        }
    }
}
