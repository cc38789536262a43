//! Diagnostics as text, in the look of rustc.
//!
//! Any spec may be hostile: nothing in it reaches the terminal as a control character, and the caret stays under the
//! text it means.

use annotate_snippets::{AnnotationKind, Level, Message, Renderer, Snippet};

use super::{
    Diagnostic, Severity, Source, Span,
    position::whole,
    text::{one_line, visible},
};

/// Diagnostics beyond these are counted, not shown: no one reads them, and a hostile file has a hundred thousand.
const MAX_SHOWN: usize = 100;

/// Lines may be as wide as in rustc's own output; longer source lines are cut around the caret.
const WIDTH_COLUMNS: usize = 140;

/// Lines longer than this, in bytes, are cut before rendering: the renderer takes time in proportion to the line.
const MAX_LINE_BYTES: usize = 4_000;

/// Returns the diagnostics, in the order given, each followed by an empty line, then how many there are.
pub fn render(diagnostics: &[Diagnostic], source: &Source, color: bool) -> String {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() }.term_width(WIDTH_COLUMNS);
    let mut text = String::new();
    for diagnostic in diagnostics.iter().take(MAX_SHOWN) {
        text.push_str(&one(diagnostic, source, &renderer));
        text.push_str("\n\n");
    }
    text.push_str(&summary(diagnostics));
    text
}

fn one(diagnostic: &Diagnostic, source: &Source, renderer: &Renderer) -> String {
    let level = match diagnostic.severity() {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let window = Window::around(diagnostic, &source.text);
    let mut snippet = Snippet::source(window.text.as_str()).line_start(window.first_line).path(one_line(&source.name));
    let primary = AnnotationKind::Primary.span(window.span(&source.text, &diagnostic.at));
    snippet = snippet.annotation(primary.label(diagnostic.label.as_deref().map(one_line)));
    for (at, label) in &diagnostic.related {
        let span = window.span(&source.text, at);
        snippet = snippet.annotation(AnnotationKind::Context.span(span).label(one_line(label)));
    }
    let help = diagnostic.help.iter().map(|help| -> Message<'_> { Level::HELP.message(one_line(help)) });
    let title = level.primary_title(one_line(&diagnostic.message)).id(diagnostic.code.id);
    renderer.render(&[title.element(snippet).elements(help)])
}

fn summary(diagnostics: &[Diagnostic]) -> String {
    let n_errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity() == Severity::Error).count();
    let n_warnings = diagnostics.len() - n_errors;
    let plural = |number: usize, noun: &str| match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    };
    let mut parts = Vec::new();
    if n_errors > 0 {
        parts.push(plural(n_errors, "error"));
    }
    if n_warnings > 0 {
        parts.push(plural(n_warnings, "warning"));
    }
    if diagnostics.len() > MAX_SHOWN {
        parts.push(format!("the first {MAX_SHOWN} are shown"));
    }
    if let Some(first) = diagnostics.first() {
        parts.push(format!("`rare explain {}` says more", first.code.id));
    }
    if parts.is_empty() { String::new() } else { format!("{}\n", parts.join(", ")) }
}

/// The lines of the source that a diagnostic needs, made safe to print.
struct Window {
    text: String,
    /// Number of the first line, from 1.
    first_line: usize,
    /// Byte range of the source that the window shows.
    range: Span,
}

impl Window {
    fn around(diagnostic: &Diagnostic, source: &str) -> Self {
        let spans = diagnostic.related.iter().map(|(at, _)| at).chain([&diagnostic.at]);
        let (mut start, mut end) = (usize::MAX, 0);
        for span in spans {
            let span = whole(source, span);
            start = start.min(span.start);
            end = end.max(span.end);
        }
        let range = line_start(source, start)..line_end(source, end);
        let first_line = source[..range.start].bytes().filter(|&byte| byte == b'\n').count() + 1;
        Self { text: safe(&source[range.clone()]), first_line, range }
    }

    /// Translates a span of the source into one of the window, where stand-ins have other lengths.
    fn span(&self, source: &str, span: &Span) -> Span {
        let span = whole(source, span);
        let offset = |at: usize| safe(&source[self.range.start..at.clamp(self.range.start, self.range.end)]).len();
        let start = offset(span.start).min(self.text.len());
        start..offset(span.end).clamp(start, self.text.len())
    }
}

/// Start of the line, or of the part of an endless line that is shown.
fn line_start(source: &str, offset: usize) -> usize {
    source[..offset].rfind('\n').map_or(0, |line_feed| line_feed + 1)
}

fn line_end(source: &str, offset: usize) -> usize {
    let end = source[offset..].find('\n').map_or(source.len(), |line_feed| offset + line_feed);
    let cut = (offset + MAX_LINE_BYTES).min(end);
    (cut..=end).find(|&boundary| source.is_char_boundary(boundary)).expect("the end of a line is a boundary")
}

/// Replaces what would act on a terminal; keeps line feeds, which divide lines, and drops returns before them.
fn safe(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    let mut characters = source.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\n' | '\t' => text.push(character),
            // A return before a line feed belongs to the line break; the last one may have lost its line feed to the cut.
            '\r' if characters.peek().is_none_or(|&next| next == '\n') => {}
            '\u{feff}' if text.is_empty() => {}
            _ => text.push(visible(character)),
        }
    }
    text
}
