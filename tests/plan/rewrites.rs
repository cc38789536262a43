//! Rewrites the text of specs in every way that must not matter, and compares the hashes.
//!
//! A spec is held as a tree of what it says. [`Pen`] writes that tree as YAML with random keys' order, block or flow
//! style, quotes, comments, line ends and spellings of quantities, and writes defaults or leaves them out.

use std::fmt::Write;

use rare::plan::{Plan, PlanHash};
use rare_workloads::rng::{Bound, Xoshiro256PlusPlus};

use crate::texts::{hash, plan};

/// Rewrites in all, shared out among the specs.
const N_REWRITES: u64 = 10_000;

/// Goes on in the next line, further in than any block can be.
const BREAK: &str = ",\n                                ";
const BREAK_AFTER_COMMENT: &str = ", # ]}, seed: 2\n                                ";

/// What a part of a spec says.
#[derive(Clone)]
enum Part {
    /// A word, which may stand in quotes.
    Word(&'static str),
    /// One value in several spellings, none of which may stand in quotes.
    Spelled(&'static [&'static str]),
    /// Values in an order that matters; one alone may stand without brackets.
    Values(Vec<Part>),
    /// Rules, groups or claims in an order that matters; always a list.
    List(Vec<Part>),
    /// Members in any order.
    Map(Vec<Member>),
}

/// A key with its value.
#[derive(Clone)]
struct Member {
    key: &'static str,
    value: Part,
    /// Whether it says only what holds without it, for the hash.
    is_optional: bool,
}

use Part::{List, Map, Spelled, Values, Word};

fn member(key: &'static str, value: Part) -> Member {
    Member { key, value, is_optional: false }
}

fn optional(key: &'static str, value: Part) -> Member {
    Member { key, value, is_optional: true }
}

