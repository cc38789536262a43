//! Whole specs: what they compile to, what they are refused for, and that nothing makes the compiler panic.

mod support;

use rare::{
    diag::{self, Source},
    spec::{
        self, Catalogue, Spec, fields,
        model::{Condition, Order},
        value::{Allocator, Parameter, Pinning, Prefill, RangeQuery, Threads, Value},
        words,
    },
    units::{BasisPoints, Bytes, Nanos},
};
use rare_workloads::protocol::{Distribution, Mix, Reclamation};

const SMALL: &str = "rare: 1\nname: small\nstructures: [nm14]\n";

/// The example of the documentation, without what this version cannot do.
const EXAMPLE: &str = "\
rare: 1
name: bst
question: Which concurrent search tree is faster, and does the answer survive the configuration?
family: set
structures: [nm14, mutex-btree, harris01, {use: nm14, as: nm14-leaking, reclamation: none}]
allocators: [system, jemalloc]
reclamation: epoch
pinning: [compact, none]
threads: [1, 2, all]
key_ranges: [100, 100k]
mixes:
  update-heavy: {insert: 50, remove: 50}
  read-mostly: {insert: 5, remove: 5, contains: 90}
prefill: half
trials: {count: 5, length: 3s}
sanity_checks: all
instruments: [accounting]
exclude: [{structures: harris01, key_ranges: {over: 10k}}]
claims:
  - nm14 > mutex-btree
  - {that: nm14 > mutex-btree, by: 5%, where: {key_ranges: 100k}}
quick: {trials: {count: 3, length: 200ms}, key_ranges: [100, 10k]}
";

fn source(text: &str) -> Source {
    Source { name: "test.yaml".to_owned(), text: text.to_owned() }
}

#[track_caller]
fn compiled(text: &str) -> Spec {
    let source = source(text);
    match spec::compile(&source, false) {
        Ok(compiled) => compiled.spec,
        Err(found) => panic!("{}", diag::render(&found, &source, false)),
    }
}

fn codes(text: &str) -> Vec<&'static str> {
    let found = spec::compile(&source(text), false).err().unwrap_or_default();
    found.iter().map(|diagnostic| diagnostic.code.id).collect()
}

#[test]
fn the_example_compiles_to_what_it_says() {
    let spec = compiled(EXAMPLE);
    assert_eq!((spec.name.as_str(), spec.n_trials, spec.order, spec.quick), ("bst", 5, Order::Random, false));
    assert_eq!(spec.axis(Parameter::Threads).last(), Some(&Value::Threads(Threads::All)));
    assert_eq!(spec.axis(Parameter::KeyRange), [Value::Count(100), Value::Count(100_000)]);
    let heavy = Mix { insert: 5_000, remove: 5_000, contains: 0, range: 0 };
    let mostly = Mix { insert: 500, remove: 500, contains: 9_000, range: 0 };
    assert_eq!(spec.axis(Parameter::Mix), [Value::Mix(heavy), Value::Mix(mostly)]);
    assert_eq!(spec.mix_names, [(heavy, "update-heavy".to_owned()), (mostly, "read-mostly".to_owned())]);
    let leaking = ("nm14-leaking".to_owned(), Parameter::Reclamation, Value::Reclamation(Reclamation::None));
    assert_eq!(spec.overrides, [leaking]);
    let rule = &spec.exclude[0];
    assert_eq!(&EXAMPLE[rule.at.clone()], "{structures: harris01, key_ranges: {over: 10k}}");
    assert_eq!(rule.conditions[0], (Parameter::Structure, vec![Condition::Named("harris01".to_owned())]));
    assert_eq!(rule.conditions[1], (Parameter::KeyRange, vec![Condition::Over(10_000)]));
    let claim = &spec.claims[1];
    assert_eq!((claim.faster.as_str(), claim.slower.as_str(), claim.by), ("nm14", "mutex-btree", BasisPoints(500)));
    assert_eq!(claim.scope.conditions, [(Parameter::KeyRange, vec![Condition::Is(Value::Count(100_000))])]);
    let all: Vec<&str> = words::names(words::CHECKS).collect();
    assert_eq!(spec.checks, all);
    assert_eq!(spec.instruments, ["accounting"]);
}

