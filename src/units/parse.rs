//! Reads quantities as a spec writes them, exactly or not at all.
//!
//! Nothing is coerced: a form that some YAML reader turns into another number is refused with the form that is meant.

use std::fmt;

use super::{BasisPoints, Bytes, Nanos, count};

/// Kinds of quantities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Things, with `k`, `M`, `G`.
    Count,
    /// A whole number without a unit, such as a seed.
    Integer,
    /// Nanoseconds, with `ns` to `h`.
    Duration,
    /// Bytes, with `B` to `GiB`.
    Size,
    /// Basis points, with `%`.
    Percent,
    /// Basis points, written in percent with or without `%`.
    Share,
    /// Millionths, as a plain decimal number.
    Decimal,
}

/// A text that is not the quantity due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// What kind of mistake.
    pub fault: Fault,
    /// What is wrong with the text, to follow it: `has a leading zero`.
    pub problem: String,
    /// What to write instead, where it is clear.
    pub help: Option<String>,
}

/// What kind of mistake a malformed quantity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No number, or one in a form that is not read.
    Form,
    /// Unit missing or unknown.
    Unit,
    /// Not a whole number of base units.
    Inexact,
    /// Negative, or too large for the machine.
    Range,
}

impl Malformed {
    fn new(fault: Fault, problem: impl Into<String>) -> Self {
        Self { fault, problem: problem.into(), help: None }
    }

    fn help(mut self, help: impl fmt::Display) -> Self {
        self.help = Some(help.to_string());
        self
    }

    fn write(self, instead: impl fmt::Display) -> Self {
        self.help(format_args!("write `{instead}`"))
    }
}

/// Units of one quantity and their size in base units. The first is the one to suggest when none is written.
type Units = &'static [(&'static str, u64)];

