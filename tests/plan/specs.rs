//! Specs for the tests, made without the compiler of specs.

use std::collections::BTreeMap;

use rare::{
    spec::{
        Spec,
        model::{Claim, Condition, Inclusion, Limits, Order, Rule},
        value::{Allocator, Parameter, Pinning, Prefill, RangeQuery, StructureUse, Threads, Value},
    },
    units::{BasisPoints, Bytes, Nanos},
};
use rare_workloads::protocol::{Distribution, Mix, Reclamation};

/// One structure, one cell, one trial.
pub fn base() -> Spec {
    Spec {
        name: "base".to_owned(),
        question: None,
        quick: false,
        axes: Parameter::ALL.map(|parameter| vec![usual(parameter)]),
        overrides: Vec::new(),
        zip: Vec::new(),
        exclude: Vec::new(),
        include: Vec::new(),
        n_trials: 1,
        checks: Vec::new(),
        instruments: Vec::new(),
        order: Order::Random,
        seed: 1,
        claims: Vec::new(),
        compare: Vec::new(),
        mix_names: Vec::new(),
        allow: Vec::new(),
        limits: Limits {
            cells: 100_000,
            trials: 1_000_000,
            time: Nanos(u64::MAX),
            disk: Bytes(u64::MAX),
            memory: Bytes(u64::MAX),
        },
        budget: None,
    }
}

/// [`base`] with these axes.
pub fn with_axes(axes: impl IntoIterator<Item = (Parameter, Vec<Value>)>) -> Spec {
    let mut spec = base();
    axes.into_iter().for_each(|(parameter, values)| spec.axes[parameter as usize] = values);
    spec
}

/// Two structures, two thread counts, three key ranges: twelve cells.
pub fn twelve_cells() -> Spec {
    with_axes([
        (Parameter::Structure, vec![structure("nm14"), structure("harris01")]),
        (Parameter::Threads, vec![threads(1), Value::Threads(Threads::All)]),
        (Parameter::KeyRange, [100, 10_000, 1_000_000].map(Value::Count).to_vec()),
    ])
}

pub fn structure(name: &str) -> Value {
    labelled(name, name)
}

pub fn labelled(name: &str, label: &str) -> Value {
    Value::Structure(StructureUse { name: name.to_owned(), label: label.to_owned(), parameters: BTreeMap::new() })
}

pub fn threads(count: u32) -> Value {
    Value::Threads(Threads::Count(count))
}

pub fn rule(at: usize, conditions: impl IntoIterator<Item = (Parameter, Condition)>) -> Rule {
    let conditions = conditions.into_iter().map(|(parameter, condition)| (parameter, vec![condition])).collect();
    Rule { at: at..at + 1, conditions }
}

pub fn inclusion(at: usize, values: impl IntoIterator<Item = (Parameter, Vec<Value>)>) -> Inclusion {
    Inclusion { at: at..at + 1, values: values.into_iter().collect() }
}

pub fn claim(at: usize, faster: &str, slower: &str, scope: Rule) -> Claim {
    Claim {
        at: at..at + 1,
        text: format!("{faster} > {slower}"),
        faster: faster.to_owned(),
        slower: slower.to_owned(),
        by: BasisPoints(0),
        scope,
    }
}

/// The value of a parameter in [`base`].
pub fn usual(parameter: Parameter) -> Value {
    match parameter {
        Parameter::Structure => structure("nm14"),
        Parameter::Allocator => Value::Allocator(Allocator::Linked("system")),
        Parameter::Reclamation => Value::Reclamation(Reclamation::Epoch),
        Parameter::Pinning => Value::Pinning(Pinning::Compact),
        Parameter::Threads => threads(1),
        Parameter::KeyRange => Value::Count(100_000),
        Parameter::Mix => Value::Mix(Mix { insert: 5_000, remove: 5_000, contains: 0, range: 0 }),
        Parameter::Distribution => Value::Distribution(Distribution::Uniform),
        Parameter::Prefill => Value::Prefill(Prefill::Share(BasisPoints(5_000))),
        Parameter::RangeQuery => Value::RangeQuery(RangeQuery::None),
        Parameter::TrialLength => Value::Duration(Nanos(3_000_000_000)),
        Parameter::HugePages => Value::Word("system"),
        Parameter::Aslr => Value::Word("on"),
        Parameter::EnvironmentPadding => Value::Bytes(Bytes(0)),
        Parameter::Priority => Value::Nice(0),
        Parameter::ObjectPool => Value::Word("none"),
        Parameter::NodePadding => Value::Count(0),
        Parameter::TimeCheck => Value::Word("flag"),
        Parameter::HarnessPadding => Value::Count(128),
        Parameter::Generator => Value::Word("xoshiro256++"),
        Parameter::HarnessFault => Value::Word("none"),
    }
}

