//! What can be wrong with a scenario file, as data: places and sentences, drawn by whoever shows them.

use std::fmt;
use std::ops::Range;

/// Why a file is no scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is not TOML; nothing after the first such place can be trusted, so it stands alone.
    #[error("not valid TOML: {0}")]
    Syntax(Problem),
    /// The text is TOML, but no scenario: everything that is wrong with it, in the order of the file.
    #[error("{}", sentences(.problems))]
    Invalid {
        /// At least one.
        problems: Vec<Problem>,
    },
}

impl Error {
    /// All problems, in the order of the file.
    pub fn problems(&self) -> &[Problem] {
        match self {
            Error::Syntax(problem) => std::slice::from_ref(problem),
            Error::Invalid { problems } => problems,
        }
    }
}

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// One sentence in lower case that names the key.
    pub message: String,
    /// The bytes of the file that it is about.
    pub span: Range<usize>,
    /// Words for this and other places, such as both sides of a contradiction.
    pub labels: Vec<(Range<usize>, String)>,
    /// What would be right.
    pub help: Option<String>,
}

impl Problem {
    /// A problem at one place.
    pub(super) fn new(span: &Range<usize>, message: impl Into<String>) -> Problem {
        Problem { message: message.into(), span: span.clone(), labels: Vec::new(), help: None }
    }

    /// Says what would be right.
    pub(super) fn help(mut self, help: impl Into<String>) -> Problem {
        self.help = Some(help.into());
        self
    }

    /// Puts words to a place.
    pub(super) fn label(mut self, place: &Range<usize>, words: impl Into<String>) -> Problem {
        self.labels.push((place.clone(), words.into()));
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, ": {help}"),
            None => Ok(()),
        }
    }
}

fn sentences(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
