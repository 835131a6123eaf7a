//! TOML tables as written: every key and value with its place, and every fault reported instead of the first alone.
//!
//! serde stops at the first error and forgets where keys stood, so tables are read by hand. [`table!`] declares one: its
//! keys, their types and defaults, from which come the reader, the list of known keys and the JSON schema alike.

use std::borrow::Cow;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::Problem;
use crate::nearest::nearest;

/// A place in the file, in bytes.
pub(super) type Place = Range<usize>;

/// What may stand behind a key.
pub(super) trait Read: Sized {
    /// The value, or `None` after saying what is wrong with it.
    fn read(key: &str, value: &Spanned<DeValue<'_>>, problems: &mut Vec<Problem>) -> Option<Self>;
}

/// The keys of one kind of table; implemented by [`table!`].
pub(super) trait Table: Sized {
    /// How a person would write its header.
    const HEADER: &'static str;

    /// The keys it knows.
    fn keys() -> Vec<&'static str>;

    /// Reads all of them.
    fn fill(table: &DeTable<'_>, problems: &mut Vec<Problem>) -> Self;
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) key: Place,
    pub(super) place: Place,
}

/// A key of a table as written. One that was wrong has been reported and must not be missed as well.
#[derive(Clone, Debug, Default)]
pub(super) enum Field<T> {
    #[default]
    Absent,
    Wrong,
    Given(At<T>),
}

impl<T: Read> Field<T> {
    pub(super) fn find(table: &DeTable<'_>, name: &str, problems: &mut Vec<Problem>) -> Field<T> {
        let Some((key, found)) = table.iter().find(|(key, _)| key.get_ref() == name) else {
            return Field::Absent;
        };
        T::read(name, found, problems)
            .map_or(Field::Wrong, |value| Field::Given(At { value, key: key.span(), place: found.span() }))
    }
}

impl<T> Field<T> {
    /// The value and its place, if it was given and right.
    pub(super) fn given(&self) -> Option<&At<T>> {
        match self {
            Field::Given(at) => Some(at),
            Field::Absent | Field::Wrong => None,
        }
    }

    /// Whether it was given, but wrong, so that nothing can be concluded from it.
    pub(super) fn is_wrong(&self) -> bool {
        matches!(self, Field::Wrong)
    }

    /// The value, if it was given and right.
    pub(super) fn value(&self) -> Option<&T> {
        self.given().map(|at| &at.value)
    }

    /// The value, or `default` where it was not given.
    pub(super) fn or(&self, default: T) -> T
    where
        T: Clone,
    {
        self.value().cloned().unwrap_or(default)
    }

    /// The value; an absent one is reported at the table that needs it.
    pub(super) fn need(&self, name: &str, header: &Header, problems: &mut Vec<Problem>) -> Option<&At<T>> {
        if matches!(self, Field::Absent) && !header.meant.contains(&name) {
            let message = format!("`{name}` is missing from {}", header.title);
            problems.push(Problem::new(&header.place, message).help(format!("add {}", example(name))));
        }
        self.given()
    }
}

/// Where a table begins and which keys it has.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub(super) title: String,
    pub(super) place: Place,
    keys: Vec<(String, Place)>,
    /// Known keys that unknown ones were probably meant to be: not to be missed a second time.
    meant: Vec<&'static str>,
}

impl Header {
    /// Where a key stands that this table has.
    pub(super) fn key(&self, name: &str) -> Option<&Place> {
        self.keys.iter().find(|(key, _)| key == name).map(|(_, place)| place)
    }

    /// Reports each key that this table has, but this choice does not take.
    pub(super) fn takes(&self, choice: &str, taken: &[&str], problems: &mut Vec<Problem>) {
        for (key, place) in self.keys.iter().filter(|(key, _)| !taken.contains(&key.as_str())) {
            let message = format!("`{key}` means nothing with {choice}");
            problems.push(Problem::new(place, message).help(format!("with {choice} this table takes {}", listed(taken))));
        }
    }
}

/// A table with its header.
#[derive(Clone, Debug)]
pub(super) struct Section<T> {
    pub(super) header: Header,
    pub(super) raw: T,
}

impl<T: Table> Section<T> {
    /// Reads all keys of `table`, and reports those that it does not know.
    pub(super) fn new(title: String, place: Place, table: &DeTable<'_>, problems: &mut Vec<Problem>) -> Section<T> {
        let known = T::keys();
        let (mut keys, mut meant) = (Vec::new(), Vec::new());
        for key in table.keys() {
            if known.contains(&key.get_ref().as_ref()) {
                keys.push((key.get_ref().to_string(), key.span()));
            } else {
                let near = nearest(key.get_ref(), &known);
                meant.extend(near);
                problems.push(unknown(key, near, &title, &known));
            }
        }
        keys.sort_by_key(|(_, place)| place.start);
        Section { header: Header { title, place, keys, meant }, raw: T::fill(table, problems) }
    }
}

impl<T: Table> Read for Section<T> {
    fn read(key: &str, value: &Spanned<DeValue<'_>>, problems: &mut Vec<Problem>) -> Option<Section<T>> {
        let Some(table) = value.get_ref().as_table() else {
            let message = format!("`{key}` is {}, not a table", described(value.get_ref()));
            problems.push(Problem::new(&value.span(), message).help(format!("write {}", example(key))));
            return None;
        };
        Some(Section::new(T::HEADER.to_owned(), value.span(), table, problems))
    }
}

