//! Crossing, linked axes, overrides, exclusion, inclusion, blocks and seeds.

use rare::{
    plan::{BlockKind, Plan, PlanError, TrialId, error::RuleProblem},
    spec::{
        Spec,
        model::{Condition, Order, Rule},
        value::{Parameter, Threads, Value},
    },
};
use sha2::{Digest, Sha256};

use crate::specs;

/// The cells by the values that vary, in spec words.
fn cells(spec: &Spec) -> Vec<String> {
    let plan = Plan::compile(spec, rare::verdict::probes).unwrap();
    let varied = plan.varied();
    let describe = |cell_idx| {
        let values: Vec<String> = varied.iter().map(|&it| plan.cell(cell_idx).value(it).to_string()).collect();
        values.join(" ")
    };
    (0..plan.n_cells()).map(describe).collect()
}

/// Problems with the place where each was written.
fn faults(spec: &Spec) -> Vec<(usize, RuleProblem)> {
    match Plan::compile(spec, rare::verdict::probes) {
        Err(PlanError::Rules(faults)) => faults.into_iter().map(|fault| (fault.at.start, fault.problem)).collect(),
        other => panic!("expected rule faults, not {other:?}"),
    }
}

fn is(value: Value) -> Condition {
    Condition::Is(value)
}

fn named(name: &str) -> Condition {
    Condition::Named(name.to_owned())
}

#[test]
fn first_parameter_varies_slowest() {
    let expected = [
        "nm14 1 100",
        "nm14 1 10k",
        "nm14 1 1M",
        "nm14 all 100",
        "nm14 all 10k",
        "nm14 all 1M",
        "harris01 1 100",
        "harris01 1 10k",
        "harris01 1 1M",
        "harris01 all 100",
        "harris01 all 10k",
        "harris01 all 1M",
    ];
    assert_eq!(cells(&specs::twelve_cells()), expected);
}

#[test]
fn linked_axes_advance_together_at_the_place_of_their_first() {
    let mut spec = specs::with_axes([
        (Parameter::Structure, vec![specs::structure("nm14"), specs::structure("harris01")]),
        (Parameter::Threads, vec![specs::threads(1), specs::threads(2)]),
        (Parameter::KeyRange, vec![Value::Count(10), Value::Count(20)]),
        (Parameter::Aslr, vec![Value::Word("on"), Value::Word("off")]),
    ]);
    spec.zip = vec![vec![Parameter::Aslr, Parameter::Structure], vec![Parameter::Threads, Parameter::KeyRange]];
    assert_eq!(cells(&spec), ["nm14 1 10 on", "nm14 2 20 on", "harris01 1 10 off", "harris01 2 20 off"]);
}

#[test]
fn overrides_replace_the_axis_and_duplicates_are_kept_once() {
    let mut spec = specs::with_axes([
        (Parameter::Structure, vec![specs::structure("nm14"), specs::labelled("nm14", "padded")]),
        (Parameter::NodePadding, vec![Value::Count(0), Value::Count(128)]),
    ]);
    spec.overrides.push(("padded".to_owned(), Parameter::NodePadding, Value::Count(64)));
    assert_eq!(cells(&spec), ["nm14 0", "nm14 128", "padded 64"]);
}

#[test]
fn values_that_no_cell_takes_are_not_in_the_plan() {
    let mut spec = specs::twelve_cells();
    spec.exclude.push(specs::rule(1, [(Parameter::KeyRange, Condition::Under(1_000))]));
    let plan = Plan::compile(&spec, rare::verdict::probes).unwrap();
    assert_eq!(plan.values[Parameter::KeyRange as usize], [Value::Count(10_000), Value::Count(1_000_000)]);
    assert_eq!(plan.cells[0][Parameter::KeyRange as usize], 0);
}

#[test]
fn exclusion_needs_every_parameter_and_any_condition() {
    let mut spec = specs::twelve_cells();
    let conditions = vec![
        (Parameter::Structure, vec![named("harris01")]),
        (Parameter::KeyRange, vec![Condition::Over(100_000), is(Value::Count(100))]),
    ];
    spec.exclude.push(Rule { at: 0..1, conditions });
    let kept = cells(&spec);
    assert_eq!(kept.len(), 8);
    assert!(kept.iter().filter(|cell| cell.starts_with("harris01")).all(|cell| cell.ends_with("10k")));
}

