//! Plans of spec texts: what changes their hash, and mistakes that only the plan can see.

use std::collections::BTreeMap;

use rare::{
    diag::{self, Source},
    plan::{Plan, PlanHash},
    spec,
};

/// The hash of the plan of a spec.
pub fn hash(text: &str) -> PlanHash {
    plan(text).hash()
}

/// The plan of a spec.
pub fn plan(text: &str) -> Plan {
    let source = Source { name: "rewritten.yaml".to_owned(), text: text.to_owned() };
    let compiled = spec::compile(&source, false)
        .unwrap_or_else(|found| panic!("{}\n{text}", diag::render(&found, &source, false)));
    Plan::compile(&compiled.spec, rare::verdict::probes).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn what_the_text_says_differently_has_another_hash() {
    const TEXT: &str = "rare: 1\nname: fixed\nquestion: Why?\nstructures: [nm14, harris01]\nthreads: [1, 2]\n\
        key_ranges: [100, 10k]\nmixes: {a: {insert: 20, remove: 10, contains: 70}, b: {contains: 100}}\n\
        distribution: {zipf: 0.99}\nprefill: half\ntrials: {count: 3, length: 3s}\nseed: 9007199254740992\n\
        order: random\ninstruments: none\nsanity_checks: [checksum]\nclaims: [nm14 > harris01]\n\
        limits: {time: 20h}\nbudget: 1h\nquick: {trials: {count: 2}}\n";
    const IDENTITY: &[(&str, &str)] = &[
        ("[nm14, harris01]", "[harris01, nm14]"),
        ("[nm14, harris01]", "[nm14, harris01, noop]\nallow: [semantics]"),
        ("[nm14, harris01]", "[nm14, {use: harris01, as: harris01, reclamation: none}]"),
        ("[1, 2]", "[2, 1]"),
        ("[1, 2]", "[1, all]"),
        ("[1, 2]", "[1, 2]\nzip: [[threads, key_ranges]]"),
        ("[1, 2]", "[1, 2]\nexclude: [{threads: 2, key_ranges: 100}]"),
        ("[1, 2]", "[1, 2]\ninclude: [{threads: 4}]"),
        ("[1, 2]", "[1, 2]\npinning: none"),
        ("[1, 2]", "[1, 2]\nallocators: mimalloc"),
        ("[1, 2]", "[1, 2]\naslr: off"),
        ("[1, 2]", "[1, 2]\nhuge_pages: never"),
        ("[1, 2]", "[1, 2]\nenvironment_padding: 1B"),
        ("[1, 2]", "[1, 2]\npriority: 1"),
        ("10k", "10001"),
        ("insert: 20, remove: 10", "insert: 10, remove: 20"),
        ("0.99", "0.990001"),
        ("prefill: half", "prefill: 50"),
        ("count: 3", "count: 4"),
        ("length: 3s", "length: 3001ms"),
        ("9007199254740992", "9007199254740993"),
        ("order: random", "order: listed"),
        ("instruments: none", "instruments: [accounting]"),
        ("[checksum]", "[checksum, prefill]"),
    ];
    const ELSE: &[(&str, &str)] = &[
        ("name: fixed", "name: renamed"),
        ("question: Why?\n", ""),
        ("{a: {", "{first: {"),
        ("claims: [nm14 > harris01]\n", ""),
        ("nm14 > harris01", "harris01 > nm14"),
        ("20h", "21h"),
        ("budget: 1h", "budget: 2h"),
        ("count: 2}", "count: 1}"),
    ];
    let replaced = |(part, other): &(&str, &str)| {
        let text = TEXT.replacen(part, other, 1);
        assert_ne!(text, TEXT, "the text has no `{part}`");
        text
    };
    let mut seen = BTreeMap::from([(hash(TEXT), TEXT.to_owned())]);
    for change in IDENTITY {
        if let Some(other) = seen.insert(hash(&replaced(change)), replaced(change)) {
            panic!("{change:?} has the hash of\n{other}");
        }
    }
    for change in ELSE {
        assert_eq!(hash(&replaced(change)), hash(TEXT), "{change:?} has another hash");
    }
}

/// What the plan has against a spec, as a person sees it.
fn rendered_faults(text: &str) -> String {
    let source = Source { name: "idle.yaml".to_owned(), text: text.to_owned() };
    let compiled = spec::compile(&source, false).unwrap();
    diag::render(&Plan::compile(&compiled.spec, rare::verdict::probes).unwrap_err().diagnostics(), &source, false)
}

#[test]
fn rules_without_cells_are_shown_at_their_places() {
    let rendered = rendered_faults(
        "rare: 1\nname: idle\nstructures: [nm14, harris01]\nthreads: [1, 2]\nkey_ranges: [100, 200]\n\
         zip: [[threads, key_ranges]]\nexclude: [{threads: 1, key_ranges: 200}]\n\
         include: [{threads: [1, 2], pinning: compact, key_ranges: 100, structures: nm14}]\n\
         claims: [{that: nm14 > harris01, where: {threads: 2, key_ranges: 100}}]\n",
    );
    for expected in ["idle.yaml:7:11", "idle.yaml:9:10", "no cell of `harris01` lies in its scope"] {
        assert!(rendered.contains(expected), "`{expected}` is not in\n{rendered}");
    }
}

#[test]
fn inclusions_without_cells_are_shown_at_their_places() {
    let rendered = rendered_faults(
        "rare: 1\nname: idle\nstructures: [nm14]\nthreads: [1, 2]\ninclude: [{threads: 3}, {threads: 2}]\n",
    );
    assert!(rendered.contains("idle.yaml:5:25"), "{rendered}");
}

#[test]
fn rules_that_leave_nothing_are_shown_together() {
    let rendered = rendered_faults(
        "rare: 1\nname: idle\nstructures: [nm14]\nthreads: [1, 2]\nexclude: [{threads: 1}, {threads: 2}]\n",
    );
    assert!(rendered.contains("idle.yaml:5:11") && rendered.contains("leave no cell"), "{rendered}");
}