#[test]
fn the_quick_block_is_laid_over() {
    let source = source(EXAMPLE);
    let compiled = spec::compile(&source, true).unwrap();
    let spec = compiled.spec;
    assert!(spec.quick);
    assert_eq!(spec.n_trials, 3);
    assert_eq!(spec.axis(Parameter::TrialLength), [Value::Duration(Nanos(200_000_000))]);
    assert_eq!(spec.axis(Parameter::KeyRange), [Value::Count(100), Value::Count(10_000)]);
    assert!(spec.exclude.is_empty(), "no key range of the quick run is over 10k");
    assert_eq!(spec.claims.len(), 1, "the claim about 100k keys cannot be decided");
    let warnings: Vec<_> = compiled.warnings.iter().map(|warning| warning.code.id).collect();
    assert_eq!(warnings, ["W0301"]);
    assert_eq!(spec::compile(&source, false).unwrap().warnings, []);
}

#[test]
fn a_mistake_of_both_runs_is_said_once() {
    assert_eq!(
        codes(&format!("{SMALL}threads: [1, 2]\nexclude: [{{threads: 3}}]\nquick: {{threads: 1}}\n")),
        ["E0215"]
    );
    assert_eq!(codes(&format!("{SMALL}threads: [1, 2]\nquick: {{threads: 0}}\n")), ["E0110"]);
}

#[test]
fn a_quick_run_may_leave_structures_out() {
    let text = "rare: 1\nname: a\nstructures: [nm14, harris01]\nthreads: [1, 2]\nexclude: [{structures: harris01, threads: 1}]\n\
                include: [{structures: harris01, threads: 8}]\nclaims: [nm14 > harris01]\nquick: {structures: nm14}\n";
    let spec = spec::compile(&source(text), true).unwrap().spec;
    assert!(spec.exclude.is_empty() && spec.include.is_empty() && spec.claims.is_empty());
}

#[test]
fn defaults_are_the_same_as_written_ones() {
    let mut written = SMALL.to_owned();
    let mut groups: std::collections::BTreeMap<&str, Vec<String>> = std::collections::BTreeMap::new();
    for field in fields::FIELDS {
        let fields::Default::Text(default) = field.default else { continue };
        match field.key.split_once('.') {
            Some((group, leaf)) => groups.entry(group).or_default().push(format!("{leaf}: {default}")),
            None => written += &format!("{}: {default}\n", field.key),
        }
    }
    for (group, leaves) in groups {
        written += &format!("{group}: {{{}}}\n", leaves.join(", "));
    }
    assert_eq!(compiled(&written), compiled(SMALL));
}

#[test]
fn every_form_of_a_value_is_read() {
    let one = |line: &str, parameter: Parameter| compiled(&format!("{SMALL}{line}\n")).axis(parameter).to_vec();
    let rows = [
        (
            "allocators: {preload: /opt/a b.so}",
            Parameter::Allocator,
            Value::Allocator(Allocator::Preload("/opt/a b.so".into())),
        ),
        ("pinning: {cpus: [0, 2]}\nthreads: 2", Parameter::Pinning, Value::Pinning(Pinning::Cpus(vec![0, 2]))),
        ("distribution: {zipf: 0.99}", Parameter::Distribution, Value::Distribution(Distribution::Zipf(990_000))),
        ("distribution:\n  zipf: 1", Parameter::Distribution, Value::Distribution(Distribution::Zipf(1_000_000))),
        ("prefill: none", Parameter::Prefill, Value::Prefill(Prefill::Share(BasisPoints(0)))),
        ("prefill: 2.5%", Parameter::Prefill, Value::Prefill(Prefill::Share(BasisPoints(250)))),
        ("prefill: 0", Parameter::Prefill, Value::Prefill(Prefill::Share(BasisPoints(0)))),
        ("prefill: 1k", Parameter::Prefill, Value::Prefill(Prefill::Keys(1_000))),
        ("trials: {length: 1.5s}", Parameter::TrialLength, Value::Duration(Nanos(1_500_000_000))),
        ("environment_padding: 64KiB", Parameter::EnvironmentPadding, Value::Bytes(Bytes(65_536))),
        ("priority: -20", Parameter::Priority, Value::Nice(-20)),
        ("aslr: off", Parameter::Aslr, Value::Word("off")),
        ("harness: {padding: 128}", Parameter::HarnessPadding, Value::Count(128)),
        (
            "mixes: {insert: 0.5, remove: 0.5%, contains: rest}",
            Parameter::Mix,
            Value::Mix(Mix { insert: 50, remove: 50, contains: 9_900, range: 0 }),
        ),
        ("range_query: none", Parameter::RangeQuery, Value::RangeQuery(RangeQuery::None)),
    ];
    for (line, parameter, value) in rows {
        assert_eq!(one(line, parameter), [value], "{line}");
    }
    assert_eq!(one("distribution: [uniform, zipf: 0.5]", Parameter::Distribution).len(), 2);
    assert_eq!(compiled(&format!("{SMALL}seed: 18446744073709551615\n")).seed, u64::MAX);
    assert_eq!(compiled(&format!("{SMALL}budget: 2h\n")).budget, Some(Nanos(7_200_000_000_000)));
}

