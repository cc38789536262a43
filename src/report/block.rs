//! The building blocks of a report. Sections say what there is; templates say how it looks.
//!
//! Text in a block is plain: each format escapes it. The exceptions are [`Block::Prose`] and the drawings, whose
//! makers vouch for them.

use serde::Serialize;

use super::align;

/// How a piece should strike the reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Tone {
    /// As any text.
    #[default]
    Plain,
    /// All is well.
    Good,
    /// Something to know.
    Warn,
    /// Something is wrong.
    Bad,
    /// Nothing is known.
    Unknown,
}

/// One block.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Block {
    /// A paragraph of plain text.
    Paragraph { text: String, strong: bool },
    /// A person's Markdown, made safe in both formats.
    Prose { html: String, markdown: String },
    /// A message that stands out.
    Callout { tone: Tone, title: String, text: String },
    /// A row of cards.
    Cards { cards: Vec<Card> },
    /// A table.
    Table(Table),
    /// A drawing.
    Figure(Figure),
    /// Text to be copied or read letter by letter.
    Code { language: &'static str, text: String },
    /// Terms with their meanings.
    Definitions { entries: Vec<Definition> },
    /// A list of sentences.
    List { items: Vec<String> },
    /// Blocks behind a line that opens them.
    Details { summary: String, tone: Tone, blocks: Vec<Block> },
    /// Data for machines in HTML; nothing in Markdown.
    Embedded { html: String },
}

/// One card.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Card {
    pub letter: &'static str,
    pub title: &'static str,
    pub tone: Tone,
    pub state: String,
    pub points: Vec<String>,
}

/// A table; every row has one cell a column.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Table {
    pub caption: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
    /// What the table does not show, and other remarks; empty for none.
    pub note: String,
    /// One row a trial: too much for Markdown, unless there are few.
    pub per_trial: bool,
}

/// A column.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Column {
    pub title: String,
    /// Unit of all its cells; empty for words.
    pub unit: &'static str,
    /// Numbers stand right-aligned.
    pub numeric: bool,
}

/// A cell.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Cell {
    pub text: String,
    pub tone: Tone,
    /// Set as code.
    pub code: bool,
    /// Set strongly.
    pub strong: bool,
    /// A second, weaker text; empty for none.
    pub note: String,
    /// The same as in the row above: set weakly.
    pub again: bool,
    /// A drawing that stands for the text where there is room for one; empty for none. Its maker vouches for it.
    pub drawing: String,
    /// The text filled with spaces so that points stand under each other; empty for none.
    pub aligned: String,
}

/// A drawing in both of its forms.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figure {
    /// File name of the stand-alone drawing.
    pub file: String,
    pub title: String,
    pub caption: String,
    /// Panels side by side.
    pub n_columns: usize,
    /// For the inside of a page: colours are variables.
    pub inline: String,
    /// For a file: colours are fixed.
    #[serde(skip)]
    pub standalone: String,
}

/// A term and its meaning.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Definition {
    pub term: String,
    pub text: String,
    pub note: String,
    pub code: bool,
}

impl Block {
    pub(crate) fn paragraph(text: impl Into<String>) -> Self {
        Self::Paragraph { text: text.into(), strong: false }
    }

    pub(crate) fn callout(tone: Tone, title: impl Into<String>, text: impl Into<String>) -> Self {
        Self::Callout { tone, title: title.into(), text: text.into() }
    }

    /// Returns the blocks behind a line, or the blocks themselves if a reader must not miss them.
    pub(crate) fn details(summary: impl Into<String>, blocks: Vec<Block>) -> Self {
        Self::Details { summary: summary.into(), tone: Tone::Plain, blocks }
    }

    /// Aligns the numbers of its tables.
    pub(crate) fn align(&mut self) {
        match self {
            Self::Table(table) => align::align(table),
            Self::Details { blocks, .. } => blocks.iter_mut().for_each(Self::align),
            _ => {}
        }
    }

    /// Returns the word that names the block's templates.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Paragraph { .. } => "paragraph",
            Self::Prose { .. } => "prose",
            Self::Callout { .. } => "callout",
            Self::Cards { .. } => "cards",
            Self::Table(_) => "table",
            Self::Figure(_) => "figure",
            Self::Code { .. } => "code",
            Self::Definitions { .. } => "definitions",
            Self::List { .. } => "list",
            Self::Details { .. } => "details",
            Self::Embedded { .. } => "embedded",
        }
    }
}

impl Table {
    /// Makes a table of word columns and number columns; `unit` tells them apart: `None` is words.
    pub(crate) fn new<T: AsRef<str>>(caption: impl Into<String>, columns: &[(T, Option<&'static str>)]) -> Self {
        let column = |(title, unit): &(T, Option<&'static str>)| Column {
            title: title.as_ref().to_owned(),
            unit: unit.unwrap_or_default(),
            numeric: unit.is_some(),
        };
        let columns = columns.iter().map(column).collect();
        Self { caption: caption.into(), columns, rows: Vec::new(), note: String::new(), per_trial: false }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.columns.len(), "{}", self.caption);
        self.rows.push(cells);
    }

    pub(crate) fn noted(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    pub(crate) fn code(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: true, ..Self::default() }
    }

    pub(crate) fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }

    pub(crate) fn strong(mut self) -> Self {
        self.strong = true;
        self
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}
