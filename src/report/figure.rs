//! Figures as a person reads them: three significant digits at most, thousands apart, a unit behind.

use std::time::Duration;

use crate::metrics::Unit;
use crate::time::show;

/// A count, or a median of counts: `7,214`, `3.5`.
pub(super) fn count(number: f64) -> String {
    if number.fract() != 0.0 && number.abs() < 1000.0 {
        return format!("{number:.1}");
    }
    let digits = format!("{:.0}", number.abs());
    let mut text = String::from(if number < 0.0 { "−" } else { "" });
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A ratio: `6.8`, `0.25`, `114`.
pub(super) fn ratio(number: f64) -> String {
    match number.abs() {
        n if n >= 99.95 => count(number.round()),
        n if n >= 0.995 || n == 0.0 => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}

/// A share as a percentage: `97 %`, `0.4 %`, `0 %`.
pub(super) fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        percent if percent < 0.1 => "<0.1 %".to_owned(),
        percent if percent < 9.95 => format!("{percent:.1} %"),
        percent if percent < 99.5 || share >= 1.0 => format!("{percent:.0} %"),
        percent => format!("{percent:.1} %"),
    }
}

/// A span of time: `85 ms`, `6.4 s`, `124 s`.
pub(super) fn seconds(secs: f64) -> String {
    match secs {
        s if s < 0.000_95 => format!("{:.0} µs", s * 1e6),
        s if s < 0.009_95 => format!("{} ms", ratio(s * 1e3)),
        s if s < 0.099_5 => format!("{:.0} ms", s * 1e3),
        s if s < 0.995 => format!("{secs:.2} s"),
        s => format!("{} s", ratio(s)),
    }
}

/// A span that someone chose, without rounding: `100 ms`, `6 s`, `1.3 s`, `1m 30s`.
pub(super) fn chosen(duration: Duration) -> String {
    match duration.as_secs_f64() {
        0.0 => "0 s".to_owned(),
        secs if secs < 1.0 => format!("{} ms", duration.as_nanos() as f64 / 1e6),
        secs if secs < 60.0 => format!("{secs} s"),
        _ => show(duration).to_string(),
    }
}

/// A figure of this unit.
pub(super) fn figure(unit: Unit, number: f64) -> String {
    match unit {
        Unit::Jobs | Unit::Calls | Unit::Statements => count(number),
        Unit::Ratio => ratio(number),
        Unit::Share => percent(number),
        Unit::Seconds => seconds(number),
        Unit::Millis => seconds(number / 1e3),
    }
}

/// Names in a sentence: `a`, `b` and `c`.
pub(super) fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// `1 job`, `2 jobs`.
pub(super) fn many(number: f64, one: &str) -> String {
    format!("{} {one}{}", count(number), if number == 1.0 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_at_a_glance() {
        assert_eq!(
            [count(0.0), count(999.0), count(1_200.0), count(1_234_567.0), count(3.5)],
            ["0", "999", "1,200", "1,234,567", "3.5"]
        );
        assert_eq!([ratio(6.81), ratio(0.25), ratio(1_140.2), ratio(1.0)], ["6.8", "0.25", "1,140", "1.0"]);
        assert_eq!([seconds(0.0123), seconds(0.25), seconds(6.44), seconds(123.6)], ["12 ms", "0.25 s", "6.4 s", "124 s"]);
        let chosen = |ms| chosen(Duration::from_millis(ms));
        assert_eq!([chosen(0), chosen(100), chosen(1_300), chosen(6_000)], ["0 s", "100 ms", "1.3 s", "6 s"]);
        assert_eq!(chosen(90_000), "1m 30s");
        assert_eq!(list(&["a".into(), "b".into(), "c".into()]), "a, b and c");
        assert_eq!([many(1.0, "job"), many(2.0, "job")], ["1 job", "2 jobs"]);
    }
}
