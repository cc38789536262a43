//! A run that never happened, plausible in every number, for tests of checks and reports.

#![allow(dead_code, unused_imports, reason = "each test binary uses a part")]
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

mod cases;
mod environment;

use std::collections::BTreeMap;

pub use cases::*;
pub use environment::environment;
use rare::{
    plan::{Block, BlockKind, Mode, Plan, PlanHash, Probe, TrialId},
    record::{Environment, Interference, Outcome, Trial},
    spec::{
        Spec,
        model::{Claim, Limits, Order, Rule},
        value::{Allocator, Parameter, Pinning, Prefill, RangeQuery, StructureUse, Threads, Value},
    },
    stats::{Summary, summarise},
    units::{BasisPoints, Bytes, Nanos},
    verdict::Evidence,
};
use rare_workloads::protocol::{self, *};

/// Everything a run leaves behind.
pub struct Case {
    pub spec: Spec,
    pub spec_text: String,
    pub plan: Plan,
    pub plan_bytes: Vec<u8>,
    pub trials: Vec<Trial>,
    pub environment: Environment,
    pub quick: bool,
}

/// What the made-up plan crosses.
pub struct Shape<'a> {
    pub structures: &'a [&'a str],
    pub threads: &'a [u32],
    pub key_ranges: &'a [u64],
    pub allocators: &'a [&'static str],
    pub n_trials: u32,
}

/// Four structures, two thread counts, two key ranges, seven trials.
pub const USUAL: Shape = Shape {
    structures: &["nm14", "harris01", "crossbeam-skiplist", "rwlock-btree"],
    threads: &[1, 2],
    key_ranges: &[100, 100_000],
    allocators: &["jemalloc"],
    n_trials: 7,
};

/// Two structures in one configuration.
pub const SMALL: Shape = Shape {
    structures: &["nm14", "mutex-btree"],
    threads: &[2],
    key_ranges: &[1000],
    allocators: &["system"],
    n_trials: 7,
};

impl Case {
    pub fn new(shape: &Shape) -> Self {
        let axes = axes(shape);
        let plan = plan(&axes, shape.n_trials);
        let trials = trials(&plan);
        let spec = spec(axes, shape);
        Self {
            spec,
            spec_text: "rare: 1\nname: bst\n# why: </script><script>alert(1)</script>\nfamily: set\n".to_owned(),
            plan,
            plan_bytes: br#"{"format":1,"note":"<b>&\\u003c</script>"}"#.to_vec(),
            trials,
            environment: environment(),
            quick: false,
        }
    }

    pub fn summary(&self) -> Summary {
        summarise(&self.plan, &self.trials)
    }

    pub fn evidence<'a>(&'a self, summary: &'a Summary) -> Evidence<'a> {
        Evidence {
            name: &self.spec.name,
            run_name: "20261201T101500Z-lab7",
            quick: self.quick,
            spec_text: Some(&self.spec_text),
            spec: Some(&self.spec),
            plan: &self.plan,
            plan_bytes: &self.plan_bytes,
            hash: PlanHash([0xa7; 32]),
            trials: &self.trials,
            environment: &self.environment,
            summary,
            record_bytes: Some(184_320),
        }
    }

    /// The reply of the first trial of that kind, to be spoilt.
    pub fn reply(&mut self, kind: BlockKind) -> &mut Reply {
        let trial = self.trials.iter_mut().find(|trial| trial.trial.kind == kind && trial.request.cpus.len() > 1);
        match &mut trial.unwrap().outcome {
            Outcome::Replied(reply) => reply,
            Outcome::Failed { .. } => unreachable!("made-up trials reply"),
        }
    }

    /// Asks for one check alone and adds the trials of its timed probes, each with that many operations per second.
    pub fn ask(&mut self, check: &'static str, rate: impl Fn(&Probe) -> f64) {
        self.spec.checks = vec![check];
        self.probe(rate);
    }

    /// Adds the trials of all probes that the spec asks for, each with that many operations per second.
    pub fn probe(&mut self, rate: impl Fn(&Probe) -> f64) {
        self.plan.checks = self.spec.checks.iter().map(|name| (*name).to_owned()).collect();
        self.plan.instruments = self.spec.instruments.iter().map(|name| (*name).to_owned()).collect();
        let compiled = Plan::compile(&self.spec, rare::verdict::probes).unwrap();
        self.plan.blocks.retain(|block| block.kind != BlockKind::Probe);
        self.trials.retain(|trial| trial.trial.kind != BlockKind::Probe);
        let blocks = compiled.blocks.into_iter().filter(|block| block.kind == BlockKind::Probe);
        self.plan.blocks.extend(blocks);
        self.plan.probes = compiled.probes;
        let mut draws = Draws(13);
        for (position, trial) in (0..).zip(self.plan.trials()).filter(|(_, trial)| trial.kind == BlockKind::Probe) {
            let rate = rate(self.plan.probe_of(trial).unwrap());
            self.trials.push(made_up(&self.plan, trial, position, Some(rate), &mut draws));
        }
    }

