//! Reports as bytes: golden files, hostile names, embedded plans, templates.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

mod report_common;

use std::{fs, path::Path};

use rare::report::{Rendered, ReportError, embedded_plan, embedded_spec, render};
use report_common::{Case, HOSTILE, SMALL, USUAL, bad, hostile, named};

fn rendered(case: &Case) -> Rendered {
    let summary = case.summary();
    render(&case.evidence(&summary), None).unwrap()
}

#[track_caller]
fn golden(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, actual).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap();
    let differs = expected.lines().zip(actual.lines()).position(|(expected, actual)| expected != actual);
    assert!(
        expected == actual,
        "{name} differs, first in line {:?}; UPDATE_GOLDEN=1 accepts it",
        differs.map(|n| n + 1)
    );
}

#[test]
fn small_report_is_what_it_was() {
    let mut case = Case::new(&SMALL);
    case.claim("nm14", "mutex-btree", 0, Vec::new());
    let rendered = rendered(&case);
    golden("report_small.md", &rendered.markdown);
    golden("report_small.html", &rendered.html);
    golden("report_small.csv", &rendered.csv);
    golden("report_small.svg", &rendered.figures[0].1);
}

#[test]
fn same_evidence_gives_the_same_bytes() {
    assert_eq!(rendered(&Case::new(&USUAL)), rendered(&Case::new(&USUAL)));
}

/// Names of the tags of a page in order, closing ones with their slash; text of scripts and styles is skipped.
fn tags(html: &str) -> Vec<String> {
    let mut tags = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let end = rest.find('>').expect("a tag ends");
        let tag = &rest[..end];
        let name: String = tag.chars().take_while(|letter| !letter.is_whitespace()).collect();
        assert!(!tag.contains('<'), "a tag within a tag: {tag}");
        rest = &rest[end + 1..];
        for opaque in ["script", "style"] {
            if name == opaque {
                rest = &rest[rest.find(&format!("</{opaque}")).unwrap()..];
            }
        }
        tags.push(name);
    }
    tags
}

#[test]
fn hostile_names_change_no_tag_of_the_page() {
    let (plain, hostile) = (tags(&rendered(&named("plain")).html), tags(&rendered(&named(HOSTILE)).html));
    let differs = plain.iter().zip(&hostile).position(|(plain, hostile)| plain != hostile);
    assert_eq!(differs.map(|at| &hostile[at.saturating_sub(6)..at + 3]), None);
    assert_eq!(plain.len(), hostile.len());
    assert_eq!(hostile.iter().filter(|tag| *tag == "script").count(), 3, "plan, spec and environment, which never run");
}

#[test]
fn hostile_names_change_no_tag_of_the_rendered_markdown() {
    let to_html = |markdown: &str| {
        let mut options = comrak::Options::default();
        options.extension.table = true;
        options.extension.strikethrough = true;
        options.render.r#unsafe = true;
        comrak::markdown_to_html(markdown, &options)
    };
    let plain = tags(&to_html(&rendered(&named("plain")).markdown));
    let markdown = rendered(&named(HOSTILE)).markdown;
    // Code is code or escaped text, by what it holds: not a matter of structure.
    let structure = |tags: Vec<String>| -> Vec<String> {
        tags.into_iter().filter(|tag| !matches!(tag.as_str(), "code" | "/code")).collect()
    };
    let (plain, hostile) = (structure(plain), structure(tags(&to_html(&markdown))));
    let differs = plain.iter().zip(&hostile).position(|(plain, hostile)| plain != hostile);
    assert_eq!(differs.map(|at| &hostile[at.saturating_sub(6)..at + 3]), None);
    assert_eq!(plain.len(), hostile.len());
    assert!(!markdown.contains('\u{202e}'), "marks that reorder text are shown, not obeyed");
}

#[test]
fn questions_cannot_reach_beyond_their_place() {
    let Rendered { markdown, html, .. } = rendered(&hostile());
    for page in [&markdown, &html] {
        assert!(!page.contains("example.com"), "nothing is loaded from elsewhere");
        // The embedded spec is data, byte for byte; all that is shown comes before or after it.
        let shown: String = page.split("<script").map(|part| part.rsplit("</script>").next().unwrap()).collect();
        assert!(!shown.contains('\u{202e}') && !shown.contains('\u{200f}'));
    }
    assert!(!html.contains("<img") && !html.contains("onerror=alert(1)>"));
    assert_eq!(html.matches("<h1").count(), 1);
    assert_eq!(html.matches("<script").count(), 3);
    let csp = "default-src 'none'; style-src 'sha256-";
    assert!(html.contains(csp) && !html.contains("unsafe-inline") && !html.contains(" style="));
}

