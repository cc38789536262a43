//! Linked parameters.

use std::collections::BTreeMap;

use super::{
    super::{
        tree::{self, Node},
        value::Parameter,
    },
    Draft, Lowering, Placed,
};
use crate::diag::{Diagnostic, Span, codes};

impl Lowering<'_> {
    /// Lowers `zip`: a list of groups of parameters.
    pub(crate) fn zip(&mut self, draft: &Draft, node: &Node) -> Vec<Placed<Vec<Parameter>>> {
        let tree::Kind::Sequence(groups) = &node.kind else {
            self.wrong_shape(node, "a list of groups, such as `[[threads, key_ranges]]`");
            return Vec::new();
        };
        if groups.iter().any(|group| matches!(group.kind, tree::Kind::Scalar(_))) && !groups.is_empty() {
            let diagnostic =
                Diagnostic::new(&codes::SHAPE, node.at.clone(), "expected a list of groups, found one group");
            self.report(diagnostic.help("write `[[threads, key_ranges]]`, with a list for each group"));
            return Vec::new();
        }
        let mut seen: BTreeMap<Parameter, Span> = BTreeMap::new();
        groups.iter().filter_map(|group| self.group(draft, group, &mut seen)).collect()
    }

    fn group(
        &mut self,
        draft: &Draft,
        node: &Node,
        seen: &mut BTreeMap<Parameter, Span>,
    ) -> Option<Placed<Vec<Parameter>>> {
        let tree::Kind::Sequence(items) = &node.kind else {
            self.wrong_shape(node, "a group of parameters, such as `[threads, key_ranges]`");
            return None;
        };
        if items.len() < 2 {
            let message = "a group links at least two parameters";
            let diagnostic = Diagnostic::new(&codes::ZIP_GROUP, node.at.clone(), message);
            self.report(diagnostic.help("write `[[threads, key_ranges]]`, or leave `zip` out"));
            return None;
        }
        let n_found = self.found.len();
        let mut group: Vec<Placed<Parameter>> = Vec::new();
        for item in items {
            let Some(scalar) = self.scalar(item, "the name of a parameter") else { continue };
            let Some(parameter) = self.parameter(&scalar.text, &item.at) else { continue };
            if let Some(first) = seen.get(&parameter) {
                let message = format!("`{}` is linked twice", parameter.key());
                let diagnostic = Diagnostic::new(&codes::ZIP_TWICE, item.at.clone(), message).label("again here");
                let help = "a parameter follows one group; join the groups or remove it from one";
                self.report(diagnostic.also(first.clone(), "first here").help(help));
                continue;
            }
            seen.insert(parameter, item.at.clone());
            group.push(Placed { value: parameter, at: item.at.clone() });
        }
        self.refuse_unequal_lengths(draft, &group);
        let group = group.into_iter().map(|placed| placed.value).collect();
        (self.found.len() == n_found).then(|| Placed { value: group, at: node.at.clone() })
    }

    fn refuse_unequal_lengths(&mut self, draft: &Draft, group: &[Placed<Parameter>]) {
        let Some((first, others)) = group.split_first() else { return };
        let length = |parameter: &Placed<Parameter>| draft.axis(parameter.value).values.len();
        let values = |number: usize| if number == 1 { "1 value".to_owned() } else { format!("{number} values") };
        for other in others {
            let complete = [first, other].iter().all(|parameter| draft.axis(parameter.value).complete);
            if !complete || length(first) == length(other) {
                continue;
            }
            let (n_first, n_other) = (values(length(first)), values(length(other)));
            let message = format!("`{}` has {n_first} and `{}` has {n_other}", first.value.key(), other.value.key());
            let diagnostic = Diagnostic::new(&codes::ZIP_LENGTHS, other.at.clone(), message).label(n_other);
            self.report(diagnostic.also(first.at.clone(), n_first).help("linked parameters need equally many values"));
            return;
        }
    }
}
