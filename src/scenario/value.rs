//! Values as people write them: durations and rates with units, shares, counts within bounds, words from a list.
//!
//! Each says what is wrong with what it finds, in terms of its key, and what would be right.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use toml::Spanned;
use toml::de::DeValue;

use super::chaos::LONGEST_SKEW;
use super::error::Problem;
use super::table::{Read, described};
use crate::downstream::Hint;
use crate::time::parse_duration;

/// What a name may be, for the schema; see [`is_name`].
pub(super) const NAME_PATTERN: &str = "^[A-Za-z0-9_-]{1,64}$";

/// Free text.
#[derive(Clone, Debug)]
pub(super) struct Text(pub(super) String);

/// A name that is safe in paths, tables and flags.
#[derive(Clone, Debug)]
pub(super) struct Name(pub(super) String);

/// A duration above zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Length(pub(super) Duration);

/// A duration that may be zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offset(pub(super) Duration);

/// What Retry-After can say in HTTP: whole seconds (RFC 9110 §10.2.3).
#[derive(Clone, Copy, Debug)]
pub(super) struct WholeSeconds(pub(super) Duration);

/// What a Retry-After says: whole seconds, the time until a limit's reset, or nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct RetryHint(pub(super) Hint);

/// A share above 0, up to 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct SomeShare(pub(super) f64);

/// Events per second, above zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate(pub(super) f64);

/// A share, 0 to 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share(pub(super) f64);

/// A factor, at least 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Factor(pub(super) f64);

/// A duration ahead of the right time or behind it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shift {
    pub(super) behind: bool,
    pub(super) by: Duration,
}

/// A whole number within bounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count<const MIN: u64, const MAX: u64>(pub(super) u64);

/// True or false.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flag(pub(super) bool);

/// A job's priority.
#[derive(Clone, Copy, Debug)]
pub(super) struct Priority(pub(super) i16);

/// A message and what would be right.
pub(super) type Wrong = (String, String);

/// Whether `text` is 1 to 64 letters, digits, `-` and `_`.
pub(super) fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

/// What a name may be, in words.
pub(super) const NAME_HELP: &str = "a name is 1 to 64 letters, digits, `-` and `_`";

fn text(key: &str, value: &DeValue<'_>) -> Result<String, Wrong> {
    match value.as_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err((format!("`{key}` is {}, not text", described(value)), "write it in quotes".to_owned())),
    }
}

fn name(key: &str, value: &DeValue<'_>) -> Result<Name, Wrong> {
    let name = text(key, value)?;
    if !is_name(&name) {
        return Err((format!("`{key}` is {name:?}, which is no name"), NAME_HELP.to_owned()));
    }
    Ok(Name(name))
}

pub(super) fn duration(key: &str, value: &DeValue<'_>) -> Result<Duration, Wrong> {
    if let Some(number) = number_text(value) {
        let help = if number.starts_with('-') {
            "write a duration of zero or more with its unit, such as \"250ms\" or \"2s\"".to_owned()
        } else {
            format!("write \"{number}s\" for seconds or \"{number}ms\" for milliseconds")
        };
        return Err((format!("`{key}` is a bare number, and a duration needs a unit"), help));
    }
    let Some(text) = value.as_str() else {
        let help = "write text with a unit, such as \"250ms\", \"2s\" or \"1m30s\"".to_owned();
        return Err((format!("`{key}` is {}, not a duration", described(value)), help));
    };
    parse_duration(text).map_err(|message| match message.rsplit_once(": ") {
        Some((what, mend)) => (format!("`{key}`: {what}"), mend.to_owned()),
        None => (format!("`{key}`: {message}"), "write text with a unit, such as \"2s\"".to_owned()),
    })
}

fn length(key: &str, value: &DeValue<'_>) -> Result<Length, Wrong> {
    let length = duration(key, value)?;
    if length.is_zero() {
        return Err((format!("`{key}` is zero"), "write a duration above zero, such as \"250ms\" or \"2s\"".to_owned()));
    }
    Ok(Length(length))
}

