//! Hashes and texts that must not change unawares. `UPDATE_GOLDEN=1` writes them anew; the commit says why.

use std::{fs, path::PathBuf};

use rare::{
    plan::{Plan, listing},
    spec::{
        Spec,
        model::{Condition, Order},
        value::{Parameter, Threads, Value},
    },
};

use crate::{rewrites, specs};

/// Compares with `tests/golden/<name>`, or writes it.
fn check(name: &str, actual: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, actual).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    let differing = actual.lines().zip(expected.lines()).enumerate().find(|(_, (ours, theirs))| ours != theirs);
    if let Some((line_idx, (ours, theirs))) = differing {
        let place = format!("{}:{}", path.display(), line_idx + 1);
        panic!("{place} has changed; UPDATE_GOLDEN=1 writes it anew\n  was {theirs}\n  is  {ours}");
    }
    assert!(actual == expected, "the length of {} has changed; UPDATE_GOLDEN=1 writes it anew", path.display());
}

fn changed(mut spec: Spec, change: impl FnOnce(&mut Spec)) -> Spec {
    change(&mut spec);
    spec
}

fn golden_specs() -> Vec<(&'static str, Spec)> {
    let padded = vec![specs::structure("nm14"), specs::labelled("nm14", "nm14-padded")];
    let all_of = |parameter| [vec![specs::usual(parameter)], specs::unusual(parameter)].concat();
    vec![
        ("base", specs::base()),
        ("twelve-cells", specs::twelve_cells()),
        ("five-trials", changed(specs::twelve_cells(), |spec| spec.n_trials = 5)),
        ("listed-order", changed(specs::twelve_cells(), |spec| spec.order = Order::Listed)),
        ("other-seed", changed(specs::twelve_cells(), |spec| spec.seed = u64::MAX)),
        ("accounting", changed(specs::twelve_cells(), |spec| spec.instruments = vec!["accounting"])),
        ("checks", changed(specs::base(), |spec| spec.checks = vec!["checksum", "prefill", "pinning"])),
        (
            "linked",
            changed(specs::twelve_cells(), |spec| {
                spec.axes[Parameter::KeyRange as usize].pop();
                spec.zip = vec![vec![Parameter::Threads, Parameter::KeyRange]];
            }),
        ),
        (
            "pruned",
            changed(specs::twelve_cells(), |spec| {
                spec.exclude.push(specs::rule(1, [(Parameter::KeyRange, Condition::Over(10_000))]));
                spec.include.push(specs::inclusion(2, [(Parameter::KeyRange, vec![Value::Count(7)])]));
            }),
        ),
        (
            "override",
            changed(specs::with_axes([(Parameter::Structure, padded)]), |spec| {
                spec.overrides.push(("nm14-padded".to_owned(), Parameter::NodePadding, Value::Count(64)));
            }),
        ),
        ("every-allocator", specs::with_axes([(Parameter::Allocator, all_of(Parameter::Allocator))])),
        ("every-pinning", specs::with_axes([(Parameter::Pinning, all_of(Parameter::Pinning))])),
        ("every-structure", specs::with_axes([(Parameter::Structure, all_of(Parameter::Structure))])),
        ("large-numbers", specs::with_axes([(Parameter::KeyRange, all_of(Parameter::KeyRange))])),
        ("ranges", specs::with_ranges()),
    ]
}

#[test]
fn hashes_are_the_committed_ones() {
    let of_specs = golden_specs()
        .into_iter()
        .map(|(name, spec)| (name, Plan::compile(&spec, rare::verdict::probes).unwrap().hash()));
    let hashes = of_specs.chain(rewrites::hashes());
    check("plan-hashes.txt", &hashes.map(|(name, hash)| format!("{hash} {name}\n")).collect::<String>());
}

#[test]
fn bytes_of_a_small_plan_are_the_committed_ones() {
    let threads = vec![specs::threads(1), Value::Threads(Threads::All)];
    let spec = changed(specs::with_axes([(Parameter::Threads, threads)]), |spec| {
        spec.n_trials = 2;
        spec.instruments = vec!["accounting"];
    });
    let plan = Plan::compile(&spec, rare::verdict::probes).unwrap();
    check("plan-small.json", std::str::from_utf8(&plan.canonical()).unwrap());
    check("plan-small-explained.txt", &plan.explain());
    check("plan-small-listed.txt", &listing(&plan, 8));
}

#[test]
fn listing_of_a_large_plan_is_cut() {
    let key_ranges = (1..=64).map(|it| Value::Count(it * 1_000)).collect();
    let spec = changed(specs::with_axes([(Parameter::KeyRange, key_ranges)]), |spec| {
        spec.n_trials = 5;
        spec.checks = vec!["checksum", "prefill"];
    });
    check("plan-large-listed.txt", &listing(&Plan::compile(&spec, rare::verdict::probes).unwrap(), 8));
}