fn words(words: &[&'static str]) -> Part {
    Values(words.iter().map(|word| Word(word)).collect())
}

/// Writes parts as YAML.
struct Pen {
    random: Xoshiro256PlusPlus,
    text: String,
    indent_width: usize,
}

impl Pen {
    fn write(document: &Part, seed: u64) -> String {
        let mut pen = Self { random: Xoshiro256PlusPlus::new(seed), text: String::new(), indent_width: 2 };
        pen.indent_width = [2, 3, 4][pen.below(3) as usize];
        if pen.one_in(4) {
            pen.text.push_str("---\n");
        }
        match pen.one_in(8) {
            true => pen.flow(document),
            false => pen.block(document, 0),
        }
        pen.text.push('\n');
        pen.finished()
    }

    /// Chooses the byte order mark and the line ends.
    fn finished(mut self) -> String {
        let mut text = std::mem::take(&mut self.text);
        if self.one_in(3) {
            text = text.replace('\n', "\r\n");
        }
        if self.one_in(4) {
            text.insert(0, '\u{feff}');
        }
        text
    }

    fn below(&mut self, bound: u64) -> u64 {
        Bound::new(bound).draw(&mut self.random)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn chosen<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// The members that are written, in random order.
    fn members(&mut self, members: &[Member]) -> Vec<Member> {
        let mut kept: Vec<Member> = Vec::new();
        for member in members {
            let mut member = member.clone();
            if member.is_optional && self.one_in(2) {
                continue;
            }
            if let Map(inner) = &member.value {
                let is_needed = inner.iter().any(|it| !it.is_optional);
                let inner = self.members(inner);
                if inner.is_empty() && !is_needed {
                    continue;
                }
                // What was left out here must not be left out once more.
                member.value = Map(inner.into_iter().map(|it| Member { is_optional: false, ..it }).collect());
            }
            kept.insert(self.below(kept.len() as u64 + 1) as usize, member);
        }
        kept
    }

    fn indent(&mut self, depth: usize) {
        let width = depth * self.indent_width;
        _ = write!(self.text, "{:width$}", "");
    }

    /// Ends a line, perhaps with a comment, perhaps with lines that say nothing.
    fn end_line(&mut self) {
        const COMMENTS: [&str; 6] =
            ["#", "# threads: [64]", "#\u{e9}\u{1f600} [unclosed {", "# \"", "# seed: 2 # and more", "# - 'x"];
        if self.one_in(6) {
            let space = self.chosen(&[" ", "  ", "\t"]);
            self.text.push_str(space);
            let comment = self.chosen(&COMMENTS);
            self.text.push_str(comment);
        }
        self.text.push('\n');
        if self.one_in(8) {
            let width = self.below(7) as usize;
            let comment = self.chosen(&COMMENTS);
            _ = writeln!(self.text, "{:width$}{comment}", "");
        }
        if self.one_in(8) {
            self.text.push('\n');
        }
    }

    /// Writes a map or a list over lines of its own.
    fn block(&mut self, part: &Part, depth: usize) {
        match part {
            Map(members) => {
                for Member { key, value, .. } in self.members(members) {
                    self.indent(depth);
                    self.key(key);
                    self.nested(&value, depth + 1);
                }
            }
            List(items) | Values(items) => {
                for item in items {
                    self.indent(depth);
                    self.text.push('-');
                    self.nested(item, depth + 1);
                }
            }
            scalar @ (Word(_) | Spelled(_)) => {
                self.indent(depth);
                self.flow(scalar);
                self.end_line();
            }
        }
    }

    /// Writes what follows a key or a dash: on the same line, or over the next ones.
    fn nested(&mut self, part: &Part, depth: usize) {
        let is_empty = matches!(part, List(items) if items.is_empty());
        let fits_a_line = matches!(part, Word(_) | Spelled(_));
        let is_bare = matches!(part, Values(items) if items.len() == 1);
        if fits_a_line || is_empty || self.one_in(2) {
            self.text.push(' ');
            self.flow(part);
            self.end_line();
        } else if is_bare && self.one_in(2) {
            let Values(items) = part else { unreachable!("only values stand bare") };
            self.nested(&items[0], depth);
        } else {
            self.end_line();
            self.block(part, depth);
        }
    }

    fn key(&mut self, key: &str) {
        match self.below(12) {
            0 => _ = write!(self.text, "\"{key}\":"),
            1 => _ = write!(self.text, "'{key}':"),
            2 => _ = write!(self.text, "{key} :"),
            _ => _ = write!(self.text, "{key}:"),
        }
    }

    /// Writes a part in brackets, or a scalar.
    fn flow(&mut self, part: &Part) {
        match part {
            Word(word) => {
                let quote = self.chosen(&["", "", "'", "\""]);
                _ = write!(self.text, "{quote}{word}{quote}");
            }
            Spelled(spellings) => {
                let spelling = self.chosen(spellings);
                self.text.push_str(spelling);
            }
            Values(items) if items.len() == 1 && self.one_in(2) => self.flow(&items[0]),
            Values(items) | List(items) => {
                self.enclosed('[', ']', items.len(), |pen, idx| pen.flow(&items[idx]));
            }
            Map(members) => {
                let members = self.members(members);
                self.enclosed('{', '}', members.len(), |pen, idx| {
                    pen.key(members[idx].key);
                    pen.text.push(' ');
                    pen.flow(&members[idx].value);
                });
            }
        }
    }

    fn enclosed(&mut self, begin: char, end: char, n_items: usize, mut item: impl FnMut(&mut Self, usize)) {
        let space = self.chosen(&["", " "]);
        let separator = self.chosen(&[", ", ", ", ",", " , ", BREAK, BREAK_AFTER_COMMENT]);
        let trailing = if n_items > 0 { self.chosen(&["", "", ","]) } else { "" };
        self.text.push(begin);
        self.text.push_str(space);
        for idx in 0..n_items {
            if idx > 0 {
                self.text.push_str(separator);
            }
            item(self, idx);
        }
        self.text.push_str(trailing);
        self.text.push_str(space);
        self.text.push(end);
    }
}

/// Keys that every spec below leaves at their defaults.
fn defaults() -> Vec<Member> {
    vec![
        optional("family", Word("set")),
        optional("range_query", words(&["none"])),
        optional("huge_pages", words(&["system"])),
        optional("environment_padding", Values(vec![Spelled(&["0B", "0KiB"])])),
        optional("priority", Values(vec![Spelled(&["0"])])),
        optional("object_pool", words(&["none"])),
        optional("nodes", Map(vec![optional("padding", Values(vec![Spelled(&["0"])]))])),
        optional(
            "harness",
            Map(vec![
                optional("time_check", words(&["flag"])),
                optional("padding", Values(vec![Spelled(&["128"])])),
                optional("generator", words(&["xoshiro256++"])),
            ]),
        ),
        optional("order", Word("random")),
        // Not in the hash, so their presence must not matter either.
        optional("question", Spelled(&["Why?", "'*Why*?'", "\"Why:\\n\\ntell me\"", "\"\u{202e}<script>\""])),
        optional("budget", Spelled(&["none", "1h", "60m"])),
        optional("limits", Map(vec![optional("cells", Spelled(&["100k", "200k", "5000"]))])),
    ]
}

fn smallest() -> Part {
    let mut members = defaults();
    members.extend([
        member("rare", Spelled(&["1"])),
        member("name", Word("smallest")),
        member("structures", words(&["nm14"])),
        optional("allocators", words(&["system"])),
        optional("reclamation", words(&["epoch"])),
        optional("pinning", words(&["compact"])),
        optional("threads", words(&["all"])),
        optional("key_ranges", Values(vec![Spelled(&["100k", "100000"])])),
        optional(
            "mixes",
            Map(vec![member(
                "update-heavy",
                Map(vec![member("insert", Spelled(&["50", "50%"])), member("remove", Spelled(&["50", "rest"]))]),
            )]),
        ),
        optional("distribution", words(&["uniform"])),
        optional("prefill", Values(vec![Spelled(&["half", "50%", "'half'"])])),
        optional("aslr", words(&["on"])),
        optional(
            "trials",
            Map(vec![
                optional("count", Spelled(&["10"])),
                optional("length", Values(vec![Spelled(&["3s", "3000ms", "3000000us"])])),
            ]),
        ),
        optional("sanity_checks", Word("all")),
        optional("instruments", words(&["accounting"])),
        optional("exclude", List(Vec::new())),
        optional("include", List(Vec::new())),
        optional("zip", List(Vec::new())),
        optional("claims", List(Vec::new())),
        optional("seed", Spelled(&["1"])),
    ]);
    Map(members)
}

fn crossed() -> Part {
    let mut members = defaults();
    let mix = |insert, remove, contains| {
        Map(vec![member("insert", Spelled(insert)), member("remove", Spelled(remove)), contains])
    };
    let mixes = Map(vec![
        member(
            "update-heavy",
            mix(&["50", "50%", "rest"], &["50", "50%"], optional("contains", Spelled(&["0", "0%"]))),
        ),
        member("read-mostly", mix(&["5"], &["5", "5%"], member("contains", Spelled(&["90", "90%", "rest"])))),
    ]);
    let over = Map(vec![
        member("structures", words(&["harris01"])),
        member("key_ranges", Map(vec![member("over", Spelled(&["10k", "10000"]))])),
    ]);
    let more = Map(vec![
        member("structures", words(&["nm14"])),
        member("key_ranges", Values(vec![Spelled(&["10M", "10000k", "10000000"])])),
    ]);
    let margin = Map(vec![
        member("that", Word("nm14 > harris01")),
        member("by", Spelled(&["5%", "7.5%"])),
        member("where", Map(vec![member("key_ranges", Spelled(&["100", "100"]))])),
    ]);
    members.extend([
        member("rare", Spelled(&["1"])),
        member("name", Word("crossed")),
        member("structures", words(&["nm14", "harris01"])),
        member("allocators", words(&["system", "jemalloc"])),
        member("pinning", Values(vec![Word("compact"), Word("none")])),
        member("threads", Values(vec![Spelled(&["1"]), Spelled(&["2"]), Word("all")])),
        member("key_ranges", Values(vec![Spelled(&["100"]), Spelled(&["100k", "100000"])])),
        member("mixes", mixes),
        member("distribution", Values(vec![Word("uniform"), Map(vec![member("zipf", Spelled(&["0.99", "0.990"]))])])),
        member(
            "trials",
            Map(vec![
                member("count", Spelled(&["5"])),
                member("length", Spelled(&["200ms", "200000us", "200000000ns"])),
            ]),
        ),
        member("exclude", List(vec![over])),
        member("include", List(vec![more])),
        optional("claims", List(vec![Word("nm14 > harris01"), margin])),
        member("seed", Spelled(&["18446744073709551615"])),
    ]);
    Map(members)
}

fn linked() -> Part {
    let mut members = defaults();
    members.extend([
        member("rare", Spelled(&["1"])),
        member("name", Word("linked")),
        member(
            "structures",
            Values(vec![
                Word("nm14"),
                Map(vec![
                    member("use", Word("nm14")),
                    member("as", Word("nm14-leaking")),
                    member("reclamation", Word("none")),
                ]),
            ]),
        ),
        member(
            "pinning",
            Values(vec![Map(vec![member("cpus", List(vec![Spelled(&["0"]), Spelled(&["1"]), Spelled(&["2"])]))])]),
        ),
        member("threads", Values(vec![Spelled(&["1"]), Spelled(&["3"])])),
        member("key_ranges", Values(vec![Spelled(&["1k", "1000"]), Spelled(&["3k", "3000"])])),
        member("prefill", Values(vec![Spelled(&["full", "100%"]), Spelled(&["100"])])),
        member("zip", List(vec![List(vec![Word("threads"), Word("key_ranges")])])),
        member("trials", Map(vec![member("count", Spelled(&["2"])), optional("length", Spelled(&["3s", "3000ms"]))])),
        member("instruments", Word("none")),
        member("sanity_checks", words(&["checksum", "prefill"])),
    ]);
    Map(members)
}

/// Hashes of the specs as texts: they also change when a default does.
pub fn hashes() -> Vec<(&'static str, PlanHash)> {
    let documents = [("smallest.yaml", smallest()), ("crossed.yaml", crossed()), ("linked.yaml", linked())];
    documents.map(|(name, document)| (name, hash(&Pen::write(&document, 0)))).to_vec()
}

#[test]
fn ten_thousand_rewrites_keep_their_hashes() {
    let documents = [smallest(), crossed(), linked()];
    for (document_idx, document) in documents.iter().enumerate() {
        let plan = plan(&Pen::write(document, 0));
        assert_eq!(Plan::from_canonical(&plan.canonical()).unwrap(), plan);
        let expected = plan.hash();
        let mut texts = std::collections::BTreeSet::new();
        let n_rewrites = N_REWRITES.div_ceil(documents.len() as u64);
        for seed in 0..n_rewrites {
            let text = Pen::write(document, seed);
            assert_eq!(hash(&text), expected, "document {document_idx}, seed {seed}:\n{text}");
            texts.insert(text);
        }
        // A pen that always wrote the same would prove nothing.
        assert!(texts.len() as u64 > n_rewrites * 99 / 100, "only {} texts differ", texts.len());
    }
}
