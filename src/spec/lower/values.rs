//! Single values of parameters.

use rare_workloads::{
    protocol::{Distribution, Reclamation},
    reclaim::BATCHES,
};

use super::{
    super::{
        fields::{Field, Kind},
        suggest,
        tree::{self, Entry, Node},
        value::{Allocator, Parameter, Pinning, Prefill, RangeQuery, Threads, Value},
        words::{self, Word},
    },
    Lowering,
};
use crate::{
    diag::{Diagnostic, Span, codes, quote},
    units::{BasisPoints, Bytes, Nanos, Quantity},
};

/// Bounds of the Zipf exponent in millionths: below, it is uniform; above, one key gets nearly all draws.
const ZIPF_BOUNDS: (u64, u64) = (10_000, 5_000_000);

/// Largest CPU number that Linux can be built for.
const MAX_CPU: u64 = 8_191;

/// A whole in basis points.
const WHOLE: u64 = 10_000;

impl Lowering<'_> {
    /// Lowers one value of a parameter other than structures and mixes, whose values have names.
    pub(crate) fn value(&mut self, field: &'static Field, node: &Node) -> Option<Value> {
        let parameter = field.parameter.expect("only parameters have values of cells");
        match field.kind {
            Kind::Number { quantity, min, max } => {
                let number = self.number(field.key, node, quantity, (min, max))?;
                Some(number_value(quantity, number))
            }
            Kind::Signed { min, max } => {
                let number = self.signed(field.key, node, min, max)?;
                Some(Value::Nice(i8::try_from(number).expect("the bounds of the table fit a nice level")))
            }
            Kind::Word(words) => self.word(words, &[], node).map(|word| word_value(parameter, word)),
            Kind::Allocator => self.allocator(node).map(Value::Allocator),
            Kind::Reclamation => self.reclamation(node).map(Value::Reclamation),
            Kind::Pinning => self.pinning(node).map(Value::Pinning),
            Kind::Threads { max } => self.threads(field.key, node, max).map(Value::Threads),
            Kind::Distribution => self.distribution(node).map(Value::Distribution),
            Kind::Prefill => self.prefill(node).map(Value::Prefill),
            Kind::RangeQuery { max } => self.range_query(field.key, node, max).map(Value::RangeQuery),
            _ => unreachable!("`{}` is not a parameter with nameless values", field.key),
        }
    }

    fn allocator(&mut self, node: &Node) -> Option<Allocator> {
        if let Some(entries) = node.entries() {
            let path = self.only(node, entries, "preload", "`{preload: /path/to/library.so}`")?;
            return self.preload(path).map(Allocator::Preload);
        }
        self.word(words::ALLOCATORS, &[], node).map(|word| Allocator::Linked(word.name))
    }

    fn preload(&mut self, node: &Node) -> Option<String> {
        let path = self.scalar(node, "the path of a shared library")?.text.clone();
        if path.starts_with('/') {
            return Some(path);
        }
        let message = format!("the path {} is not absolute", quote(&path));
        let diagnostic = Diagnostic::new(&codes::RELATIVE_PATH, node.at.clone(), message);
        self.report(diagnostic.help("write the whole path, beginning with `/`"));
        None
    }

    fn reclamation(&mut self, node: &Node) -> Option<Reclamation> {
        const FORM: &str = "`{hyaline: {batch: 32}}`";
        if let Some(entries) = node.entries() {
            let parameters = self.only(node, entries, "hyaline", FORM)?;
            let Some(entries) = parameters.entries() else {
                self.wrong_shape(parameters, "a mapping, such as `{batch: 32}`");
                return None;
            };
            let batch = self.only(parameters, entries, "batch", FORM)?;
            let bounds = (u64::from(*BATCHES.start()), u64::from(*BATCHES.end()));
            let batch = self.number("batch", batch, Quantity::Integer, bounds)?;
            return Some(Reclamation::Hyaline { batch: u32::try_from(batch).expect("bounded by BATCHES") });
        }
        let word = self.word(words::RECLAMATION, &[], node)?;
        let scheme = Reclamation::ALL.iter().find(|scheme| scheme.name() == word.name);
        Some(*scheme.expect("a test holds the built words to the worker's schemes"))
    }

    fn pinning(&mut self, node: &Node) -> Option<Pinning> {
        if let Some(entries) = node.entries() {
            let cpus = self.only(node, entries, "cpus", "`{cpus: [0, 1]}`")?;
            return self.cpus(cpus).map(Pinning::Cpus);
        }
        let word = self.word(words::PINNING, &[], node)?;
        Some(match word.name {
            "none" => Pinning::None,
            "compact" => Pinning::Compact,
            _ => Pinning::Scatter,
        })
    }

    fn cpus(&mut self, node: &Node) -> Option<Vec<u32>> {
        if let tree::Kind::Scalar(scalar) = &node.kind
            && let Some(cpus) = range_list(&scalar.text)
        {
            let message = format!("{} is not a list of CPUs", quote(&scalar.text));
            let diagnostic = Diagnostic::new(&codes::SHAPE, node.at.clone(), message);
            self.report(diagnostic.help(format!("write `cpus: {cpus:?}`: thread by thread, in this order")));
            return None;
        }
        if !matches!(node.kind, tree::Kind::Sequence(_)) {
            self.wrong_shape(node, "a list of CPU numbers");
            return None;
        }
        let n_found = self.found.len();
        let cpus = self.each("cpus", node, |lowering, item| {
            let cpu = lowering.number("cpus", item, Quantity::Integer, (0, MAX_CPU))?;
            Some(u32::try_from(cpu).expect("bounded by MAX_CPU"))
        });
        let mut first: std::collections::BTreeMap<u32, Span> = std::collections::BTreeMap::new();
        for cpu in &cpus {
            if let Some(first) = first.get(&cpu.value) {
                let message = format!("CPU {} is listed twice", cpu.value);
                let diagnostic = Diagnostic::new(&codes::CPU_TWICE, cpu.at.clone(), message).label("again here");
                let help = "give each thread a CPU of its own";
                self.report(diagnostic.also(first.clone(), "first here").help(help));
            }
            first.entry(cpu.value).or_insert_with(|| cpu.at.clone());
        }
        (self.found.len() == n_found).then(|| cpus.into_iter().map(|cpu| cpu.value).collect())
    }

    fn threads(&mut self, key: &str, node: &Node, max: u64) -> Option<Threads> {
        if matches!(&node.kind, tree::Kind::Scalar(scalar) if scalar.text == "all") {
            return Some(Threads::All);
        }
        if let tree::Kind::Scalar(scalar) = &node.kind
            && scalar.text.starts_with(char::is_alphabetic)
        {
            let message = format!("{} is not a count of threads", quote(&scalar.text));
            let meant = suggest::closest(&scalar.text, ["all"]).map(|_| "write `all` for every CPU that is allowed");
            let diagnostic = Diagnostic::new(&codes::NOT_A_NUMBER, node.at.clone(), message);
            self.report(diagnostic.label("expected a count, such as `4`, or `all`").maybe_help(meant));
            return None;
        }
        let count = self.number(key, node, Quantity::Count, (1, max))?;
        Some(Threads::Count(u32::try_from(count).expect("bounded by the table")))
    }

    fn distribution(&mut self, node: &Node) -> Option<Distribution> {
        if let Some(entries) = node.entries() {
            let exponent = self.only(node, entries, "zipf", "`{zipf: 0.99}`")?;
            let exponent = self.number("zipf", exponent, Quantity::Decimal, ZIPF_BOUNDS)?;
            return Some(Distribution::Zipf(u32::try_from(exponent).expect("bounded by ZIPF_BOUNDS")));
        }
        if matches!(&node.kind, tree::Kind::Scalar(scalar) if scalar.text == "zipf") {
            let diagnostic = Diagnostic::new(&codes::SHAPE, node.at.clone(), "`zipf` has no exponent");
            self.report(diagnostic.help("write `{zipf: 0.99}`"));
            return None;
        }
        self.word(words::DISTRIBUTIONS, &["zipf"], node).map(|_| Distribution::Uniform)
    }

    fn prefill(&mut self, node: &Node) -> Option<Prefill> {
        let due = "`none`, `half`, `full`, a percentage or a count";
        let scalar = self.scalar(node, due)?;
        let share = |share: u32| Some(Prefill::Share(BasisPoints(share)));
        match scalar.text.as_str() {
            "none" => share(0),
            "half" => share(5_000),
            "full" => share(10_000),
            text if text.ends_with('%') => {
                let points = self.number("prefill", node, Quantity::Percent, (0, WHOLE))?;
                share(u32::try_from(points).expect("bounded by WHOLE"))
            }
            text if text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) => {
                match self.number("prefill", node, Quantity::Count, (0, u64::MAX >> 11))? {
                    // One value for an empty structure, so that `none` and `0` are the same cell.
                    0 => share(0),
                    keys => Some(Prefill::Keys(keys)),
                }
            }
            _ => self.word(words::PREFILLS, &[], node).and(None),
        }
    }

    fn range_query(&mut self, key: &str, node: &Node, max: u64) -> Option<RangeQuery> {
        let size = match (node.entries(), &node.kind) {
            (Some(entries), _) => self.only(node, entries, "size", "`{size: 100}`")?,
            (None, tree::Kind::Scalar(scalar)) if scalar.text.starts_with(char::is_alphabetic) => {
                return self.word(words::RANGE_QUERIES, &[], node).map(|_| RangeQuery::None);
            }
            _ => node,
        };
        self.number(key, size, Quantity::Count, (1, max)).map(RangeQuery::Keys)
    }

    /// Returns the value of the only key that a small mapping may have.
    fn only<'n>(&mut self, node: &Node, entries: &'n [Entry], key: &str, form: &str) -> Option<&'n Node> {
        let mut value = None;
        for entry in entries {
            if entry.key.text() == key {
                value = Some(&entry.value);
                continue;
            }
            let message = format!("unknown key {}", quote(entry.key.text()));
            let meant = suggest::closest(entry.key.text(), [key]);
            let help = meant.map_or_else(|| format!("write {form}"), |meant| format!("did you mean `{meant}`?"));
            self.report(Diagnostic::new(&codes::UNKNOWN_KEY, entry.key.at.clone(), message).help(help));
        }
        if entries.is_empty() {
            let message = format!("expected {form}, found an empty mapping");
            self.report(Diagnostic::new(&codes::SHAPE, node.at.clone(), message));
        }
        value
    }
}

/// Returns the value that a number of base units stands for.
pub(super) fn number_value(quantity: Quantity, number: u64) -> Value {
    match quantity {
        Quantity::Duration => Value::Duration(Nanos(number)),
        Quantity::Size => Value::Bytes(Bytes(number)),
        Quantity::Count | Quantity::Integer | Quantity::Percent | Quantity::Share | Quantity::Decimal => {
            Value::Count(number)
        }
    }
}

fn word_value(parameter: Parameter, word: &'static Word) -> Value {
    match parameter {
        Parameter::NodePadding | Parameter::HarnessPadding => {
            Value::Count(word.name.parse().expect("paddings are listed as numbers"))
        }
        _ => Value::Word(word.name),
    }
}

/// Reads `0-3,8`, as `taskset` takes it, for the help.
fn range_list(text: &str) -> Option<Vec<u64>> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last > MAX_CPU {
            return None;
        }
        cpus.extend(first..=last);
        if cpus.len() > 64 {
            return None;
        }
    }
    Some(cpus)
}
