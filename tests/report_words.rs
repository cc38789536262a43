//! What a report says and where it puts it: the answer, the figures, what is too long, what changed.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

mod report_common;

use rare::{
    plan::BlockKind,
    record::{Outcome, Reading},
    report::{self, Rendered, render},
    spec::{
        model::Condition,
        value::{Parameter, Value},
    },
};
use report_common::{Case, SMALL, Shape, USUAL};

fn rendered(case: &Case) -> Rendered {
    let summary = case.summary();
    render(&case.evidence(&summary), None).unwrap()
}

#[track_caller]
fn answers(shape: &Shape, expected: &str) {
    let case = Case::new(shape);
    let summary = case.summary();
    assert_eq!(report::answer(&case.evidence(&summary)), expected);
}

#[test]
fn the_answer_names_the_parameter_that_explains_it() {
    let base = Shape { structures: &["nm14", "rwlock-btree"], threads: &[1, 2], key_ranges: &[100_000], ..USUAL };
    answers(
        &base,
        "The answer depends on the number of threads: with 1 thread rwlock-btree is the fastest, with 2 threads nm14.",
    );
    answers(
        &Shape { allocators: &["system", "jemalloc"], ..base },
        "The answer depends on the number of threads: with 1 thread rwlock-btree is the fastest in both configurations, with \
         2 threads nm14 in both.",
    );
    answers(
        &Shape { structures: &["nm14", "harris01"], threads: &[1], key_ranges: &[10, 100, 10_000, 100_000], ..base },
        "The answer depends on the key range: with 10 keys or 100 keys harris01 is the fastest in both configurations, with \
         10k keys or 100k keys nm14 in both.",
    );
}

#[test]
fn the_answer_says_where_each_leads_if_no_parameter_explains_it() {
    answers(
        &USUAL,
        "The answer depends on the configuration: of 4, harris01 is the fastest in 2 (only with 100 keys), rwlock-btree \
         in 1 (only with 1 thread and 100k keys) and nm14 in 1 (only with 2 threads and 100k keys).",
    );
}

#[test]
fn a_claim_is_shown_with_its_scope() {
    let mut case = Case::new(&USUAL);
    let keys = [Condition::Is(Value::Count(100)), Condition::Over(1_000)];
    case.claim("nm14", "harris01", 500, vec![(Parameter::KeyRange, keys.to_vec())]);
    let text = rendered(&case).markdown;
    assert!(text.contains("(by 5%, 100 keys or key range over 1000)"), "{text}");
}

#[test]
fn the_answer_admits_what_is_not_known() {
    let few = Shape { n_trials: 2, ..USUAL };
    answers(&few, "In none of 4 configurations is one structure distinguishably faster than all others.");
    answers(
        &Shape { structures: &["nm14"], ..USUAL },
        "There is nothing to compare: no configuration has two structures with trials that count.",
    );
}

/// Titles of the panels of a page, in order.
fn titles(html: &str) -> Vec<&str> {
    let labels = html.split("class=\"panel\"").skip(1).map(|panel| panel.split("aria-label=\"").nth(1).unwrap());
    labels.map(|label| label.split('"').next().unwrap()).collect()
}

#[test]
fn panels_stand_in_a_grid_under_whole_titles() {
    let html = rendered(&Case::new(&USUAL)).html;
    let expected = ["1 thread · 100 keys", "2 threads · 100 keys", "1 thread · 100k keys", "2 threads · 100k keys"];
    let titles = titles(&html);
    for (title, expected) in titles.iter().zip(expected) {
        assert_eq!(*title, format!("Throughput by structure: {expected}"));
    }
    assert!(html.contains("Columns: threads; rows: key range.") && html.contains("panels columns-2"));
    assert!(!html.contains('…'), "nothing is cut");
}

#[test]
fn figures_say_what_their_panels_share() {
    let shape = Shape { allocators: &["system", "jemalloc"], key_ranges: &[10, 100, 1000, 10_000], ..USUAL };
    let rendered = rendered(&Case::new(&shape));
    for allocator in ["system", "jemalloc"] {
        assert!(rendered.markdown.contains(&format!("*Throughput by structure: {allocator}. ")), "{allocator}");
    }
    let files: Vec<&str> = rendered.figures.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(files, ["throughput-1.svg", "throughput-2.svg", "drift.svg"]);
    assert!(rendered.figures[0].1.contains("1 thread · 10 keys") && !rendered.figures[0].1.contains("· system"));
}

#[test]
fn tables_of_many_trials_stay_out_of_markdown() {
    let (few, many) = (rendered(&Case::new(&SMALL)), rendered(&Case::new(&USUAL)));
    assert!(few.markdown.contains("`measure-1-6`") && !few.markdown.contains("too long for this page"));
    assert!(!many.markdown.contains("`measure-1-6`"));
    assert_eq!(many.markdown.matches("The table has 128 rows, one a trial: too long for this page.").count(), 2);
    assert!(many.html.contains("measure-1-6") && many.csv.contains("measure-1-6"));
}

#[test]
fn a_drift_is_drawn_and_told() {
    assert!(rendered(&Case::new(&SMALL)).html.contains("are too few to see whether the machine changed"));
    let told = "The speed changed during the run";
    let mut case = Case::new(&USUAL);
    let calm = rendered(&case);
    assert!(calm.html.contains("Trials relative to their cell") && !calm.html.contains(told));
    // From the fourth block on, everything takes a quarter longer on two threads.
    for trial in case.trials.iter_mut().filter(|trial| trial.trial.kind == BlockKind::Measure) {
        let late = trial.trial.trial_idx >= 4 && trial.request.cpus.len() == 2;
        if let (true, Outcome::Replied(reply)) = (late, &mut trial.outcome) {
            reply.threads.iter_mut().for_each(|thread| thread.stop_ns += (thread.stop_ns - thread.start_ns) / 4);
        }
    }
    let drifting = rendered(&case).html;
    let limit = drifting.split(told).nth(1).unwrap().split("</li>").next().unwrap();
    assert!(limit.contains("with 2 threads 1.0") && limit.contains("× and 0.8"), "{limit}");
    assert!(!limit.contains("1 thread"), "on one thread nothing changed: {limit}");
}

#[test]
fn environment_shows_what_only_one_record_has() {
    let mut case = Case::new(&SMALL);
    let after = case.environment.after.as_mut().unwrap();
    let mut entry = after.entries[0].clone();
    entry.key = "machine.appeared".to_owned();
    entry.reading = Reading::Value("late".to_owned());
    after.entries.push(entry);
    let gone = after.entries.remove(1).key;
    let html = rendered(&case).html;
    let row = |key: &str| html.split("<tr>").find(|row| row.contains(&format!("{key}</code>"))).unwrap().to_owned();
    assert!(
        row("machine.appeared").contains("before: not recorded") && row("machine.appeared").contains("after: late")
    );
    assert!(row(&gone).contains("after: not recorded"));
}

#[test]
fn numbers_of_a_column_stand_point_under_point() {
    let html = rendered(&Case::new(&USUAL)).html;
    // 26.40 and 3.228 stand in one column: a space as wide as a digit fills the first.
    assert!(html.contains("26.40\u{2007}") && html.contains("3.228<"));
    // A table without drawings would be the old list of numbers.
    assert_eq!(html.matches("class=\"strip\"").count(), 16);
}
