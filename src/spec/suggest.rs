//! "Did you mean": the word that a person probably wanted.

/// Words that people use for others, where spelling does not lead there: (said, meant).
const ALIASES: &[(&str, &str)] = &[
    ("delete", "remove"),
    ("erase", "remove"),
    ("del", "remove"),
    ("add", "insert"),
    ("put", "insert"),
    ("lookup", "contains"),
    ("find", "contains"),
    ("get", "contains"),
    ("search", "contains"),
    ("read", "contains"),
    ("ds", "structures"),
    ("algorithm", "structures"),
    ("algorithms", "structures"),
    ("malloc", "allocators"),
    ("smr", "reclamation"),
    ("reclaimer", "reclamation"),
    ("affinity", "pinning"),
    ("pin", "pinning"),
    ("keys", "key_ranges"),
    ("keyrange", "key_ranges"),
    ("range", "key_ranges"),
    ("operations", "mixes"),
    ("workload", "mixes"),
    ("workloads", "mixes"),
    ("thp", "huge_pages"),
    ("nice", "priority"),
    ("checks", "sanity_checks"),
    ("skip", "exclude"),
    ("title", "name"),
    ("description", "question"),
    ("version", "rare"),
    ("repetitions", "count"),
    ("runs", "count"),
    ("duration", "length"),
    ("seconds", "length"),
    ("time", "length"),
    ("glibc", "system"),
    ("libc", "system"),
    ("je", "jemalloc"),
    ("mi", "mimalloc"),
    ("ebr", "epoch"),
    ("epochs", "epoch"),
    ("debra", "epoch"),
    ("hp", "hazard"),
    ("leak", "none"),
    ("leaky", "none"),
    ("off", "none"),
    ("empty", "none"),
    ("0", "none"),
    ("spread", "scatter"),
    ("packed", "compact"),
    ("close", "compact"),
    ("max", "all"),
    ("true", "on"),
    ("yes", "on"),
    ("false", "off"),
    ("no", "off"),
    ("zipfian", "zipf"),
    ("shuffled", "random"),
    ("label", "as"),
    ("name", "use"),
    ("structure", "use"),
];

/// Least similarity of two words for one to be offered for the other.
///
/// `jemaloc` and `jemalloc` have 0.98, `bst` and `btree` 0.69: above 0.85 offers are right far more often than not.
const MIN_SIMILARITY: f64 = 0.85;

/// Returns the candidate that was probably meant.
pub(crate) fn closest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let word = word.trim().to_lowercase().replace(' ', "_");
    if word.is_empty() || word.len() > 64 {
        return None;
    }
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let pick = |wanted: &str| candidates.iter().copied().find(|candidate| candidate.eq_ignore_ascii_case(wanted));
    let swapped = if word.contains('_') { word.replace('_', "-") } else { word.replace('-', "_") };
    let exact = pick(&word)
        .or_else(|| pick(&swapped))
        .or_else(|| pick(&format!("{word}s")))
        .or_else(|| pick(&format!("{word}es")));
    let alias = || ALIASES.iter().filter(|(said, _)| *said == word).find_map(|(_, meant)| pick(meant));
    exact.or_else(alias).or_else(|| similar(&word, &candidates))
}

/// Returns the most similar candidate above the threshold; of equals the first.
fn similar<'c>(word: &str, candidates: &[&'c str]) -> Option<&'c str> {
    let mut best: Option<(f64, &str)> = None;
    for &candidate in candidates {
        let lower = candidate.to_lowercase();
        let n_edits = strsim::damerau_levenshtein(word, &lower);
        let one_slip = n_edits == 1 && word.len() >= 3;
        let similarity = if one_slip { 1.0 } else { strsim::jaro_winkler(word, &lower) };
        // A common prefix alone makes long words similar, such as `environment` and `environment_padding`.
        let near = n_edits * 2 <= lower.chars().count().max(2);
        if similarity >= MIN_SIMILARITY && near && best.is_none_or(|(best, _)| similarity > best) {
            best = Some((similarity, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_what_was_meant_or_nothing() {
        let keys = ["structures", "allocators", "reclamation", "threads", "key_ranges", "mixes", "prefill", "seed"];
        let rows = [
            ("structure", Some("structures")),
            ("mix", Some("mixes")),
            ("treads", Some("threads")),
            ("Threads", Some("threads")),
            ("key-ranges", Some("key_ranges")),
            ("key range", Some("key_ranges")),
            ("smr", Some("reclamation")),
            ("reclaimation", Some("reclamation")),
            ("sed", Some("seed")),
            ("colour", None),
            ("", None),
            ("x", None),
        ];
        for (word, meant) in rows {
            assert_eq!(closest(word, keys), meant, "{word}");
        }
        assert_eq!(closest("delete", ["insert", "remove", "contains"]), Some("remove"));
        assert_eq!(closest("jemaloc", ["system", "jemalloc", "mimalloc"]), Some("jemalloc"));
    }
}