fn shift(key: &str, value: &DeValue<'_>) -> Result<Shift, Wrong> {
    let example = || "write a sign and a duration, such as \"+1h\" or \"-90s\"".to_owned();
    let Some(text) = value.as_str().map(str::trim) else {
        return Err((format!("`{key}` is {}, not a shift of a clock", described(value)), example()));
    };
    let (behind, rest) = match (text.strip_prefix('+'), text.strip_prefix('-')) {
        (Some(rest), _) => (false, rest),
        (_, Some(rest)) => (true, rest),
        _ => return Err((format!("`{key}`: `{text}` does not say whether the clock is ahead or behind"), example())),
    };
    match parse_duration(rest) {
        Ok(by) if by.is_zero() => Err((format!("`{key}` is zero, and shifts nothing"), example())),
        Ok(by) if by > LONGEST_SKEW => Err((format!("`{key}`: `{text}` is more than a year"), example())),
        Ok(by) => Ok(Shift { behind, by }),
        Err(_) => Err((format!("`{key}`: `{text}` is no duration with a sign"), example())),
    }
}

fn whole_seconds(key: &str, value: &DeValue<'_>) -> Result<WholeSeconds, Wrong> {
    let length = duration(key, value)?;
    if length.subsec_nanos() != 0 {
        let help = format!("HTTP knows whole seconds only: write \"{}s\"", length.as_secs() + 1);
        return Err((format!("`{key}` is not a whole number of seconds"), help));
    }
    Ok(WholeSeconds(length))
}

fn retry_hint(key: &str, value: &DeValue<'_>) -> Result<RetryHint, Wrong> {
    match value.as_str() {
        Some("none") => Ok(RetryHint(Hint::None)),
        Some("reset") => Ok(RetryHint(Hint::Reset)),
        _ => whole_seconds(key, value).map(|after| RetryHint(Hint::After(after.0))),
    }
}

fn rate(key: &str, value: &DeValue<'_>) -> Result<Rate, Wrong> {
    let example = "write a number, a slash and s, min or h, such as \"50/s\" or \"600/min\"".to_owned();
    if let Some(number) = number_text(value).filter(|number| !number.starts_with('-')) {
        let help = format!("write \"{number}/s\", \"{number}/min\" or \"{number}/h\"");
        return Err((format!("`{key}` is a bare number, and a rate needs a unit"), help));
    }
    let Some(text) = value.as_str() else {
        return Err((format!("`{key}` is {}, not a rate", described(value)), example));
    };
    let (number, unit) = text.split_once('/').unwrap_or((text, ""));
    let unit_seconds = match unit.trim() {
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        _ => return Err((format!("`{key}`: `{text}` has no unit of time that simq knows"), example)),
    };
    let Some(number) = number.trim().parse::<f64>().ok().filter(|number| number.is_finite()) else {
        return Err((format!("`{key}`: `{text}` does not begin with a number"), example));
    };
    let per_second = number / unit_seconds;
    if number <= 0.0 {
        return Err((format!("`{key}` is not above zero, and zero does not mean unlimited"), example));
    }
    if per_second > 1e6 {
        return Err((format!("`{key}`: `{text}` is too fast"), "write at most \"1000000/s\"".to_owned()));
    }
    Ok(Rate(per_second))
}

fn share(key: &str, value: &DeValue<'_>) -> Result<Share, Wrong> {
    let percent = value.as_str().and_then(|text| text.trim().strip_suffix('%')).and_then(|text| text.trim().parse().ok());
    let Some(number) = number(value) else {
        let help = match percent {
            Some(percent) => as_percent(percent),
            None => "write a number from 0 to 1, such as 0.05 for 5 %".to_owned(),
        };
        return Err((format!("`{key}` is {}, not a share", described(value)), help));
    };
    if (0.0..=1.0).contains(&number) {
        return Ok(Share(number));
    }
    let help = if number > 1.0 { as_percent(number) } else { "write a number from 0 to 1".to_owned() };
    Err((format!("`{key}` is {number}, and a share lies between 0 and 1"), help))
}

