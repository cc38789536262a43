//! Turns blocks into text by templates.
//!
//! The templates are part of the program; a folder may replace any of them. An undefined name in a template is an
//! error, and everything is escaped unless its maker vouches for it.

use std::{io, path::Path, path::PathBuf};

use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value, context, syntax::SyntaxConfig, value::Serde};
use sha2::{Digest, Sha256};

use super::{
    block::{Block, Figure, Table},
    csv, sections, text,
};
use crate::verdict::Evidence;

/// A rendered report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// The report for GitHub and other readers of Markdown.
    pub markdown: String,
    /// The report as one page without anything from elsewhere.
    pub html: String,
    /// File names and SVG text of the figures that `markdown` shows under `figures/`.
    pub figures: Vec<(String, String)>,
    /// `data.csv`.
    pub csv: String,
}

/// Why a report could not be rendered.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A template in the folder that the caller named could not be read.
    #[error("cannot read template `{}`", path.display())]
    Read {
        /// Its path.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A template is wrong; the text shows the line and the names it could use.
    #[error("template `{name}`: {detail}")]
    Template {
        /// Its name, relative to the folder of templates.
        name: String,
        /// What is wrong with it.
        detail: String,
    },
}

/// Every template, by its name relative to the folder of templates.
macro_rules! templates {
    ($($name:literal),* $(,)?) => { &[$(($name, include_str!(concat!("../../templates/", $name)))),*] };
}

static TEMPLATES: &[(&str, &str)] = templates![
    "report.css",
    "report.html.j2",
    "report.md.j2",
    "blocks/callout.html.j2",
    "blocks/callout.md.j2",
    "blocks/cards.html.j2",
    "blocks/cards.md.j2",
    "blocks/code.html.j2",
    "blocks/code.md.j2",
    "blocks/definitions.html.j2",
    "blocks/definitions.md.j2",
    "blocks/details.html.j2",
    "blocks/details.md.j2",
    "blocks/embedded.html.j2",
    "blocks/embedded.md.j2",
    "blocks/figure.html.j2",
    "blocks/figure.md.j2",
    "blocks/list.html.j2",
    "blocks/list.md.j2",
    "blocks/paragraph.html.j2",
    "blocks/paragraph.md.j2",
    "blocks/prose.html.j2",
    "blocks/prose.md.j2",
    "blocks/table.html.j2",
    "blocks/table.md.j2",
];

/// Renders the report of a run. `templates` is a folder whose files replace the program's own ones of the same name.
///
/// # Errors
/// Only if `templates` holds a file that cannot be read or is wrong.
pub fn render(evidence: &Evidence, templates: Option<&Path>) -> Result<Rendered, ReportError> {
    let mut sections = sections::build(evidence);
    sections.iter_mut().flat_map(|section| &mut section.blocks).for_each(Block::align);
    let sources = sources(templates)?;
    let environment = environment(&sources)?;
    let css = &sources.iter().find(|(name, _)| *name == "report.css").expect("listed in TEMPLATES").1;
    let page = |format: Format| -> Result<String, ReportError> {
        let mut bodies = Vec::new();
        for section in &sections {
            let body = blocks(&environment, format, &section.blocks)?;
            bodies.push(context! { id => section.id, title => section.title, body => Value::from_safe_string(body) });
        }
        let context = context! {
            name => evidence.name,
            run => evidence.run_name,
            hash => evidence.hash.short(),
            quick => evidence.quick,
            css => Value::from_safe_string(css.clone()),
            css_sha256 => base64(&Sha256::digest(css.as_bytes())),
            sections => bodies,
        };
        template(&environment, format!("report.{}.j2", format.name()), context)
    };
    let (markdown, html) = (page(Format::Markdown)?, page(Format::Html)?);
    let mut figures = Vec::new();
    for section in &sections {
        collect_figures(&section.blocks, &mut figures);
    }
    Ok(Rendered { markdown, html, figures, csv: csv::csv(evidence) })
}

#[derive(Clone, Copy)]
enum Format {
    Markdown,
    Html,
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Self::Markdown => "md",
            Self::Html => "html",
        }
    }
}

