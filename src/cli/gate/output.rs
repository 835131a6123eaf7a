//! A judgement in the formats that were asked for, on stdout or into files.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::check::format::{annotations, benchmark_action, bmf, cut, json, junit, markdown, text};
use crate::check::{Judgement, Outcome};
use crate::cli::Exit;
use crate::cli::exit::Code;
use crate::nearest::nearest;

/// What a step's summary may have on GitHub, less a little; all of a longer one is dropped.
const SUMMARY: usize = 1_000_000;

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Text,
    Json,
    Markdown,
    Junit,
    Bmf,
    BenchmarkAction,
    Github,
}

const FORMATS: [(&str, Format); 7] = [
    ("text", Format::Text),
    ("json", Format::Json),
    ("markdown", Format::Markdown),
    ("junit", Format::Junit),
    ("bmf", Format::Bmf),
    ("benchmark-action", Format::BenchmarkAction),
    ("github", Format::Github),
];

/// A format, and where it is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    format: Format,
    file: Option<PathBuf>,
}

impl Wanted {
    /// From a word such as `junit` or `junit=report.xml`.
    pub(super) fn parse(word: &str) -> Result<Wanted, String> {
        let (name, file) = word.split_once('=').map_or((word, None), |(name, file)| (name, Some(file)));
        let names = FORMATS.map(|(name, _)| name);
        let Some((_, format)) = FORMATS.into_iter().find(|(known, _)| *known == name) else {
            let near = nearest(name, &names).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
            return Err(format!("there is no format `{name}`: {near}there are {}", names.join(", ")));
        };
        match file {
            Some("") => Err(format!("`--format {word}` names no file: write `{name}=FILE`, or `{name}` for stdout")),
            file => Ok(Wanted { format, file: file.map(PathBuf::from) }),
        }
    }

    /// Writes the judgement.
    pub(super) fn tell(&self, judgement: &Judgement, outcome: Outcome, strict: bool) -> anyhow::Result<()> {
        let said = match self.format {
            Format::Text => text(judgement, outcome),
            Format::Json => format!("{:#}\n", json(judgement, outcome)),
            Format::Markdown => markdown(judgement, outcome),
            Format::Junit => junit(judgement, strict)?,
            Format::Bmf => format!("{:#}\n", bmf(judgement)),
            Format::BenchmarkAction => format!("{:#}\n", benchmark_action(judgement)),
            Format::Github => {
                summarise(&markdown(judgement, outcome))?;
                annotations(judgement, outcome)
            }
        };
        match &self.file {
            None => print(&said).context(Code(Exit::Environment)),
            Some(file) => write(file, &said),
        }
    }
}

fn print(said: &str) -> io::Result<()> {
    let mut stdout = anstream::stdout();
    stdout.write_all(said.as_bytes())?;
    stdout.flush()
}

fn write(file: &Path, said: &str) -> anyhow::Result<()> {
    if let Some(parent) = file.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent)
            .with_context(|| format!("`{}` can't be made", parent.display()))
            .context(Code(Exit::Environment))?;
    }
    fs::write(file, said).with_context(|| format!("`{}` can't be written", file.display())).context(Code(Exit::Environment))
}

/// Adds to the job's summary on GitHub, if there is one, no more than it takes.
fn summarise(said: &str) -> anyhow::Result<()> {
    let Some(file) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|file| !file.is_empty()) else { return Ok(()) };
    let taken = fs::metadata(&file).map_or(0, |meta| meta.len() as usize);
    let said = cut(said, SUMMARY.saturating_sub(taken));
    let append = || fs::OpenOptions::new().create(true).append(true).open(&file)?.write_all(said.as_bytes());
    append().context("the file of GITHUB_STEP_SUMMARY can't be written").context(Code(Exit::Environment))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_may_name_a_file() {
        assert_eq!(Wanted::parse("text"), Ok(Wanted { format: Format::Text, file: None }));
        let file = Some(PathBuf::from("out/a=b.xml"));
        assert_eq!(Wanted::parse("junit=out/a=b.xml"), Ok(Wanted { format: Format::Junit, file }));
        assert!(Wanted::parse("junt").is_err_and(|error| error.contains("did you mean `junit`?")));
        assert!(Wanted::parse("json=").is_err());
    }
}
