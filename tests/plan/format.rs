//! The bytes of a plan: canonical, explained leaf by leaf, read back exactly, refused when anything is off.

use rare::{
    plan::{Plan, PlanReadError},
    spec::value::{Parameter, Value},
};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use crate::specs;

/// Plans with every form of every value, held and varied.
fn plans() -> Vec<Plan> {
    let held = Parameter::ALL.into_iter().flat_map(|parameter| {
        specs::unusual(parameter).into_iter().map(move |value| specs::with_axes([(parameter, vec![value])]))
    });
    let varied = Parameter::ALL.into_iter().map(|parameter| {
        specs::with_axes([(parameter, [vec![specs::usual(parameter)], specs::unusual(parameter)].concat())])
    });
    let mut large = specs::twelve_cells();
    large.n_trials = 3;
    large.seed = u64::MAX;
    large.checks = vec!["checksum", "prefill"];
    large.instruments = vec!["accounting", "counters"];
    // Small key ranges cannot hold the keys of some fills; no spec asks for that.
    let fits = |plan: &Plan| {
        (0..plan.n_cells())
            .all(|idx| plan.cell(idx).prefill().keys(plan.cell(idx).key_range()) <= plan.cell(idx).key_range())
    };
    held.chain(varied)
        .chain([large, specs::with_ranges()])
        .map(|spec| Plan::compile(&spec, rare::verdict::probes).unwrap())
        .filter(fits)
        .collect()
}

fn small_plan() -> Vec<u8> {
    let mut spec = specs::with_axes([(Parameter::Threads, vec![specs::threads(1), specs::threads(2)])]);
    spec.n_trials = 2;
    spec.instruments = vec!["accounting"];
    Plan::compile(&spec, rare::verdict::probes).unwrap().canonical()
}

#[test]
fn bytes_are_those_of_an_independent_canonicaliser() {
    for plan in plans() {
        let bytes = plan.canonical();
        let document: Json = serde_json::from_slice(&bytes).unwrap();
        let canonical = serde_json_canonicalizer::to_string(&document).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), canonical);
    }
}

#[test]
fn hash_is_the_sha256_of_the_bytes() {
    let plan = Plan::from_canonical(&small_plan()).unwrap();
    assert_eq!(plan.hash().0, *Sha256::digest(small_plan()));
}