fn sources(folder: Option<&Path>) -> Result<Vec<(&'static str, String)>, ReportError> {
    let source = |&(name, embedded): &(&'static str, &str)| {
        let Some(path) = folder.map(|folder| folder.join(name)) else { return Ok((name, embedded.to_owned())) };
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok((name, text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((name, embedded.to_owned())),
            Err(source) => Err(ReportError::Read { path, source }),
        }
    };
    TEMPLATES.iter().map(source).collect()
}

fn environment<'s>(sources: &'s [(&'static str, String)]) -> Result<Environment<'s>, ReportError> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.expect("the usual delimiters are not in conflict"));
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(
        |name| {
            if name.ends_with(".html.j2") { AutoEscape::Html } else { AutoEscape::None }
        },
    );
    environment.add_filter("visible", |text: &str| text::visible(text));
    environment.add_filter("lines", |text: &str| text::visible_lines(text));
    environment.add_filter("md", |text: &str| text::markdown(text));
    environment.add_filter("md_code", |text: &str| text::markdown_code(text));
    environment.add_filter("md_fence", |text: &str, language: &str| text::markdown_fence(language, text));
    for (name, source) in sources.iter().filter(|(name, _)| name.ends_with(".j2")) {
        environment.add_template(name, source).map_err(|error| template_error(name, &error))?;
    }
    Ok(environment)
}

fn blocks(environment: &Environment, format: Format, blocks: &[Block]) -> Result<String, ReportError> {
    let texts: Result<Vec<String>, _> = blocks.iter().map(|one| block(environment, format, one)).collect();
    let texts: Vec<String> = texts?.into_iter().map(|text| text.trim_matches('\n').to_owned()).collect();
    let texts: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    Ok(texts.join(match format {
        Format::Markdown => "\n\n",
        Format::Html => "\n",
    }))
}

fn block(environment: &Environment, format: Format, block: &Block) -> Result<String, ReportError> {
    let body = match block {
        Block::Details { blocks: inner, .. } => blocks(environment, format, inner)?,
        _ => String::new(),
    };
    let short = match (block, format) {
        (Block::Table(table), Format::Markdown) => shortened(table),
        _ => None,
    };
    let context = context! { block => Value::from(Serde(short.as_ref().unwrap_or(block))), body => Value::from_safe_string(body) };
    let kind = short.as_ref().unwrap_or(block).kind();
    template(environment, format!("blocks/{kind}.{}.j2", format.name()), context)
}

/// Returns what Markdown shows of a table that is too long for it.
///
/// GitHub cuts a file off where it has enough of it, and nobody reads a thousand rows there.
fn shortened(table: &Table) -> Option<Block> {
    const MAX_ROWS: usize = 200;
    const MAX_TRIALS: usize = 60;
    let n_rows = table.rows.len();
    if table.per_trial && n_rows > MAX_TRIALS {
        return Some(Block::paragraph(format!(
            "The table has {n_rows} rows, one a trial: too long for this page. report.html has it, and data.csv has every \
             field of every record."
        )));
    }
    if n_rows <= MAX_ROWS {
        return None;
    }
    let rest = format!("Left out here: the other {} rows, which report.html has. {}", n_rows - MAX_ROWS, table.note);
    Some(Block::Table(Table { rows: table.rows[..MAX_ROWS].to_vec(), ..table.clone() }.noted(rest.trim_end())))
}

fn template(environment: &Environment, name: String, context: Value) -> Result<String, ReportError> {
    let template = environment.get_template(&name).map_err(|error| template_error(&name, &error))?;
    template.render(context).map_err(|error| template_error(&name, &error))
}

fn template_error(name: &str, error: &minijinja::Error) -> ReportError {
    ReportError::Template { name: name.to_owned(), detail: format!("{error:#}") }
}

fn collect_figures(blocks: &[Block], figures: &mut Vec<(String, String)>) {
    for block in blocks {
        match block {
            Block::Figure(Figure { file, standalone, .. }) => figures.push((file.clone(), standalone.clone())),
            Block::Details { blocks, .. } => collect_figures(blocks, figures),
            _ => {}
        }
    }
}

/// Writes bytes in base 64, as a content security policy names digests.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group = (0..3).fold(0, |group, idx| group << 8 | u32::from(chunk.get(idx).copied().unwrap_or(0)));
        for digit in 0..4 {
            let shown = digit <= chunk.len();
            text.push(if shown { DIGITS[(group >> (18 - 6 * digit)) as usize & 63] as char } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_agrees_with_rfc_4648() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
