//! Words from a list: their reader, which knows what was probably meant, and their schema.

use std::fmt::Display;

use super::table::listed;
use super::value::Wrong;
use crate::nearest::nearest;

/// Says that `word` is not one of `words`.
pub(super) fn no_such_word(key: &str, word: impl Display, words: &[&str]) -> Wrong {
    let word = word.to_string();
    let all = listed(words);
    let help = match nearest(&word, words) {
        Some(near) => format!("did you mean \"{near}\"? There are {all}"),
        None => format!("write one of {all}"),
    };
    (format!("`{key}` is {word:?}, which simq does not know"), help)
}

/// Declares the words that may stand behind a key.
macro_rules! words {
    ($(#[$attr:meta])* $name:ident { $($variant:ident = $word:literal,)* }) => {
        $(#[$attr])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(in crate::scenario) enum $name { $($variant,)* }

        impl $name {
            const WORDS: &'static [&'static str] = &[$($word),*];

            /// The word as written.
            #[allow(dead_code, reason = "not every list of words is named in a message")]
            pub(in crate::scenario) fn word(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }
        }

        impl $crate::scenario::table::Read for $name {
            fn read(
                key: &str,
                value: &toml::Spanned<toml::de::DeValue<'_>>,
                problems: &mut Vec<$crate::scenario::error::Problem>,
            ) -> Option<$name> {
                let read = match value.get_ref().as_str() {
                    $(Some($word) => Ok($name::$variant),)*
                    Some(other) => Err($crate::scenario::words::no_such_word(key, other, $name::WORDS)),
                    None => Err((
                        format!("`{key}` is {}, not a word", $crate::scenario::table::described(value.get_ref())),
                        format!("write one of {} in quotes", $crate::scenario::table::listed($name::WORDS)),
                    )),
                };
                $crate::scenario::value::report(read, value, problems)
            }
        }

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "enum": $name::WORDS })
            }
        }
    };
}
pub(super) use words;
