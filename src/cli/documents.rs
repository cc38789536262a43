//! What `rare` says of itself: explanations, schema, completions.

use clap::CommandFactory;

use super::{
    arguments::Arguments,
    console::Console,
    exit::{Exit, Failure},
};
use crate::{
    diag::codes,
    spec::{self, fields},
};

/// Explains a code or a key, or lists what can be explained.
pub(super) fn explain(console: &Console, term: Option<&str>) -> Result<Exit, Failure> {
    let Some(term) = term else {
        console.line(index());
        return Ok(Exit::Valid);
    };
    let text = spec::explain(term).ok_or_else(|| {
        Failure::new(Exit::Wrong, format!("`{term}` is neither a code nor a key of the spec"))
            .help("`rare explain` lists them all")
    })?;
    console.line(text);
    Ok(Exit::Valid)
}

/// Lists every key and every code with a line each.
fn index() -> String {
    let width = fields::FIELDS.iter().map(|field| field.key.len()).max().unwrap_or_default();
    let sentence = |text: &'static str| text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.');
    let keys = fields::FIELDS.iter().map(|field| format!("  {:width$}  {}\n", field.key, sentence(field.meaning)));
    let codes = codes::all().map(|code| format!("  {:width$}  {}\n", code.id, code.title));
    let (keys, codes) = (keys.collect::<String>(), codes.collect::<String>());
    format!("keys of a spec\n{keys}\ncodes of diagnostics\n{codes}\n`rare explain TERM` says more of each")
}

/// Prints the JSON Schema of the spec.
pub(super) fn schema(console: &Console) -> Result<Exit, Failure> {
    console.write(serde_json::to_string_pretty(&spec::schema()).expect("a JSON value is always writable") + "\n");
    Ok(Exit::Valid)
}

/// Prints completions for a shell.
pub(super) fn completions(console: &Console, shell: clap_complete::Shell) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "rare", &mut script);
    console.write(String::from_utf8_lossy(&script));
    Ok(Exit::Valid)
}
