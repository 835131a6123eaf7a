//! From a path to a scenario, or to a picture of what is wrong with the file: line, column, carets and what would be right.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use anyhow::anyhow;
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode};

use super::Exit;
use super::exit::Code;
use crate::scenario::{self, Problem, Scenario};

/// Reads and checks a scenario file; returns it with its text. Traces are looked for beside it.
///
/// # Errors
/// One that exits with [`Exit::Usage`] and whose message shows every problem in its place, coloured: print it through
/// anstream, which takes the colours out where nobody would see them.
pub(super) fn load(path: &Path) -> anyhow::Result<(Scenario, String)> {
    let usage = |message: String| anyhow!(Code(Exit::Usage)).context(message);
    let text = read(path).map_err(usage)?;
    let beside = path.parent().unwrap_or(Path::new(""));
    let trace = |name: &str| fs::read_to_string(beside.join(name));
    match scenario::parse(&text, &trace) {
        Ok(scenario) => Ok((scenario, text)),
        Err(error) => Err(usage(draw(path, &text, error.problems()))),
    }
}

/// What the scenario says, for comparing files: see [`scenario::fingerprint`].
pub(super) fn fingerprint(path: &Path, text: &str) -> String {
    let beside = path.parent().unwrap_or(Path::new(""));
    scenario::fingerprint(text, &|name: &str| fs::read_to_string(beside.join(name))).unwrap_or_default()
}

fn read(path: &Path) -> Result<String, String> {
    let shown = path.display();
    if path.is_dir() {
        return Err(format!("`{shown}` is a directory: name a scenario file, such as {}", path.join("outage.toml").display()));
    }
    let bytes = fs::read(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("there is no file `{shown}`: check the path"),
        io::ErrorKind::PermissionDenied => format!("`{shown}` may not be read: check its permissions"),
        _ => format!("`{shown}` can't be read: {error}"),
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("`{shown}` is not UTF-8 text from line {line} on: save it as UTF-8")
    })
}

/// All problems of a file, as text with colours.
fn draw(path: &Path, text: &str, problems: &[Problem]) -> String {
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode()).with_width(110).with_links(false);
    let source = NamedSource::new(path.display().to_string(), text.to_owned());
    let mut drawn = match problems.len() {
        1 => format!("`{}` has a problem\n", path.display()),
        many => format!("`{}` has {many} problems\n", path.display()),
    };
    for problem in problems {
        let shown = Shown { problem, source: &source };
        drawn.push('\n');
        // Writing to a string can't fail, and a problem that can't be drawn is at least said.
        if handler.render_report(&mut drawn, &shown).is_err() {
            drawn.push_str(&problem.to_string());
        }
    }
    drawn.truncate(drawn.trim_end().len());
    drawn
}

/// A problem as miette wants to see it.
#[derive(Debug)]
struct Shown<'a> {
    problem: &'a Problem,
    source: &'a NamedSource<String>,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem.message)
    }
}

impl std::error::Error for Shown<'_> {}

impl Diagnostic for Shown<'_> {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.problem.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let problem = self.problem;
        let said = problem.labels.iter().map(|(place, words)| (Some(words.clone()), place));
        let unsaid = problem.labels.iter().all(|(place, _)| *place != problem.span).then_some((None, &problem.span));
        Some(Box::new(unsaid.into_iter().chain(said).map(|(words, place)| {
            let span = (place.start, place.len());
            if *place == problem.span {
                LabeledSpan::new_primary_with_span(words, span)
            } else {
                LabeledSpan::new_with_span(words, span)
            }
        })))
    }
}
