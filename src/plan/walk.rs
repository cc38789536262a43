//! The one walk over a plan.
//!
//! It visits every leaf in the order of canonical JSON (RFC 8785: the keys of an object ascend). The bytes that are
//! hashed and the listing of `rare plan --explain` are both visitors of this walk, so they cannot disagree. Must not
//! know how a leaf is written.

use rare_workloads::protocol::{Distribution, Mix, Reclamation};

use super::model::{Block, BlockKind, Cell, FORMAT, Plan, TrialId};
use crate::spec::{
    model::Order,
    value::{Allocator, Parameter, Pinning, Prefill, RangeQuery, StructureUse, Threads, Value},
};

/// The only family so far.
pub(super) const FAMILY: &str = "set";

/// What a visitor of the walk is told.
pub(super) trait Visitor: Sized {
    /// An object or an array begins at `step`.
    fn open(&mut self, step: Step<'_>, bracket: Bracket);
    /// The object or array opened last ends.
    fn close(&mut self);
    /// One leaf.
    fn leaf(&mut self, step: Step<'_>, leaf: Leaf<'_>);
    /// An array that holds nothing but leaves.
    fn list<'l>(&mut self, step: Step<'_>, leaves: impl Iterator<Item = Leaf<'l>>);

    /// An object with its members.
    fn object(&mut self, step: Step<'_>, members: impl FnOnce(&mut Self)) {
        self.open(step, Bracket::Object);
        members(self);
        self.close();
    }

    /// An array with its elements.
    fn array(&mut self, step: Step<'_>, elements: impl FnOnce(&mut Self)) {
        self.open(step, Bracket::Array);
        elements(self);
        self.close();
    }
}

/// The way from an object or array to one of its members.
#[derive(Clone, Copy)]
pub(super) enum Step<'a> {
    /// To the whole document.
    Root,
    /// To a member of the plan: its key, and the keys of the spec that decide it.
    Field(&'static str, &'static str),
    /// To the value of a parameter.
    Parameter(Parameter),
    /// To any other member of an object.
    Key(&'a str),
    /// To an element of an array.
    Index(usize),
}

/// What encloses members.
#[derive(Clone, Copy)]
pub(super) enum Bracket {
    Object,
    Array,
}

/// What a plan is made of in the end. There is no float: RFC 8785 would fold close ones together.
#[derive(Clone, Copy)]
pub(super) enum Leaf<'a> {
    Text(&'a str),
    /// A quantity in its base unit.
    Number(u64),
    /// A quantity that may be negative.
    Signed(i8),
    /// A seed: its every bit counts, so it is never written as a JSON number.
    Seed(u64),
}

/// Walks over everything that decides what is executed.
pub(super) fn plan(plan: &Plan, visitor: &mut impl Visitor) {
    let (varied, held): (Vec<_>, Vec<_>) = sorted().into_iter().partition(|&it| plan.values[it as usize].len() > 1);
    visitor.object(Step::Root, |visitor| {
        visitor.array(Step::Field("blocks", "trials.count, order, seed"), |visitor| {
            plan.blocks.iter().enumerate().for_each(|(idx, it)| block(Step::Index(idx), it, visitor));
        });
        visitor.array(Step::Field("cells", "axes, zip, exclude, include"), |visitor| {
            for cell_idx in 0..plan.n_cells() {
                let step = Step::Index(cell_idx as usize);
                visitor.object(step, |visitor| parameters(plan.cell(cell_idx), &varied, visitor));
            }
        });
        visitor.list(Step::Field("checks", "sanity_checks"), plan.checks.iter().map(|it| Leaf::Text(it)));
        visitor.leaf(Step::Field("family", "family"), Leaf::Text(FAMILY));
        visitor.leaf(Step::Field("format", "the format of plans"), Leaf::Number(FORMAT.into()));
        visitor.object(Step::Field("held", "axes"), |visitor| parameters(plan.cell(0), &held, visitor));
        visitor.list(Step::Field("instruments", "instruments"), plan.instruments.iter().map(|it| Leaf::Text(it)));
        visitor.leaf(Step::Field("order", "order"), Leaf::Text(order_name(plan.order)));
        if !plan.probes.is_empty() {
            visitor.object(Step::Field("probes", "sanity_checks, instruments"), |visitor| probes(plan, visitor));
        }
        visitor.leaf(Step::Field("seed", "seed"), Leaf::Seed(plan.seed));
    });
}

/// Left out of a plan without probes, so that every plan from before there were any keeps its hash.
fn probes(plan: &Plan, visitor: &mut impl Visitor) {
    let is_varied = |parameter: &Parameter| {
        let first = plan.probes.first().map(|probe| &probe.setting[*parameter as usize]);
        plan.probes.iter().any(|probe| Some(&probe.setting[*parameter as usize]) != first)
    };
    let (varied, held): (Vec<_>, Vec<_>) = sorted().into_iter().partition(is_varied);
    if let Some(first) = plan.probes.first() {
        visitor.object(Step::Key("held"), |visitor| parameters(first.cell(), &held, visitor));
    }
    visitor.array(Step::Key("list"), |visitor| {
        for (idx, probe) in plan.probes.iter().enumerate() {
            visitor.object(Step::Index(idx), |visitor| {
                visitor.object(Step::Key("cell"), |visitor| parameters(probe.cell(), &varied, visitor));
                visitor.leaf(Step::Key("mode"), Leaf::Text(probe.mode.name()));
                visitor.leaf(Step::Key("purpose"), Leaf::Text(&probe.purpose));
                visitor.leaf(Step::Key("trials"), Leaf::Number(probe.n_trials.into()));
            });
        }
    });
}

/// Walks over what the order of one block is drawn from: it does not depend on the cells or on the other blocks, so
/// that a plan with more trials begins with the same blocks.
pub(super) fn order_seed(plan: &Plan, kind: BlockKind, trial_idx: u32, visitor: &mut impl Visitor) {
    visitor.object(Step::Root, |visitor| {
        visitor.leaf(Step::Key("kind"), Leaf::Text(kind.name()));
        visitor.leaf(Step::Key("purpose"), Leaf::Text("order"));
        visitor.leaf(Step::Key("seed"), Leaf::Seed(plan.seed));
        visitor.leaf(Step::Key("trial"), Leaf::Number(trial_idx.into()));
    });
}

/// Walks over what the seed of one trial is drawn from: the whole content of its cell, and not the cell's index, so
/// that a trial keeps its seed when cells are added, removed or reordered. Of a probe, also what it is for.
pub(super) fn trial_seed(plan: &Plan, trial: TrialId, visitor: &mut impl Visitor) {
    let cell = plan.cell_of(trial).expect("the trial is of this plan");
    visitor.object(Step::Root, |visitor| {
        visitor.object(Step::Key("cell"), |visitor| parameters(cell, &sorted(), visitor));
        visitor.leaf(Step::Key("kind"), Leaf::Text(trial.kind.name()));
        if let Some(probe) = plan.probe_of(trial) {
            visitor.leaf(Step::Key("mode"), Leaf::Text(probe.mode.name()));
            visitor.leaf(Step::Key("probe"), Leaf::Text(&probe.purpose));
        }
        visitor.leaf(Step::Key("purpose"), Leaf::Text("trial"));
        visitor.leaf(Step::Key("seed"), Leaf::Seed(plan.seed));
        visitor.leaf(Step::Key("trial"), Leaf::Number(trial.trial_idx.into()));
    });
}

/// The word of a plan for an order.
pub(super) fn order_name(order: Order) -> &'static str {
    match order {
        Order::Random => "random",
        Order::Listed => "listed",
    }
}

