//! What a failure means: to be retried, to be retried with more care, to be given up, or not to be counted.

use serde::{Serialize, Serializer};

use crate::call::Outcome;

/// What an outcome means to a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// The job is done, whatever the status says.
    Success,
    /// Try again.
    Retry,
    /// Try again, and the downstream said that it is too much: costs more of a budget, and slows an adaptive rate.
    Throttled,
    /// Give up.
    Fatal,
    /// Try again, and do not count it as a retry. Bounded by the run's end alone (asynq, machinery).
    Uncounted,
}

/// A set of outcomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// This status.
    Status(u16),
    /// All statuses of this hundred, 4 or 5.
    Hundred(u16),
    /// No answer in time.
    Timeout,
    /// Nobody listens.
    Refused,
    /// The connection broke.
    Reset,
}

impl Pattern {
    /// The pattern that this text names: `429`, `5xx`, `timeout`, `refused`, `reset`.
    pub fn parse(text: &str) -> Option<Pattern> {
        match text {
            "4xx" => Some(Pattern::Hundred(4)),
            "5xx" => Some(Pattern::Hundred(5)),
            "timeout" => Some(Pattern::Timeout),
            "refused" => Some(Pattern::Refused),
            "reset" => Some(Pattern::Reset),
            status => status.parse().ok().filter(|code| (400..600).contains(code)).map(Pattern::Status),
        }
    }

    /// Whether this outcome is one of the set.
    pub fn holds(self, outcome: &Outcome) -> bool {
        match (self, *outcome) {
            (Pattern::Status(wanted), Outcome::Status { code, .. }) => code == wanted,
            (Pattern::Hundred(hundred), Outcome::Status { code, .. }) => code / 100 == hundred,
            (Pattern::Timeout, Outcome::TimedOut) | (Pattern::Refused, Outcome::Refused) | (Pattern::Reset, Outcome::Reset) => {
                true
            }
            _ => false,
        }
    }

    fn is_exact(self) -> bool {
        !matches!(self, Pattern::Hundred(_))
    }
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Pattern::Status(code) => code.fmt(f),
            Pattern::Hundred(hundred) => write!(f, "{hundred}xx"),
            Pattern::Timeout => f.write_str("timeout"),
            Pattern::Refused => f.write_str("refused"),
            Pattern::Reset => f.write_str("reset"),
        }
    }
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Which outcomes mean what. A status of its own goes before a hundred; what no list holds is as `classify` says, or fatal if
/// there is a list of what is retried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Classes {
    /// As good as done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub success: Vec<Pattern>,
    /// Retried; and nothing else is that stands in no other list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub retry: Vec<Pattern>,
    /// Retried as throttling.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub throttled: Vec<Pattern>,
    /// Given up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fatal: Vec<Pattern>,
    /// Retried without being counted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uncounted: Vec<Pattern>,
}

impl Classes {
    /// No lists.
    pub fn is_empty(&self) -> bool {
        *self == Classes::default()
    }

    /// The class of an outcome; `looks` says whether permanent failures are told from transient ones where no list decides.
    pub fn of(&self, outcome: &Outcome, looks: bool) -> Class {
        if *outcome == Outcome::Ok {
            return Class::Success;
        }
        let lists = [
            (&self.success, Class::Success),
            (&self.fatal, Class::Fatal),
            (&self.uncounted, Class::Uncounted),
            (&self.throttled, Class::Throttled),
            (&self.retry, Class::Retry),
        ];
        let find = |exact: bool| {
            let holds = |list: &Vec<Pattern>| list.iter().any(|pattern| pattern.is_exact() == exact && pattern.holds(outcome));
            lists.iter().find(|(list, _)| holds(list)).map(|(_, class)| *class)
        };
        find(true).or_else(|| find(false)).unwrap_or_else(|| self.unlisted(outcome, looks))
    }

    fn unlisted(&self, outcome: &Outcome, looks: bool) -> Class {
        if !self.retry.is_empty() || (looks && !outcome.is_transient()) {
            Class::Fatal
        } else if Pattern::Status(429).holds(outcome) {
            Class::Throttled
        } else {
            Class::Retry
        }
    }
}

/// A kind of failure, for which a policy may have another schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// No answer in time.
    Timeout,
    /// Throttled: 429, or what the policy calls so.
    Throttled,
    /// 500 to 599.
    Server,
    /// Nobody listens, or the connection broke.
    Refused,
}

impl Kind {
    /// Whether a failure of this class is of this kind.
    pub fn holds(self, outcome: &Outcome, class: Class) -> bool {
        match self {
            Kind::Throttled => class == Class::Throttled,
            Kind::Timeout => *outcome == Outcome::TimedOut,
            Kind::Refused => matches!(outcome, Outcome::Refused | Outcome::Reset),
            Kind::Server => class != Class::Throttled && Pattern::Hundred(5).holds(outcome),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_goes_before_its_hundred_and_a_list_before_the_rule() {
        let classes = Classes {
            retry: vec![Pattern::Hundred(5), Pattern::Status(409)],
            fatal: vec![Pattern::Status(501)],
            throttled: vec![Pattern::Status(503)],
            success: vec![Pattern::Status(404)],
            uncounted: vec![Pattern::Refused],
        };
        for (outcome, class) in [
            (Outcome::Ok, Class::Success),
            (Outcome::status(500), Class::Retry),
            (Outcome::status(501), Class::Fatal),
            (Outcome::status(503), Class::Throttled),
            (Outcome::status(404), Class::Success),
            (Outcome::status(409), Class::Retry),
            (Outcome::status(429), Class::Fatal),
            (Outcome::TimedOut, Class::Fatal),
            (Outcome::Refused, Class::Uncounted),
        ] {
            assert_eq!(classes.of(&outcome, true), class, "{outcome}");
        }
    }

    #[test]
    fn without_lists_a_429_is_throttling_and_other_4xx_are_fatal_to_those_who_look() {
        let none = Classes::default();
        assert_eq!(none.of(&Outcome::status(429), true), Class::Throttled);
        assert_eq!(none.of(&Outcome::status(422), true), Class::Fatal);
        assert_eq!(none.of(&Outcome::status(422), false), Class::Retry);
        assert_eq!(none.of(&Outcome::TimedOut, true), Class::Retry);
    }

    #[test]
    fn patterns_are_written_as_they_are_read() {
        for text in ["429", "5xx", "4xx", "timeout", "refused", "reset"] {
            assert_eq!(Pattern::parse(text).expect(text).to_string(), text);
        }
        for text in ["200", "600", "6xx", "", "time-out", "-1"] {
            assert_eq!(Pattern::parse(text), None, "{text}");
        }
    }
}
