//! The structures that a spec may name.

use rare_workloads::structures::{self, Structure};

/// A catalogue of structures. Tests compile against their own.
#[derive(Clone, Copy)]
pub struct Catalogue {
    /// Structures that can be run.
    pub structures: &'static [&'static Structure],
    /// Structures with a planted fault: they can be run, and are never offered.
    pub controls: &'static [&'static Structure],
    /// Names that are reserved for structures of later versions.
    pub planned: &'static [&'static str],
}

impl Catalogue {
    /// What this version can run.
    pub const BUILT: Self =
        Self { structures: structures::ALL, controls: structures::CONTROLS, planned: structures::PLANNED };

    /// Returns the structure or control of that name.
    pub(crate) fn find(&self, name: &str) -> Option<&'static Structure> {
        self.structures.iter().chain(self.controls).copied().find(|structure| structure.info.name == name)
    }

    /// Returns the names of the structures whose name, title or source contains these letters, whatever lies between
    /// them: `btree` is in `B-tree, one mutex`. None for fewer than three, which are in too many.
    pub(crate) fn described(&self, words: &str) -> impl Iterator<Item = &'static str> {
        let words = letters(words);
        let contains = move |structure: &&Structure| {
            let info = &structure.info;
            words.len() >= 3 && [info.name, info.title, info.source].iter().any(|text| letters(text).contains(&words))
        };
        self.structures.iter().copied().filter(contains).map(|structure| structure.info.name)
    }

    /// Returns the names of the structures that have a parameter of that name.
    pub(crate) fn with_parameter(&self, name: &str) -> impl Iterator<Item = &'static str> {
        let has = move |structure: &&Structure| structure.info.parameters.iter().any(|known| known.name == name);
        self.structures.iter().copied().filter(has).map(|structure| structure.info.name)
    }
}

/// Returns the letters and digits of a text in lower case.
fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_found_by_what_they_are() {
        let described = |words| Catalogue::BUILT.described(words).collect::<Vec<_>>();
        assert_eq!(described("Natarajan"), ["nm14"]);
        assert_eq!(described("avl"), ["bcco10"]);
        assert!(["fraser03", "hlls07", "crossbeam-skiplist"].iter().all(|name| described("skip_list").contains(name)));
        assert!(described("btree").contains(&"mutex-btree"));
        assert_eq!(described("nm"), Vec::<&str>::new());
        assert_eq!(described("nm15"), Vec::<&str>::new());
    }
}