/// What a spec over structures with range queries says wrongly.
fn range_codes(lines: &str) -> Vec<&'static str> {
    codes(&format!("rare: 1\nname: ranges\nstructures: [mutex-btree, rwlock-btree]\n{lines}"))
}

#[test]
fn range_queries_have_a_share_and_a_size() {
    let scans = "mixes: {insert: 5, remove: 5, range: 10, contains: rest}\n";
    let both = "mixes: {scans: {range: 10, contains: rest}, reads: {contains: 100}}\n";
    let rows: [(&str, &str, &[&str]); 15] = [
        (scans, "range_query: 100", &[]),
        (scans, "range_query: {size: 100}", &[]),
        (scans, "range_query: [10, {size: 1k}]", &[]),
        (scans, "range_query: [10, {size: 10}]", &["E0206"]),
        (scans, "range_query: 0", &["E0110"]),
        (scans, "range_query: {length: 10}", &["E0101"]),
        (scans, "range_query: many", &["E0105"]),
        (scans, "", &["E0227"]),
        (scans, "range_query: [none, 10]", &["E0227"]),
        ("mixes: {contains: 100}\n", "range_query: 10", &["E0228"]),
        (both, "range_query: 10", &[]),
        (both, "range_query: [10, 100]", &["E0228"]),
        (both, "range_query: [10, 100]\nexclude: [{mixes: reads, range_query: {over: 10}}]", &[]),
        (both, "range_query: [10, none]\nzip: [[mixes, range_query]]", &[]),
        (both, "range_query: [none, 10]\nzip: [[mixes, range_query]]", &["E0227", "E0228"]),
    ];
    for (mixes, line, expected) in rows {
        assert_eq!(range_codes(&format!("{mixes}{line}\n")), expected, "{mixes}{line}");
    }
    let spec = compiled(&format!("rare: 1\nname: ranges\nstructures: [mutex-btree]\n{scans}range_query: 1k\n"));
    let mix = Mix { insert: 500, remove: 500, contains: 8_000, range: 1_000 };
    assert_eq!(spec.axis(Parameter::Mix), [Value::Mix(mix)]);
    assert_eq!(spec.axis(Parameter::RangeQuery), [Value::RangeQuery(RangeQuery::Keys(1_000))]);
}

#[test]
fn a_structure_without_a_range_query_is_refused_where_it_is_asked_for_one() {
    let text = |rest: &str| {
        format!(
            "rare: 1\nname: ranges\nstructures: [rwlock-btree, nm14]\nrange_query: 10\n\
                 mixes: {{scans: {{range: 10, contains: rest}}, reads: {{contains: 100}}}}\n{rest}"
        )
    };
    assert_eq!(codes(&text("")), ["E0226"]);
    assert_eq!(codes(&text("exclude: [{structures: nm14, mixes: scans}]\n")), Vec::<&str>::new());
    assert_eq!(codes(&text("exclude: [{structures: nm14, mixes: reads}]\n")), ["E0226"]);
}

#[test]
fn the_order_of_keys_makes_no_difference() {
    let a = "mixes:\n  reads: {contains: 100}\n  writes: {insert: 50, remove: 50}\n";
    let b = "mixes:\n  writes: {remove: 50, insert: 50}\n  reads: {contains: 100}\n";
    assert_eq!(compiled(&format!("{SMALL}{a}")), compiled(&format!("{SMALL}{b}")));
    let linked = "threads: [1, 2]\nzip: [[mixes, threads]]\n";
    let order = |mixes: &str| compiled(&format!("{SMALL}{mixes}{linked}")).axis(Parameter::Mix).to_vec();
    assert_ne!(order(a), order(b), "linked mixes are paired as written");
}