#[test]
fn plan_and_spec_come_back_from_the_page() {
    let case = hostile();
    let html = rendered(&case).html;
    assert_eq!(embedded_plan(&html).unwrap(), case.plan_bytes);
    assert_eq!(embedded_spec(&html).unwrap(), case.spec_text);
}

#[test]
fn page_is_well_formed() {
    for case in [Case::new(&USUAL), bad(), hostile()] {
        let mut open: Vec<String> = Vec::new();
        for tag in tags(&rendered(&case).html) {
            match tag.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop().as_deref(), Some(name), "closed in order"),
                None if matches!(tag.as_str(), "!doctype" | "meta" | "br" | "hr") => {}
                None if matches!(tag.as_str(), "circle" | "rect" | "line" | "polyline" | "polygon" | "path") => {}
                None if tag.ends_with('/') => {}
                None => open.push(tag),
            }
        }
        assert_eq!(open, Vec::<String>::new());
    }
}

#[test]
fn failed_and_excluded_trials_are_shown_and_not_counted() {
    let case = bad();
    let Rendered { markdown, html, csv, .. } = rendered(&case);
    for text in ["A sanity check failed", "SIGSEGV", "unlinked twice", "18 planned trials never ran", "timed-out"] {
        assert!(html.contains(text), "{text}");
    }
    assert!(markdown.contains("❌ **excluded**"));
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let header = reader.headers().unwrap().clone();
    let column = |name: &str| header.iter().position(|title| title == name).unwrap();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), case.trials.len());
    let failed = &rows[20];
    assert_eq!((&failed[column("standing")], &failed[column("failure")]), ("failed", "signal"));
    assert_eq!(&failed[column("throughput_ops_per_s")], "", "missing is not zero");
}

#[test]
fn quick_runs_are_marked_everywhere() {
    let mut case = Case::new(&SMALL);
    let calm = rendered(&case);
    let (_, body) = calm.html.split_once("</style>").unwrap();
    assert!(!body.to_lowercase().contains("quick run") && !calm.markdown.to_lowercase().contains("quick run"));
    case.quick = true;
    let quick = rendered(&case);
    let n_sections = quick.html.matches("<section class=\"part\"").count();
    assert_eq!(quick.html.matches("class=\"quick-mark\"").count(), n_sections);
    assert!(quick.html.contains("class=\"quick-banner\"") && quick.markdown.contains("Quick run: do not publish"));
    assert_eq!(
        quick.markdown.lines().filter(|line| line.starts_with("## ") && line.ends_with("(quick run)")).count(),
        n_sections
    );
}

#[test]
fn numbers_have_few_digits() {
    for case in [Case::new(&USUAL), bad()] {
        let markdown = rendered(&case).markdown;
        let long = markdown.split(|letter: char| !letter.is_ascii_digit() && letter != '.').find(|number| {
            number.split_once('.').is_some_and(|(_, decimals)| decimals.len() > 4 && !decimals.contains('.'))
        });
        assert_eq!(long, None);
        assert!(!markdown.contains("NaN") && !markdown.contains("inf "));
    }
}

#[test]
fn a_run_without_records_is_a_report_too() {
    let mut case = Case::new(&SMALL);
    case.trials.clear();
    case.environment.after = None;
    let html = rendered(&case).html;
    assert!(html.contains("No trial counts") && html.contains("nothing to compare"));
}

#[test]
fn templates_can_be_replaced_and_their_mistakes_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("blocks")).unwrap();
    let case = Case::new(&SMALL);
    let summary = case.summary();
    let evidence = case.evidence(&summary);
    fs::write(folder.path().join("report.md.j2"), "own {{ name }}").unwrap();
    let own = render(&evidence, Some(folder.path())).unwrap();
    assert_eq!(own.markdown, "own bst");
    assert_eq!(own.html, rendered(&case).html);
    fs::write(folder.path().join("blocks/table.html.j2"), "{{ block.colums }}").unwrap();
    match render(&evidence, Some(folder.path())) {
        Err(ReportError::Template { name, detail }) => {
            assert_eq!(name, "blocks/table.html.j2");
            assert!(detail.contains("undefined"), "{detail}");
        }
        other => panic!("{other:?}"),
    }
    fs::remove_file(folder.path().join("blocks/table.html.j2")).unwrap();
    fs::create_dir(folder.path().join("report.css")).unwrap();
    assert!(matches!(render(&evidence, Some(folder.path())), Err(ReportError::Read { .. })));
}
