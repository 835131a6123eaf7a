//! A delay as a formula, for what no composition covers: `min(cap, base * 2^n) * uniform(0.5, 1)`.
//!
//! Numbers are seconds. `n` is the retry's number from 1, `base` and `cap` are the policy's keys, `last` is the delay before (as
//! `base` on the first), `retries` how many retries there are. `uniform(a, b)` is a draw from `[a, b)`, `random()` one from `[0, 1)`; each
//! time one is written it is another draw, from the job's own keyed generator. So a formula is as pure as every other policy:
//! the same job's same attempt gives the same delay.
//!
//! `exmex` parses and evaluates. It knows no draws and no places of errors, so names, brackets and numbers of arguments are
//! checked here first, and each draw is handed to it as a variable. As it reads them, `-n^2` is `(-n)^2`.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use exmex::prelude::*;
use serde::{Serialize, Serializer};

use crate::rng::Draw;

/// Most draws in one formula: their corners are what the ends of a delay are found by.
const MOST_DRAWS: usize = 8;
const VARIABLES: [&str; 5] = ["base", "cap", "last", "n", "retries"];
const CONSTANTS: [&str; 3] = ["e", "PI", "TAU"];
const UNARY: [&str; 11] = ["abs", "ceil", "exp", "floor", "ln", "log10", "log2", "round", "sqrt", "tanh", "trunc"];
const BINARY: [&str; 3] = ["min", "max", "uniform"];

/// A formula, parsed.
#[derive(Clone)]
pub struct Expression {
    text: String,
    parsed: FlatEx<f64>,
    inputs: Vec<Input>,
    draws: usize,
    settings: Settings,
    scale: f64,
}

/// What a formula may refer to beside the retry.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Settings {
    /// What `base` means.
    pub base: Option<Duration>,
    /// What `cap` means.
    pub cap: Option<Duration>,
}

/// What is wrong with a formula, and where in its text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}: {help}")]
pub struct Fault {
    /// The bytes of the text that it is about.
    pub at: Range<usize>,
    /// One sentence in lower case.
    pub message: String,
    /// What would be right.
    pub help: String,
}

/// What a formula is asked with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question {
    pub(super) n: u32,
    pub(super) retries: u32,
    /// The delay before, in nanoseconds.
    pub(super) last: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Input {
    Retry,
    Retries,
    Last,
    Known(f64),
    Draw(usize),
}

impl Expression {
    /// Parses a formula.
    ///
    /// # Errors
    /// At its place: an unknown name, a wrong number of arguments, a bracket without its partner, `base` or `cap` where the policy
    /// has none, a formula that is no number for some early retry.
    pub fn parse(text: &str, settings: Settings) -> Result<Expression, Fault> {
        let tokens = tokens(text)?;
        check(text, &tokens, settings)?;
        let (rewritten, draws) = rewrite(text, &tokens)?;
        let whole = |message: String| {
            fault(0..text.len(), message, "write numbers, `n`, `base`, `cap`, + - * / ^ and functions such as min(a, b)")
        };
        let parsed: FlatEx<f64> =
            exmex::parse(&rewritten).map_err(|error| whole(format!("the formula can't be read ({})", error.msg())))?;
        let inputs = parsed.var_names().iter().map(|name| input(name, settings)).collect();
        let expression = Expression { text: text.to_owned(), parsed, inputs, draws, settings, scale: 1.0 };
        for n in 1..=64 {
            let question = Question { n, retries: 25, last: None };
            if [0.0, 0.5].into_iter().any(|chance| expression.value(question, &[chance; MOST_DRAWS]).is_nan()) {
                return Err(whole(format!("the formula is not a number for retry {n}")));
            }
        }
        Ok(expression)
    }

    /// The text that it was parsed from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The delay in nanoseconds.
    pub(super) fn nanos(&self, question: Question, draw: &mut Draw) -> f64 {
        let mut chances = [0.0; MOST_DRAWS];
        chances[..self.draws].fill_with(|| draw.unit());
        self.value(question, &chances) * 1e9 * self.scale
    }