#[test]
fn all_mistakes_are_found_in_one_go_and_sorted() {
    let text = "rare: 1\nname: no\nstructures: [nm14, nm41]\nthreads: [0, 1, 1]\nkey_ranges: 1_000\npinning: compct\n\
                mixes: {insert: 50}\ntrials: {length: 3, counts: 2}\nclaims: [nm14 > harris01, nm14]\nzip: [[threads, key_ranges]]\n";
    let expected = ["E0111", "E0201", "E0110", "E0206", "E0107", "E0105", "E0207", "E0109", "E0101", "E0212"];
    assert_eq!(codes(text), expected, "neither the claim about harris01 nor zip is judged on incomplete axes");
}

#[test]
fn combinations_that_never_occur_are_not_judged() {
    let rows: [(&str, &[&str]); 6] = [
        ("key_ranges: [100, 10k]\nprefill: [half, 1k]\n", &["E0209"]),
        ("key_ranges: [100, 10k]\nprefill: [half, 1k]\nexclude: [{key_ranges: 100, prefill: 1k}]\n", &[]),
        ("key_ranges: [100, 10k]\nprefill: [half, 1k]\nzip: [[key_ranges, prefill]]\n", &[]),
        ("key_ranges: [10k, 100]\nprefill: [half, 1k]\nzip: [[key_ranges, prefill]]\n", &["E0209"]),
        ("key_ranges: 10k\nprefill: 1k\ninclude: [{key_ranges: 100}]\n", &["E0209"]),
        ("pinning: [{cpus: [0]}, none]\nthreads: [1, 2]\nexclude: [{pinning: {cpus: [0]}, threads: {over: 1}}]\n", &[]),
    ];
    for (lines, expected) in rows {
        assert_eq!(codes(&format!("{SMALL}{lines}")), expected, "{lines}");
    }
}

#[test]
fn abilities_are_judged_for_each_structure() {
    let catalogue = Catalogue { structures: support::STRUCTURES, controls: &[], planned: &["later"] };
    let codes = |text: &str| -> Vec<&str> {
        let found = spec::compile_with(&source(&format!("rare: 1\nname: a\n{text}")), false, &catalogue);
        found.err().unwrap_or_default().iter().map(|diagnostic| diagnostic.code.id).collect()
    };
    let rows: [(&str, &[&str]); 13] = [
        ("structures: [both]\n", &[]),
        ("structures: [both, leaky]\n", &["E0203"]),
        ("structures: [both, leaky]\nreclamation: none\n", &[]),
        ("structures: [both, {use: leaky, reclamation: none}]\n", &[]),
        ("structures: [{use: leaky, reclamation: epoch}]\nreclamation: none\n", &["E0203"]),
        (
            "structures: [both, leaky]\nreclamation: [none, epoch]\nexclude: [{structures: leaky, reclamation: epoch}]\n",
            &[],
        ),
        ("structures: [both]\nobject_pool: per-thread\nnodes: {padding: [0, 64]}\n", &[]),
        ("structures: [both, leaky]\nreclamation: none\nobject_pool: [none, per-thread]\n", &["E0225"]),
        ("structures: [both, leaky]\nreclamation: none\nnodes: {padding: [64, 128]}\n", &["E0225", "E0225"]),
        ("structures: [{use: both, padding: 64, object_pool: per-thread}, {use: leaky, reclamation: none}]\n", &[]),
        ("structures: [both, {use: leaky, object_pool: none}]\nreclamation: none\nobject_pool: per-thread\n", &[]),
        ("structures: [{use: both, fanout: 4}]\n", &[]),
        ("structures: [{use: both, fanout: 1}, later]\n", &["E0110", "E0106"]),
    ];
    for (text, expected) in rows {
        assert_eq!(codes(text), expected, "{text}");
    }
    let text = source("rare: 1\nname: a\nstructures: [both, leaky]\n");
    let found = spec::compile_with(&text, false, &catalogue).unwrap_err();
    let expected = "error[E0203]: `leaky` does not support `reclamation: epoch`\n --> test.yaml:3:20\n  |\n3 | structures: [both, leaky]\n  \
                    |                    ^^^^^ supports `none`\n  |\n  = help: give it one of its own, `{use: leaky, reclamation: …}`, or leave the pair out by \
                    `exclude: [{structures: leaky, reclamation: epoch}]`\n\n1 error, `rare explain E0203` says more\n";
    assert_eq!(diag::render(&found, &text, false), expected);
}

