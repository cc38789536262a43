//! How numbers are written: fixed digits, units beside them, a word where there is none.

use crate::stats::Interval;

/// Stands where a number could not be had.
pub(crate) const NONE: &str = "–";

/// Operations per second to Mops/s.
const MEGA: f64 = 1e6;

/// Writes a throughput in Mops/s with about four significant digits, without the unit.
///
/// Trials differ by a percent or so: four digits show that they do, and a fixed number of decimals would drown either
/// the fastest or the slowest cell of a table that spans a list and a tree.
pub(crate) fn mops(ops_per_second: f64) -> String {
    let value = ops_per_second / MEGA;
    let n_digits = match value.abs() {
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        size if size >= 1.0 => 3,
        _ => 4,
    };
    format!("{value:.n_digits$}")
}

/// Writes an interval of throughputs in Mops/s.
pub(crate) fn mops_interval(interval: Interval) -> String {
    format!("{} – {}", mops(interval.low), mops(interval.high))
}

/// Writes a ratio, such as `1.84×`.
pub(crate) fn ratio(ratio: f64) -> String {
    let n_digits = match ratio.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.1 => 2,
        _ => 3,
    };
    format!("{ratio:.n_digits$}×")
}

/// Writes an interval of ratios.
pub(crate) fn ratio_interval(interval: Interval) -> String {
    format!("{} – {}", ratio(interval.low), ratio(interval.high))
}

/// Writes a share as a percentage with one digit.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Writes a p-value; below a thousandth only that it is.
pub(crate) fn p_value(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }
}

/// Writes a fixed number of digits.
pub(crate) fn fixed(number: f64, n_digits: usize) -> String {
    format!("{number:.n_digits$}")
}

/// Writes a size with a binary unit and three significant digits, such as `1.25 MiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    match value {
        _ if unit == 0 => format!("{bytes} B"),
        value if value >= 100.0 => format!("{value:.0} {}", UNITS[unit]),
        value if value >= 10.0 => format!("{value:.1} {}", UNITS[unit]),
        value => format!("{value:.2} {}", UNITS[unit]),
    }
}

/// Writes nanoseconds as milliseconds with two digits, without the unit.
pub(crate) fn milliseconds(nanos: u64) -> String {
    format!("{:.2}", nanos as f64 / 1e6)
}

/// Writes a wall time for people, such as `4 min 12 s`.
pub(crate) fn wall(nanos: u64) -> String {
    let seconds = nanos as f64 / 1e9;
    let whole = seconds.round() as u64;
    match seconds {
        seconds if seconds < 10.0 => format!("{seconds:.1} s"),
        seconds if seconds < 60.0 => format!("{whole} s"),
        seconds if seconds < 3600.0 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// Writes a count with its noun, such as `1 trial`, `12 trials`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_fixed() {
        assert_eq!(mops((0.1 + 0.2) * 1e7), "3.000");
        assert_eq!(
            (mops(137.25e6), mops(14.809_5e6), mops(39_812.0)),
            ("137.2".into(), "14.81".into(), "0.0398".into())
        );
        assert_eq!(ratio(1.8449), "1.84×");
        assert_eq!((ratio(0.012), ratio(174.69)), ("0.012×".into(), "175×".into()));
        assert_eq!(percent(0.123_45), "12.3 %");
        assert_eq!((p_value(0.0004), p_value(0.04)), ("< 0.001".to_owned(), "0.040".to_owned()));
        assert_eq!(
            (bytes(999), bytes(1 << 20), bytes(130 << 30)),
            ("999 B".to_owned(), "1.00 MiB".to_owned(), "130 GiB".to_owned())
        );
        assert_eq!((wall(900_000_000), wall(252_000_000_000)), ("0.9 s".to_owned(), "4 min 12 s".to_owned()));
    }
}
