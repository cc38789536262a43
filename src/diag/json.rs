//! Diagnostics for editors: a JSON array, one object a diagnostic.

use serde_json::{Value, json};

use super::{Diagnostic, Source, Span, position, position::whole};

/// Returns the diagnostics, in the order given, as a JSON array.
///
/// Lines and columns count from 1, columns in characters; ends are exclusive.
pub fn to_json(diagnostics: &[Diagnostic], source: &Source) -> Value {
    Value::Array(diagnostics.iter().map(|diagnostic| object(diagnostic, source)).collect())
}

fn object(diagnostic: &Diagnostic, source: &Source) -> Value {
    let mut labels = vec![label(&diagnostic.at, diagnostic.label.as_deref(), true, source)];
    labels.extend(diagnostic.related.iter().map(|(at, text)| label(at, Some(text), false, source)));
    let mut object = place(&diagnostic.at, source);
    object["file"] = json!(source.name);
    object["code"] = json!(diagnostic.code.id);
    object["severity"] = json!(diagnostic.severity().name());
    object["message"] = json!(diagnostic.message);
    object["help"] = json!(diagnostic.help);
    object["labels"] = Value::Array(labels);
    object
}

fn label(at: &Span, text: Option<&str>, primary: bool, source: &Source) -> Value {
    let mut label = place(at, source);
    label["primary"] = json!(primary);
    label["message"] = json!(text);
    label
}

fn place(at: &Span, source: &Source) -> Value {
    let at = whole(&source.text, at);
    let (start, end) = (position(&source.text, at.start), position(&source.text, at.end));
    json!({ "line": start.line, "column": start.column, "end_line": end.line, "end_column": end.column })
}