/// Every parameter in the order of its name, which is that of canonical JSON.
fn sorted() -> [Parameter; Parameter::COUNT] {
    let mut parameters = Parameter::ALL;
    parameters.sort_unstable_by_key(|it| it.name());
    parameters
}

fn block(step: Step<'_>, block: &Block, visitor: &mut impl Visitor) {
    visitor.object(step, |visitor| {
        visitor.leaf(Step::Key("kind"), Leaf::Text(block.kind.name()));
        visitor.list(Step::Key("order"), block.order.iter().map(|&cell| Leaf::Number(cell.into())));
        visitor.leaf(Step::Key("trial"), Leaf::Number(block.trial_idx.into()));
    });
}

/// Values that are left out, so that every plan from before there was the parameter keeps its hash. Whoever reads a plan
/// puts them back.
pub(super) static IMPLIED: [(Parameter, Value); 1] = [(Parameter::HarnessFault, Value::Word("none"))];

fn parameters(cell: Cell<'_>, parameters: &[Parameter], visitor: &mut impl Visitor) {
    for &parameter in parameters {
        let it = cell.value(parameter);
        if !IMPLIED.iter().any(|(implied, value)| (parameter, it) == (*implied, value)) {
            value(Step::Parameter(parameter), it, visitor);
        }
    }
}