/// Values of a parameter that differ from the usual one in every way that its form allows.
pub fn unusual(parameter: Parameter) -> Vec<Value> {
    match parameter {
        Parameter::Structure => unusual_structures(),
        Parameter::Allocator => ["/usr/lib/libjemalloc.so.2", "/a \"b\"\\\n\u{1}é😀", "system"]
            .map(|path| Value::Allocator(Allocator::Preload(path.to_owned())))
            .into_iter()
            .chain(Allocator::LINKED[1..].iter().map(|name| Value::Allocator(Allocator::Linked(name))))
            .collect(),
        Parameter::Reclamation => {
            let schemes =
                [Reclamation::None, Reclamation::HYALINE, Reclamation::Hyaline { batch: 1 }, Reclamation::Hazard];
            schemes.map(Value::Reclamation).to_vec()
        }
        Parameter::Pinning => [vec![], vec![0], vec![0, 1], vec![1, 0], vec![u32::MAX]]
            .map(Pinning::Cpus)
            .into_iter()
            .chain([Pinning::None, Pinning::Scatter])
            .map(Value::Pinning)
            .collect(),
        Parameter::Threads => vec![threads(2), threads(u32::MAX), Value::Threads(Threads::All)],
        Parameter::KeyRange => [1, 99_999, (1 << 53) - 1, 1 << 53, (1 << 53) + 1, u64::MAX].map(Value::Count).to_vec(),
        Parameter::Mix => [(5_001, 4_999, 0), (5_000, 4_999, 1), (0, 0, 10_000), (4_999, 5_001, 0)]
            .map(|(insert, remove, contains)| Value::Mix(Mix { insert, remove, contains, range: 0 }))
            .to_vec(),
        Parameter::Distribution => {
            [0, 1, 990_000, 1_000_000, u32::MAX].map(|it| Value::Distribution(Distribution::Zipf(it))).to_vec()
        }
        Parameter::Prefill => [
            Prefill::Share(BasisPoints(0)),
            Prefill::Share(BasisPoints(10_000)),
            Prefill::Keys(0),
            Prefill::Keys(5_000),
        ]
        .map(Value::Prefill)
        .to_vec(),
        Parameter::TrialLength => {
            [1, 3_000_000_001, u64::MAX - 1, u64::MAX].map(|it| Value::Duration(Nanos(it))).to_vec()
        }
        Parameter::EnvironmentPadding => [1, 4_096, u64::MAX].map(|it| Value::Bytes(Bytes(it))).to_vec(),
        Parameter::NodePadding => [64, 128].map(Value::Count).to_vec(),
        Parameter::HarnessPadding => [0, 64].map(Value::Count).to_vec(),
        Parameter::Priority => [-20, -1, 1, 19].map(Value::Nice).to_vec(),
        Parameter::HugePages => vec![Value::Word("never")],
        Parameter::Aslr => vec![Value::Word("off")],
        Parameter::ObjectPool => vec![Value::Word("per-thread")],
        Parameter::TimeCheck => vec![Value::Word("every-op"), Value::Word("every-10")],
        Parameter::Generator => vec![Value::Word("fnv1a-alternating")],
        Parameter::HarnessFault => vec![Value::Word("late-thread"), Value::Word("nominal-time")],
        Parameter::RangeQuery => [1, 2, u64::MAX].map(|it| Value::RangeQuery(RangeQuery::Keys(it))).to_vec(),
    }
}

/// Cells with range queries of two sizes.
pub fn with_ranges() -> Spec {
    let mix = Mix { insert: 500, remove: 500, contains: 8_000, range: 1_000 };
    let sizes = [1, 1_000].map(|keys| Value::RangeQuery(RangeQuery::Keys(keys))).to_vec();
    with_axes([(Parameter::Mix, vec![Value::Mix(mix)]), (Parameter::RangeQuery, sizes)])
}

fn unusual_structures() -> Vec<Value> {
    let with = |name: &str, label: &str, parameters: &[(&str, u64)]| {
        let parameters = parameters.iter().map(|&(name, number)| (name.to_owned(), number)).collect();
        Value::Structure(StructureUse { name: name.to_owned(), label: label.to_owned(), parameters })
    };
    vec![
        with("harris01", "harris01", &[]),
        with("nm14", "nm14-again", &[]),
        with("harris01", "nm14", &[]),
        with("nm14", "nm14", &[("fanout", 4)]),
        with("nm14", "nm14", &[("fanout", 5)]),
        with("nm14", "nm14", &[("fanin", 5)]),
        with("nm14", "nm14", &[("fanin", 5), ("fanout", u64::MAX)]),
    ]
}
