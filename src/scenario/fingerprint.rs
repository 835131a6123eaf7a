//! What a scenario file says, as a short text that is the same if and only if it says the same.
//!
//! Comments, spacing and the order of tables do not count, and neither do the keys that change no figure of a repetition. It is taken from
//! the file as written and not from the settings it is turned into, so that a newer simq with more settings finds the same.

use std::io;

use sha2::{Digest, Sha256};
use toml::Value;

/// Keys at the top of a file that change no figure of a repetition.
const IDLE: [&str; 4] = ["name", "about", "repetitions", "assert"];

/// The fingerprint of a scenario's text, with the traces that it names read through `read`; `None` if it is not TOML.
pub fn fingerprint(text: &str, read: &dyn Fn(&str) -> io::Result<String>) -> Option<String> {
    let mut table: toml::Table = text.parse().ok()?;
    table.retain(|key, _| !IDLE.contains(&key));
    let mut canonical = String::new();
    for group in table.get("jobs").and_then(Value::as_array).into_iter().flatten() {
        if let Some(trace) = group.get("trace").and_then(Value::as_str) {
            canonical += &read(trace).ok()?;
        }
    }
    write(&Value::Table(table), &mut canonical);
    Some(digest(&canonical))
}

/// The first half of a text's SHA-256, in hexadecimal: enough to tell texts apart, and short enough to compare by eye.
pub fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Table(table) => {
            let mut entries: Vec<(&String, &Value)> = table.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (key, value) in entries {
                *out += &format!("{key:?}:");
                write(value, out);
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::String(text) => *out += &format!("{text:?}"),
        other => *out += &other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        fingerprint(text, &|_| Ok("at\n1s\n".to_owned())).expect("it is TOML")
    }

    #[test]
    fn what_says_the_same_has_the_same_fingerprint() {
        let text = "name = 'x'\nseed = 1\n[workers]\ncount = 2\nslots = 4\n";
        assert_eq!(of(text), of("seed = 1 # a comment\nname = 'y'\nrepetitions = 9\n[workers]\nslots = 4\ncount = 2\n"));
        for other in [text.replace("seed = 1", "seed = 2"), text.replace("slots = 4", "slots = '4'")] {
            assert_ne!(of(text), of(&other));
        }
    }

    #[test]
    fn a_trace_counts_with_what_is_in_it() {
        let text = "[[jobs]]\ntrace = 'a.csv'\n";
        assert_ne!(of(text), fingerprint(text, &|_| Ok("at\n2s\n".to_owned())).expect("it is TOML"));
        assert_eq!(fingerprint(text, &|_| Err(io::Error::from(io::ErrorKind::NotFound))), None);
    }
}
