//! Values that policies take: amounts, factors below 1, scales, lists, and a delay that may be a formula.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use toml::Spanned;
use toml::de::DeValue;

use super::error::Problem;
use super::table::{Place, Read, described};
use super::value::{DURATION_PATTERN, Wrong, duration, number, number_text, report, value};
use crate::policy::Pattern;

/// A number of zero or more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Amount(pub(super) f64);

/// A factor on a wait, 0 to 1000.
#[derive(Clone, Copy, Debug)]
pub(super) struct Multiple(pub(super) f64);

/// How fast a policy's time runs: above 0, 1000 at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale(pub(super) f64);

/// A wait, or a formula.
#[derive(Clone, Debug)]
pub(super) enum Delay {
    Wait(Duration),
    /// What was written, and what it lacks to be a wait.
    Formula(String, Wrong),
}

/// Waits, at least one.
#[derive(Clone, Debug)]
pub(super) struct Waits(pub(super) Vec<Duration>);

/// Kinds of outcomes.
#[derive(Clone, Debug)]
pub(super) struct Patterns(pub(super) Vec<Pattern>);

/// Error statuses.
#[derive(Clone, Debug)]
pub(super) struct Statuses(pub(super) Vec<u16>);

fn bounded(key: &str, value: &DeValue<'_>, most: f64, what: &str, help: &str) -> Result<f64, Wrong> {
    match number(value) {
        None => Err((format!("`{key}` is {}, not {what}", described(value)), help.to_owned())),
        Some(number) if (0.0..=most).contains(&number) => Ok(number),
        Some(number) => Err((format!("`{key}` is {number}, and it lies between 0 and {most}"), help.to_owned())),
    }
}

fn amount(key: &str, value: &DeValue<'_>) -> Result<Amount, Wrong> {
    bounded(key, value, 1e6, "a number", "write a number from 0 to 1000000, such as 5 or 0.1").map(Amount)
}

fn multiple(key: &str, value: &DeValue<'_>) -> Result<Multiple, Wrong> {
    bounded(key, value, 1000.0, "a factor", "write a factor on the wait from 0 to 1000, such as 0.5 or 1.25").map(Multiple)
}

fn scale(key: &str, value: &DeValue<'_>) -> Result<Scale, Wrong> {
    let help = "write a number above 0, such as 0.001 to make seconds of a quarter of an hour";
    match bounded(key, value, 1000.0, "a number", help)? {
        0.0 => Err((format!("`{key}` is zero, and nothing would take any time"), help.to_owned())),
        scale => Ok(Scale(scale)),
    }
}

fn delay(key: &str, value: &DeValue<'_>) -> Result<Delay, Wrong> {
    match (duration(key, value), value.as_str()) {
        (Ok(wait), _) if wait.is_zero() => {
            Err((format!("`{key}` is zero"), "write a duration above zero, such as \"250ms\" or \"2s\"".to_owned()))
        }
        (Ok(wait), _) => Ok(Delay::Wait(wait)),
        (Err(wrong), Some(text)) => Ok(Delay::Formula(text.to_owned(), wrong)),
        (Err(wrong), None) => Err(wrong),
    }
}

/// Reads each element of a list, and says at its own place what is wrong with it.
fn list<T>(
    key: &str,
    value: &Spanned<DeValue<'_>>,
    example: &str,
    problems: &mut Vec<Problem>,
    read: impl Fn(&DeValue<'_>) -> Result<T, Wrong>,
) -> Option<Vec<T>> {
    let Some(array) = value.get_ref().as_array().filter(|array| !array.is_empty()) else {
        let what = if value.get_ref().as_array().is_some() { "an empty list" } else { described(value.get_ref()) };
        let problem = Problem::new(&value.span(), format!("`{key}` is {what}, and it takes a list"));
        problems.push(problem.help(format!("write {example}")));
        return None;
    };
    let read: Vec<Option<T>> = array.iter().map(|value| report(read(value.get_ref()), value, problems)).collect();
    read.into_iter().collect()
}

fn pattern(key: &str, value: &DeValue<'_>) -> Result<Pattern, Wrong> {
    let written = value.as_str().map(str::to_owned).or_else(|| number_text(value)).unwrap_or_default();
    Pattern::parse(&written).ok_or_else(|| {
        let help = "write a status from 400 to 599, or one of \"4xx\", \"5xx\", \"timeout\", \"refused\", \"reset\"".to_owned();
        (format!("`{key}` knows no outcome {written:?}"), help)
    })
}

fn status(key: &str, value: &DeValue<'_>) -> Result<u16, Wrong> {
    match pattern(key, value) {
        Ok(Pattern::Status(code)) => Ok(code),
        _ => Err((format!("`{key}` takes statuses only"), "write a status from 400 to 599, such as 429".to_owned())),
    }
}

impl Read for Waits {
    fn read(key: &str, value: &Spanned<DeValue<'_>>, problems: &mut Vec<Problem>) -> Option<Waits> {
        list(key, value, "[\"10s\", \"30s\", \"1m\"], for example", problems, |value| duration(key, value)).map(Waits)
    }
}

impl Read for Patterns {
    fn read(key: &str, value: &Spanned<DeValue<'_>>, problems: &mut Vec<Problem>) -> Option<Patterns> {
        list(key, value, "[429, \"5xx\", \"timeout\"], for example", problems, |value| pattern(key, value)).map(Patterns)
    }
}

impl Read for Statuses {
    fn read(key: &str, value: &Spanned<DeValue<'_>>, problems: &mut Vec<Problem>) -> Option<Statuses> {
        list(key, value, "[429, 503], for example", problems, |value| status(key, value)).map(Statuses)
    }
}

/// The schema of a list type, which is written in place.
macro_rules! listed {
    ($ty:ty, { $($schema:tt)* }) => {
        impl JsonSchema for $ty {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($ty).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "array", "minItems": 1, "items": { $($schema)* } })
            }
        }
    };
}

value!(Amount, amount, { "type": "number", "minimum": 0, "maximum": 1_000_000 });
value!(Multiple, multiple, { "type": "number", "minimum": 0, "maximum": 1000 });
value!(Scale, scale, { "type": "number", "exclusiveMinimum": 0, "maximum": 1000 });
value!(Delay, delay, { "type": "string" });
listed!(Waits, { "type": "string", "pattern": DURATION_PATTERN });
listed!(Patterns, { "oneOf": [
    { "type": "integer", "minimum": 400, "maximum": 599 },
    { "type": "string", "pattern": "^([45]xx|[45][0-9]{2}|timeout|refused|reset)$" },
] });
listed!(Statuses, { "type": "integer", "minimum": 400, "maximum": 599 });

/// The place of a part of a text in quotes, as near as can be told: in a text with escapes, the whole.
pub(super) fn within(place: &Place, text: &str, part: &std::ops::Range<usize>) -> Place {
    if place.len() == text.len() + 2 {
        place.start + 1 + part.start..(place.start + 1 + part.end).max(place.start + 2 + part.start)
    } else {
        place.clone()
    }
}
