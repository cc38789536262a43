//! The statistics against reference values computed once with scipy and, for the bootstrap, by listing all resamples.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use rare::stats::{bootstrap, compare, describe, mann_whitney};
use serde_json::Value;

const REFERENCE: &str = include_str!("../src/stats/reference.json");

fn reference(name: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(REFERENCE).unwrap();
    let cases = all[name].as_array().unwrap().clone();
    assert!(cases.len() >= 3, "{name} has too few cases to prove anything");
    cases
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

fn sorted(value: &Value) -> Vec<f64> {
    let mut values = numbers(value);
    values.sort_by(f64::total_cmp);
    values
}

#[track_caller]
fn close(actual: f64, expected: &Value, what: &str) {
    let expected = expected.as_f64().unwrap();
    assert!((actual - expected).abs() <= 1e-10 * expected.abs().max(1e-3), "{what}: {actual} instead of {expected}");
}

#[test]
fn mann_whitney_agrees_with_scipy() {
    for case in reference("mann_whitney") {
        let (left, right) = (numbers(&case["left"]), numbers(&case["right"]));
        let test = mann_whitney::test(&left, &right).unwrap();
        assert_eq!(test.exact, case["exact"].as_bool().unwrap());
        close(test.u, &case["u"], "U");
        close(test.p, &case["p"], "p");
        close(mann_whitney::hodges_lehmann(&left, &right), &case["hodges_lehmann"], "shift");
        close(mann_whitney::cliffs_delta(&left, &right), &case["cliffs_delta"], "delta");
        // Exchanging the sides mirrors everything and keeps p.
        let mirrored = mann_whitney::test(&right, &left).unwrap();
        close(mirrored.p, &case["p"], "mirrored p");
        assert!((mirrored.u + test.u - (left.len() * right.len()) as f64).abs() < 1e-9);
    }
}

#[test]
fn descriptions_agree_with_numpy() {
    for case in reference("describe") {
        let description = describe::describe(&numbers(&case["values"])).unwrap();
        close(description.median, &case["median"], "median");
        close(description.mean, &case["mean"], "mean");
        match case["sd"].as_f64() {
            Some(_) => close(description.sd.unwrap(), &case["sd"], "sd"),
            None => assert_eq!((description.sd, description.cv), (None, None)),
        }
        assert_eq!(description.outliers_modified_z.map(|n| n as u64), case["modified_z"].as_u64());
        assert_eq!(description.outliers_tukey.map(|n| n as u64), case["tukey"].as_u64());
        assert_eq!(description.interval.is_some(), description.n > 5);
    }
    assert_eq!(describe::describe(&[]), None);
}

#[test]
fn holm_agrees_with_reference() {
    for case in reference("holm") {
        for (actual, expected) in
            compare::holm(&numbers(&case["p"])).into_iter().zip(case["adjusted"].as_array().unwrap())
        {
            close(actual, expected, "adjusted p");
        }
    }
}

#[test]
fn bootstrap_agrees_with_all_resamples() {
    for case in reference("median_interval") {
        let interval = bootstrap::median_interval(&sorted(&case["values"])).unwrap();
        close(interval.low, &case["low"], "low");
        close(interval.high, &case["high"], "high");
    }
    for case in reference("ratio_interval") {
        let interval = bootstrap::ratio_interval(&sorted(&case["left"]), &sorted(&case["right"])).unwrap();
        close(interval.low, &case["low"], "low ratio");
        close(interval.high, &case["high"], "high ratio");
    }
}

#[test]
fn five_values_have_no_interval() {
    let five = [1.0, 2.0, 3.0, 4.0, 5.0];
    assert_eq!(bootstrap::median_interval(&five), None);
    assert_eq!(bootstrap::ratio_interval(&five, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), None);
}

#[test]
fn large_samples_stay_quick_and_sane() {
    let values: Vec<f64> = (1..=1000).map(f64::from).collect();
    let interval = bootstrap::median_interval(&values).unwrap();
    // Order statistics 500 ± 1.96 sqrt(1000)/2, give or take the mean of two of them.
    assert!((interval.low - 469.5).abs() < 2.0 && (interval.high - 531.5).abs() < 2.0, "{interval:?}");
    let ratio = bootstrap::ratio_interval(&values[500..], &values[500..]).unwrap();
    assert!(ratio.low < 1.0 && ratio.high > 1.0 && (ratio.low * ratio.high - 1.0).abs() < 1e-6, "{ratio:?}");
}

#[test]
fn answers_need_enough_trials_for_the_number_of_comparisons() {
    let (slow, fast) = ([1.0, 1.1, 1.2, 1.3, 1.4], [2.0, 2.1, 2.2, 2.3, 2.4]);
    let alone = compare::Comparison::new((0, &slow), (1, &fast)).unwrap();
    assert_eq!(alone.answer, compare::Answer::Slower);
    assert_eq!(alone.delta, -1.0);
    let mut seven = vec![alone.clone(); 7];
    compare::correct(&mut seven);
    assert_eq!(seven[0].answer, compare::Answer::NotDistinguishable);
    assert!(seven[0].is_hopeless(7) && !seven[0].is_hopeless(6));
    assert_eq!((compare::trials_needed(6), compare::trials_needed(7)), (5, 6));
}