fn some_share(key: &str, value: &DeValue<'_>) -> Result<SomeShare, Wrong> {
    match share(key, value)?.0 {
        0.0 => Err((format!("`{key}` is zero"), "write a number above 0 and up to 1".to_owned())),
        some => Ok(SomeShare(some)),
    }
}

fn as_percent(percent: f64) -> String {
    if (0.0..=100.0).contains(&percent) {
        // Through text, so that 5 % is 0.05 and not 0.05000000000000001.
        let share = format!("{:.6}", percent / 100.0);
        format!("write {} for {percent} %", share.trim_end_matches('0').trim_end_matches('.'))
    } else {
        "write a number from 0 to 1".to_owned()
    }
}

fn factor(key: &str, value: &DeValue<'_>) -> Result<Factor, Wrong> {
    let help = "write a number from 1 to 1000, such as 2 or 1.5".to_owned();
    match number(value) {
        None => Err((format!("`{key}` is {}, not a factor", described(value)), help)),
        Some(number) if (1.0..=1000.0).contains(&number) => Ok(Factor(number)),
        Some(number) => Err((format!("`{key}` is {number}, and a factor lies between 1 and 1000"), help)),
    }
}

fn count<const MIN: u64, const MAX: u64>(key: &str, value: &DeValue<'_>) -> Result<Count<MIN, MAX>, Wrong> {
    let help = format!("write a whole number from {MIN} to {}", grouped(MAX));
    let found = whole(value).ok_or_else(|| (format!("`{key}` is {}", unwhole(value)), help.clone()))?;
    match u64::try_from(found) {
        Ok(count) if (MIN..=MAX).contains(&count) => Ok(Count(count)),
        _ => Err((format!("`{key}` is {}", number_text(value).unwrap_or_default()), help)),
    }
}

/// A number with its thousands set apart, as TOML takes it too.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let groups = digits.as_bytes()[first..].chunks(3).map(|group| String::from_utf8_lossy(group).into_owned());
    let head = (first > 0).then(|| digits[..first].to_owned());
    if number < 10_000 { digits } else { head.into_iter().chain(groups).collect::<Vec<_>>().join("_") }
}

fn priority(key: &str, value: &DeValue<'_>) -> Result<Priority, Wrong> {
    let help = format!("write a whole number from {} to {}; higher is claimed first", i16::MIN, i16::MAX);
    let found = whole(value).ok_or_else(|| (format!("`{key}` is {}", unwhole(value)), help.clone()))?;
    i16::try_from(found).map(Priority).map_err(|_| (format!("`{key}` is {}", number_text(value).unwrap_or_default()), help))
}

fn flag(key: &str, value: &DeValue<'_>) -> Result<Flag, Wrong> {
    let wrong = || (format!("`{key}` is {}", described(value)), "write true or false, without quotes".to_owned());
    value.as_bool().map(Flag).ok_or_else(wrong)
}

/// A number as written, for messages that repeat it.
pub(super) fn number_text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Float(number) => Some(number.to_string()),
        _ => None,
    }
}

pub(super) fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(_) => whole(value).map(|whole| whole as f64),
        DeValue::Float(number) => number.as_str().parse().ok(),
        _ => None,
    }
}

/// A whole number of any size that TOML writes; what does not even fit here is out of every bound.
fn whole(value: &DeValue<'_>) -> Option<i128> {
    let number = value.as_integer()?;
    Some(i128::from_str_radix(number.as_str(), number.radix()).unwrap_or(i128::MAX))
}

fn unwhole(value: &DeValue<'_>) -> String {
    match value {
        DeValue::Float(number) => format!("{number}, not a whole number"),
        _ => format!("{}, not a whole number", described(value)),
    }
}

/// Hangs a value's fault on its place.
pub(super) fn report<T>(read: Result<T, Wrong>, value: &Spanned<DeValue<'_>>, problems: &mut Vec<Problem>) -> Option<T> {
    read.map_err(|(message, help)| problems.push(Problem::new(&value.span(), message).help(help))).ok()
}