/// Plans from before faults could be planted keep their bytes, and are read as plans without one.
#[test]
fn a_fault_is_told_only_where_there_is_one() {
    let fault = Value::Word("late-thread");
    let both =
        specs::with_axes([(Parameter::HarnessFault, vec![specs::usual(Parameter::HarnessFault), fault.clone()])]);
    let both = Plan::compile(&both, rare::verdict::probes).unwrap();
    let document: Json = serde_json::from_slice(&both.canonical()).unwrap();
    assert_eq!(document["cells"], serde_json::json!([{}, { "harness_fault": "late-thread" }]));

    let planted =
        Plan::compile(&specs::with_axes([(Parameter::HarnessFault, vec![fault])]), rare::verdict::probes).unwrap();
    let told = String::from_utf8(planted.canonical()).unwrap();
    assert!(told.contains(r#""harness_fault":"late-thread""#));
    let untold = Plan::from_canonical(&small_plan()).unwrap();
    assert_eq!(untold.cell(0).value(Parameter::HarnessFault), &Value::Word("none"));
    // Written out, it would be a second file of the same plan.
    let written = told.replace("late-thread", "none");
    assert!(matches!(Plan::from_canonical(written.as_bytes()), Err(PlanReadError::NotCanonical { .. })));
}

#[test]
fn plans_read_back_as_they_were() {
    for plan in plans() {
        let again = Plan::from_canonical(&plan.canonical()).unwrap();
        assert_eq!(again, plan);
    }
}

/// The leaves of a document as the explanation writes them: arrays of leaves on one line.
fn leaves(path: &str, json: &Json, into: &mut Vec<String>) {
    let is_leaf = |json: &Json| !json.is_object() && !json.is_array();
    match json {
        Json::Object(members) => {
            for (key, member) in members {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                leaves(&path, member, into);
            }
        }
        Json::Array(elements) if !elements.iter().all(is_leaf) => {
            elements.iter().enumerate().for_each(|(idx, element)| leaves(&format!("{path}[{idx}]"), element, into));
        }
        leaf => into.push(format!("{path} = {leaf}")),
    }
}

#[test]
fn explanation_lists_exactly_the_leaves_that_are_hashed() {
    for plan in plans() {
        let mut expected = Vec::new();
        leaves("", &serde_json::from_slice(&plan.canonical()).unwrap(), &mut expected);
        let explanation = plan.explain();
        let (hashed, left_out) = explanation.split_once("not in the hash:\n").unwrap();
        let listed: Vec<&str> =
            hashed.lines().skip(1).map(|line| line.trim_start().rsplit_once("  (from ").unwrap().0).collect();
        assert_eq!(listed, expected);
        assert!(left_out.contains("question: ") && left_out.contains("comments"));
    }
}

#[test]
fn any_changed_byte_gives_another_plan_or_none() {
    let bytes = small_plan();
    for idx in 0..bytes.len() {
        for replacement in [b'0', b'1', b'9', b'"', b'}', b',', b' ', b'-', b'e', 0x00, 0xFF, bytes[idx] ^ 1] {
            let mut changed = bytes.clone();
            changed[idx] = replacement;
            if let Ok(plan) = Plan::from_canonical(&changed) {
                assert_eq!(plan.canonical(), changed, "byte {idx} as {replacement}");
            }
        }
    }
}

#[test]
fn any_cut_or_doubled_part_is_refused() {
    let bytes = small_plan();
    for idx in 0..bytes.len() {
        assert!(Plan::from_canonical(&bytes[..idx]).is_err(), "cut at {idx}");
        let mut longer = bytes.clone();
        longer.insert(idx, b' ');
        // A space is content within a string; everywhere else it breaks the canonical form.
        if let Ok(plan) = Plan::from_canonical(&longer) {
            assert_eq!(plan.canonical(), longer, "space at {idx}");
        }
    }
    assert!(Plan::from_canonical(&[bytes.as_slice(), b"\n"].concat()).is_err());
}

#[test]
fn contradictions_are_refused_in_words() {
    let cases = [
        (r#""format":1"#, r#""format":2"#, "newer `rare`"),
        (r#""format":1"#, r#""format":18446744073709551615"#, "newer `rare`"),
        (r#""format":1"#, r#""format":0"#, "does not exist"),
        (r#""format":1"#, r#""format":1,"frobnicate":1"#, "unknown field `frobnicate`"),
        (r#""format":1"#, r#""format":1,"format":1"#, "duplicate field"),
        (r#""family":"set""#, r#""family":"map""#, "unknown family `map`"),
        (r#""order":"random""#, r#""order":"sorted""#, "unknown order `sorted`"),
        (r#""seed":"1""#, r#""seed":"01""#, "`01` is not a seed"),
        (r#""seed":"1""#, r#""seed":"18446744073709551616"#, "EOF"),
        (r#""seed":"1""#, r#""seed":1"#, "expected a string"),
        (r#""cells":[{"threads":1},{"threads":2}]"#, r#""cells":[]"#, "it has no cell"),
        (r#"[{"threads":1},{"threads":2}]"#, r#"[{"threads":1},{"threads":1}]"#, "cell 1 is there twice"),
        (r#"[{"threads":1},{"threads":2}]"#, r#"[{"threads":1},{}]"#, "cell 1 has no `threads`"),
        (r#"{"threads":1}"#, r#"{"threads":0}"#, "`0` is no value of `threads`"),
        (r#"{"threads":1}"#, r#"{"threads":1e0}"#, "is no value of `threads`"),
        (r#"{"threads":1}"#, r#"{"threads":4294967296}"#, "is no value of `threads`"),
        (r#"{"threads":1}"#, r#"{"aslr":"on","threads":1}"#, "cell 0 has `aslr`, which is held"),
        (r#"{"threads":1}"#, r#"{"thread":1}"#, "unknown parameter `thread`"),
        (r#"{"threads":1}"#, r#"{"threads":1,"threads":1}"#, "`threads` twice"),
        (r#""key_range":100000"#, r#""key_range":0"#, "is no value of `key_range`"),
        (r#""key_range":100000"#, r#""key_range":"100000""#, "is no value of `key_range`"),
        (r#""key_range":100000"#, r#""key_range":9007199254740992"#, "is no value of `key_range`"),
        (r#"{"basis_points":5000}"#, r#"{"basis_points":10001}"#, "is no value of `prefill`"),
        (r#"{"basis_points":5000}"#, r#"{"keys":100001}"#, "filled with 100001 keys out of 100000"),
        (r#"{"basis_points":5000}"#, r#"{"basis_points":5000,"keys":1}"#, "is no value of `prefill`"),
        (r#""contains":0"#, r#""contains":4294967295"#, "is no value of `mix`"),
        (r#""insert":5000"#, r#""insert":5000,"range":0"#, "not canonical JSON from byte"),
        (r#""insert":5000"#, r#""insert":0,"range":5000"#, "has range queries without a size"),
        (r#""range_query":"none""#, r#""range_query":0"#, "is no value of `range_query`"),
        (r#""range_query":"none""#, r#""range_query":"some""#, "is no value of `range_query`"),
        (r#""order":[0,1]"#, r#""order":[0,0]"#, "does not hold each cell once"),
        (r#""order":[0,1]"#, r#""order":[0,2]"#, "does not hold each cell once"),
        (r#""order":[0,1]"#, r#""order":[0]"#, "does not hold each cell once"),
        (r#""order":[0,1]"#, r#""order":[0,4294967296]"#, "expected u32"),
        (r#""kind":"account""#, r#""kind":"warm""#, "unknown kind of block `warm`"),
        (r#""kind":"account""#, r#""kind":"measure""#, "block 2 is out of order"),
        (r#""trial":1"#, r#""trial":4294967295"#, "block 1 is out of order"),
        (r#""checks":[]"#, r#""checks":[ ]"#, "not canonical JSON from byte"),
        (r#""checks":[],"family":"set""#, r#""family":"set","checks":[]"#, "not canonical JSON from byte"),
        (r#""held":{"#, r#""held":{"threads":1,"#, "which is held"),
    ];
    let mut spec = specs::with_axes([(Parameter::Threads, vec![specs::threads(1), specs::threads(2)])]);
    spec.n_trials = 2;
    spec.seed = 1;
    spec.instruments = vec!["accounting"];
    let text = String::from_utf8(small_plan()).unwrap();
    for (part, replacement, expected) in cases {
        let changed = text.replacen(part, replacement, 1);
        assert_ne!(changed, text, "the plan has no {part}");
        let error = Plan::from_canonical(changed.as_bytes()).expect_err(replacement);
        let mut message = error.to_string();
        if let PlanReadError::Shape(source) = &error {
            message = format!("{message}: {source}");
        }
        assert!(message.contains(expected), "{replacement}: {message}");
    }
}

#[test]
fn hostile_shapes_end_in_errors() {
    let deep = [vec![b'['; 1 << 20], vec![b']'; 1 << 20]].concat();
    let in_cell = format!(r#"{{"format":1,"cells":[{{"mix":{}1{}}}]}}"#, "[".repeat(500), "]".repeat(500));
    let cases: [&[u8]; 8] =
        [b"", b"null", b"{}", b"[]", br#"{"format":1}"#, &deep, in_cell.as_bytes(), &[0xEF, 0xBB, 0xBF, b'{', b'}']];
    for bytes in cases {
        assert!(Plan::from_canonical(bytes).is_err());
    }
}