#[test]
fn the_batch_of_hyaline_is_explicit() {
    let schemes = |text: &str| {
        let spec = compiled(&format!("rare: 1\nname: a\nstructures: [nm14]\nreclamation: {text}\n"));
        spec.axis(Parameter::Reclamation).to_vec()
    };
    let hyaline = |batch| Value::Reclamation(Reclamation::Hyaline { batch });
    assert_eq!(schemes("hyaline"), [hyaline(32)]);
    assert_eq!(schemes("{hyaline: {batch: 32}}"), [hyaline(32)]);
    let epoch = Value::Reclamation(Reclamation::Epoch);
    assert_eq!(schemes("[epoch, hyaline, {hyaline: {batch: 4}}]"), [epoch, hyaline(32), hyaline(4)]);
    assert_eq!(hyaline(4).to_string(), "hyaline (batch 4)");
    for (text, code) in [
        ("{hyaline: 4}", "E0104"),
        ("{hyaline: {}}", "E0104"),
        ("{hyaline: {batch: 65537}}", "E0110"),
        ("{hyaline: {batches: 4}}", "E0101"),
        ("{hazard: {batch: 4}}", "E0101"),
    ] {
        assert_eq!(codes(&format!("{SMALL}reclamation: {text}\n")), [code], "{text}");
    }
}

