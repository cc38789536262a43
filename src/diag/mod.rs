//! Diagnostics: every mistake of a person, with its place, a stable code and help.
//!
//! Must not know specs: it renders what other layers found.

pub mod codes;
mod json;
mod position;
mod render;
mod text;

pub use codes::Code;
pub use json::to_json;
pub use position::{Position, position};
pub use render::render;
pub use text::{one_line, quote, wrap};

/// A place in a text: byte range.
pub type Span = std::ops::Range<usize>;

/// A text with the name under which diagnostics cite it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Path as the person gave it.
    pub name: String,
    /// The whole text.
    pub text: String,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing is run.
    Error,
    /// Said and gone on.
    Warning,
}

impl Severity {
    /// Returns the word that people and editors see.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// One mistake of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable code.
    pub code: &'static Code,
    /// What is wrong: lower case, no final period, the person's own words in backticks.
    pub message: String,
    /// Where; an empty range points between two characters.
    pub at: Span,
    /// What stands under the caret.
    pub label: Option<String>,
    /// Other places that matter, each with its label.
    pub related: Vec<(Span, String)>,
    /// What to do, one line each.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// Makes a diagnostic without label and help.
    pub fn new(code: &'static Code, at: Span, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), at, label: None, related: Vec::new(), help: Vec::new() }
    }

    /// Sets what stands under the caret.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Adds another place. An empty range means that no one wrote it (a default), and is left out.
    #[must_use]
    pub fn also(mut self, at: Span, label: impl Into<String>) -> Self {
        if !at.is_empty() {
            self.related.push((at, label.into()));
        }
        self
    }

    /// Adds a line that says what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    /// Adds a line of help if there is one.
    #[must_use]
    pub fn maybe_help(mut self, help: Option<impl Into<String>>) -> Self {
        self.help.extend(help.map(Into::into));
        self
    }

    /// Returns how bad it is, which its code decides.
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }
}

/// Sorts by place, then by code, and drops repetitions.
pub fn sort(diagnostics: &mut Vec<Diagnostic>) {
    diagnostics.sort_by(|a, b| {
        let key = |diagnostic: &Diagnostic| (diagnostic.at.start, diagnostic.at.end, diagnostic.code.id);
        key(a).cmp(&key(b)).then_with(|| a.message.cmp(&b.message))
    });
    diagnostics.dedup();
}