    /// The least and the greatest delay over all corners of the draws, in nanoseconds. Exact where the formula is monotone in each
    /// draw, which a sum, a product and a minimum of draws are.
    pub(super) fn corners(&self, question: Question) -> (f64, f64) {
        let mut ends = (f64::INFINITY, 0.0_f64);
        for corner in 0..1_u32 << self.draws {
            let mut chances = [0.0; MOST_DRAWS];
            for (i, chance) in chances.iter_mut().enumerate() {
                *chance = f64::from(corner >> i & 1);
            }
            let value = (self.value(question, &chances) * 1e9 * self.scale).max(0.0);
            ends = (ends.0.min(value), ends.1.max(value));
        }
        ends
    }

    /// Whether it draws at all.
    pub(super) fn is_random(&self) -> bool {
        self.draws > 0
    }

    /// The same formula in a time that runs `factor` times as slow.
    pub(super) fn scaled(&self, factor: f64) -> Expression {
        Expression { scale: self.scale * factor, ..self.clone() }
    }

    fn value(&self, question: Question, chances: &[f64; MOST_DRAWS]) -> f64 {
        let base = self.settings.base.map_or(1.0, |base| base.as_secs_f64());
        let values = self.inputs.iter().map(|input| match *input {
            Input::Retry => f64::from(question.n),
            Input::Retries => f64::from(question.retries),
            Input::Last => question.last.map_or(base, |last| last / 1e9 / self.scale),
            Input::Known(value) => value,
            Input::Draw(i) => chances[i],
        });
        self.parsed.eval_iter(values).unwrap_or(f64::NAN)
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Expression) -> bool {
        (&self.text, self.settings, self.scale) == (&other.text, other.settings, other.scale)
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expression({:?})", self.text)
    }
}

