//! The plan, the spec and the environment inside a published page, so that a page alone is enough to rerun the plan and
//! to tell in what the machines differ. Plan and spec come back byte for byte.
//!
//! A script element of a data type is never executed. Its content must not hold `</script` or `<!--`, so each `<` is
//! written as `\u003c`, which JSON reads as `<`: in canonical JSON, a `<` stands within strings only.

use std::fmt::Write;

use super::block::Block;
use crate::record::Environment;

const PLAN: &str = "<script type=\"application/json\" id=\"rare-plan\">";
const SPEC: &str = "<script type=\"application/json\" id=\"rare-spec\">";
const ENVIRONMENT: &str = "<script type=\"application/json\" id=\"rare-environment\">";
const END: &str = "</script>";

/// Returns the block that embeds a plan, its spec if known, and the environment that it was run in.
///
/// `plan` is canonical JSON; bytes that are not UTF-8 are a bug of the caller.
pub(crate) fn embed(plan: &[u8], spec: Option<&str>, environment: &Environment) -> Block {
    let plan = std::str::from_utf8(plan).expect("canonical JSON is UTF-8");
    let mut html = format!("{PLAN}{}{END}\n", plan.replace('<', "\\u003c"));
    if let Some(spec) = spec {
        let literal = serde_json::to_string(spec).expect("a string is always JSON");
        writeln!(html, "{SPEC}{}{END}", literal.replace('<', "\\u003c")).expect("writing to a string cannot fail");
    }
    let environment = serde_json::to_string(environment).expect("an environment is plain data");
    writeln!(html, "{ENVIRONMENT}{}{END}", environment.replace('<', "\\u003c"))
        .expect("writing to a string cannot fail");
    Block::Embedded { html }
}

/// Returns the canonical bytes of the plan in a report's page; `None` if there is none.
pub fn embedded_plan(html: &str) -> Option<Vec<u8>> {
    element(html, PLAN).map(|text| restore(text).into_bytes())
}

/// Returns the text of the spec in a report's page; `None` if there is none or it is not a JSON string.
pub fn embedded_spec(html: &str) -> Option<String> {
    serde_json::from_str(element(html, SPEC)?).ok()
}

/// Returns the environment in a report's page; `None` if there is none that this version can read.
pub fn embedded_environment(html: &str) -> Option<Environment> {
    serde_json::from_str(element(html, ENVIRONMENT)?).ok()
}

fn element<'h>(html: &'h str, start: &str) -> Option<&'h str> {
    // All other text of a page is escaped, so the tag cannot stand anywhere else.
    let (_, rest) = html.split_once(start)?;
    rest.split_once(END).map(|(text, _)| text)
}

/// Turns `\u003c` back into `<`. An escaped backslash before `u003c` is the plan's own and stays.
fn restore(text: &str) -> String {
    let mut restored = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        restored.push_str(&rest[..at]);
        let escape = &rest[at..];
        let (written, length) = match escape.as_bytes() {
            [_, b'u', b'0', b'0', b'3', b'c', ..] => ("<", 6),
            [_, next, ..] if next.is_ascii() => (&escape[..2], 2),
            _ => (&escape[..1], 1),
        };
        restored.push_str(written);
        rest = &escape[length..];
    }
    restored.push_str(rest);
    restored
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Snapshot;

    #[test]
    fn plan_spec_and_environment_come_back_exactly() {
        let before = Snapshot { taken: "</script><!--".to_owned(), entries: Vec::new() };
        let environment = Environment { format: 1, plan: "\\u003c".to_owned(), before, after: None };
        for plan in [r#"{"a":"</script><!-- \\u003c \\\\u003c \" é"}"#, "{}", r#"{"b":"\\"}"#, r#"{"c":"<\\<"}"#] {
            let spec = "a: '</script>'\r\n# \u{2028}\\u003c\n";
            let Block::Embedded { html } = embed(plan.as_bytes(), Some(spec), &environment) else { panic!("embeds") };
            assert_eq!(html.matches('<').count(), 6, "only the six tags: {html}");
            assert_eq!(embedded_environment(&html).unwrap(), environment);
            assert_eq!(embedded_plan(&html).unwrap(), plan.as_bytes());
            assert_eq!(embedded_spec(&html).unwrap(), spec);
        }
        assert_eq!(embedded_plan("<p>no plan</p>"), None);
    }
}