#[test]
fn bounds_are_exclusive_and_do_not_touch_symbols() {
    let excluded_by = |condition| {
        let mut spec = specs::with_axes([(
            Parameter::Threads,
            vec![specs::threads(1), specs::threads(2), specs::threads(3), Value::Threads(Threads::All)],
        )]);
        spec.exclude.push(specs::rule(1, [(Parameter::Threads, condition)]));
        cells(&spec)
    };
    assert_eq!(excluded_by(Condition::Over(2)), ["1", "2", "all"]);
    assert_eq!(excluded_by(Condition::Under(2)), ["2", "3", "all"]);
    assert_eq!(excluded_by(is(Value::Threads(Threads::All))), ["1", "2", "3"]);
}

#[test]
fn structures_are_named_by_label_or_registry_name() {
    let kept_without = |name| {
        let labels = [specs::structure("nm14"), specs::labelled("nm14", "padded"), specs::structure("harris01")];
        let mut spec = specs::with_axes([(Parameter::Structure, labels.to_vec())]);
        spec.exclude.push(specs::rule(1, [(Parameter::Structure, named(name))]));
        Plan::compile(&spec, rare::verdict::probes).unwrap().n_cells()
    };
    assert_eq!(kept_without("padded"), 2);
    assert_eq!(kept_without("nm14"), 1);
}

#[test]
fn inclusions_come_last_and_cross_the_other_axes() {
    let mut spec = specs::with_axes([
        (Parameter::Structure, vec![specs::structure("nm14"), specs::structure("harris01")]),
        (Parameter::Threads, vec![specs::threads(1), specs::threads(2)]),
        (Parameter::KeyRange, vec![Value::Count(10), Value::Count(20)]),
    ]);
    spec.zip = vec![vec![Parameter::Threads, Parameter::KeyRange]];
    spec.exclude.push(specs::rule(1, [(Parameter::Structure, named("harris01"))]));
    let chosen =
        [(Parameter::Structure, vec![specs::structure("harris01")]), (Parameter::Threads, vec![specs::threads(8)])];
    spec.include.push(specs::inclusion(2, chosen));
    assert_eq!(cells(&spec), ["nm14 1 10", "nm14 2 20", "harris01 8 10", "harris01 8 20"]);
}

#[test]
fn inclusions_keep_what_structures_fix_unless_they_choose_it() {
    let mut spec = specs::with_axes([(Parameter::Structure, vec![specs::labelled("nm14", "padded")])]);
    spec.overrides.push(("padded".to_owned(), Parameter::NodePadding, Value::Count(64)));
    spec.include.push(specs::inclusion(1, [(Parameter::Threads, vec![specs::threads(2)])]));
    spec.include.push(specs::inclusion(2, [(Parameter::NodePadding, vec![Value::Count(128)])]));
    assert_eq!(cells(&spec), ["1 64", "2 64", "1 128"]);
}

#[test]
fn rules_that_speak_of_no_cell_are_all_reported_at_their_places() {
    let mut spec = specs::twelve_cells();
    spec.exclude.push(specs::rule(10, [(Parameter::KeyRange, Condition::Over(1_000_000))]));
    spec.exclude.push(specs::rule(
        20,
        [(Parameter::Structure, named("harris01")), (Parameter::Threads, is(specs::threads(1)))],
    ));
    spec.exclude.push(specs::rule(30, [(Parameter::Threads, is(specs::threads(5)))]));
    spec.include.push(specs::inclusion(
        40,
        [(Parameter::KeyRange, vec![Value::Count(100)]), (Parameter::Structure, vec![specs::structure("nm14")])],
    ));
    let scope = specs::rule(50, [(Parameter::Threads, is(specs::threads(1)))]);
    spec.claims.push(specs::claim(50, "nm14", "harris01", scope));
    spec.claims.push(specs::claim(60, "nm14", "harris01", specs::rule(60, [])));
    let claims_nothing = RuleProblem::ClaimsNothing { structure: "harris01".to_owned() };
    let expected = [
        (10, RuleProblem::ExcludesNothing),
        (30, RuleProblem::ExcludesNothing),
        (40, RuleProblem::IncludesNothing),
        (50, claims_nothing),
    ];
    assert_eq!(faults(&spec), expected);

    spec.quick = true;
    assert!(Plan::compile(&spec, rare::verdict::probes).is_ok(), "the `quick` block may take away what rules name");
}

