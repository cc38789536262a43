//! What changes a plan's hash and what does not.

use std::collections::BTreeMap;

use rare::{
    plan::{
        Plan, PlanHash,
        classify::{Class, FIELDS},
    },
    spec::{
        Spec, fields,
        model::{Compare, Condition, Order},
        value::{Parameter, Value},
    },
    units::{BasisPoints, Nanos},
};
use rare_workloads::protocol::Mix;

use crate::specs;

fn hash(spec: &Spec) -> PlanHash {
    Plan::compile(spec, rare::verdict::probes).unwrap().hash()
}

/// A spec in which every field has an effect.
fn rich() -> Spec {
    let mut spec = specs::twelve_cells();
    spec.axes[Parameter::Pinning as usize] = specs::unusual(Parameter::Pinning)[..2].to_vec();
    spec.n_trials = 2;
    spec
}

#[test]
fn every_value_of_every_parameter_has_its_own_hash() {
    let mut specs_by_hash = BTreeMap::from([(hash(&specs::base()), "base".to_owned())]);
    for parameter in Parameter::ALL {
        for value in specs::unusual(parameter) {
            let described = format!("{}: {value:?}", parameter.name());
            let spec = specs::with_axes([(parameter, vec![value])]);
            if let Some(other) = specs_by_hash.insert(hash(&spec), described.clone()) {
                panic!("`{described}` and `{other}` share a hash");
            }
        }
    }
    assert!(specs_by_hash.len() > 50);
}

#[test]
fn order_of_values_is_identity() {
    let mut reversed = rich();
    reversed.axes[Parameter::KeyRange as usize].reverse();
    assert_ne!(hash(&reversed), hash(&rich()));
}

/// Changes one field in each of several ways.
fn changes(field: &str) -> Vec<fn(&mut Spec)> {
    match field {
        "name" => vec![|spec| spec.name.push('x')],
        "question" => vec![|spec| spec.question = Some("Why?".to_owned())],
        "quick" => vec![|spec| spec.quick = true],
        "axes" => vec![|spec| _ = spec.axes[Parameter::KeyRange as usize].pop()],
        "overrides" => vec![|spec| {
            let padding = Value::Count(64);
            spec.overrides.push(("nm14".to_owned(), Parameter::NodePadding, padding));
        }],
        "zip" => vec![|spec| spec.zip.push(vec![Parameter::Threads, Parameter::Pinning])],
        "exclude" => vec![|spec| spec.exclude.push(specs::rule(1, [(Parameter::KeyRange, Condition::Over(100))]))],
        "include" => {
            vec![|spec| spec.include.push(specs::inclusion(1, [(Parameter::Threads, vec![specs::threads(7)])]))]
        }
        "n_trials" => vec![|spec| spec.n_trials += 1, |spec| spec.n_trials -= 1],
        "checks" => vec![|spec| spec.checks = vec!["checksum"], |spec| spec.checks = vec!["checksum", "prefill"]],
        "instruments" => vec![|spec| spec.instruments = vec!["accounting"], |spec| spec.instruments = vec!["counters"]],
        "order" => vec![|spec| spec.order = Order::Listed],
        "seed" => vec![|spec| spec.seed = 0, |spec| spec.seed = 1 << 53, |spec| spec.seed = (1 << 53) + 1, |spec| {
            spec.seed = u64::MAX
        }],
        "claims" => vec![|spec| spec.claims.push(specs::claim(1, "nm14", "harris01", specs::rule(2, [])))],
        "compare" => vec![|spec| {
            let rule = |label: &str| specs::rule(1, [(Parameter::Structure, Condition::Named(label.to_owned()))]);
            let (base, changed) = (rule("nm14"), rule("harris01"));
            spec.compare.push(Compare { at: 1..2, base, changed, predicts: "instructions" });
        }],
        "mix_names" => vec![|spec| {
            let mix = Mix { insert: 5_000, remove: 5_000, contains: 0, range: 0 };
            spec.mix_names.push((mix, "update-heavy".to_owned()));
        }],
        "allow" => vec![|spec| spec.allow.push("semantics")],
        "limits" => vec![|spec| spec.limits.cells -= 1, |spec| spec.limits.time.0 -= 1],
        "budget" => vec![|spec| spec.budget = Some(Nanos(1))],
        other => panic!("field `{other}` of specs is classified but not tested"),
    }
}

#[test]
fn fields_change_the_hash_exactly_when_they_are_identity() {
    let mut hashes = BTreeMap::from([(hash(&rich()), "nothing")]);
    for field in FIELDS {
        for change in changes(field.name) {
            let mut changed = rich();
            change(&mut changed);
            assert_ne!(changed, rich(), "the change of `{}` changes nothing", field.name);
            match field.class {
                Class::Identity => {
                    let other = hashes.insert(hash(&changed), field.name);
                    assert_eq!(other, None, "`{}` does not decide the hash", field.name);
                }
                Class::Analysis | Class::Display => {
                    assert_eq!(hash(&changed), hash(&rich()), "`{}` decides the hash", field.name);
                }
            }
        }
    }
}

#[test]
fn classes_are_those_of_the_table_of_keys() {
    for field in FIELDS {
        let key = fields::find(field.key).unwrap_or_else(|| panic!("no key `{}`", field.key));
        let expected = match key.class {
            // The key holds shares under names: those are identity, these are not.
            fields::Class::Identity if field.name == "mix_names" => Class::Display,
            fields::Class::Identity => Class::Identity,
            fields::Class::Analysis(_) => Class::Analysis,
            fields::Class::Display(_) => Class::Display,
        };
        assert_eq!(field.class, expected, "`{}` from `{}`", field.name, field.key);
    }
}

#[test]
fn a_claims_margin_is_not_identity() {
    let mut spec = rich();
    spec.claims.push(specs::claim(1, "nm14", "harris01", specs::rule(2, [])));
    let mut stricter = spec.clone();
    stricter.claims[0].by = BasisPoints(500);
    assert_eq!(hash(&spec), hash(&stricter));
}

#[test]
fn ways_to_write_the_same_cells_share_a_hash() {
    let mut excluded = rich();
    excluded.exclude.push(specs::rule(1, [(Parameter::KeyRange, Condition::Over(100_000))]));
    let mut shorter = rich();
    shorter.axes[Parameter::KeyRange as usize].pop();
    assert_eq!(hash(&excluded), hash(&shorter));
}
