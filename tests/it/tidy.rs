//! The rules of the house that no compiler knows: which room may use which, and how long a thing may get.
//!
//! The source is read as text, with comments and literals blanked. The rooms are the files and folders of `src/`.

use std::fs;
use std::path::{Path, PathBuf};

/// Rooms that every room may use: plain words without behaviour of their own.
const WORDS: [&str; 6] = ["time", "rng", "dist", "job", "call", "nearest"];

/// What a room may use beside itself and the words. What is not listed is forbidden, and a room that is not listed is unknown.
const ROOMS: [(&str, &[&str]); 20] = [
    ("time", &[]),
    ("rng", &[]),
    ("dist", &[]),
    ("job", &[]),
    ("call", &[]),
    ("nearest", &[]),
    // The core is pure, and its rooms do not know each other.
    ("policy", &[]),
    ("downstream", &[]),
    ("workload", &[]),
    ("queue", &[]),
    ("worker", &["policy", "queue"]),
    ("journal", &["worker", "queue", "downstream", "workload"]),
    // A scenario is made of the settings of the core, and asserts figures by their names.
    ("scenario", &["policy", "downstream", "workload", "queue", "worker", "metrics"]),
    // How fast a machine's parts are: what `real` measures and `sim` is told.
    ("profile", &[]),
    // A fold over the journal, and the words of its entries.
    ("metrics", &["journal", "worker", "queue", "workload", "scenario"]),
    ("real", &["policy", "downstream", "workload", "queue", "worker", "journal", "scenario", "metrics", "profile"]),
    ("sim", &["policy", "downstream", "workload", "queue", "worker", "journal", "scenario", "metrics", "profile"]),
    ("verify", &["policy", "downstream", "workload", "queue", "worker", "journal", "scenario", "metrics", "sim", "profile"]),
    ("report", &["metrics", "scenario"]),
    ("check", &["metrics", "scenario"]),
];

/// The room of the command line uses all others; nobody uses it.
const CLI: &str = "cli";

const LONGEST_FILE: usize = 400;
const LONGEST_FUNCTION: usize = 70;

#[test]
fn rooms_use_only_what_the_table_allows() {
    let breaches: Vec<String> = sources(&["src"]).iter().filter(|source| source.room() != CLI).flat_map(forbidden_uses).collect();
    assert_none(&breaches, "a room uses another that it may not know: see ROOMS");
}

#[test]
fn files_and_functions_fit_the_eye() {
    let mut breaches = Vec::new();
    for source in sources(&["src", "benches", "build.rs"]) {
        let lines = source.without_tests().lines().count();
        if lines > LONGEST_FILE {
            breaches.push(format!("{}: {lines} lines, at most {LONGEST_FILE} without its tests", source.name()));
        }
        for (function, line, length) in functions(&source.code) {
            if length > LONGEST_FUNCTION {
                breaches.push(format!("{}:{line}: `{function}` has {length} lines, at most {LONGEST_FUNCTION}", source.name()));
            }
        }
    }
    assert_none(&breaches, "split what has grown too long");
}

#[test]
fn every_file_says_what_it_is_for() {
    let silent = |source: &Source| !source.text.starts_with("//! ");
    let breaches: Vec<String> = everything().iter().filter(|source| silent(source)).map(Source::name).collect();
    assert_none(&breaches, "a file begins with a `//!` line");
}

#[test]
fn nothing_is_left_for_later() {
    let macros = ["todo!", "unimplemented!", "dbg!"];
    let mut breaches = Vec::new();
    for source in everything() {
        let unfinished = |line: &str| macros.iter().any(|word| line.contains(word));
        breaches
            .extend(numbered(&source.code).filter(|(_, line)| unfinished(line)).map(|(n, _)| format!("{}:{n}", source.name())));
        let marked = |line: &str| line.contains(concat!("FIX", "ME"));
        breaches.extend(numbered(&source.text).filter(|(_, line)| marked(line)).map(|(n, _)| format!("{}:{n}", source.name())));
    }
    assert_none(&breaches, "finish it, or open an issue");
}

