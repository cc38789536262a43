//! Plans that are too large are refused before they are built.

use std::time::{Duration, Instant};

use rare::{
    plan::{Limit, Plan, PlanError},
    spec::{
        Spec,
        fields::{self, Kind},
        value::{Parameter, Value},
    },
    units::{Bytes, Nanos},
};

use crate::specs;

/// Crosses as many axes of `length` values.
fn crossing(length: u64, n_axes: usize) -> Spec {
    // Counts stand in for every kind of value: the compiler of plans does not look into them.
    let axis = |parameter| (parameter, (1..=length).map(Value::Count).collect());
    specs::with_axes(Parameter::ALL.into_iter().rev().take(n_axes).map(axis))
}

#[test]
fn huge_crossings_are_counted_and_not_expanded() {
    for (length, n_axes, count) in [(1_000, 3, 10u128.pow(9)), (1_000, 10, 10u128.pow(30)), (100_000, 19, u128::MAX)] {
        let spec = crossing(length, n_axes);
        let begin = Instant::now();
        let error = Plan::compile(&spec, rare::verdict::probes).unwrap_err();
        assert!(begin.elapsed() < Duration::from_millis(100), "{count} cells took {:?}", begin.elapsed());
        assert_eq!(error, PlanError::OverLimit { limit: Limit::Cells, bound: 100_000, count });
    }
}

#[test]
fn messages_name_the_limit_its_value_the_count_and_the_way_out() {
    let error = Plan::compile(&crossing(1_000, 3), rare::verdict::probes).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the plan has 1000000000 cells, over the limit of 100000 cells; \
         drop values or trials, split the spec, or raise `limits.cells`"
    );
}

#[test]
fn linked_axes_count_once_and_inclusions_count_too() {
    let count = |spec: &Spec| match Plan::compile(spec, rare::verdict::probes) {
        Err(PlanError::OverLimit { limit: Limit::Cells, count, .. }) => count,
        other => panic!("expected a refusal, not {other:?}"),
    };
    let mut spec = crossing(1_000, 3);
    spec.zip = vec![vec![Parameter::HarnessFault, Parameter::HarnessPadding]];
    assert_eq!(count(&spec), 1_000_000);
    spec.include.push(specs::inclusion(1, [(Parameter::HarnessPadding, vec![Value::Count(1), Value::Count(2)])]));
    assert_eq!(count(&spec), 3_000_000);
}

#[test]
fn no_limit_can_be_raised_beyond_memory() {
    // A cell takes about 200 bytes while it is expanded, a trial 4 bytes in the order of its block.
    for (key, bytes_each) in [("limits.cells", 200), ("limits.trials", 4)] {
        let Kind::Number { max, .. } = fields::find(key).unwrap().kind else { panic!("`{key}` is no number") };
        assert!(max * bytes_each <= 2_000_000_000, "`{key}` lets a plan take {} bytes", max * bytes_each);
    }
}

#[test]
fn limits_are_inclusive_and_each_is_named() {
    let mut spec = specs::twelve_cells();
    spec.n_trials = 3;
    let estimate = Plan::compile(&spec, rare::verdict::probes).unwrap().estimate(1);
    spec.limits.cells = 12;
    spec.limits.trials = 36;
    spec.limits.time = estimate.wall;
    spec.limits.disk = estimate.disk;
    spec.limits.memory = estimate.memory;
    assert!(Plan::compile(&spec, rare::verdict::probes).is_ok());

    type Change = fn(&mut Spec);
    let tighten: [(Limit, Change); 5] = [
        (Limit::Cells, |spec| spec.limits.cells -= 1),
        (Limit::Trials, |spec| spec.limits.trials -= 1),
        (Limit::Time, |spec| spec.limits.time = Nanos(spec.limits.time.0 - 1)),
        (Limit::Disk, |spec| spec.limits.disk = Bytes(spec.limits.disk.0 - 1)),
        (Limit::Memory, |spec| spec.limits.memory = Bytes(spec.limits.memory.0 - 1)),
    ];
    for (expected, tighten) in tighten {
        let mut spec = spec.clone();
        tighten(&mut spec);
        match Plan::compile(&spec, rare::verdict::probes) {
            Err(PlanError::OverLimit { limit, .. }) => assert_eq!(limit, expected),
            other => panic!("expected a refusal over {expected:?}, not {other:?}"),
        }
    }
}

#[test]
fn excluded_cells_are_not_trials() {
    let mut spec = specs::twelve_cells();
    spec.limits.trials = 8;
    let excluded = rare::spec::model::Condition::Over(500_000);
    spec.exclude.push(specs::rule(1, [(Parameter::KeyRange, excluded)]));
    assert_eq!(Plan::compile(&spec, rare::verdict::probes).unwrap().n_trials(), 8);
}
