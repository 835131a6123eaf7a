//! Recorded arrivals: a CSV file with a header and a column `at` of ascending times, each a duration such as `1.5s` or
//! `250ms`, or a plain number of seconds as other tools export them. Further columns are ignored.

use std::io;
use std::time::Duration;

use super::error::Problem;
use super::file::Check;
use super::table::At;
use super::value::Text;
use crate::time::{parse_duration, show};

/// The times in the file; none after a problem, which names the file and its line.
pub(super) fn read(file: &At<Text>, check: &mut Check<'_>) -> Vec<Duration> {
    let name = &file.value.0;
    let times = (check.read)(name).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("there is no trace file `{name}`"),
        _ => format!("the trace file `{name}` can't be read: {error}"),
    });
    match times.and_then(|text| parse(name, &text)) {
        Ok(times) => times,
        Err(message) => {
            let help = "a trace is CSV with a header line, a column `at` and ascending times such as 0.25s; its path is relative \
                        to the scenario";
            check.report(Problem::new(&file.place, message).help(help));
            Vec::new()
        }
    }
}

fn parse(name: &str, text: &str) -> Result<Vec<Duration>, String> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| format!("line 1 of `{name}` is no CSV: {error}"))?;
    let column = header.iter().position(|title| title == "at");
    let column = column.ok_or_else(|| format!("line 1 of `{name}` has no column `at`"))?;
    let mut times: Vec<Duration> = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| format!("`{name}` is no CSV: {error}"))?;
        let line = record.position().map_or(0, csv::Position::line);
        let at = time(record.get(column).unwrap_or_default()).map_err(|what| format!("line {line} of `{name}`: {what}"))?;
        if let Some(last) = times.last().filter(|last| **last > at) {
            return Err(format!("line {line} of `{name}` goes back in time, from {} to {}", show(*last), show(at)));
        }
        times.push(at);
    }
    if times.is_empty() {
        return Err(format!("`{name}` has a header but no times"));
    }
    Ok(times)
}

/// A duration with decimals and a unit, or seconds.
fn time(text: &str) -> Result<Duration, String> {
    for (unit, size) in [("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9), ("s", 1.0), ("", 1.0)] {
        let number = text.strip_suffix(unit).and_then(|number| number.trim_end().parse::<f64>().ok());
        match number.map(|number| Duration::try_from_secs_f64(number * size)) {
            Some(Ok(at)) if at < Duration::from_secs(1 << 31) => return Ok(at),
            Some(_) => return Err(format!("`{text}` is negative, not finite or too large")),
            None => {}
        }
    }
    parse_duration(text).map_err(|_| format!("`{text}` is not a time"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_may_be_durations_or_seconds() {
        let ms = |ms| Duration::from_millis(ms);
        assert_eq!(
            parse("t.csv", "at\n0\n0.25\n1.5s\n1600ms\n1m30s\n"),
            Ok(vec![ms(0), ms(250), ms(1500), ms(1600), ms(90_000)])
        );
        assert_eq!(parse("t.csv", "job, at\na, 1\nb, 2s\n"), Ok(vec![ms(1000), ms(2000)]));
    }

    #[test]
    fn faults_name_the_file_and_its_line() {
        for (text, message) in [
            ("", "line 1 of `t.csv` has no column `at`"),
            ("time\n1\n", "line 1 of `t.csv` has no column `at`"),
            ("at\n", "`t.csv` has a header but no times"),
            ("at\n1\nsoon\n", "line 3 of `t.csv`: `soon` is not a time"),
            ("at\n2\n1\n", "line 3 of `t.csv` goes back in time, from 2s to 1s"),
            ("at\n-1\n", "line 2 of `t.csv`: `-1` is negative, not finite or too large"),
            ("at\nNaN\n", "line 2 of `t.csv`: `NaN` is negative, not finite or too large"),
        ] {
            assert_eq!(parse("t.csv", text), Err(message.to_owned()), "{text:?}");
        }
    }
}