#[test]
fn a_planted_breach_of_the_table_is_found() {
    let found = |path: &str, text: &str| forbidden_uses(&Source::new(Path::new(path), text.to_owned())).len();
    assert_eq!(found("src/policy/mod.rs", "use crate::job::Memory;\nuse crate::rng::{Draw, Seed};\n"), 0);
    assert_eq!(found("src/policy/mod.rs", "use crate::queue::Claim;\n"), 1);
    assert_eq!(found("src/policy/mod.rs", "fn f(x: &crate::worker::Event) {}\n"), 1);
    assert_eq!(found("src/policy/mod.rs", "use crate::{queue::Claim, job::{JobId, Memory}, worker::Event};\n"), 2);
    assert_eq!(found("src/policy/mod.rs", "use super::queue::Claim;\n"), 1);
    assert_eq!(found("src/policy/jitter.rs", "use super::Backoff;\nmod tests { use super::*; }\n"), 0);
    assert_eq!(found("src/policy/jitter.rs", "use super::super::queue::Claim;\n"), 1);
    assert_eq!(found("src/sim/mod.rs", "use crate::real::Clock;\n"), 1);
    assert_eq!(found("src/real/run.rs", "use crate::cli::Exit;\n"), 1);
    assert_eq!(
        found("src/policy/mod.rs", "// use crate::queue::Claim;\n/// [`crate::queue`]\nconst A: &str = \"crate::queue\";\n"),
        0
    );
    assert_eq!(found("src/kitchen.rs", "use crate::job::JobId;\n"), 1, "an unknown room");
}

#[test]
fn functions_are_measured_from_their_name_to_their_last_brace() {
    let text = "fn one() -> [u8; 2] { [b'{', b'\\''] }\ntrait T { fn none(&self); }\nfn three<'a>(x: &'a str) {\n    let _ = (x, \"}\", r#\"}\"#); // }\n}\n";
    let found = functions(&code_of(text));
    assert_eq!(found, [("one".to_owned(), 1, 1), ("three".to_owned(), 3, 3)]);
}

/// A file of the project.
struct Source {
    path: PathBuf,
    text: String,
    /// The text with comments, strings and characters blanked, line for line.
    code: String,
}

impl Source {
    fn new(path: &Path, text: String) -> Source {
        Source { path: path.to_owned(), code: code_of(&text), text }
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// `policy` for `src/policy/jitter.rs` and for `src/policy.rs`.
    fn room(&self) -> String {
        let inside = self.path.strip_prefix("src").expect("rooms are in src");
        let first = inside.components().next().expect("a file has a name");
        first.as_os_str().to_string_lossy().trim_end_matches(".rs").to_owned()
    }

    /// How many modules it is below the crate: 1 for `src/policy/mod.rs`.
    fn depth(&self) -> usize {
        let names = self.path.components().count() - 1;
        if self.path.ends_with("mod.rs") { names - 1 } else { names }
    }

    fn without_tests(&self) -> &str {
        if self.path.ends_with("tests.rs") {
            return "";
        }
        self.text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
    }
}

fn everything() -> Vec<Source> {
    sources(&["src", "tests", "benches", "build.rs"])
}

fn sources(places: &[&str]) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    let mut rest: Vec<PathBuf> = places.iter().map(|place| root.join(place)).collect();
    while let Some(path) = rest.pop() {
        // What cargo built for the peers is nobody's source.
        if path.ends_with("target") {
            continue;
        }
        if path.is_dir() {
            rest.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    assert!(!files.is_empty(), "there is source in {places:?}");
    files.iter().map(|path| Source::new(path.strip_prefix(root).unwrap(), fs::read_to_string(path).unwrap())).collect()
}

fn assert_none(breaches: &[String], rule: &str) {
    assert!(breaches.is_empty(), "{rule}:\n  {}", breaches.join("\n  "));
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines())
}

fn forbidden_uses(source: &Source) -> Vec<String> {
    let room = source.room();
    if room == "lib" || room == "main" {
        return Vec::new();
    }
    let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room) else {
        return vec![format!("{}: the room `{room}` is not in the table", source.name())];
    };
    let known = |other: &str| other == room || WORDS.contains(&other) || allowed.contains(&other);
    let mut breaches = Vec::new();
    for (line, other) in rooms_named(&source.code).into_iter().filter(|(_, other)| !known(other)) {
        breaches.push(format!("{}:{line}: `{room}` uses `{other}`", source.name()));
    }
    for (line, text) in numbered(&source.code) {
        // One more is right inside of `mod tests`.
        let inside = usize::from(line > source.without_tests().lines().count() || text.contains("mod tests"));
        if (1..=source.depth() + 1).any(|n| n >= source.depth() + inside && text.contains(&"super::".repeat(n))) {
            breaches.push(format!("{}:{line}: `super` climbs out of `{room}`: write `crate::…`", source.name()));
        }
    }
    breaches
}