    /// Adds `faster > slower`.
    pub fn claim(
        &mut self,
        faster: &str,
        slower: &str,
        by: u32,
        scope: Vec<(Parameter, Vec<rare::spec::model::Condition>)>,
    ) {
        let margin = if by > 0 { format!(" by {}", BasisPoints(by)) } else { String::new() };
        self.spec.claims.push(Claim {
            at: 0..0,
            text: format!("{faster} > {slower}{margin}"),
            faster: faster.to_owned(),
            slower: slower.to_owned(),
            by: BasisPoints(by),
            scope: Rule { at: 0..0, conditions: scope },
        });
    }
}

fn axes(shape: &Shape) -> [Vec<Value>; Parameter::COUNT] {
    let structure = |name: &&str| {
        Value::Structure(StructureUse {
            name: (*name).to_owned(),
            label: (*name).to_owned(),
            parameters: BTreeMap::new(),
        })
    };
    let mut axes: [Vec<Value>; Parameter::COUNT] = Default::default();
    let mut set = |parameter: Parameter, values: Vec<Value>| axes[parameter as usize] = values;
    set(Parameter::Structure, shape.structures.iter().map(structure).collect());
    set(
        Parameter::Allocator,
        shape.allocators.iter().map(|&name| Value::Allocator(self::Allocator::Linked(name))).collect(),
    );
    set(Parameter::Reclamation, vec![Value::Reclamation(Reclamation::Epoch)]);
    set(Parameter::Pinning, vec![Value::Pinning(Pinning::Compact)]);
    set(Parameter::Threads, shape.threads.iter().map(|&n| Value::Threads(Threads::Count(n))).collect());
    set(Parameter::KeyRange, shape.key_ranges.iter().map(|&keys| Value::Count(keys)).collect());
    set(Parameter::Mix, vec![Value::Mix(Mix { insert: 5000, remove: 5000, contains: 0, range: 0 })]);
    set(Parameter::Distribution, vec![Value::Distribution(Distribution::Uniform)]);
    set(Parameter::Prefill, vec![Value::Prefill(Prefill::Share(BasisPoints(5000)))]);
    set(Parameter::RangeQuery, vec![Value::RangeQuery(RangeQuery::None)]);
    set(Parameter::TrialLength, vec![Value::Duration(Nanos(3_000_000_000))]);
    set(Parameter::HugePages, vec![Value::Word("system")]);
    set(Parameter::Aslr, vec![Value::Word("on")]);
    set(Parameter::EnvironmentPadding, vec![Value::Bytes(Bytes(0))]);
    set(Parameter::Priority, vec![Value::Nice(0)]);
    set(Parameter::ObjectPool, vec![Value::Word("off")]);
    set(Parameter::NodePadding, vec![Value::Count(0)]);
    set(Parameter::TimeCheck, vec![Value::Word("flag")]);
    set(Parameter::HarnessPadding, vec![Value::Count(128)]);
    set(Parameter::Generator, vec![Value::Word("xoshiro256++")]);
    set(Parameter::HarnessFault, vec![Value::Word("none")]);
    axes
}

fn plan(axes: &[Vec<Value>; Parameter::COUNT], n_trials: u32) -> Plan {
    let mut cells = vec![[0u32; Parameter::COUNT]];
    for (column, values) in axes.iter().enumerate() {
        let n_values = u32::try_from(values.len()).unwrap();
        let with = |cell: [u32; Parameter::COUNT]| {
            (0..n_values).map(move |value| {
                let mut cell = cell;
                cell[column] = value;
                cell
            })
        };
        cells = cells.into_iter().flat_map(with).collect();
    }
    let n_cells = u32::try_from(cells.len()).unwrap();
    let mut draws = Draws(11);
    let mut block = |kind, trial_idx| {
        let mut order: Vec<u32> = (0..n_cells).collect();
        order.sort_by_cached_key(|_| draws.next());
        Block { kind, trial_idx, order }
    };
    let mut blocks: Vec<Block> = (0..n_trials).map(|trial_idx| block(BlockKind::Measure, trial_idx)).collect();
    blocks.push(block(BlockKind::Account, 0));
    Plan {
        values: axes.clone(),
        cells,
        blocks,
        order: Order::Random,
        seed: 42,
        checks: [
            "checksum",
            "prefill",
            "pinning",
            "duration",
            "allocator",
            "fairness",
            "identity",
            "leaks",
            "variance",
        ]
        .map(str::to_owned)
        .to_vec(),
        instruments: Vec::new(),
        probes: Vec::new(),
    }
}