impl<T: Table> Read for Vec<Section<T>> {
    fn read(key: &str, value: &Spanned<DeValue<'_>>, problems: &mut Vec<Problem>) -> Option<Vec<Section<T>>> {
        let Some(array) = value.get_ref().as_array() else {
            let message = format!("`{key}` is {}, and it takes a list of tables", described(value.get_ref()));
            problems.push(Problem::new(&value.span(), message).help(format!("write {} with two brackets", T::HEADER)));
            return None;
        };
        let read: Vec<Option<Section<T>>> = array.iter().map(|value| Read::read(key, value, problems)).collect();
        read.into_iter().collect()
    }
}

/// Tables that carry names of the user's own, in the order of the file.
#[derive(Clone, Debug)]
pub(super) struct Named<T>(pub(super) Vec<(At<String>, Section<T>)>);

impl<T: Table> Read for Named<T> {
    fn read(key: &str, value: &Spanned<DeValue<'_>>, problems: &mut Vec<Problem>) -> Option<Named<T>> {
        let Some(table) = value.get_ref().as_table() else {
            let message = format!("`{key}` is {}, not tables with names", described(value.get_ref()));
            problems.push(Problem::new(&value.span(), message).help(format!("write {}, with a name of your own", T::HEADER)));
            return None;
        };
        let mut named = Vec::new();
        for (name, value) in table.iter() {
            let title = format!("[{key}.{}]", name.get_ref());
            let Some(inner) = value.get_ref().as_table() else {
                let message = format!("`{key}.{}` is {}, not a table", name.get_ref(), described(value.get_ref()));
                let help = format!("write {} with a name of your own, and its keys under it", T::HEADER);
                problems.push(Problem::new(&value.span(), message).help(help));
                continue;
            };
            let at = At { value: name.get_ref().to_string(), key: name.span(), place: value.span() };
            named.push((at, Section::new(title, value.span(), inner, problems)));
        }
        named.sort_by_key(|(name, _)| name.key.start);
        (named.len() == table.len()).then_some(Named(named))
    }
}

fn unknown(key: &Spanned<Cow<'_, str>>, near: Option<&str>, title: &str, known: &[&str]) -> Problem {
    let help = match near {
        Some(near) => format!("did you mean `{near}`?"),
        // A table of many keys has a reference; a list of them all would bury the message.
        None if known.len() > 24 => {
            format!("{title} takes {} and more: `simq schema` and the reference have them all", listed(&known[..12]))
        }
        None => format!("{title} takes {}", listed(known)),
    };
    Problem::new(&key.span(), format!("{title} has no key `{}`", key.get_ref())).help(help)
}

/// `a`, `b` and `c`.
pub(super) fn listed(words: &[&str]) -> String {
    match words {
        [] => "no keys".to_owned(),
        [one] => format!("`{one}`"),
        [most @ .., last] => {
            format!("{} and `{last}`", most.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "))
        }
    }
}

/// What kind of value it is, for "is …".
pub(super) fn described(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) | DeValue::Float(_) => "a bare number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// How a missing key may look.
fn example(name: &str) -> String {
    let value = match name {
        "name" => "\"outage\"",
        "horizon" => "\"60s\"",
        "jobs" => return "a table [[jobs]] with at least `type` and `count`".to_owned(),
        "type" => "\"email\"",
        "count" => "600",
        "rate" => "\"50/s\"",
        "trace" => "\"arrivals.csv\"",
        "workers" => return "a table [workers]; all of its keys are optional".to_owned(),
        "database" => return "a table [database]; all of its keys are optional".to_owned(),
        "downstream" => return "a table [downstream] with at least `servers` and `latency`".to_owned(),
        "servers" => "20",
        "latency" => "{ kind = \"log-normal\", median = \"20ms\", p99 = \"120ms\" }",
        "at" => "\"5s\"",
        "lasts" => "\"15s\"",
        "mode" => "\"unavailable\"",
        "metric" => "\"lost\"",
        "what" => "\"kill-workers\"",
        "by" => "\"+1h\"",
        "chaos" => return "a table [[chaos]] with at least `at` and `what`".to_owned(),
        "policy" => {
            return "a table such as [policy.exponential] with `kind = \"exponential\"` and `base = \"500ms\"`".to_owned();
        }
        "kind" => "\"exponential\"",
        "jitter_share" | "budget_share" => "0.2",
        "jitter_low" | "at_cap_low" => "0.5",
        "jitter_high" | "at_cap_high" => "1.5",
        "budget_rate" | "rate_limit" => "\"10/s\"",
        "delays" => "[\"10s\", \"30s\", \"1m\"]",
        _ => "\"500ms\"",
    };
    format!("`{name} = {value}`, for example")
}

/// Declares a table: `key: Type` is required, `key: Type = default` optional with that default, as it would be written;
/// `#[schemars(default)]` marks a key that is optional and has no default.
///
/// Whether a key may be missing can also depend on others, so it is the check that insists, not the reader.
macro_rules! table {
    ($(#[$attr:meta])* $name:ident in $header:literal { $($(#[$doc:meta])* $key:ident: $ty:ty $(= $default:literal)?,)* }) => {
        #[derive(Clone, Debug, Default, schemars::JsonSchema)]
        $(#[$attr])*
        #[schemars(deny_unknown_fields)]
        pub(super) struct $name {
            $(
                $(#[$doc])*
                $(#[schemars(default, extend("default" = $default))])?
                pub(super) $key: $crate::scenario::table::Field<$ty>,
            )*
        }

        impl $crate::scenario::table::Table for $name {
            const HEADER: &'static str = $header;

            fn keys() -> Vec<&'static str> {
                vec![$(stringify!($key).trim_start_matches("r#")),*]
            }

            fn fill(table: &toml::de::DeTable<'_>, problems: &mut Vec<$crate::scenario::error::Problem>) -> $name {
                $name {
                    $($key: $crate::scenario::table::Field::find(
                        table, stringify!($key).trim_start_matches("r#"), problems,
                    ),)*
                }
            }
        }
    };
}
pub(super) use table;
