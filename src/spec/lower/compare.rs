//! Comparisons: two cells that differ in what an explanation names, and the counter that must then move.

use super::{
    super::{
        model::{Compare, Rule},
        suggest,
        tree::Node,
        words,
    },
    Draft, Lowering, rules,
};
use crate::diag::{Diagnostic, codes, quote};

/// Keys of a comparison.
const KEYS: [&str; 3] = ["base", "changed", "predicts"];

impl Lowering<'_> {
    /// Lowers `compare`. What the `quick` block leaves without values is dropped.
    pub(crate) fn compare(&mut self, draft: &Draft, node: &Node) -> Vec<Compare> {
        let due = "a list of comparisons, such as `[{base: {…}, changed: {…}, predicts: instructions}]`";
        let listed = self.listed(node, due).iter();
        let compares: Vec<Compare> = listed.filter_map(|node| self.comparison(draft, node)).collect();
        let is_whole = self.whole.is_none();
        let is_possible = |rule: &Rule| is_whole || rules::is_possible(draft, rule);
        compares.into_iter().filter(|it| is_possible(&it.base) && is_possible(&it.changed)).collect()
    }

    fn comparison(&mut self, draft: &Draft, node: &Node) -> Option<Compare> {
        let Some(entries) = node.entries() else {
            self.wrong_shape(node, "a comparison, such as `{base: {…}, changed: {…}, predicts: instructions}`");
            return None;
        };
        for entry in entries.iter().filter(|entry| !KEYS.contains(&entry.key.text())) {
            let text = entry.key.text();
            let message = format!("unknown key {} in a comparison", quote(text));
            let help = match suggest::closest(text, KEYS) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "a comparison has `base`, `changed` and `predicts`".to_owned(),
            };
            self.report(Diagnostic::new(&codes::UNKNOWN_KEY, entry.key.at.clone(), message).help(help));
        }
        let [base, changed, predicts] = KEYS.map(|key| self.part_of_comparison(node, key));
        let (base, changed) =
            (base.and_then(|it| self.rule(draft, it, &[])), changed.and_then(|it| self.rule(draft, it, &[])));
        let predicts = predicts.and_then(|it| self.word(words::PREDICTED, &[], it));
        Some(Compare { at: node.at.clone(), base: base?, changed: changed?, predicts: predicts?.name })
    }

    fn part_of_comparison<'n>(&mut self, node: &'n Node, key: &str) -> Option<&'n Node> {
        let part = node.get(key);
        if part.is_none() {
            let message = format!("the comparison is incomplete: `{key}` is missing");
            let diagnostic = Diagnostic::new(&codes::MISSING_KEY, node.at.clone(), message);
            self.report(diagnostic.help("write `{base: {…}, changed: {…}, predicts: …}`"));
        }
        part
    }
}