const COUNTS: Units = &[("", 1), ("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)];
const INTEGERS: Units = &[("", 1)];
const DURATIONS: Units = &[
    ("s", 1_000_000_000),
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];
const SIZES: Units = &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];
const PERCENT: Units = &[("%", 100)];
const SHARES: Units = &[("", 100), ("%", 100)];
const DECIMALS: Units = &[("", 1_000_000)];

/// Units as other tools write them, and what they are here; empty where it would be a guess.
const OTHER_UNITS: &[(Quantity, &str, &str)] = &[
    (Quantity::Duration, "sec", "s"),
    (Quantity::Duration, "secs", "s"),
    (Quantity::Duration, "second", "s"),
    (Quantity::Duration, "seconds", "s"),
    (Quantity::Duration, "min", "m"),
    (Quantity::Duration, "mins", "m"),
    (Quantity::Duration, "minute", "m"),
    (Quantity::Duration, "minutes", "m"),
    (Quantity::Duration, "msec", "ms"),
    (Quantity::Duration, "usec", "us"),
    (Quantity::Duration, "µs", "us"),
    (Quantity::Duration, "μs", "us"),
    (Quantity::Duration, "hour", "h"),
    (Quantity::Duration, "hours", "h"),
    (Quantity::Count, "K", "k"),
    (Quantity::Count, "m", "M"),
    (Quantity::Count, "g", "G"),
    (Quantity::Count, "B", "G"),
    (Quantity::Size, "Ki", "KiB"),
    (Quantity::Size, "Mi", "MiB"),
    (Quantity::Size, "Gi", "GiB"),
    (Quantity::Size, "b", "B"),
    (Quantity::Size, "K", "KiB"),
    (Quantity::Size, "k", "KiB"),
    (Quantity::Size, "KB", "KiB"),
    (Quantity::Size, "kB", "KiB"),
    (Quantity::Size, "M", "MiB"),
    (Quantity::Size, "MB", "MiB"),
    (Quantity::Size, "G", "GiB"),
    (Quantity::Size, "GB", "GiB"),
];

impl Quantity {
    /// Returns what is due, for a message: `a duration`.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Count => "a count",
            Self::Integer => "a whole number",
            Self::Duration => "a duration",
            Self::Size => "a size",
            Self::Percent => "a percentage",
            Self::Share => "a share",
            Self::Decimal => "a decimal number",
        }
    }

    /// Returns what is due with an example, for a label.
    pub fn expected(self) -> &'static str {
        match self {
            Self::Count => "expected a count, such as `100` or `100k`",
            Self::Integer => "expected a whole number, such as `42`",
            Self::Duration => "expected a duration, such as `200ms` or `3s`",
            Self::Size => "expected a size, such as `100B` or `64KiB`",
            Self::Percent => "expected a percentage, such as `5%`",
            Self::Share => "expected a share in percent, such as `50` or `2.5`",
            Self::Decimal => "expected a number, such as `0.99`",
        }
    }

    /// Returns a regular expression that every well-formed text of this quantity matches, for the JSON Schema.
    pub fn pattern(self) -> String {
        let units: Vec<&str> = self.units().iter().map(|(unit, _)| *unit).filter(|unit| !unit.is_empty()).collect();
        let optional = if self.units().iter().any(|(unit, _)| unit.is_empty()) { "?" } else { "" };
        match (self, units.is_empty()) {
            (Self::Integer, _) => "^(0|[1-9][0-9]*)$".to_owned(),
            (_, true) => "^(0|[1-9][0-9]*)(\\.[0-9]+)?$".to_owned(),
            _ => format!("^(0|[1-9][0-9]*)(\\.[0-9]+)?({}){optional}$", units.join("|")),
        }
    }

    /// Tells whether a bare JSON number can be such a quantity.
    pub fn takes_bare_number(self) -> bool {
        self.units().iter().any(|(unit, _)| unit.is_empty())
    }

    /// Reads the text, in base units.
    ///
    /// # Errors
    /// What is wrong with it and what to write.
    pub fn parse(self, text: &str) -> Result<u64, Malformed> {
        let (decimal, unit) = self.split(text)?;
        let Some((_, size)) = self.units().iter().find(|(known, _)| *known == unit) else {
            return Err(self.unknown_unit(text, unit));
        };
        decimal.scale(*size, self)
    }

    /// Reads a whole number that may be negative.
    ///
    /// # Errors
    /// What is wrong with it and what to write.
    pub fn parse_signed(text: &str) -> Result<i64, Malformed> {
        let (digits, sign) = text.strip_prefix('-').map_or((text, 1), |digits| (digits, -1));
        let number = Self::Integer.parse(digits)?;
        let number = i64::try_from(number).map_err(|_| Malformed::new(Fault::Range, "is too large"))?;
        Ok(sign * number)
    }

    /// Writes a number of base units the way a spec does.
    pub fn write(self, number: u64) -> String {
        match self {
            Self::Count => count(number),
            Self::Integer => number.to_string(),
            Self::Duration => Nanos(number).to_string(),
            Self::Size => Bytes(number).to_string(),
            Self::Percent | Self::Share => BasisPoints(u32::try_from(number).unwrap_or(u32::MAX)).to_string(),
            Self::Decimal => {
                let text = format!("{}.{:06}", number / 1_000_000, number % 1_000_000);
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            }
        }
    }

    fn units(self) -> Units {
        match self {
            Self::Count => COUNTS,
            Self::Integer => INTEGERS,
            Self::Duration => DURATIONS,
            Self::Size => SIZES,
            Self::Percent => PERCENT,
            Self::Share => SHARES,
            Self::Decimal => DECIMALS,
        }
    }

    /// Splits into the number and the unit, and names every form of a number that is not read.
    fn split(self, text: &str) -> Result<(Decimal<'_>, &str), Malformed> {
        self.refuse_other_forms(text)?;
        let n_whole = text.bytes().take_while(u8::is_ascii_digit).count();
        if n_whole == 0 {
            return Err(Malformed::new(Fault::Form, format!("is not {}", self.noun())));
        }
        let (whole, mut rest) = text.split_at(n_whole);
        if whole.len() > 1 && whole.starts_with('0') {
            let digits = whole.trim_start_matches('0');
            let instead = format!("{}{rest}", if digits.is_empty() { "0" } else { digits });
            return Err(Malformed::new(Fault::Form, "has a leading zero, which some YAML readers take for octal")
                .write(instead));
        }
        let mut fraction = "";
        if let Some(after) = rest.strip_prefix('.') {
            let n_places = after.bytes().take_while(u8::is_ascii_digit).count();
            if n_places == 0 {
                let problem = "has a point without digits after it";
                return Err(Malformed::new(Fault::Form, problem).write(format_args!("{whole}{after}")));
            }
            (fraction, rest) = after.split_at(n_places);
        }
        self.refuse_other_endings(text, whole, rest)?;
        Ok((Decimal { whole, fraction }, rest))
    }

    fn refuse_other_forms(self, text: &str) -> Result<(), Malformed> {
        let form = |problem: &str| Malformed::new(Fault::Form, problem);
        let lower = text.to_ascii_lowercase();
        if let Some(unsigned) = text.strip_prefix('+') {
            return Err(form("has a plus sign").write(unsigned));
        }
        if matches!(lower.trim_start_matches('-'), ".nan" | "nan" | ".inf" | "inf" | "infinity") {
            return Err(form("is not a number that can be measured with"));
        }
        if text.strip_prefix('-').is_some_and(|unsigned| unsigned.starts_with(|c: char| c.is_ascii_digit())) {
            return Err(Malformed::new(Fault::Range, "is negative"));
        }
        for (prefix, radix, name) in [("0x", 16, "hexadecimal"), ("0o", 8, "octal"), ("0b", 2, "binary")] {
            // `0B` is zero bytes.
            if let Some(digits) = lower.strip_prefix(prefix).filter(|digits| !digits.is_empty()) {
                let malformed = form(&format!("is {name}; only decimal numbers are read"));
                return Err(match u64::from_str_radix(digits, radix) {
                    Ok(number) if self.takes_bare_number() => malformed.write(number),
                    _ => malformed,
                });
            }
        }
        if text.strip_prefix('.').is_some_and(|digits| digits.starts_with(|c: char| c.is_ascii_digit())) {
            return Err(form("has no digit before the point").write(format_args!("0{text}")));
        }
        Ok(())
    }

    fn refuse_other_endings(self, text: &str, whole: &str, rest: &str) -> Result<(), Malformed> {
        let form = |problem: &str| Malformed::new(Fault::Form, problem);
        let grouped = |mark: char| {
            let digits: String = text.chars().filter(|&c| c != mark).collect();
            self.parse(&digits).map_or(digits, |number| self.write(number))
        };
        match rest.chars().next() {
            Some('_') => return Err(form("groups its digits with `_`").write(grouped('_'))),
            Some('\'') => return Err(form("groups its digits with `'`").write(grouped('\''))),
            Some(',') => {
                let digits = rest[1..].bytes().take_while(u8::is_ascii_digit).count();
                let malformed = form("has a comma");
                return Err(if digits == 3 {
                    malformed.help(format_args!("write `{}` without grouping", grouped(',')))
                } else {
                    malformed.help(format_args!("write `{}` with a point", text.replace(',', ".")))
                });
            }
            Some('.') => return Err(form("has two points")),
            Some(space) if space.is_whitespace() => {
                let unit = rest.trim();
                let joined = text.replace(char::is_whitespace, "");
                return Err(match self.parse(&joined) {
                    Ok(_) => form("has a space before its unit").write(joined),
                    // The unit is unknown too, and may have a better-known name.
                    Err(Malformed { fault: Fault::Unit, help: Some(help), .. })
                        if !unit.contains(char::is_whitespace) =>
                    {
                        form("has a space before its unit").help(help)
                    }
                    Err(_) => form(&format!("is not {}", self.noun())),
                });
            }
            _ => {}
        }
        let exponent = rest.strip_prefix(['e', 'E']).map(|exponent| exponent.trim_start_matches('+'));
        if let Some(exponent) = exponent.filter(|e| e.starts_with(|c: char| c.is_ascii_digit() || c == '-')) {
            let malformed = form("is written with an exponent");
            let number = exponent.parse().ok().and_then(|places| {
                10_u64.checked_pow(places)?.checked_mul(whole.parse().ok()?).filter(|_| !text.contains('.'))
            });
            return Err(match number {
                Some(number) if self.takes_bare_number() => malformed.write(self.write_bare(number)),
                _ => malformed.help("write the number in digits"),
            });
        }
        Ok(())
    }

    /// Writes a bare number, which for decimals is not in base units.
    fn write_bare(self, number: u64) -> String {
        if self == Self::Count { count(number) } else { number.to_string() }
    }

    fn unknown_unit(self, text: &str, unit: &str) -> Malformed {
        let number = text.strip_suffix(unit).expect("split() took the unit from the end");
        let (first, _) = self.units()[0];
        if unit.is_empty() {
            let problem = if self == Self::Percent { "has no `%`" } else { "has no unit" };
            let malformed = Malformed::new(Fault::Unit, problem);
            return match self {
                Self::Duration => malformed.help(format_args!("write `{number}{first}` if seconds are meant")),
                Self::Size => malformed.help(format_args!("write `{number}{first}` if bytes are meant")),
                _ => malformed.write(format_args!("{number}{first}")),
            };
        }
        let malformed = Malformed::new(Fault::Unit, format!("has the unknown unit `{unit}`"));
        let known = OTHER_UNITS.iter().find(|(quantity, other, _)| *quantity == self && *other == unit);
        let known = known.map(|(_, _, known)| *known);
        let other_case = || self.units().iter().map(|(known, _)| *known).find(|known| known.eq_ignore_ascii_case(unit));
        match known.or_else(other_case) {
            Some(known) if matches!(unit, "KB" | "kB" | "MB" | "GB") => malformed
                .help(format_args!("write `{number}{known}` if powers of 1,024 are meant, or else the bytes in full")),
            Some(known) => malformed.write(format_args!("{number}{known}")),
            None if self.units().len() == 1 && first.is_empty() => {
                Malformed { help: None, ..malformed }.help(format_args!("write the number alone: `{number}`"))
            }
            None => {
                let units: Vec<String> = self
                    .units()
                    .iter()
                    .map(|(unit, _)| *unit)
                    .filter(|u| !u.is_empty())
                    .map(|unit| format!("`{unit}`"))
                    .collect();
                malformed.help(format_args!("units here are {}", units.join(", ")))
            }
        }
    }

    /// Returns what the base unit is called, for a number that is not whole.
    fn base_unit(self) -> &'static str {
        match self {
            Self::Count | Self::Integer => "is not a whole number",
            Self::Duration => "is not a whole number of nanoseconds",
            Self::Size => "is not a whole number of bytes",
            Self::Percent | Self::Share => "has more than two decimal places",
            Self::Decimal => "has more than six decimal places",
        }
    }
}

