//! Diagnostics about rules that only the expansion of the plan can judge, made from the place of the rule.

use crate::diag::{Diagnostic, Span, codes};

/// Says that an `exclude` rule matches no cell.
pub fn rule_matches_nothing(at: Span) -> Diagnostic {
    let diagnostic = Diagnostic::new(&codes::RULE_WITHOUT_CELL, at, "the exclude rule matches no cell");
    diagnostic
        .label("leaves nothing out")
        .help("each part exists, but no cell has all of them at once; fix it or remove it")
}

/// Says that no two cells are a pair of a comparison.
pub fn compare_pairs_nothing(at: Span) -> Diagnostic {
    let diagnostic = Diagnostic::new(&codes::COMPARE_WITHOUT_PAIR, at, "the comparison pairs no two cells");
    diagnostic
        .label("no cell of `base` and cell of `changed` are alike in all else")
        .help("name in both rules what differs between them, and nothing else")
}

/// Says that the `exclude` rules leave no cell; `rules` are their places, in order.
pub fn no_cell_left(rules: &[Span]) -> Diagnostic {
    let (first, others) = rules.split_first().map_or((0..0, &[][..]), |(first, others)| (first.clone(), others));
    let diagnostic = Diagnostic::new(&codes::NO_CELL, first, "the exclude rules leave no cell");
    let label = if others.is_empty() { "matches every cell" } else { "together they match every cell" };
    let diagnostic =
        others.iter().fold(diagnostic.label(label), |diagnostic, rule| diagnostic.also(rule.clone(), "and this"));
    diagnostic.help("relax a rule, so that something is measured")
}

/// Says that an `include` rule adds nothing.
pub fn include_adds_nothing(at: Span) -> Diagnostic {
    let message = "the include rule adds no cell";
    let diagnostic = Diagnostic::new(&codes::INCLUDE_ADDS_NOTHING, at, message);
    diagnostic.label("all of its cells are there already").help("remove it")
}

/// Says that a claim has no cell of one of its structures in its scope.
pub fn claim_matches_no_cell(at: Span) -> Diagnostic {
    let message = "the claim has no cells to compare";
    let diagnostic = Diagnostic::new(&codes::CLAIM_WITHOUT_CELL, at, message);
    diagnostic.label("could never be decided").help("widen `where`, or exclude less")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::{Source, render};

    #[test]
    fn they_render_with_their_place() {
        let text = "exclude: [{threads: 1}, {threads: 2}]\n";
        let source = Source { name: "a.yaml".into(), text: text.into() };
        let rendered = render(&[rule_matches_nothing(10..22), no_cell_left(&[10..22, 24..36])], &source, false);
        assert!(rendered.contains("error[E0221]: the exclude rule matches no cell\n --> a.yaml:1:11\n"), "{rendered}");
        assert!(rendered.contains("----"), "{rendered}");
    }
}
