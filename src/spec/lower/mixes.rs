//! Operation mixes: shares by operation, by name.

use rare_workloads::protocol::Mix;

use super::{
    super::{
        suggest,
        tree::{self, Entry, Node},
        value::{Parameter, Value},
        words::enumerate,
    },
    Draft, Lowering, Placed,
};
use crate::{
    diag::{Diagnostic, codes, quote},
    units::{BasisPoints, Quantity},
};

/// The operations of the family, in the order of a mix.
pub(crate) const OPERATIONS: [&str; 4] = ["insert", "remove", "contains", "range"];

/// A whole in basis points, wide enough for sums of hostile shares.
const WHOLE: u64 = Mix::WHOLE as u64;

impl Lowering<'_> {
    /// Lowers named mixes, or one without a name.
    pub(super) fn mixes(&mut self, draft: &mut Draft, node: &Node) -> Vec<Placed<Value>> {
        let Some(entries) = node.entries() else {
            self.wrong_shape(node, "a mapping from names to shares, such as `{lookups: {contains: 100}}`");
            return Vec::new();
        };
        if entries.is_empty() {
            let diagnostic = Diagnostic::new(&codes::NO_VALUES, node.at.clone(), "`mixes` has no value");
            self.report(diagnostic.label("an empty mapping").help("give at least one mix, such as `{contains: 100}`"));
            return Vec::new();
        }
        // Shares directly under `mixes` are one mix; a name with shares below it never has a scalar.
        if entries.iter().all(|entry| matches!(entry.value.kind, tree::Kind::Scalar(_))) {
            return self.mix(node, entries).map(|mix| placed(node, mix)).into_iter().collect();
        }
        let mut values = Vec::new();
        for Entry { key, value } in entries {
            let name = self.label(&key.node());
            let Some(shares) = value.entries() else {
                self.wrong_shape(value, "shares, such as `{insert: 50, remove: 50}`");
                continue;
            };
            if let (Some(mix), Some(name)) = (self.mix(value, shares), name) {
                draft.mix_names.push((mix, name));
                values.push(placed(value, mix));
            }
        }
        values
    }

    /// Brings mixes into an order that does not depend on the order of keys: from many updates to few.
    ///
    /// Not where `zip` pairs them: there the order of writing is what the person meant.
    pub(crate) fn order_mixes(draft: &mut Draft) {
        if draft.zip.iter().any(|group| group.value.contains(&Parameter::Mix)) {
            return;
        }
        let rank = |mix: &Mix| (mix.contains + mix.range, mix.remove, mix.insert, mix.range);
        draft.axes[Parameter::Mix as usize].values.sort_by_key(|placed| match &placed.value {
            Value::Mix(mix) => rank(mix),
            other => unreachable!("the axis of mixes holds {other:?}"),
        });
        draft.mix_names.sort_by_key(|(mix, _)| rank(mix));
    }

    /// Lowers the shares of one mix.
    pub(super) fn mix(&mut self, node: &Node, entries: &[Entry]) -> Option<Mix> {
        let n_found = self.found.len();
        let mut shares = [0_u64; OPERATIONS.len()];
        let mut rest: Option<(usize, &Node)> = None;
        for Entry { key, value } in entries {
            let Some(operation) = OPERATIONS.iter().position(|operation| *operation == key.text()) else {
                let message = format!("no operation {}", quote(key.text()));
                let help = match suggest::closest(key.text(), OPERATIONS) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!("the operations are {}", enumerate(OPERATIONS)),
                };
                self.report(Diagnostic::new(&codes::UNKNOWN_KEY, key.at.clone(), message).help(help));
                continue;
            };
            if matches!(&value.kind, tree::Kind::Scalar(scalar) if scalar.text == "rest") {
                if let Some((_, first)) = rest {
                    let diagnostic = Diagnostic::new(&codes::MIX_REST, value.at.clone(), "two shares are `rest`");
                    let diagnostic = diagnostic.label("again here").also(first.at.clone(), "first here");
                    self.report(diagnostic.help("give one of them a number"));
                }
                rest = Some((operation, value));
            } else if let Some(share) = self.number(key.text(), value, Quantity::Share, (0, WHOLE)) {
                shares[operation] = share;
            }
        }
        if self.found.len() > n_found {
            return None;
        }
        self.whole(node, shares, rest)
    }

    /// Checks that the shares are a whole, and gives the rest to the one that takes it.
    fn whole(&mut self, node: &Node, mut shares: [u64; OPERATIONS.len()], rest: Option<(usize, &Node)>) -> Option<Mix> {
        let sum: u64 = shares.iter().sum();
        let points = |share: u64| BasisPoints(u32::try_from(share).expect("at most as many wholes as operations"));
        match rest {
            Some((operation, _)) if sum < WHOLE => shares[operation] = WHOLE - sum,
            Some((_, at)) => {
                let message = format!("nothing is left for `rest`: the other shares add up to {}", points(sum));
                let diagnostic = Diagnostic::new(&codes::MIX_REST, at.at.clone(), message);
                self.report(diagnostic.help("lower another share, or remove this one"));
                return None;
            }
            None if sum != WHOLE => {
                self.report(not_whole(node, sum, points));
                return None;
            }
            None => {}
        }
        let [insert, remove, contains, range] = shares.map(|share| points(share).0);
        Some(Mix { insert, remove, contains, range })
    }
}

fn not_whole(node: &Node, sum: u64, points: impl Fn(u64) -> BasisPoints) -> Diagnostic {
    let message = format!("the operation mix adds up to {}, not 100%", points(sum));
    let diagnostic = Diagnostic::new(&codes::MIX_SUM, node.at.clone(), message);
    if sum < WHOLE {
        let label = format!("{} is missing", points(WHOLE - sum));
        diagnostic.label(label).help("raise a share, or write `contains: rest`")
    } else {
        diagnostic.label(format!("{} too much", points(sum - WHOLE))).help("lower a share; none is scaled to fit")
    }
}

fn placed(node: &Node, mix: Mix) -> Placed<Value> {
    Placed { value: Value::Mix(mix), at: node.at.clone() }
}
