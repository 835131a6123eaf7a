//! Figures in a verdict: exact enough to see by how much a bound was missed, with a unit behind.

use crate::metrics::Unit;

/// A figure of this unit: `1,203`, `0.352`, `40.2 s`, `never`.
pub fn show(unit: Unit, number: f64) -> String {
    if number.is_infinite() {
        return "never".to_owned();
    }
    match unit {
        Unit::Jobs | Unit::Calls | Unit::Statements => plain(number, 1),
        Unit::Ratio => significant(number),
        Unit::Share => format!("{} %", significant(number * 100.0)),
        Unit::Seconds if number < 1.0 && number > 0.0 => format!("{} ms", significant(number * 1e3)),
        Unit::Seconds => format!("{} s", significant(number)),
        Unit::Millis if number >= 1000.0 => format!("{} s", significant(number / 1e3)),
        Unit::Millis => format!("{} ms", significant(number)),
    }
}

/// A ratio as a change: `+12 %`, `−3.1 %`, `×4.2`.
pub fn factor(ratio: f64) -> String {
    match ratio {
        ratio if ratio.is_nan() => "?".to_owned(),
        ratio if ratio.is_infinite() => "from nothing".to_owned(),
        ratio if ratio >= 2.0 => format!("×{}", significant(ratio)),
        ratio => {
            let percent = (ratio - 1.0) * 100.0;
            let sign = if percent.abs() < 0.05 {
                "±"
            } else if percent < 0.0 {
                "−"
            } else {
                "+"
            };
            let shown =
                if percent.abs() < 0.05 { "0".to_owned() } else { plain(percent.abs(), usize::from(percent.abs() < 10.0)) };
            format!("{sign}{shown} %")
        }
    }
}

/// Three significant digits at least, and all before the point.
fn significant(number: f64) -> String {
    let decimals = match number.abs() {
        n if n >= 100.0 => 0,
        n if n >= 10.0 => 1,
        n if n >= 1.0 => 2,
        n if n >= 0.1 => 3,
        0.0 => 0,
        _ => 4,
    };
    plain(number, decimals)
}

/// So many decimals at most, without zeros at the end; thousands apart.
fn plain(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut apart = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) && whole.as_bytes()[i - 1] != b'-' {
            apart.push(',');
        }
        apart.push(digit);
    }
    apart + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_exact_enough() {
        assert_eq!([show(Unit::Jobs, 1203.0), show(Unit::Calls, 3.5), show(Unit::Ratio, 0.35)], ["1,203", "3.5", "0.35"]);
        assert_eq!(
            [show(Unit::Seconds, 40.0), show(Unit::Seconds, 0.25), show(Unit::Millis, 1.234)],
            ["40 s", "250 ms", "1.23 ms"]
        );
        assert_eq!([show(Unit::Seconds, f64::INFINITY), show(Unit::Share, 0.05)], ["never", "5 %"]);
        assert_eq!([factor(1.123), factor(0.97), factor(4.2), factor(1.0)], ["+12 %", "−3 %", "×4.2", "±0 %"]);
    }
}
