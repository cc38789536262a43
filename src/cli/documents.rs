//! What `rare` says of itself: explanations, schema, completions.

use clap::CommandFactory;
use rare_workloads::structures;

use super::{
    arguments::Arguments,
    console::Console,
    exit::{Exit, Failure},
    statement,
};
use crate::{
    diag::{self, codes},
    spec::{self, fields, suggest},
};

/// Explains a code, a key, a word or a structure, or lists what can be explained.
pub(super) fn explain(console: &Console, term: Option<&str>) -> Result<Exit, Failure> {
    let Some(term) = term else {
        console.line(index());
        return Ok(Exit::Valid);
    };
    let structure = || structures::find(term.trim().trim_matches('`')).map(statement::whole);
    let text = spec::explain(term).or_else(structure).ok_or_else(|| unknown(term))?;
    console.line(text);
    Ok(Exit::Valid)
}

/// The refusal of a term that means nothing.
fn unknown(term: &str) -> Failure {
    let what = format!("{} is neither a code, a key of the spec, one of its words, nor a structure", diag::quote(term));
    let failure = Failure::new(Exit::Wrong, what);
    let known = fields::FIELDS.iter().map(|field| field.key).chain(names()).chain(codes::all().map(|code| code.id));
    match suggest::closest(term, known) {
        Some(meant) => failure.help(format!("did you mean `{meant}`?")),
        None => failure.help("`rare explain` lists them all"),
    }
}

fn names() -> impl Iterator<Item = &'static str> {
    structures::ALL.iter().map(|structure| structure.info.name)
}

/// Lists every key, structure and code with a line each.
fn index() -> String {
    let width = fields::FIELDS.iter().map(|field| field.key.len()).max().unwrap_or_default();
    let sentence = |text: &'static str| text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.');
    let keys = fields::FIELDS.iter().map(|field| format!("  {:width$}  {}\n", field.key, sentence(field.meaning)));
    let codes = codes::all().map(|code| format!("  {:width$}  {}\n", code.id, code.title));
    let width = names().map(str::len).max().unwrap_or_default();
    let structures = structures::ALL.iter().map(|it| format!("  {:width$}  {}\n", it.info.name, it.info.title));
    let (keys, codes) = (keys.collect::<String>(), codes.collect::<String>());
    let structures = structures.collect::<String>();
    format!(
        "keys of a spec\n{keys}\nstructures\n{structures}\ncodes of diagnostics\n{codes}\n\
         `rare explain TERM` says more of each, and of words such as `epoch`"
    )
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