/// A non-negative decimal number as written.
#[derive(Clone, Copy)]
struct Decimal<'t> {
    whole: &'t str,
    fraction: &'t str,
}

impl Decimal<'_> {
    /// Returns the number times `size`, exactly.
    fn scale(self, size: u64, quantity: Quantity) -> Result<u64, Malformed> {
        let too_large = || Malformed::new(Fault::Range, "is too large");
        let fraction = self.fraction.trim_end_matches('0');
        let places = u32::try_from(fraction.len()).map_err(|_| too_large())?;
        // More than 18 places are never a whole number of any base unit: the largest unit has 12 decimal places.
        let divisor = 10_u128.checked_pow(places).filter(|_| places <= 18);
        let Some(divisor) = divisor else { return Err(Malformed::new(Fault::Inexact, quantity.base_unit())) };
        let digits: u128 = format!("{}{fraction}", self.whole).parse().map_err(|_| too_large())?;
        let product = digits.checked_mul(u128::from(size)).ok_or_else(too_large)?;
        if product % divisor != 0 {
            return Err(Malformed::new(Fault::Inexact, quantity.base_unit()));
        }
        u64::try_from(product / divisor).map_err(|_| too_large())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_exact_quantities() {
        use Quantity::{Count, Decimal, Duration, Integer, Percent, Size};
        let rows = [
            (Count, "0", 0),
            (Count, "100", 100),
            (Count, "100k", 100_000),
            (Count, "1.5k", 1_500),
            (Count, "10M", 10_000_000),
            (Integer, "18446744073709551615", u64::MAX),
            (Duration, "3s", 3_000_000_000),
            (Duration, "3000ms", 3_000_000_000),
            (Duration, "1.5s", 1_500_000_000),
            (Duration, "1.50s", 1_500_000_000),
            (Duration, "2m", 120_000_000_000),
            (Duration, "0.25us", 250),
            (Size, "64KiB", 65_536),
            (Size, "0.5KiB", 512),
            (Size, "100B", 100),
            (Percent, "5%", 500),
            (Percent, "2.5%", 250),
            (Percent, "0.01%", 1),
            (Quantity::Share, "2.5", 250),
            (Quantity::Share, "2.5%", 250),
            (Decimal, "0.99", 990_000),
            (Decimal, "1", 1_000_000),
        ];
        for (quantity, text, number) in rows {
            assert_eq!(quantity.parse(text), Ok(number), "{text}");
        }
    }

    #[test]
    fn refuses_and_helps() {
        use Quantity::{Count, Decimal, Duration, Integer, Percent, Size};
        let rows = [
            (Count, "010", Fault::Form, "write `10`"),
            (Count, "1_000", Fault::Form, "write `1k`"),
            (Count, "1,000", Fault::Form, "write `1k` without grouping"),
            (Count, "1e6", Fault::Form, "write `1M`"),
            (Count, "0x10", Fault::Form, "write `16`"),
            (Count, "+5", Fault::Form, "write `5`"),
            (Count, "5.", Fault::Form, "write `5`"),
            (Count, ".5", Fault::Form, "write `0.5`"),
            (Count, "-1", Fault::Range, ""),
            (Count, ".nan", Fault::Form, ""),
            (Count, "no", Fault::Form, ""),
            (Count, "", Fault::Form, ""),
            (Count, "٣", Fault::Form, ""),
            (Count, "1.5", Fault::Inexact, ""),
            (Count, "100K", Fault::Unit, "write `100k`"),
            (Count, "99999999999999999999", Fault::Range, ""),
            (Count, "99999999999999999999999999999999999999999999", Fault::Range, ""),
            (Integer, "3k", Fault::Unit, "write the number alone: `3`"),
            (Duration, "3", Fault::Unit, "write `3s` if seconds are meant"),
            (Duration, "3sec", Fault::Unit, "write `3s`"),
            (Duration, "3 s", Fault::Form, "write `3s`"),
            (Duration, "0.1ns", Fault::Inexact, ""),
            (Duration, "3d", Fault::Unit, "units here are `s`, `ns`, `us`, `ms`, `m`, `h`"),
            (Size, "64KB", Fault::Unit, "write `64KiB` if powers of 1,024 are meant, or else the bytes in full"),
            (Duration, "3 sec", Fault::Form, "write `3s`"),
            (Duration, "3 blind mice", Fault::Form, ""),
            (Percent, "5", Fault::Unit, "write `5%`"),
            (Percent, "0.001%", Fault::Inexact, ""),
            (Decimal, "1,5", Fault::Form, "write `1.5` with a point"),
            (Decimal, "0.0000001", Fault::Inexact, ""),
        ];
        for (quantity, text, fault, help) in rows {
            let malformed = quantity.parse(text).expect_err(text);
            assert_eq!((malformed.fault, malformed.help.as_deref().unwrap_or_default()), (fault, help), "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        for quantity in [Quantity::Count, Quantity::Integer, Quantity::Duration, Quantity::Size, Quantity::Decimal] {
            for number in [0, 1, 7, 1_000, 1_024, 1_500, 60_000_000_000, 990_000, 1 << 40] {
                assert_eq!(quantity.parse(&quantity.write(number)), Ok(number), "{quantity:?} {number}");
            }
        }
    }

    #[test]
    fn signed_numbers() {
        assert_eq!(Quantity::parse_signed("-20"), Ok(-20));
        assert_eq!(Quantity::parse_signed("19"), Ok(19));
        assert_eq!(Quantity::parse_signed("-05").map_err(|malformed| malformed.fault), Err(Fault::Form));
        assert_eq!(Quantity::parse_signed("--5").map_err(|malformed| malformed.fault), Err(Fault::Range));
    }
}