#[test]
fn structure_parameters_are_explicit() {
    let catalogue = Catalogue { structures: support::STRUCTURES, controls: &[], planned: &[] };
    let text = source("rare: 1\nname: a\nstructures: [both, {use: both, as: wide, fanout: 32}]\n");
    let spec = spec::compile_with(&text, false, &catalogue).unwrap().spec;
    let fanouts: Vec<u64> = spec
        .axis(Parameter::Structure)
        .iter()
        .map(|value| match value {
            Value::Structure(structure) => structure.parameters["fanout"],
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(fanouts, [16, 32]);
}

#[test]
fn controls_can_be_named_and_are_never_offered() {
    for control in rare_workloads::structures::CONTROLS {
        let name = control.info.name;
        assert_eq!(codes(&format!("rare: 1\nname: a\nstructures: [{name}]\n")), [""; 0], "{name}");
        // One slip of the pen away.
        let text = source(&format!("rare: 1\nname: a\nstructures: [{}]\n", name.replacen("control", "contrl", 1)));
        let found = spec::compile(&text, false).unwrap_err();
        let rendered = diag::render(&found, &text, false);
        assert!(rendered.contains("E0201") && !rendered.contains("control-"), "{rendered}");
    }
}

#[test]
fn a_large_spec_is_refused_by_its_size() {
    let text = format!("{SMALL}# {}\n", "x".repeat(1_000_000));
    assert_eq!(codes(&text), ["E0002"]);
}

#[test]
fn carets_stay_in_place_in_hostile_text() {
    let text = "\u{feff}rare: 1\r\nname: small\r\nstructures: [nm14]\r\nquestion: \"\u{202e}ключ 日本語\"\r\nmixes: {'日本\u{202e}': {contains:\t100}, b: {contains: 1}}\r\n";
    let found = spec::compile(&source(text), false).unwrap_err();
    let rendered = diag::render(&found, &source(text), false);
    assert!(!rendered.contains(['\u{202e}', '\r', '\u{feff}', '\t']), "{rendered}");
    let lines: Vec<&str> = rendered.lines().collect();
    let second = lines.iter().position(|line| line.contains("E0207")).unwrap();
    assert_eq!(lines[second + 1], " --> test.yaml:5:36");
    let json = diag::to_json(&found, &source(text));
    assert_eq!(
        (json[0]["code"].as_str(), json[0]["line"].as_u64(), json[0]["column"].as_u64()),
        (Some("E0112"), Some(5), Some(9))
    );
    assert_eq!(
        (json[1]["code"].as_str(), json[1]["column"].as_u64(), json[1]["end_column"].as_u64()),
        (Some("E0207"), Some(36), Some(49))
    );
    assert_eq!(json[1]["help"][0], "raise a share, or write `contains: rest`");
    assert_eq!(json[1]["labels"][0]["message"], "99% is missing");
    let colored = diag::render(&found, &Source { name: "\u{1b}]0;x\u{7}.yaml".into(), text: text.into() }, true);
    let escapes = colored.split('\u{1b}').skip(1);
    assert!(escapes.clone().count() > 0 && escapes.into_iter().all(|rest| rest.starts_with('[')), "{colored:?}");
}

#[test]
fn a_hundred_thousand_mistakes_are_rendered_quickly() {
    let started = std::time::Instant::now();
    for text in [
        format!("threads: [{}]\n", "0, ".repeat(100_000)),
        "threads: 1\n".repeat(80_000),
        format!("name: {}\n", "é".repeat(400_000)),
    ] {
        let text = source(&text);
        let found = spec::compile(&text, false).unwrap_err();
        assert!(diag::render(&found, &text, true).len() < 2_000_000);
    }
    assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
}

#[test]
fn what_is_outside_the_hash_is_listed_with_its_reason() {
    let listed: Vec<_> = fields::outside_hash().collect();
    assert!(listed.iter().any(|(key, class, _)| (*key, *class) == ("question", "display")));
    assert!(listed.iter().all(|(key, _, _)| *key != "seed"));
}

/// Mutates specs at random and holds the compiler to its contract: a spec or at least one error, and no panic.
#[test]
fn random_mutations_give_a_spec_or_an_error() {
    let seed = std::env::var("RARE_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1_u64);
    println!("RARE_TEST_SEED={seed}");
    let mut random = support::Random(seed);
    let pieces = [
        "[",
        "]",
        "{",
        "}",
        ": ",
        ",",
        "\n",
        "- ",
        "  ",
        "\"",
        "'",
        "#",
        "&a ",
        "*a",
        "!t ",
        "no",
        "0",
        "010",
        "-1",
        "1e6",
        "99999999999999999999",
        "3s",
        "5%",
        "all",
        "none",
        "rest",
        "null",
        "~",
        "nm14",
        "> ",
        "quick: ",
        "\t",
        "\u{1b}",
        "é",
        "𝄞",
        "\u{202e}",
        "\r\n",
        "over",
        "zip",
        "---\n",
        "<<: ",
        "? ",
        "|\n",
        "%",
        "0B",
        "..",
        "threads",
        "trials",
        "",
    ];
    let (mut n_specs, mut n_refused) = (0, 0);
    for _ in 0..20_000 {
        let mut text: Vec<char> = EXAMPLE.chars().collect();
        for _ in 0..=random.below(3) {
            let at = random.below(text.len());
            let end = (at + random.below(6)).min(text.len());
            text.splice(at..end, pieces[random.below(pieces.len())].chars());
        }
        let text = source(&text.into_iter().collect::<String>());
        match spec::compile(&text, random.below(2) == 0) {
            Ok(_) => n_specs += 1,
            Err(found) => {
                n_refused += 1;
                assert!(found.iter().any(|it| it.severity() == diag::Severity::Error), "{}", text.text);
                // Rendering takes longer than compiling; a part of the texts is enough to find a panic.
                if random.below(8) == 0 {
                    let rendered = diag::render(&found, &text, false);
                    assert!(!rendered.contains(['\u{1b}', '\u{202e}', '\r']), "{rendered:?}");
                }
            }
        }
    }
    assert!(n_specs > 100 && n_refused > 1_000, "{n_specs} specs, {n_refused} refusals");
}

#[test]
fn good_specs_fit_the_schema_and_misspelt_keys_do_not() {
    let schema = spec::schema();
    let fits = |text: &str| {
        let instance: serde_json::Value = serde_yaml::from_str(text).unwrap();
        support::fits(&schema, &schema, &instance)
    };
    for text in [SMALL, EXAMPLE] {
        assert_eq!(fits(text), Ok(()), "{text}");
    }
    for (key, value) in [
        ("treads", "1"),
        ("threads", "[[1]]"),
        ("trials", "{counts: 1}"),
        ("pinning", "compct"),
        ("quick", "{name: a}"),
    ] {
        assert!(fits(&format!("{SMALL}{key}: {value}\n")).is_err(), "{key}: {value}");
    }
    for field in fields::FIELDS {
        let pointer = format!("/properties/{}", field.key.replace('.', "/properties/"));
        let property = schema.pointer(&pointer).unwrap_or_else(|| panic!("{} is not in the schema", field.key));
        assert!(property["description"].as_str().is_some_and(|it| it.starts_with(field.meaning)), "{}", field.key);
    }
}