#[test]
fn a_rule_shadowed_by_an_earlier_one_still_matches() {
    let mut spec = specs::twelve_cells();
    spec.exclude.push(specs::rule(1, [(Parameter::Structure, named("harris01"))]));
    spec.exclude
        .push(specs::rule(2, [(Parameter::Structure, named("harris01")), (Parameter::Threads, is(specs::threads(1)))]));
    assert_eq!(cells(&spec).len(), 6);
}

#[test]
fn excluding_every_cell_is_refused() {
    let mut spec = specs::twelve_cells();
    spec.exclude.push(specs::rule(1, []));
    let refusal = Err(PlanError::NoCells { rules: vec![spec.exclude[0].at.clone()] });
    assert_eq!(Plan::compile(&spec, rare::verdict::probes), refusal);
    spec.quick = true;
    assert_eq!(Plan::compile(&spec, rare::verdict::probes), refusal);
}

#[test]
fn blocks_are_different_permutations_that_more_trials_leave_alone() {
    let mut spec = specs::twelve_cells();
    spec.n_trials = 8;
    let eight = Plan::compile(&spec, rare::verdict::probes).unwrap();
    for block in &eight.blocks {
        let mut sorted = block.order.clone();
        sorted.sort_unstable();
        assert!(sorted.iter().copied().eq(0..12), "block {} holds {:?}", block.trial_idx, block.order);
    }
    let mut orders: Vec<_> = eight.blocks.iter().map(|block| &block.order).collect();
    orders.sort();
    orders.dedup();
    assert_eq!(orders.len(), 8);

    spec.n_trials = 9;
    spec.instruments = vec!["accounting"];
    let nine = Plan::compile(&spec, rare::verdict::probes).unwrap();
    assert_eq!(nine.blocks[..8], eight.blocks);
    assert_eq!((nine.blocks[9].kind, nine.blocks[9].trial_idx), (BlockKind::Account, 0));
    assert_eq!(nine.n_trials(), 120);

    spec.order = Order::Listed;
    let listed = Plan::compile(&spec, rare::verdict::probes).unwrap();
    assert!(listed.blocks.iter().all(|block| block.order.iter().copied().eq(0..12)));
}

#[test]
fn every_trial_has_its_own_seed_wherever_its_cell_lies() {
    let mut spec = specs::twelve_cells();
    spec.n_trials = 3;
    spec.instruments = vec!["accounting"];
    let plan = Plan::compile(&spec, rare::verdict::probes).unwrap();
    let mut seeds: Vec<u64> = plan.trials().map(|trial| plan.seed(trial)).collect();
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), plan.n_trials());

    spec.axes[Parameter::KeyRange as usize].reverse();
    let reversed = Plan::compile(&spec, rare::verdict::probes).unwrap();
    for trial in plan.trials() {
        let row = trial.cell / 3 * 3;
        let same_cell = TrialId { cell: row + 2 - (trial.cell - row), ..trial };
        assert_eq!(plan.seed(trial), reversed.seed(same_cell));
    }

    spec.seed = 2;
    let reseeded = Plan::compile(&spec, rare::verdict::probes).unwrap();
    assert!(plan.trials().all(|trial| reseeded.seed(trial) != plan.seed(trial)));
}

#[test]
fn seeds_are_digests_that_anyone_can_recompute() {
    let plan = Plan::compile(&specs::base(), rare::verdict::probes).unwrap();
    let cell = concat!(
        r#"{"allocator":"system","aslr":"on","distribution":"uniform","environment_padding":0,"#,
        r#""harness_generator":"xoshiro256++","harness_padding":128,"harness_time_check":"flag","#,
        r#""huge_pages":"system","key_range":100000,"mix":{"contains":0,"insert":5000,"remove":5000},"#,
        r#""node_padding":0,"object_pool":"none","pinning":"compact","prefill":{"basis_points":5000},"#,
        r#""priority":0,"range_query":"none","reclamation":"epoch","#,
        r#""structure":{"label":"nm14","name":"nm14","parameters":{}},"threads":1,"trial_length":3000000000}"#,
    );
    let content = format!(r#"{{"cell":{cell},"kind":"measure","purpose":"trial","seed":"1","trial":4}}"#);
    let digest = Sha256::digest(content);
    let expected = u64::from_be_bytes(digest[..8].try_into().unwrap());
    assert_eq!(plan.seed(TrialId { kind: BlockKind::Measure, cell: 0, trial_idx: 4 }), expected);
}