impl Serialize for Expression {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

/// A name, a bracket, a comma, or anything else that is not a space.
#[derive(Clone, Debug, PartialEq)]
enum Token {
    Name,
    Number,
    Open,
    Close,
    Comma,
    Sign,
}

fn fault(at: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> Fault {
    Fault { at, message: message.into(), help: help.into() }
}

fn tokens(text: &str) -> Result<Vec<(Token, Range<usize>)>, Fault> {
    let mut found = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(letter) = text[at..].chars().next() {
        let run = |taken: fn(u8) -> bool| bytes[at..].iter().take_while(|byte| taken(**byte)).count();
        let (token, length) = match letter {
            ' ' | '\t' | '\n' | '\r' => (None, 1),
            'a'..='z' | 'A'..='Z' => (Some(Token::Name), run(|byte| byte.is_ascii_alphanumeric() || byte == b'_')),
            '0'..='9' | '.' => (Some(Token::Number), run(|byte| byte.is_ascii_digit() || byte == b'.')),
            '(' => (Some(Token::Open), 1),
            ')' => (Some(Token::Close), 1),
            ',' => (Some(Token::Comma), 1),
            '+' | '-' | '*' | '/' | '^' => (Some(Token::Sign), 1),
            other => {
                let help = "write + - * / ^, brackets, numbers and names";
                return Err(fault(at..at + other.len_utf8(), format!("`{other}` means nothing in a formula"), help));
            }
        };
        found.extend(token.map(|token| (token, at..at + length)));
        at += length;
    }
    if found.is_empty() {
        return Err(fault(
            0..text.len(),
            "the formula is empty",
            "write one, such as \"min(cap, base * 2^n) * uniform(0.5, 1)\"",
        ));
    }
    Ok(found)
}

/// Names are known, functions are called, brackets are closed.
fn check(text: &str, tokens: &[(Token, Range<usize>)], settings: Settings) -> Result<(), Fault> {
    let mut open = Vec::new();
    for (i, (token, at)) in tokens.iter().enumerate() {
        match token {
            Token::Name => check_name(&text[at.clone()], at, tokens.get(i + 1).map(|(token, _)| token), settings)?,
            Token::Number if text[at.clone()].parse::<f64>().is_err() => {
                return Err(fault(
                    at.clone(),
                    format!("`{}` is no number", &text[at.clone()]),
                    "write it with one point, such as 1.5",
                ));
            }
            Token::Open => open.push(at.clone()),
            Token::Close if open.pop().is_none() => {
                return Err(fault(at.clone(), "this bracket closes nothing", "take it out, or open one before it"));
            }
            _ => {}
        }
    }
    match open.pop() {
        Some(at) => Err(fault(at, "this bracket is never closed", "close it")),
        None => Ok(()),
    }
}

fn check_name(name: &str, at: &Range<usize>, next: Option<&Token>, settings: Settings) -> Result<(), Fault> {
    let is_function = UNARY.contains(&name) || BINARY.contains(&name) || name == "random";
    let called = next == Some(&Token::Open);
    if is_function && !called {
        return Err(fault(at.clone(), format!("`{name}` is a function"), format!("write `{name}(…)`")));
    }
    if is_function || CONSTANTS.contains(&name) {
        return Ok(());
    }
    if !VARIABLES.contains(&name) {
        let known = "n, base, cap, last, retries, e, PI; min, max, uniform, random; floor, ceil, round, trunc, abs, sqrt, exp, ln, log2, log10, tanh";
        return Err(fault(at.clone(), format!("a formula knows no `{name}`"), format!("it knows {known}")));
    }
    let missing = (name == "base" && settings.base.is_none()) || (name == "cap" && settings.cap.is_none());
    if missing {
        return Err(fault(
            at.clone(),
            format!("the formula uses `{name}`, which this policy does not have"),
            format!("add `{name} = \"1s\"`, for example"),
        ));
    }
    Ok(())
}

/// The formula with a variable in place of each draw, and how many there are.
fn rewrite(text: &str, tokens: &[(Token, Range<usize>)]) -> Result<(String, usize), Fault> {
    let mut draws = 0;
    let rewritten = rewrite_part(text, tokens, &mut draws)?;
    if draws > MOST_DRAWS {
        return Err(fault(0..text.len(), format!("the formula has {draws} draws"), format!("write {MOST_DRAWS} at most")));
    }
    Ok((rewritten, draws))
}

fn rewrite_part(text: &str, tokens: &[(Token, Range<usize>)], draws: &mut usize) -> Result<String, Fault> {
    let mut written = String::new();
    let mut i = 0;
    while let Some((token, at)) = tokens.get(i) {
        let name = &text[at.clone()];
        let call = *token == Token::Name && tokens.get(i + 1).is_some_and(|(next, _)| *next == Token::Open);
        if !call || VARIABLES.contains(&name) || CONSTANTS.contains(&name) {
            written += name;
            written.push(' ');
            i += 1;
            continue;
        }
        let end = closing(tokens, i + 1);
        let arguments = arguments(&tokens[i + 2..end]);
        let wanted = if name == "random" { 0 } else { 1 + usize::from(BINARY.contains(&name)) };
        if arguments.len() != wanted {
            let message = format!("`{name}` takes {wanted} arguments, not {}", arguments.len());
            return Err(fault(at.start..tokens[end].1.end, message, "put commas between them and leave none out"));
        }
        let parts: Vec<String> = arguments.into_iter().map(|part| rewrite_part(text, part, draws)).collect::<Result<_, _>>()?;
        written += &match (name, &parts[..]) {
            ("random", _) => drawn(draws),
            ("uniform", [low, high]) => format!("(({low}) + (({high}) - ({low})) * {})", drawn(draws)),
            (_, [one]) => format!("{name}({one})"),
            // Between its operands, as exmex means it: a call within a call it gets wrong.
            (_, [one, other]) => format!("(({one}) {name} ({other}))"),
            (_, _) => String::new(),
        };
        written.push(' ');
        i = end + 1;
    }
    Ok(written)
}

fn drawn(draws: &mut usize) -> String {
    *draws += 1;
    format!("_u{}", *draws - 1)
}

/// Where the bracket that opens at `open` closes; brackets were found to be in pairs.
fn closing(tokens: &[(Token, Range<usize>)], open: usize) -> usize {
    let mut depth = 0;
    for (i, (token, _)) in tokens.iter().enumerate().skip(open) {
        match token {
            Token::Open => depth += 1,
            Token::Close => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return i;
        }
    }
    tokens.len() - 1
}

/// The tokens between commas that are in no further bracket.
fn arguments(tokens: &[(Token, Range<usize>)]) -> Vec<&[(Token, Range<usize>)]> {
    if tokens.is_empty() {
        return Vec::new();
    }
    let (mut parts, mut from, mut depth) = (Vec::new(), 0, 0);
    for (i, (token, _)) in tokens.iter().enumerate() {
        match token {
            Token::Open => depth += 1,
            Token::Close => depth -= 1,
            Token::Comma if depth == 0 => {
                parts.push(&tokens[from..i]);
                from = i + 1;
            }
            _ => {}
        }
    }
    parts.push(&tokens[from..]);
    parts
}

fn input(name: &str, settings: Settings) -> Input {
    let known = |duration: Option<Duration>| Input::Known(duration.map_or(0.0, |duration| duration.as_secs_f64()));
    match name {
        "n" => Input::Retry,
        "retries" => Input::Retries,
        "last" => Input::Last,
        "base" => known(settings.base),
        "cap" => known(settings.cap),
        draw => Input::Draw(draw.trim_start_matches("_u").parse().unwrap_or(0).min(MOST_DRAWS - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobId;
    use crate::rng::{Seed, Stream};

    const ALL: Settings = Settings { base: Some(Duration::from_secs(1)), cap: Some(Duration::from_secs(60)) };

    fn seconds(text: &str, n: u32) -> f64 {
        let expression = Expression::parse(text, ALL).unwrap_or_else(|fault| panic!("{text}: {fault}"));
        expression.nanos(Question { n, retries: 10, last: None }, &mut Seed(1).draw(Stream::Jitter, JobId(1), n)) / 1e9
    }

    #[test]
    fn formulas_are_seconds() {
        for (text, n, value) in [
            ("base * 2^(n - 1)", 4, 8.0),
            ("min(cap, base * 2^n)", 10, 60.0),
            ("max(1, min(n, 3)) + floor(1.7)", 9, 4.0),
            ("n^4 + 15", 2, 31.0),
            ("e^min(n, 10)", 1, std::f64::consts::E),
            ("last * retries", 1, 10.0),
            ("1 / 0", 1, f64::INFINITY),
        ] {
            assert_eq!(seconds(text, n), value, "{text}");
        }
    }

    #[test]
    fn draws_are_keyed_and_each_is_its_own() {
        let text = "uniform(0, 1) - uniform(0, 1) + uniform(2, 2 + random())";
        assert_eq!(seconds(text, 1), seconds(text, 1));
        assert_ne!(seconds(text, 1), seconds(text, 2));
        assert_ne!(seconds("uniform(0, 1) - uniform(0, 1)", 1), 0.0);
    }

    #[test]
    fn corners_are_the_ends() {
        let expression = Expression::parse("min(cap, base * 2^n) * uniform(0.5, 1)", ALL).expect("a formula");
        assert_eq!(expression.corners(Question { n: 2, retries: 10, last: None }), (2e9, 4e9));
    }

    #[test]
    fn faults_are_located() {
        for (text, place, message) in [
            ("bse * 2", "bse", "knows no `bse`"),
            ("min(1, 2", "(", "never closed"),
            ("1 + 2)", ")", "closes nothing"),
            ("min(1)", "min(1)", "takes 2 arguments, not 1"),
            ("uniform(1, 2, 3)", "uniform(1, 2, 3)", "takes 2 arguments, not 3"),
            ("uniform + 1", "uniform", "is a function"),
            ("n % 2", "%", "means nothing"),
            ("1.2.3", "1.2.3", "no number"),
            ("_u0", "_", "means nothing"),
            ("2 n n", "2 n n", "can't be read"),
            ("", "", "empty"),
            ("0 / 0", "0 / 0", "not a number"),
        ] {
            let fault = Expression::parse(text, ALL).expect_err(text);
            assert_eq!(&text[fault.at.clone()], place, "{text}: {fault}");
            assert!(fault.message.contains(message), "{text}: {fault}");
        }
        let fault = Expression::parse("cap", Settings::default()).expect_err("no cap");
        assert!(fault.message.contains("does not have"));
    }
}
