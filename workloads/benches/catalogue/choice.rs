//! What the words of the command line choose.

use rare_workloads::structures;

use super::{BASE, MIXES, NamedMix};

/// A list longer than this is no experiment.
const LIST_KEYS_MAX: u64 = 1_000;

/// What is measured.
pub(super) struct Choice {
    /// Registry names, with [`BASE`] among them.
    pub(super) structures: Vec<&'static str>,
    /// Key ranges; half of each is prefilled.
    pub(super) keys: Vec<u64>,
    pub(super) mixes: Vec<NamedMix>,
    pub(super) threads: Vec<u32>,
    /// Trials of each structure in each cell.
    pub(super) n_rounds: u32,
    /// Length of a window in milliseconds.
    pub(super) window_ms: u64,
    /// The cost of the prefill is asked for, not the cells.
    pub(super) prefill: bool,
}

impl Choice {
    /// Reads all words, or returns the one that is not understood.
    pub(super) fn read(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut choice = Self {
            structures: structures::ALL.iter().map(|structure| structure.info.name).collect(),
            keys: vec![100, 1_000, 100_000, 10_000_000],
            mixes: MIXES.to_vec(),
            threads: vec![1, 2],
            n_rounds: 5,
            window_ms: 300,
            prefill: false,
        };
        for word in words {
            choice.take(&word).ok_or(word)?;
        }
        Ok(choice)
    }

    fn take(&mut self, word: &str) -> Option<()> {
        if word == "prefill" {
            self.prefill = true;
            return Some(());
        }
        let (key, value) = word.split_once('=')?;
        match key {
            "structures" => self.structures = structures_of(value)?,
            "keys" => self.keys = numbers(value)?,
            "mix" => self.mixes = value.split(',').map(mix_of).collect::<Option<_>>()?,
            "threads" => self.threads = numbers(value)?,
            "rounds" => self.n_rounds = value.parse().ok().filter(|&n_rounds| n_rounds > 0)?,
            "ms" => self.window_ms = value.parse().ok().filter(|&window_ms| window_ms > 0)?,
            _ => return None,
        }
        Some(())
    }

    /// Returns the structures that are measured with that key range. At a thousand keys only lists are, and their base:
    /// the others have smaller and larger cells.
    pub(super) fn structures_at(&self, n_keys: u64) -> Vec<&'static str> {
        let fits = |name: &str| match n_keys {
            LIST_KEYS_MAX => is_list(name) || name == BASE,
            _ => n_keys < LIST_KEYS_MAX || !is_list(name),
        };
        self.structures.iter().copied().filter(|name| fits(name)).collect()
    }
}

/// Tells whether a search passes half of all keys.
pub(super) fn is_list(name: &str) -> bool {
    ["harris01", "michael02", "lazy05"].contains(&name)
}

/// Returns the structures of that list, and the base once.
fn structures_of(value: &str) -> Option<Vec<&'static str>> {
    let mut chosen = Vec::new();
    for name in value.split(',').chain([BASE]) {
        let name = structures::find(name)?.info.name;
        if !chosen.contains(&name) {
            chosen.push(name);
        }
    }
    Some(chosen)
}

fn mix_of(name: &str) -> Option<NamedMix> {
    MIXES.into_iter().find(|mix| mix.name == name)
}

fn numbers<N: std::str::FromStr>(value: &str) -> Option<Vec<N>> {
    value.split(',').map(|number| number.parse().ok()).collect()
}
