//! `[[assert]]`: what must hold after a run.
//!
//! A figure of the catalogue, of one policy or of each, is at most or at least a value or a ratio of another policy's. Whether it held is decided
//! elsewhere; here it is read, and remembered with its line.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use toml::Spanned;
use toml::de::DeValue;

use super::error::Problem;
use super::file::Check;
use super::table::{At, Read, Section, described, table};
use super::value::{DURATION_PATTERN, Name, Wrong, duration, number, report, value};
use super::words::{no_such_word, words};
use crate::metrics::{ENGINE_METRICS, EngineMetric, METRICS, Metric, Unit};
use crate::nearest::nearest;

/// What must hold after a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Assertion {
    /// The figure's name in the catalogue.
    pub metric: String,
    /// The policy; `None` for each.
    pub policy: Option<String>,
    /// On which side of the bound it must lie.
    pub relation: Relation,
    /// The bound.
    pub bound: Bound,
    /// What of several repetitions must hold it.
    pub over: Over,
    /// The line of the file on which its metric stands, from 1.
    pub line: usize,
}

/// On which side of a bound a figure must lie; on it is right, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// Not above.
    AtMost,
    /// Not below.
    AtLeast,
}

/// A bound.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// A value, in the figure's own unit.
    Value(f64),
    /// So many times the same figure of another policy, in the same repetition.
    Ratio {
        /// So many times.
        ratio: f64,
        /// The other policy.
        of: String,
    },
}

/// What of several repetitions must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// Each of them.
    Every,
    /// Their median.
    Median,
}

table! {
    /// What must hold after a run: a figure of a policy is at most, or at least, a value or a ratio of another policy's.
    Assert in "[[assert]]" {
        /// The figure: a column of `summary.csv`, or a ratio of the engine to a raw limit.
        metric: Figure,
        /// Whose; left out: each policy's.
        #[schemars(default)]
        policy: Name,
        /// It must not be above this: a duration for times, a number for anything else, or `{ ratio = 0.5, of = "other" }`.
        #[schemars(default)]
        at_most: Limit,
        /// It must not be below this.
        #[schemars(default)]
        at_least: Limit,
        /// What of several repetitions must hold: `every` one, or their `median`.
        over: Repetitions = "every",
    }
}

words! {
    /// What of several repetitions must hold.
    Repetitions {
        Every = "every",
        Median = "median",
    }
}

/// A figure's name, and its unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figure {
    name: &'static str,
    unit: Unit,
    of_engine: bool,
}

/// A bound as written.
#[derive(Clone, Debug)]
pub(super) enum Limit {
    Number(f64),
    Seconds(f64),
    Ratio { ratio: f64, of: String },
}

fn names() -> Vec<&'static str> {
    METRICS.iter().map(|metric| metric.name).chain(ENGINE_METRICS.iter().map(|metric| metric.name)).collect()
}

fn figure(key: &str, value: &DeValue<'_>) -> Result<Figure, Wrong> {
    let Some(word) = value.as_str() else {
        let help = "write the name of a figure in quotes, such as \"lost\"".to_owned();
        return Err((format!("`{key}` is {}, not the name of a figure", described(value)), help));
    };
    if let Some(metric) = Metric::named(word) {
        return Ok(Figure { name: metric.name, unit: metric.unit, of_engine: false });
    }
    if let Some(metric) = EngineMetric::named(word) {
        return Ok(Figure { name: metric.name, unit: Unit::Ratio, of_engine: true });
    }
    let near = nearest(word, &names()).map(|near| format!("did you mean \"{near}\"? "));
    let help =
        format!("{}`summary.csv` has a column for each figure, such as \"lost\" or \"recovery_peak\"", near.unwrap_or_default());
    Err((format!("`{key}` is {word:?}, and there is no such figure"), help))
}

const LIMIT_HELP: &str = "write a number, a duration such as \"40s\", or { ratio = 0.35, of = \"other-policy\" }";

fn limit(key: &str, value: &DeValue<'_>) -> Result<Limit, Wrong> {
    if let Some(table) = value.as_table() {
        let entry = |name: &str| table.iter().find(|(key, _)| key.get_ref() == name).map(|(_, value)| value.get_ref());
        let ratio = entry("ratio").and_then(number).filter(|ratio| ratio.is_finite() && *ratio >= 0.0);
        let of = entry("of").and_then(DeValue::as_str);
        return match (ratio, of, table.len()) {
            (Some(ratio), Some(of), 2) => Ok(Limit::Ratio { ratio, of: of.to_owned() }),
            _ => Err((format!("`{key}` is a table without exactly a `ratio` and an `of`"), LIMIT_HELP.to_owned())),
        };
    }
    if let Some(number) = number(value) {
        return match number.is_finite() && number >= 0.0 {
            true => Ok(Limit::Number(number)),
            false => Err((format!("`{key}` is {number}, and no figure is"), "write a number of zero or more".to_owned())),
        };
    }
    match value.as_str() {
        Some(_) => duration(key, value).map(|duration| Limit::Seconds(duration.as_secs_f64())),
        None => Err((format!("`{key}` is {}", described(value)), LIMIT_HELP.to_owned())),
    }
}

