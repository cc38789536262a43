//! From text to a [`Spec`], or to every mistake in it.

use std::{collections::BTreeMap, sync::LazyLock};

use super::{
    Catalogue, Spec,
    fields::{self, Default, FIELDS, Kind},
    keys::{Place, Written},
    lower::{Axis, Draft, Lowering, Placed},
    model::{Limits, Order},
    tree::Node,
    value::Parameter,
    yaml,
};
use crate::{
    diag::{self, Diagnostic, Severity, Source, codes},
    units::{Bytes, Nanos, Quantity},
};

/// The only format of specs so far.
const FORMAT: u64 = 1;

/// A spec without mistakes.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The spec, every default made explicit.
    pub spec: Spec,
    /// What should be said about it nevertheless, sorted by place.
    pub warnings: Vec<Diagnostic>,
}

/// Compiles a spec against the built-in catalogue; with `quick`, its `quick` block is laid over it.
///
/// The `quick` block is checked either way.
///
/// # Errors
/// Every mistake of the spec, sorted by place, at least one of them an error.
pub fn compile(source: &Source, quick: bool) -> Result<Compiled, Vec<Diagnostic>> {
    compile_with(source, quick, &Catalogue::BUILT)
}

/// Compiles a spec against a catalogue of structures.
///
/// # Errors
/// As [`compile`].
pub fn compile_with(source: &Source, quick: bool, catalogue: &Catalogue) -> Result<Compiled, Vec<Diagnostic>> {
    let (root, mut found) = yaml::read(&source.text);
    let root = root.filter(|root| !root.is_null() && root.entries().is_none_or(|entries| !entries.is_empty()));
    let Some(root) = root else {
        if found.is_empty() {
            let diagnostic = Diagnostic::new(&codes::EMPTY, 0..0, "the spec is empty");
            found.push(diagnostic.help("write at least `rare: 1`, `name: …` and `structures: […]`"));
        }
        diag::sort(&mut found);
        return Err(found);
    };
    let mut keys = Lowering { text: &source.text, catalogue, whole: None, found };
    let written = keys.keys(&root, Place::Spec);
    if root.entries().is_some() {
        keys.missing_keys(&root, &written);
    }
    let overlaid = written.get("quick").map(|node| {
        let mut overlaid = written.clone();
        overlaid.extend(keys.keys(node, Place::Quick));
        overlaid
    });
    let mut found = keys.found;

    let (draft, whole) = lower(&source.text, catalogue, None, &written, &mut found);
    let short = overlaid.map(|overlaid| {
        let mut found_in_short = Vec::new();
        let (_, short) = lower(&source.text, catalogue, Some(&draft), &overlaid, &mut found_in_short);
        // What was said about the whole spec is not said again with the values of the short one.
        let is_new = |it: &Diagnostic| !found.iter().any(|said| said.code == it.code && said.at == it.at);
        found_in_short.retain(|it| is_new(it) && (quick || it.severity() == Severity::Error));
        found.append(&mut found_in_short);
        short
    });
    diag::sort(&mut found);
    let chosen = if quick { short.unwrap_or(whole) } else { whole };
    match chosen {
        Some(spec) if found.iter().all(|it| it.severity() == Severity::Warning) => {
            Ok(Compiled { spec: Spec { quick, ..spec }, warnings: found })
        }
        _ => Err(found),
    }
}

/// Lowers what is written, and the defaults of what is not.
///
/// Returns what could be lowered, and the spec if nothing was refused.
fn lower(
    text: &str,
    catalogue: &Catalogue,
    whole: Option<&Draft>,
    written: &Written<'_>,
    found: &mut Vec<Diagnostic>,
) -> (Draft, Option<Spec>) {
    let mut pass = Pass { lowering: Lowering { text, catalogue, whole, found: Vec::new() }, written };
    let mut draft = Draft::default();
    for parameter in Parameter::ALL {
        let field = fields::of(parameter);
        let axis = pass.with(field.key, |lowering, node| lowering.axis(&mut draft, field, node)).unwrap_or_default();
        draft.axes[parameter as usize] = axis;
    }
    draft.zip = pass.with("zip", |lowering, node| lowering.zip(&draft, node)).unwrap_or_default();
    Lowering::order_mixes(&mut draft);
    draft.exclude = pass.with("exclude", |lowering, node| lowering.exclude(&draft, node)).unwrap_or_default();
    draft.include = pass.with("include", |lowering, node| lowering.include(&draft, node)).unwrap_or_default();
    draft.claims = pass.with("claims", |lowering, node| lowering.claims(&draft, node)).unwrap_or_default();
    draft.compare = pass.with("compare", |lowering, node| lowering.compare(&draft, node)).unwrap_or_default();
    let settings = pass.settings();
    let allow = settings.as_ref().map_or(&[][..], |settings| &settings.allow);
    pass.lowering.judge(&draft, allow);
    found.append(&mut pass.lowering.found);
    let is_complete = draft.axes.iter().all(|axis| axis.complete);
    let spec = settings.filter(|_| is_complete).map(|settings| spec_of(&draft, settings));
    (draft, spec)
}

/// The defaults of the table as trees, without places because no one wrote them.
static DEFAULTS: LazyLock<BTreeMap<&'static str, Node>> = LazyLock::new(|| {
    let texts = FIELDS.iter().filter_map(|field| match field.default {
        Default::Text(text) => Some((field.key, text)),
        Default::Required | Default::Absent => None,
    });
    let read = |text| yaml::read(text).0.expect("a test lowers every default").unplaced();
    texts.map(|(key, text)| (key, read(text))).collect()
});

