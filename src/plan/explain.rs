//! Lists what is in the hash of a plan, leaf by leaf, and what is not and why.
//!
//! The first part is a visitor of the walk that is hashed, so it can neither omit a leaf nor invent one.

use std::fmt::Write;

use super::{
    classify::BEYOND_THE_KEYS,
    json::write_list,
    model::Plan,
    walk::{self, Bracket, Leaf, Step, Visitor},
};
use crate::spec::fields;

impl Plan {
    /// Returns the listing of `rare plan --explain`: one line `path = value` for each leaf in the hash, in the order
    /// and the form in which it is hashed, with the keys of the spec that decide it; then what is left out and why.
    pub fn explain(&self) -> String {
        let mut listing = Listing { text: format!("in the hash {}:\n", self.hash()), ..Listing::default() };
        walk::plan(self, &mut listing);
        listing.text + &left_out()
    }
}

/// Writes one line for each leaf that it visits.
#[derive(Default)]
struct Listing {
    text: String,
    /// Path of what is open, such as `cells[3].mix`.
    path: String,
    /// For everything open, the length of the path and of the sources before it.
    open: Vec<(usize, usize)>,
    /// Keys of the spec that decide what is open, outermost first.
    sources: Vec<&'static str>,
}

impl Listing {
    fn enter(&mut self, step: Step<'_>) {
        self.open.push((self.path.len(), self.sources.len()));
        match (step, step.key()) {
            (_, Some(key)) if self.path.is_empty() => self.path.push_str(key),
            (_, Some(key)) => _ = write!(self.path, ".{key}"),
            (Step::Index(idx), None) => _ = write!(self.path, "[{idx}]"),
            (_, None) => {}
        }
        match step {
            Step::Field(_, source) => self.sources.push(source),
            Step::Parameter(parameter) => self.sources.push(parameter.key()),
            Step::Root | Step::Key(_) | Step::Index(_) => {}
        }
    }

    fn leave(&mut self) {
        let (path_length, n_sources) = self.open.pop().expect("the walk closes only what it opened");
        self.path.truncate(path_length);
        self.sources.truncate(n_sources);
    }

    fn line(&mut self, step: Step<'_>, value: &[u8]) {
        self.enter(step);
        let value = String::from_utf8_lossy(value);
        let source = self.sources.last().copied().unwrap_or_default();
        _ = writeln!(self.text, "  {} = {value}  (from {source})", self.path);
        self.leave();
    }
}

impl Visitor for Listing {
    fn open(&mut self, step: Step<'_>, _: Bracket) {
        self.enter(step);
    }

    fn close(&mut self) {
        self.leave();
    }

    fn leaf(&mut self, step: Step<'_>, leaf: Leaf<'_>) {
        let mut value = Vec::new();
        leaf.write(&mut value);
        self.line(step, &value);
    }

    fn list<'l>(&mut self, step: Step<'_>, leaves: impl Iterator<Item = Leaf<'l>>) {
        let mut value = Vec::new();
        write_list(leaves, &mut value);
        self.line(step, &value);
    }
}

/// What is not in the hash of any plan.
fn left_out() -> String {
    let keys = fields::outside_hash().map(|(key, _, why)| (key, why));
    let mut text = "not in the hash:\n".to_owned();
    for (what, why) in keys.chain(BEYOND_THE_KEYS.iter().copied()) {
        _ = writeln!(text, "  {what}: {why}");
    }
    text
}