value!(Limit, limit, { "oneOf": [
    { "type": "number", "minimum": 0 },
    { "type": "string", "pattern": DURATION_PATTERN },
    {
        "type": "object",
        "properties": { "ratio": { "type": "number", "minimum": 0 }, "of": { "type": "string" } },
        "required": ["ratio", "of"],
        "additionalProperties": false,
    },
] });

impl Read for Figure {
    fn read(key: &str, value: &Spanned<DeValue<'_>>, problems: &mut Vec<Problem>) -> Option<Figure> {
        report(figure(key, value.get_ref()), value, problems)
    }
}

impl JsonSchema for Figure {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Figure".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": names() })
    }
}

/// The assertions; those with a problem are left out.
pub(super) fn check(
    sections: Option<&Vec<Section<Assert>>>,
    policies: &[String],
    text: &str,
    check: &mut Check<'_>,
) -> Vec<Assertion> {
    let sections = sections.into_iter().flatten();
    sections.filter_map(|section| assertion(section, policies, text, check)).collect()
}

fn assertion(section: &Section<Assert>, policies: &[String], text: &str, check: &mut Check<'_>) -> Option<Assertion> {
    let raw = &section.raw;
    let metric = raw.metric.need("metric", &section.header, check.problems);
    let sides = [(&raw.at_most, "at_most", Relation::AtMost), (&raw.at_least, "at_least", Relation::AtLeast)];
    if sides.iter().all(|(field, ..)| field.given().is_some()) {
        let place = section.header.key("at_least").unwrap_or(&section.header.place);
        let problem = Problem::new(place, "`at_most` and `at_least` stand in one [[assert]]");
        check.report(problem.help("write two of them, so that each has its own line"));
        return None;
    }
    let wrong = sides.iter().any(|(field, ..)| field.is_wrong());
    let Some((limit, key, relation)) = sides.into_iter().find_map(|(field, key, side)| Some((field.given()?, key, side))) else {
        if !wrong {
            let problem = Problem::new(&section.header.place, "this [[assert]] has neither `at_most` nor `at_least`");
            check.report(problem.help("add `at_most = 0`, for example"));
        }
        return None;
    };
    let metric = metric?;
    let policy = raw.policy.given();
    let known = policy.is_none_or(|policy| is_known(&policy.value.0, "policy", &policy.place, policies, check));
    if let (Some(policy), true) = (policy, metric.value.of_engine) {
        let problem = Problem::new(&policy.place, format!("`{}` is of the engine, and of no policy", metric.value.name));
        check.report(problem.help("leave `policy` out"));
        return None;
    }
    let own = policy.map(|policy| policy.value.0.as_str());
    let bound = bound(metric, limit, key, (own, policies), check)?;
    known.then(|| Assertion {
        metric: metric.value.name.to_owned(),
        policy: policy.map(|policy| policy.value.0.clone()),
        relation,
        bound,
        over: if raw.over.or(Repetitions::Every) == Repetitions::Median { Over::Median } else { Over::Every },
        line: text.get(..metric.key.start).unwrap_or_default().matches('\n').count() + 1,
    })
}