/// What a spec says besides parameters and rules.
struct Settings {
    name: String,
    question: Option<String>,
    n_trials: u32,
    checks: Vec<&'static str>,
    instruments: Vec<&'static str>,
    order: Order,
    seed: u64,
    allow: Vec<&'static str>,
    limits: Limits,
    budget: Option<Nanos>,
}

/// One way through the fields.
struct Pass<'s> {
    lowering: Lowering<'s>,
    written: &'s Written<'s>,
}

impl<'s> Pass<'s> {
    /// Lowers the written value of a field, or its default; `None` when there is neither.
    fn with<T>(&mut self, key: &str, lower: impl FnOnce(&mut Lowering<'s>, &Node) -> T) -> Option<T> {
        if let Some(node) = self.written.get(key) {
            return Some(lower(&mut self.lowering, node));
        }
        DEFAULTS.get(key).map(|node| lower(&mut self.lowering, node))
    }

    /// Lowers everything that is neither a parameter nor a rule. All of it, before anything missing ends it.
    fn settings(&mut self) -> Option<Settings> {
        let version = self.with("rare", Lowering::version).flatten();
        let name = self.with("name", Lowering::file_name).flatten();
        let question = self.with("question", |lowering, node| {
            lowering.scalar(node, "a text").map(|scalar| scalar.text.trim().to_owned())
        });
        let family = self.words("family");
        let n_trials = self.number("trials.count");
        let (checks, instruments) = (self.words("sanity_checks"), self.words("instruments"));
        let (order, allow) = (self.words("order"), self.words("allow"));
        let seed = self.number("seed");
        let limits = self.limits();
        let budget = self.with("budget", Lowering::budget).flatten();
        version?;
        family?;
        Some(Settings {
            name: name?,
            question: match question {
                Some(question) => Some(question?),
                None => None,
            },
            n_trials: u32::try_from(n_trials?).expect("bounded by the table"),
            checks: checks?,
            instruments: instruments?,
            order: if order? == ["listed"] { Order::Listed } else { Order::Random },
            seed: seed?,
            allow: allow?,
            limits: limits?,
            budget: budget?,
        })
    }

    fn limits(&mut self) -> Option<Limits> {
        let (cells, trials) = (self.number("limits.cells"), self.number("limits.trials"));
        let (time, disk) = (self.number("limits.time"), self.number("limits.disk"));
        let memory = self.number("limits.memory");
        Some(Limits { cells: cells?, trials: trials?, time: Nanos(time?), disk: Bytes(disk?), memory: Bytes(memory?) })
    }

    fn number(&mut self, key: &'static str) -> Option<u64> {
        let Kind::Number { quantity, min, max } = fields::find(key)?.kind else {
            unreachable!("`{key}` is a number in the table");
        };
        self.with(key, |lowering, node| lowering.number(key, node, quantity, (min, max))).flatten()
    }

    /// Lowers one word or several; `None` when some were refused.
    fn words(&mut self, key: &'static str) -> Option<Vec<&'static str>> {
        let field = fields::find(key)?;
        let n_found = self.lowering.found.len();
        let words = match field.kind {
            Kind::Words { words, all } => self.with(key, |lowering, node| lowering.words(field, words, all, node)),
            Kind::Word(words) => {
                let word = self.with(key, |lowering, node| lowering.word(words, &[], node)).flatten();
                word.map(|word| vec![word.name])
            }
            _ => unreachable!("`{key}` is a list of words in the table"),
        };
        words.filter(|_| self.lowering.found.len() == n_found)
    }
}

impl Lowering<'_> {
    /// Lowers the format of the file.
    fn version(&mut self, node: &Node) -> Option<u64> {
        let version = self.number("rare", node, Quantity::Integer, (0, u64::MAX))?;
        if version == FORMAT {
            return Some(version);
        }
        let message = format!("format `{version}` is not read by this version");
        let diagnostic = Diagnostic::new(&codes::FORMAT, node.at.clone(), message);
        let help = if version > FORMAT { "update `rare`, or write `rare: 1`" } else { "write `rare: 1`" };
        self.report(diagnostic.label(format!("expected `{FORMAT}`")).help(help));
        None
    }

    /// Lowers a duration or `none`: the outer `None` says that it was refused.
    fn budget(&mut self, node: &Node) -> Option<Option<Nanos>> {
        let field = fields::find("budget").expect("the table has it");
        let Kind::NumberOrNone { quantity, min, max } = field.kind else {
            unreachable!("`budget` is a number or `none` in the table");
        };
        if let super::tree::Kind::Scalar(scalar) = &node.kind
            && scalar.text == "none"
        {
            return Some(None);
        }
        self.number(field.key, node, quantity, (min, max)).map(|number| Some(Nanos(number)))
    }
}

fn spec_of(draft: &Draft, settings: Settings) -> Spec {
    let values = |axis: &Axis| axis.values.iter().map(|placed| placed.value.clone()).collect();
    let overrides = draft.overrides.iter();
    Spec {
        name: settings.name,
        question: settings.question,
        quick: false,
        axes: draft.axes.each_ref().map(values),
        overrides: overrides.map(|it| (it.label.clone(), it.parameter, it.value.value.clone())).collect(),
        zip: draft.zip.iter().map(|Placed { value, .. }| value.clone()).collect(),
        exclude: draft.exclude.clone(),
        include: draft.include.clone(),
        n_trials: settings.n_trials,
        checks: settings.checks,
        instruments: settings.instruments,
        order: settings.order,
        seed: settings.seed,
        claims: draft.claims.clone(),
        compare: draft.compare.clone(),
        mix_names: draft.mix_names.clone(),
        allow: settings.allow,
        limits: settings.limits,
        budget: settings.budget,
    }
}