fn spec(axes: [Vec<Value>; Parameter::COUNT], shape: &Shape) -> Spec {
    Spec {
        name: "bst".to_owned(),
        question: Some(
            "Which concurrent search tree is faster, and does the answer survive the **configuration**?".to_owned(),
        ),
        quick: false,
        axes,
        overrides: Vec::new(),
        zip: Vec::new(),
        exclude: Vec::new(),
        include: Vec::new(),
        n_trials: shape.n_trials,
        checks: vec![
            "checksum",
            "prefill",
            "pinning",
            "duration",
            "allocator",
            "fairness",
            "identity",
            "leaks",
            "variance",
        ],
        instruments: Vec::new(),
        order: Order::Random,
        seed: 42,
        claims: Vec::new(),
        compare: Vec::new(),
        mix_names: vec![(Mix { insert: 5000, remove: 5000, contains: 0, range: 0 }, "update-heavy".to_owned())],
        allow: Vec::new(),
        limits: Limits {
            cells: 100_000,
            trials: 1_000_000,
            time: Nanos(86_400_000_000_000),
            disk: Bytes(1 << 30),
            memory: Bytes(1 << 33),
        },
        budget: None,
    }
}

/// A small generator of the tests' own: splitmix64.
pub struct Draws(pub u64);

impl Draws {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Roughly normal with that relative spread, around 1: the mean of four uniform draws.
    fn around_one(&mut self, spread: f64) -> f64 {
        let sum: f64 = (0..4).map(|_| (self.next() >> 11) as f64 / (1u64 << 53) as f64).sum();
        1.0 + (sum / 2.0 - 1.0) * spread * 3.46
    }
}

fn trials(plan: &Plan) -> Vec<Trial> {
    let mut draws = Draws(7);
    (0..).zip(plan.trials()).map(|(position, trial)| made_up(plan, trial, position, None, &mut draws)).collect()
}

fn made_up(plan: &Plan, id: TrialId, position: u32, rate: Option<f64>, draws: &mut Draws) -> Trial {
    let cell = plan.cell_of(id).unwrap();
    let Threads::Count(n_threads) = cell.threads() else { unreachable!("counts only") };
    let key_range = cell.key_range();
    let length = match id.kind {
        BlockKind::Measure => Length::Nanos(cell.trial_length().0),
        BlockKind::Probe => match plan.probe_of(id).map(|probe| (probe.mode, probe.mode.operations())).unwrap() {
            (_, None) => Length::Nanos(cell.trial_length().0),
            (Mode::Account, Some(operations)) => Length::Accounting { operations },
            (_, Some(operations)) => Length::Operations { operations },
        },
        BlockKind::Account => Length::Accounting { operations: 100_000 },
    };
    let self::Allocator::Linked(allocator) = cell.allocator() else { unreachable!("linked only") };
    let request = Request {
        format: protocol::FORMAT,
        structure: cell.structure().name.clone(),
        structure_parameters: BTreeMap::new(),
        reclamation: cell.reclamation(),
        allocator: AllocatorRequest { name: (*allocator).to_owned(), preload: None },
        cpus: (0..n_threads).map(Some).collect(),
        key_range,
        mix: cell.mix(),
        range_keys: None,
        distribution: cell.distribution(),
        prefill_keys: cell.prefill().keys(key_range),
        length,
        seed: draws.next(),
        nice: 0,
        nodes: cell.nodes(),
        harness: cell.harness().unwrap(),
        watch: None,
    };
    let usual = || rate_of(&request.structure, f64::from(n_threads), key_range as f64) * draws.around_one(0.02);
    let rate = rate.map_or_else(usual, |rate| rate / f64::from(n_threads));
    let reply = reply(&request, rate, draws);
    let seconds = u64::from(position) * 3_140;
    Trial {
        trial: id,
        position,
        attempt: 0,
        started: format!(
            "2026-12-01T10:{:02}:{:02}.{:03}Z",
            15 + seconds / 60_000 % 45,
            seconds / 1000 % 60,
            seconds % 1000
        ),
        wall: Nanos(3_120_000_000 + draws.next() % 9_000_000),
        request,
        outcome: Outcome::Replied(Box::new(reply)),
        interference: Interference {
            other_cpu_ns: Some(4_000_000),
            steal_ns: Some(1_200_000),
            swapped_pages: Some(0),
            throttled: None,
            ..Interference::default()
        },
        watched: None,
    }
}

