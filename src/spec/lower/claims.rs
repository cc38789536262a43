//! Claims: sentences about the data.

use super::{
    super::{
        model::{Claim, Rule},
        suggest,
        tree::{self, Node},
        value::Parameter,
        words::enumerate,
    },
    Draft, Lowering, rules,
};
use crate::{
    diag::{Diagnostic, Span, codes, quote},
    units::{BasisPoints, Quantity},
};

/// Largest margin in basis points: 1000 %.
const MAX_MARGIN: u64 = 100_000;

impl Lowering<'_> {
    /// Lowers `claims`. What the `quick` block leaves undecided is dropped with a warning.
    pub(crate) fn claims(&mut self, draft: &Draft, node: &Node) -> Vec<Claim> {
        let claims = match &node.kind {
            tree::Kind::Sequence(claims) => claims.as_slice(),
            tree::Kind::Scalar(_) | tree::Kind::Mapping(_) if !node.is_null() => std::slice::from_ref(node),
            _ => {
                self.wrong_shape(node, "a list of claims, such as `[nm14 > harris01]`");
                return Vec::new();
            }
        };
        claims.iter().filter_map(|claim| self.claim(draft, claim)).collect()
    }

    fn claim(&mut self, draft: &Draft, node: &Node) -> Option<Claim> {
        let n_found = self.found.len();
        let scope = Rule { at: 0..0, conditions: Vec::new() };
        let (sentence, by, scope) = match node.entries() {
            None => (node, BasisPoints(0), scope),
            Some(entries) => {
                let (mut by, mut scope) = (BasisPoints(0), scope);
                for entry in entries {
                    match entry.key.text() {
                        "that" => {}
                        "by" => by = self.margin(&entry.value).unwrap_or_default(),
                        "where" => scope = self.scope(draft, &entry.value).unwrap_or(scope),
                        other => {
                            let message = format!("unknown key {} in a claim", quote(other));
                            let meant = suggest::closest(other, ["that", "by", "where"]);
                            let help = match meant {
                                Some(meant) => format!("did you mean `{meant}`?"),
                                None => "a claim has `that`, `by` and `where`".to_owned(),
                            };
                            let diagnostic = Diagnostic::new(&codes::UNKNOWN_KEY, entry.key.at.clone(), message);
                            self.report(diagnostic.help(help));
                        }
                    }
                }
                let Some(sentence) = node.get("that") else {
                    let message = "the claim says nothing: `that` is missing";
                    let diagnostic = Diagnostic::new(&codes::MISSING_KEY, node.at.clone(), message);
                    self.report(diagnostic.help("write `{that: a > b, …}`"));
                    return None;
                };
                (sentence, by, scope)
            }
        };
        let text = self.scalar(sentence, "a claim, such as `nm14 > harris01`")?.text.clone();
        let (faster, slower) = self.sentence(draft, sentence, &text)?;
        if self.found.len() > n_found {
            return None;
        }
        let claim = Claim { at: node.at.clone(), text, faster, slower, by, scope };
        self.is_decided(draft, &claim).then_some(claim)
    }

    fn margin(&mut self, node: &Node) -> Option<BasisPoints> {
        let points = self.number("by", node, Quantity::Percent, (0, MAX_MARGIN))?;
        Some(BasisPoints(u32::try_from(points).expect("bounded by MAX_MARGIN")))
    }

    fn scope(&mut self, draft: &Draft, node: &Node) -> Option<Rule> {
        self.rule(draft, node, &[(Parameter::Structure, "the claim itself names its structures")])
    }

    /// Splits `a > b` and returns the labels of the faster and the slower.
    fn sentence(&mut self, draft: &Draft, node: &Node, text: &str) -> Option<(String, String)> {
        let mark = text.find(['>', '<']).filter(|&mark| !text[mark + 1..].contains(['>', '<', '=']));
        let sides = mark.map(|mark| (text[..mark].trim(), text[mark + 1..].trim()));
        let is_label = |side: &str| !side.is_empty() && !side.contains(char::is_whitespace);
        let Some((left, right)) = sides.filter(|(left, right)| is_label(left) && is_label(right)) else {
            let diagnostic = Diagnostic::new(&codes::CLAIM, node.at.clone(), format!("{} is not a claim", quote(text)));
            let diagnostic = diagnostic.label("expected `a > b`, with labels of structures");
            self.report(diagnostic.maybe_help(help_for(text)));
            return None;
        };
        let known = [left, right].map(|side| self.side(draft, node, text, side));
        if known.contains(&false) {
            return None;
        }
        if left == right {
            let message = format!("the claim compares `{left}` with itself");
            let diagnostic = Diagnostic::new(&codes::CLAIM_SELF, node.at.clone(), message);
            self.report(diagnostic.help("name another structure, or another label of this one"));
            return None;
        }
        let is_greater = text.contains('>');
        let (faster, slower) = if is_greater { (left, right) } else { (right, left) };
        Some((faster.to_owned(), slower.to_owned()))
    }

    /// Checks that a label of a claim is in the spec.
    fn side(&mut self, draft: &Draft, node: &Node, text: &str, label: &str) -> bool {
        let is_known = |draft: &Draft| draft.labels().any(|known| known == label);
        if is_known(draft) || self.whole.is_some_and(is_known) || !draft.axis(Parameter::Structure).complete {
            return true;
        }
        let message = format!("{} is not among the `structures` of this spec", quote(label));
        let at = self.part(node, text, label);
        let help = match suggest::closest(label, draft.labels()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("`structures` has {}", enumerate(draft.labels())),
        };
        self.report(Diagnostic::new(&codes::CLAIM_STRUCTURE, at, message).help(help));
        false
    }

    /// Returns the place of a part of a scalar, where the source shows the scalar as it is.
    fn part(&self, node: &Node, text: &str, part: &str) -> Span {
        // `part` is a slice of `text`, so the distance of their addresses is its offset.
        let offset = part.as_ptr() as usize - text.as_ptr() as usize;
        let start = node.at.start + offset;
        match self.text.get(start..start + part.len()) {
            Some(written) if written == part => start..start + part.len(),
            _ => node.at.clone(),
        }
    }

    /// Tells whether the cells of a quick run can decide a claim, and warns if not.
    fn is_decided(&mut self, draft: &Draft, claim: &Claim) -> bool {
        let has = |label: &str| draft.labels().any(|known| known == label);
        let is_decided = has(&claim.faster) && has(&claim.slower) && rules::is_possible(draft, &claim.scope);
        if !is_decided && self.whole.is_some() {
            let message = format!("a quick run does not decide the claim {}", quote(&claim.text));
            let diagnostic = Diagnostic::new(&codes::UNDECIDED_IN_QUICK, claim.at.clone(), message);
            let label = "`quick` leaves out what it speaks of";
            self.report(diagnostic.label(label).help("the full run decides it"));
            return false;
        }
        true
    }
}

fn help_for(text: &str) -> Option<String> {
    if text.contains(">=") || text.contains("<=") || text.contains("==") {
        return Some("claims are strict; `by: 5%` adds a margin".to_owned());
    }
    let n_marks = text.matches(['>', '<']).count();
    Some(match n_marks {
        0 => "`a > b` claims that `a` is faster than `b`".to_owned(),
        1 => "labels of structures have no spaces".to_owned(),
        _ => "compare two structures a claim, and write several claims".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_where_the_source_shows_them() {
        let text = "claims: [aa > a]";
        let catalogue = crate::spec::Catalogue::BUILT;
        let lowering = Lowering { text, catalogue: &catalogue, whole: None, found: Vec::new() };
        let node = Node { at: 9..15, kind: tree::Kind::Refused };
        let claim = text[9..15].to_owned();
        assert_eq!(lowering.part(&node, &claim, &claim[5..]), 14..15);
    }
}