/// The bound in the figure's unit, if it fits the figure.
fn bound(
    metric: &At<Figure>,
    limit: &At<Limit>,
    key: &str,
    (own, policies): (Option<&str>, &[String]),
    check: &mut Check<'_>,
) -> Option<Bound> {
    let name = metric.value.name;
    let is_time = matches!(metric.value.unit, Unit::Seconds | Unit::Millis);
    let mut refuse = |message: String, help: String| {
        let problem =
            Problem::new(&limit.place, message).label(&limit.place, "this bound").label(&metric.place, "for this figure");
        check.report(problem.help(help));
        None
    };
    match &limit.value {
        Limit::Number(number) if is_time => {
            let help = format!("write \"{number}s\" for seconds or \"{number}ms\" for milliseconds");
            refuse(format!("`{key}` is a bare number, and `{name}` is a time"), help)
        }
        Limit::Seconds(_) if !is_time => {
            refuse(format!("`{key}` is a duration, and `{name}` is none"), "write a number".to_owned())
        }
        Limit::Number(number) if metric.value.unit == Unit::Share && *number > 1.0 => {
            let help = format!("write {} for {number} %", number / 100.0);
            refuse(format!("`{key}` is {number}, and `{name}` is a share between 0 and 1"), help)
        }
        Limit::Ratio { .. } if metric.value.of_engine => {
            refuse(format!("`{name}` is a ratio already, and of no policy"), "write a number".to_owned())
        }
        Limit::Ratio { of, .. } if own == Some(of) => {
            refuse(format!("`{key}` compares `{of}` with itself"), "name another policy".to_owned())
        }
        Limit::Number(number) => Some(Bound::Value(*number)),
        Limit::Seconds(seconds) if metric.value.unit == Unit::Millis => Some(Bound::Value(seconds * 1e3)),
        Limit::Seconds(seconds) => Some(Bound::Value(*seconds)),
        Limit::Ratio { ratio, of } => {
            let bound = Bound::Ratio { ratio: *ratio, of: of.clone() };
            is_known(of, "of", &limit.place, policies, check).then_some(bound)
        }
    }
}

fn is_known(name: &str, key: &str, place: &super::table::Place, policies: &[String], check: &mut Check<'_>) -> bool {
    if policies.is_empty() || policies.iter().any(|policy| policy == name) {
        return true;
    }
    let words: Vec<&str> = policies.iter().map(String::as_str).collect();
    let (message, help) = no_such_word(key, name, &words);
    check.report(Problem::new(place, message.replace("which simq does not know", "and the file has no such policy")).help(help));
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Error, Scenario, parse};

    fn with(more: &str) -> Result<Scenario, Error> {
        let text = format!(
            "name = 'x'\nhorizon = '60s'\n[[jobs]]\ntype = 'email'\ncount = 5\n[policy.none]\nkind = 'none'\n\
             [policy.other]\nkind = 'none'\n[downstream]\nservers = 1\nlatency = {{ kind = 'constant', value = '1ms' }}\n{more}"
        );
        parse(&text, &|_| Ok(String::new()))
    }

    #[test]
    fn a_bound_is_in_the_figures_own_unit_and_remembers_its_line() {
        let more = "[[assert]]\nmetric = 'completion_p99_s'\npolicy = 'none'\nat_most = '1m30s'\n\
                    [[assert]]\nmetric = 'settle_ms_p50'\nover = 'median'\nat_most = '2s'\n\
                    [[assert]]\nmetric = 'recovery_peak'\npolicy = 'other'\nat_least = { ratio = 0.5, of = 'none' }\n";
        let assertions = with(more).unwrap_or_else(|error| panic!("{error}")).assertions;
        assert_eq!(assertions.iter().map(|assertion| assertion.line).collect::<Vec<_>>(), [14, 18, 22]);
        assert_eq!((&assertions[0].bound, assertions[0].relation), (&Bound::Value(90.0), Relation::AtMost));
        assert_eq!((&assertions[1].bound, assertions[1].over), (&Bound::Value(2000.0), Over::Median));
        let ratio = Bound::Ratio { ratio: 0.5, of: "none".to_owned() };
        assert_eq!((&assertions[2].bound, assertions[2].relation), (&ratio, Relation::AtLeast));
    }

    #[test]
    fn what_can_not_be_meant_is_refused_in_its_place() {
        for (more, message) in [
            ("metric = 'lots'\nat_most = 1", "no such figure"),
            ("metric = 'lost'", "neither"),
            ("metric = 'lost'\nat_most = 1\nat_least = 0", "stand in one"),
            ("metric = 'lost'\nat_most = '1s'", "is a duration"),
            ("metric = 'makespan_s'\nat_most = 4", "is a time"),
            ("metric = 'user_failed'\nat_most = 5", "is a share"),
            ("metric = 'lost'\npolicy = 'nine'\nat_most = 1", "no such policy"),
            ("metric = 'lost'\nat_most = { ratio = 1, of = 'nine' }", "no such policy"),
            ("metric = 'lost'\npolicy = 'none'\nat_most = { ratio = 1, of = 'none' }", "with itself"),
            ("metric = 'lost'\nat_most = { ratio = 1 }", "without exactly"),
            ("metric = 'lost'\nat_most = -1", "no figure is"),
            ("metric = 'engine_claim_over_raw'\npolicy = 'none'\nat_most = 1", "of no policy"),
        ] {
            let error = with(&format!("[[assert]]\n{more}\n")).expect_err(more);
            assert!(error.to_string().contains(message), "{more}: {error}");
            assert_eq!(error.problems().len(), 1, "{more}: {error}");
        }
    }
}