/// Operations per second of a thread, in a shape seen on real machines: the list wins on few keys only.
fn rate_of(structure: &str, threads: f64, keys: f64) -> f64 {
    let levels = keys.log2();
    let nanos = match structure {
        "nm14" => 18.0 + 7.5 * levels,
        "harris01" => 14.0 + keys / 4.0,
        "crossbeam-skiplist" => 40.0 + 16.0 * levels,
        "rwlock-btree" => (25.0 + 5.0 * levels) * (1.0 + 1.1 * (threads - 1.0)),
        "mutex-btree" => (20.0 + 5.0 * levels) * (1.0 + 1.3 * (threads - 1.0)),
        _ => 60.0 + 10.0 * levels,
    };
    1e9 / nanos / (1.0 + 0.12 * (threads - 1.0))
}

fn reply(request: &Request, rate: f64, draws: &mut Draws) -> Reply {
    let n_threads = request.cpus.len();
    let target = request.prefill_keys;
    let per_thread: Vec<u64> = (0..n_threads as u64)
        .map(|thread| target / n_threads as u64 + u64::from(thread < target % n_threads as u64))
        .collect();
    let prefill_sum = draws.next() >> 20;
    let threads: Vec<ThreadReply> =
        (0..).zip(&request.cpus).map(|(thread, &cpu)| thread_reply(request, thread, cpu, rate, draws)).collect();
    let gained: u64 = threads.iter().map(|t| t.operations.insert.effective - t.operations.remove.effective).sum();
    let sum = threads.iter().fold(prefill_sum, |sum, t| sum.wrapping_add(t.inserted_sum).wrapping_sub(t.removed_sum));
    let accounting = matches!(request.length, Length::Accounting { .. }).then(|| Accounting {
        prefilled: Balance { blocks: 2 * target as i64, bytes: 112 * target as i64 },
        allocations: 99_812,
        allocated_bytes: 5_589_472,
        frees: 99_640,
        after_drop: Balance::default(),
    });
    Reply {
        format: protocol::FORMAT,
        request_sha256: "5f".repeat(32),
        allocator: AllocatorProof {
            name: request.allocator.name.clone(),
            version: "5.3.0".to_owned(),
            preload: None,
            evidence: "version call; a fresh block lies in its arena".to_owned(),
        },
        nice: 0,
        prefill: protocol::Prefill { target, per_thread, key_sum: prefill_sum, wall_ns: 21_000_000 },
        threads,
        samples: Vec::new(),
        audit_before: Audit { size: target, key_sum: prefill_sum, violations: Vec::new() },
        audit_after: Audit { size: target + gained, key_sum: sum, violations: Vec::new() },
        memory: Memory {
            harness_bytes: 2_752_512,
            prefilled_bytes: 2_752_512 + 130 * target,
            end_bytes: 4_104_192 + 132 * target,
            peak_bytes: 4_194_304 + 132 * target,
            huge_page_bytes: Err("smaps_rollup is not readable".to_owned()),
            unreclaimed_objects: Some(draws.next() % 700),
        },
        accounting,
        layout: None,
        counters: None,
        phases: Phases { start_ns: 2_100_000, audit_ns: 900_000, drop_ns: 0 },
    }
}

fn thread_reply(request: &Request, thread: u32, cpu: Option<u32>, rate: f64, draws: &mut Draws) -> ThreadReply {
    let asked = match request.length {
        Length::Nanos(nanos) => nanos,
        Length::Accounting { .. } | Length::Operations { .. } => 60_000_000,
    };
    let start_ns = 3_000 + draws.next() % 40_000;
    let stop_ns = start_ns + asked + draws.next() % 400_000;
    let attempted = (rate * (stop_ns - start_ns) as f64 / 1e9) as u64;
    let insert = Tally { attempted: attempted / 2, effective: attempted / 4 + 12 };
    let remove = Tally { attempted: attempted - attempted / 2, effective: attempted / 4 + u64::from(thread) };
    let cpu_seen = cpu.unwrap_or(thread);
    ThreadReply {
        cpu_asked: cpu,
        cpus_allowed: cpu.map_or_else(|| vec![0, 1, 2, 3], |cpu| vec![cpu]),
        cpu_at_start: cpu_seen,
        cpu_at_end: cpu_seen,
        start_ns,
        stop_ns,
        operations: Operations { insert, remove, ..Operations::default() },
        inserted_sum: draws.next(),
        removed_sum: draws.next(),
        user_ns: asked - 3_000_000,
        system_ns: 1_500_000,
        voluntary_switches: 1,
        involuntary_switches: 9,
        migrations: Err("no such field in /proc/self/sched".to_owned()),
        minor_faults: 210,
        major_faults: 0,
    }
}