/// Makes a type a value of the file: its reader and its schema, which is written in place wherever it is used.
macro_rules! value {
    ($ty:ty, $read:expr, { $($schema:tt)* } $(, $($param:tt)+)?) => {
        impl$(<$($param)+>)? Read for $ty {
            fn read(key: &str, value: &Spanned<DeValue<'_>>, problems: &mut Vec<Problem>) -> Option<Self> {
                report(($read)(key, value.get_ref()), value, problems)
            }
        }

        impl$(<$($param)+>)? JsonSchema for $ty {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($ty).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ $($schema)* })
            }
        }
    };
}

/// What humantime takes for one duration, roughly: numbers with units, one after another.
pub(super) const DURATION_PATTERN: &str = "^\\s*([0-9]+ *[a-zA-Zµ]+\\s*)+$";

pub(super) use value;

value!(Text, |key, value| text(key, value).map(Text), { "type": "string" });
value!(Name, name, { "type": "string", "pattern": NAME_PATTERN });
value!(Length, length, { "type": "string", "pattern": DURATION_PATTERN });
value!(Offset, |key, value| duration(key, value).map(Offset), { "type": "string", "pattern": DURATION_PATTERN });
value!(Shift, shift, { "type": "string", "pattern": "^\\s*[+-]\\s*([0-9]+ *[a-zA-Zµ]+\\s*)+$" });
value!(WholeSeconds, whole_seconds, { "type": "string", "pattern": DURATION_PATTERN });
value!(RetryHint, retry_hint, { "type": "string" });
value!(SomeShare, some_share, { "type": "number", "exclusiveMinimum": 0, "maximum": 1 });
value!(Rate, rate, { "type": "string", "pattern": "^\\s*[0-9][0-9.eE+]*\\s*/\\s*(s|min|h)\\s*$" });
value!(Share, share, { "type": "number", "minimum": 0, "maximum": 1 });
value!(Factor, factor, { "type": "number", "minimum": 1, "maximum": 1000 });
value!(Flag, flag, { "type": "boolean" });
value!(Priority, priority, { "type": "integer", "minimum": i16::MIN, "maximum": i16::MAX });
value!(Count<MIN, MAX>, count, { "type": "integer", "minimum": MIN, "maximum": MAX }, const MIN: u64, const MAX: u64);

#[cfg(test)]
mod tests {
    use super::*;

    fn toml(text: &str) -> DeValue<'_> {
        DeValue::parse(text).expect("a TOML value").into_inner()
    }

    #[test]
    fn rates_are_per_second_whatever_their_unit() {
        for (text, per_second) in [("\"50/s\"", 50.0), ("\"600/min\"", 10.0), ("\" 3600 / h \"", 1.0), ("\"0.5/s\"", 0.5)] {
            assert_eq!(rate("rate", &toml(text)).map(|rate| rate.0), Ok(per_second), "{text}");
        }
        for text in ["\"-1/s\"", "\"nan/s\"", "\"inf/s\"", "\"/s\"", "\"50\"", "\"\"", "-50", "true"] {
            assert!(rate("rate", &toml(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn a_percentage_is_turned_into_the_share_that_was_meant() {
        for (text, meant) in [("5", "0.05"), ("100", "1 "), ("2.5", "0.025"), ("\"7%\"", "0.07")] {
            let (_, help) = share("permanent", &toml(text)).expect_err("no share");
            assert!(help.starts_with(&format!("write {meant}")), "{text}: {help}");
        }
        assert_eq!(share("permanent", &toml("0.05")).map(|share| share.0), Ok(0.05));
    }

    #[test]
    fn numbers_of_any_radix_are_read_and_held_to_their_bounds() {
        for (text, number) in [("1_000", 1000), ("0x10", 16), ("1", 1)] {
            assert_eq!(count::<1, 1000>("n", &toml(text)).map(|count| count.0), Ok(number), "{text}");
        }
        for text in ["0", "1001", "-1", "1.0", "99999999999999999999999999999999999999999999", "\"5\""] {
            assert!(count::<1, 1000>("n", &toml(text)).is_err(), "{text}");
        }
        assert_eq!(grouped(10_000_000), "10_000_000");
        assert_eq!(grouped(1000), "1000");
    }
}
