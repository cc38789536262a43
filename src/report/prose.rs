//! A person's Markdown in both formats, without a way to reach beyond its place.
//!
//! Raw HTML becomes text, images become their description (a report loads nothing from elsewhere), headings become
//! strong paragraphs, so that the report keeps its outline.

use comrak::{
    Arena, Options, format_commonmark, format_html,
    nodes::{AstNode, NodeValue},
    parse_document,
};

use super::{block::Block, text};

/// Longest prose that is shown; a question is a question.
const MAX_BYTES: usize = 20_000;

/// Makes a person's Markdown safe.
pub(crate) fn prose(markdown: &str) -> Block {
    let cut = (0..=markdown.len().min(MAX_BYTES)).rev().find(|&end| markdown.is_char_boundary(end)).unwrap_or(0);
    let visible = text::visible_lines(&markdown[..cut]);
    let arena = Arena::new();
    let options = options();
    let root = parse_document(&arena, &visible, &options);
    tame(root);
    let (mut html, mut commonmark) = (String::new(), String::new());
    format_html(root, &options, &mut html).expect("writing to a string cannot fail");
    format_commonmark(root, &options, &mut commonmark).expect("writing to a string cannot fail");
    // A quotation cannot end the report's own list, table or section.
    let quoted: Vec<String> =
        commonmark.trim_end().lines().map(|line| format!("> {line}").trim_end().to_owned()).collect();
    Block::Prose { html, markdown: quoted.join("\n") }
}

fn options() -> Options<'static> {
    let mut options = Options::default();
    options.extension.strikethrough = true;
    options.extension.table = true;
    options.render.r#unsafe = false;
    options.render.escape = true;
    options
}

fn tame<'a>(root: &'a AstNode<'a>) {
    for node in root.descendants() {
        let mut data = node.data.borrow_mut();
        let tamed = match &data.value {
            NodeValue::HtmlInline(html) => NodeValue::Text(html.clone().into()),
            NodeValue::HtmlBlock(block) => NodeValue::CodeBlock(Box::new(comrak::nodes::NodeCodeBlock {
                fenced: true,
                fence_char: b'`',
                fence_length: 3,
                literal: block.literal.clone(),
                ..Default::default()
            })),
            NodeValue::Image(_) => NodeValue::Emph,
            NodeValue::Heading(_) => NodeValue::Paragraph,
            _ => continue,
        };
        data.value = tamed;
    }
}