/// The first name of every `crate::…` path, and of every branch of `crate::{…}`, with its line.
fn rooms_named(code: &str) -> Vec<(usize, String)> {
    let mut named = Vec::new();
    for (at, start) in code.match_indices("crate::") {
        let line = code[..at].lines().count().max(1);
        let rest = &code[at + start.len()..];
        match rest.strip_prefix('{') {
            None => named.push((line, first_name(rest))),
            Some(group) => named.extend(branches(group).into_iter().map(|branch| (line, first_name(branch)))),
        }
    }
    named.retain(|(_, name)| !name.is_empty() && name.chars().all(|c| c.is_lowercase() || c == '_'));
    named
}

fn first_name(path: &str) -> String {
    path.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The parts between commas of a group whose opening brace has been taken, nested groups whole.
fn branches(group: &str) -> Vec<&str> {
    let (mut depth, mut from, mut parts) = (0, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                parts.push(&group[from..at]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&group[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts
}

/// Every function with a body: its name, its first line and how many lines it has.
fn functions(code: &str) -> Vec<(String, usize, usize)> {
    let starts = code.match_indices("fn ").filter(|(at, _)| !code[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_'));
    let mut found = Vec::new();
    for (at, word) in starts {
        let name = first_name(&code[at + word.len()..]);
        if let (false, Some(length)) = (name.is_empty(), body_end(&code[at..])) {
            let line = code[..at].matches('\n').count() + 1;
            found.push((name, line, code[at..at + length].matches('\n').count() + 1));
        }
    }
    found
}

/// Where the body ends that begins at the first brace; `None` if a semicolon outside of brackets comes first.
fn body_end(code: &str) -> Option<usize> {
    let (mut braces, mut brackets) = (0, 0);
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets -= 1,
            ';' if braces == 0 && brackets == 0 => return None,
            '{' => braces += 1,
            '}' => {
                braces -= 1;
                if braces == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// The text with comments, strings and characters blanked. Line breaks stay.
fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let literal = literal_length(rest);
        let hidden = literal > 0;
        let (taken, left) = rest.split_at(if hidden { literal } else { first.len_utf8() });
        code.extend(taken.chars().map(|c| if hidden && c != '\n' { ' ' } else { c }));
        rest = left;
    }
    code
}

/// How long the comment or literal is that begins here; 0 if none does.
fn literal_length(text: &str) -> usize {
    let up_to = |end: &str, from: usize| text[from..].find(end).map_or(text.len(), |at| from + at + end.len());
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return up_to("*/", 2);
    }
    if let Some(raw) = text.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            return up_to(&format!("\"{}", "#".repeat(hashes)), hashes + 2);
        }
    }
    match text.chars().next() {
        Some('"') => quoted_length(text, '"'),
        // A lifetime has no closing quote one character later.
        Some('\'') if text[1..].starts_with('\\') || text.chars().nth(2) == Some('\'') => quoted_length(text, '\''),
        _ => 0,
    }
}

fn quoted_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}
