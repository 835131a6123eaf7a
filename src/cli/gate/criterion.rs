//! Criterion's results on disk: `<group>/<bench>/[<value>/]<baseline>/sample.json`, with the name in `benchmark.json` beside it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use serde_json::Value;

use crate::check::{Bench, sample};
use crate::cli::Exit;
use crate::cli::exit::Code;

/// The folder of the latest results, beside those of baselines.
const NEW: &str = "new";
/// How deep a bench can lie.
const DEEPEST: usize = 6;

/// Every bench that has new results, with those of the baseline if it has any.
pub(super) fn read(dir: &Path, baseline: &str) -> anyhow::Result<Vec<Bench>> {
    let usage = |message: String| anyhow!(Code(Exit::Usage)).context(message);
    let mut folders = Vec::new();
    find(dir, 0, &mut folders)?;
    folders.sort();
    if folders.is_empty() {
        return Err(usage(format!("there are no results of Criterion in `{}`: run `cargo bench` first", dir.display())));
    }
    let benches: Vec<Bench> = folders
        .iter()
        .map(|folder| {
            let old = folder.join(baseline).join("sample.json");
            let old = if old.exists() { Some(times(&old)?) } else { None };
            Ok(Bench { name: name(folder), new: times(&folder.join(NEW).join("sample.json"))?, old })
        })
        .collect::<anyhow::Result<_>>()?;
    if benches.iter().all(|bench| bench.old.is_none()) {
        let message = format!(
            "no bench in `{}` has a baseline `{baseline}`: save one with `cargo bench -- --save-baseline {baseline}`",
            dir.display()
        );
        return Err(usage(message));
    }
    Ok(benches)
}

/// Folders that hold new results.
fn find(dir: &Path, depth: usize, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let entries = fs::read_dir(dir).with_context(|| format!("`{}` can't be read", dir.display())).context(Code(Exit::Usage))?;
    for entry in entries {
        let path = entry?.path();
        if !path.is_dir() {
            continue;
        }
        if path.ends_with(NEW) && path.join("sample.json").exists() {
            found.push(dir.to_owned());
        } else if depth < DEEPEST {
            find(&path, depth + 1, found)?;
        }
    }
    Ok(())
}

fn times(file: &Path) -> anyhow::Result<Vec<f64>> {
    let text =
        fs::read_to_string(file).with_context(|| format!("`{}` can't be read", file.display())).context(Code(Exit::Usage))?;
    sample(&text).map_err(|error| anyhow!(Code(Exit::Usage)).context(format!("`{}`: {error}", file.display())))
}

/// What Criterion calls it, or else where it lies.
fn name(folder: &Path) -> String {
    let said = fs::read_to_string(folder.join(NEW).join("benchmark.json")).ok();
    let said = said.and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let title = said.and_then(|value| value.get("full_id").and_then(Value::as_str).map(str::to_owned));
    title.unwrap_or_else(|| folder.display().to_string())
}
