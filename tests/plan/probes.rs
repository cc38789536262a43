//! Probes: what checks ask for beside the cells is in the plan, its bytes, its hash, its order and its estimate.

use rare::{
    plan::{
        BlockKind, Ground, Mode, Plan, Probe, TrialId,
        probe::{Change, Setting},
    },
    spec::value::{Parameter, Threads, Value},
};

use crate::specs;

/// Asks for two probes of every structure under `checksum`, and for a tool's under `accounting`.
fn prober(name: &str, ground: &Ground<'_>) -> Vec<Probe> {
    let bases = || ground.bases().into_iter();
    let one = |base: Setting| base.with_threads(Threads::Count(1)).probe("checksum", Mode::Timed, 3);
    let all = |base: Setting| base.with_mix(5_000, 5_000, 0).probe("checksum", Mode::Timed, 2);
    match name {
        "checksum" => bases().map(one).chain(bases().map(all)).collect(),
        "accounting" => bases().map(|base| base.probe("accounting", Mode::Memcheck, 1)).collect(),
        _ => Vec::new(),
    }
}

fn probed() -> Plan {
    let mut spec = specs::twelve_cells();
    spec.n_trials = 2;
    spec.checks = vec!["checksum", "prefill"];
    spec.instruments = vec!["accounting"];
    Plan::compile(&spec, prober).unwrap()
}

#[test]
fn bases_have_the_most_threads_and_otherwise_what_is_listed_first() {
    let plan = probed();
    let base = plan.probes[4].cell();
    assert_eq!((base.structure().label.as_str(), base.threads(), base.key_range()), ("nm14", Threads::All, 100));
    let base = plan.probes[5].cell();
    assert_eq!((base.structure().label.as_str(), base.threads(), base.key_range()), ("harris01", Threads::All, 100));
}

#[test]
fn each_block_of_probes_holds_those_that_have_so_many_trials() {
    let plan = probed();
    let of_probes: Vec<Vec<u32>> = plan
        .blocks
        .iter()
        .filter(|block| block.kind == BlockKind::Probe)
        .map(|block| {
            let mut members = block.order.clone();
            members.sort_unstable();
            members
        })
        .collect();
    assert_eq!(of_probes, [vec![0, 1, 2, 3, 4, 5], vec![0, 1, 2, 3], vec![0, 1]]);
    assert_eq!(plan.n_trials(), 12 * 2 + 12 + 6 + 4 + 2);
    let last = plan.blocks.iter().rposition(|block| block.kind != BlockKind::Probe).unwrap();
    assert!(plan.blocks[..=last].iter().all(|block| block.kind != BlockKind::Probe), "they come after the cells");
}

#[test]
fn plans_with_probes_read_back_as_they_were() {
    let plan = probed();
    assert_eq!(Plan::from_canonical(&plan.canonical()).unwrap(), plan);
    let document: serde_json::Value = serde_json::from_slice(&plan.canonical()).unwrap();
    assert_eq!(serde_json_canonicalizer::to_string(&document).unwrap().into_bytes(), plan.canonical());
}

#[test]
fn every_part_of_a_probe_is_in_the_hash() {
    let plan = probed();
    let changed = |change: fn(&mut Plan)| {
        let mut other = plan.clone();
        change(&mut other);
        assert_ne!(other.hash(), plan.hash());
    };
    changed(|plan| plan.probes[0].purpose = "prefill".to_owned());
    changed(|plan| plan.probes[0].mode = Mode::Sample);
    changed(|plan| plan.probes[0].n_trials = 9);
    changed(|plan| plan.probes[0].setting[Parameter::KeyRange as usize] = Value::Count(7));
    changed(|plan| plan.probes.truncate(1));
}

#[test]
fn a_plan_without_probes_says_nothing_of_them() {
    let plan = Plan::compile(&specs::twelve_cells(), prober).unwrap();
    assert!(!String::from_utf8(plan.canonical()).unwrap().contains("probes"));
}

#[test]
fn trials_of_probes_have_seeds_of_their_own() {
    let plan = probed();
    let seeds: std::collections::BTreeSet<u64> = plan.trials().map(|trial| plan.seed(trial)).collect();
    assert_eq!(seeds.len(), plan.n_trials());
}

#[test]
fn trials_of_probes_have_names() {
    let trial = TrialId { kind: BlockKind::Probe, cell: 4, trial_idx: 0 };
    assert_eq!(trial.to_string(), "probe-4-0");
    assert_eq!("probe-4-0".parse(), Ok(trial));
    let plan = probed();
    assert_eq!(plan.probe_of(trial).map(|probe| probe.mode), Some(Mode::Memcheck));
    assert!(plan.cell_of(TrialId { cell: 6, ..trial }).is_none());
}

#[test]
fn probes_count_against_the_limits_and_in_the_estimate() {
    let mut spec = specs::twelve_cells();
    spec.checks = vec!["checksum"];
    spec.limits.trials = 21;
    assert!(Plan::compile(&spec, prober).is_err(), "12 of cells and 10 of probes");
    spec.limits.trials = 22;
    let plan = Plan::compile(&spec, prober).unwrap();
    let bare = Plan { probes: Vec::new(), ..plan.clone() };
    assert!(plan.estimate(2).wall > bare.estimate(2).wall);
}

#[test]
fn broken_probes_are_refused() {
    let text = String::from_utf8(probed().canonical()).unwrap();
    for (from, to) in [
        ("\"mode\":\"memcheck\"", "\"mode\":\"memchuck\""),
        ("\"trials\":3", "\"trials\":0"),
        ("\"trials\":3", "\"trials\":4"),
        ("\"trials\":1}", "\"trials\":4294967295}"),
        ("\"kind\":\"probe\",\"order\":[", "\"kind\":\"probe\",\"order\":[77,"),
    ] {
        let broken = text.replacen(from, to, 1);
        assert_ne!(broken, text, "{from}");
        assert!(Plan::from_canonical(broken.as_bytes()).is_err(), "{to}");
    }
}