/// One value; [`super::read_value`] is the way back.
fn value(step: Step<'_>, value: &Value, visitor: &mut impl Visitor) {
    let text = Leaf::Text;
    let number = Leaf::Number;
    match value {
        Value::Structure(it) => structure(step, it, visitor),
        Value::Allocator(Allocator::Linked(name)) => visitor.leaf(step, text(name)),
        Value::Allocator(Allocator::Preload(path)) => single(step, "preload", text(path), visitor),
        // Always with its batch, so that a default that changes is another plan.
        Value::Reclamation(Reclamation::Hyaline { batch }) => {
            single(step, "hyaline_batch", number((*batch).into()), visitor);
        }
        Value::Reclamation(plain) => visitor.leaf(step, text(plain.name())),
        Value::Pinning(Pinning::None) => visitor.leaf(step, text("none")),
        Value::Pinning(Pinning::Compact) => visitor.leaf(step, text("compact")),
        Value::Pinning(Pinning::Scatter) => visitor.leaf(step, text("scatter")),
        Value::Pinning(Pinning::Cpus(cpus)) => visitor.list(step, cpus.iter().map(|&cpu| number(cpu.into()))),
        Value::Threads(Threads::Count(threads)) => visitor.leaf(step, number((*threads).into())),
        Value::Threads(Threads::All) => visitor.leaf(step, text("all")),
        Value::Count(count) => visitor.leaf(step, number(*count)),
        Value::Mix(it) => mix(step, *it, visitor),
        Value::Distribution(Distribution::Uniform) => visitor.leaf(step, text("uniform")),
        Value::Distribution(Distribution::Zipf(millionths)) => {
            single(step, "zipf_millionths", number((*millionths).into()), visitor);
        }
        Value::Prefill(Prefill::Share(share)) => single(step, "basis_points", number(share.0.into()), visitor),
        Value::Prefill(Prefill::Keys(keys)) => single(step, "keys", number(*keys), visitor),
        Value::RangeQuery(RangeQuery::None) => visitor.leaf(step, text("none")),
        Value::RangeQuery(RangeQuery::Keys(keys)) => visitor.leaf(step, number(*keys)),
        Value::Duration(duration) => visitor.leaf(step, number(duration.0)),
        Value::Bytes(bytes) => visitor.leaf(step, number(bytes.0)),
        Value::Nice(level) => visitor.leaf(step, Leaf::Signed(*level)),
        Value::Word(word) => visitor.leaf(step, text(word)),
    }
}

/// The label is identity too: two uses of one structure are two cells, told apart by nothing else.
fn structure(step: Step<'_>, structure: &StructureUse, visitor: &mut impl Visitor) {
    visitor.object(step, |visitor| {
        visitor.leaf(Step::Key("label"), Leaf::Text(&structure.label));
        visitor.leaf(Step::Key("name"), Leaf::Text(&structure.name));
        visitor.object(Step::Key("parameters"), |visitor| {
            for (name, &number) in &structure.parameters {
                visitor.leaf(Step::Key(name), Leaf::Number(number));
            }
        });
    });
}

/// A share of range queries is there only where it is not zero, so that every plan from before there were range queries
/// keeps its hash.
fn mix(step: Step<'_>, mix: Mix, visitor: &mut impl Visitor) {
    visitor.object(step, |visitor| {
        visitor.leaf(Step::Key("contains"), Leaf::Number(mix.contains.into()));
        visitor.leaf(Step::Key("insert"), Leaf::Number(mix.insert.into()));
        if mix.range > 0 {
            visitor.leaf(Step::Key("range"), Leaf::Number(mix.range.into()));
        }
        visitor.leaf(Step::Key("remove"), Leaf::Number(mix.remove.into()));
    });
}

/// An object of one leaf: its key tells which form of a value it is.
fn single(step: Step<'_>, key: &str, leaf: Leaf<'_>, visitor: &mut impl Visitor) {
    visitor.object(step, |visitor| visitor.leaf(Step::Key(key), leaf));
}
