//! Retry budgets: how many retries a client may add to what it sends anyway.
//!
//! A limit per job does not bound a crowd: with three retries each, an outage quadruples the load. A budget is shared: retries
//! pay from what calls and successes bring in, and stop when it is spent, however many jobs there are.
//!
//! ```text
//! tokens      balance starts at `max`; a retry (or a failure) costs, a success brings in; AWS SDKs, gRPC
//! ratio       retries ≤ share · calls + floor, over a sliding window; Finagle, tower, linkerd
//! concurrent  retries under way ≤ max(most, share · calls under way); Envoy
//! bucket      a retry waits for its turn at a rate; nothing is refused, so load is only moved; client-go
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use serde::Serialize;

use super::backoff::scaled;
use super::guard::Scope;
use crate::job::JobId;
use crate::time::Instant;

/// A retry budget and who shares it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Budget {
    /// Its rule.
    pub rule: BudgetRule,
    /// Who shares it.
    pub scope: Scope,
}

/// The rule of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "rule", rename_all = "kebab-case")]
pub enum BudgetRule {
    /// A balance of tokens.
    ///
    /// Source: smithy-rs, `client/retries/token_bucket.rs`; gRFC A6, "Throttling Retry Attempts and Hedged RPCs".
    Tokens {
        /// The balance at first and at most.
        max: f64,
        /// What a retry costs.
        cost: f64,
        /// What a retry after a time-out costs.
        timeout_cost: f64,
        /// What a retry after throttling costs.
        throttled_cost: f64,
        /// What a success brings in.
        refill: f64,
        /// A success after retries brings in what the last of them cost instead.
        refund: bool,
        /// Retries are refused unless more than this would be left of the balance before they are paid.
        threshold: f64,
        /// Every failure pays, whether it is retried or not, and retries themselves are free (gRPC).
        on_failure: bool,
    },
    /// A share of all calls, and a floor.
    ///
    /// Source: Finagle, `service/RetryBudget.scala`; tower, `retry/budget/tps_budget.rs`.
    Ratio {
        /// Retries allowed per first attempt, 0 to 1000.
        share: f64,
        /// Retries allowed per second beside that.
        floor: f64,
        /// How long calls count.
        window: Duration,
    },
    /// Retries under way at once; one is under way from the decision to the end of its call.
    ///
    /// Source: Envoy, `upstream/resource_manager_impl.h`.
    Concurrent {
        /// Allowed in any case.
        most: u32,
        /// Allowed as a share of all that is under way.
        share: f64,
    },
    /// A bucket that delays: a retry comes no sooner than its turn.
    ///
    /// Source: client-go, `util/workqueue/default_rate_limiters.go`, `BucketRateLimiter`.
    Bucket {
        /// Turns per second.
        rate: f64,
        /// Turns that may be taken at once after a quiet time.
        burst: u32,
    },
}

/// What a budget says to a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It is paid for.
    Paid,
    /// There is nothing left.
    Refused,
    /// It is its turn then.
    NotBefore(Instant),
}

/// What a failure costs more for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Price {
    Usual,
    Timeout,
    Throttled,
}

/// How a budget stands.
#[derive(Clone, Debug, Default)]
pub(super) struct Balance {
    /// Tokens that are missing from the full balance.
    spent: f64,
    /// What the last retry of each job under way cost.
    paid: BTreeMap<JobId, f64>,
    /// First attempts and retries of the window, in tenths of it.
    window: VecDeque<(u64, f64, f64)>,
    calls: u32,
    retries: BTreeSet<JobId>,
    /// When the bucket's next turn is, in nanoseconds.
    next: u64,
}

/// A window is counted in so many slices.
const SLICES: u64 = 10;

impl Balance {
    /// What there is: tokens, or retries that would still be let through.
    pub(super) fn left(&mut self, rule: &BudgetRule, now: Instant) -> f64 {
        match *rule {
            BudgetRule::Tokens { max, .. } => max - self.spent,
            BudgetRule::Ratio { share, floor, window } => {
                self.pass(now, window);
                let (firsts, retries) = self.window.iter().fold((0.0, 0.0), |sum, slice| (sum.0 + slice.1, sum.1 + slice.2));
                share * firsts + floor * window.as_secs_f64() - retries
            }
            BudgetRule::Concurrent { most, share } => {
                f64::from(most).max(share * f64::from(self.calls)) - self.retries.len() as f64
            }
            BudgetRule::Bucket { .. } => f64::INFINITY,
        }
    }

    /// A call goes out.
    pub(super) fn called(&mut self, rule: &BudgetRule, now: Instant, is_first: bool) {
        self.calls += 1;
        if let (BudgetRule::Ratio { window, .. }, true) = (rule, is_first) {
            self.slice(now, *window).1 += 1.0;
        }
    }

    /// A call has ended.
    pub(super) fn ended(&mut self, rule: &BudgetRule, job: JobId, price: Option<Price>) {
        self.calls = self.calls.saturating_sub(1);
        self.retries.remove(&job);
        if let BudgetRule::Tokens { refill, refund, on_failure, .. } = *rule {
            match price {
                None => {
                    let paid = self.paid.remove(&job);
                    let back = if refund { paid.unwrap_or(refill) } else { refill };
                    self.spent = (self.spent - back).max(0.0);
                }
                Some(price) if on_failure => self.pay(rule, price),
                Some(_) => {}
            }
        }
    }

    /// A retry asks.
    pub(super) fn ask(&mut self, rule: &BudgetRule, now: Instant, job: JobId, price: Price) -> Answer {
        match *rule {
            BudgetRule::Tokens { threshold, on_failure, .. } => {
                let left = self.left(rule, now);
                let cost = if on_failure { 0.0 } else { cost(rule, price) };
                if left - cost < 0.0 || left <= threshold {
                    self.paid.remove(&job);
                    return Answer::Refused;
                }
                if !on_failure {
                    self.pay(rule, price);
                    self.paid.insert(job, cost);
                }
            }
            BudgetRule::Ratio { window, .. } => {
                // A share of 0.2 over five calls is one retry, whatever binary fractions make of it.
                if self.left(rule, now) < 1.0 - 1e-9 {
                    return Answer::Refused;
                }
                self.slice(now, window).2 += 1.0;
            }
            BudgetRule::Concurrent { .. } => {
                if self.left(rule, now) < 1.0 {
                    return Answer::Refused;
                }
                self.retries.insert(job);
            }
            BudgetRule::Bucket { rate, burst } => return Answer::NotBefore(self.turn(now, rate, burst)),
        }
        Answer::Paid
    }

    /// The next turn of a bucket (the generic cell rate algorithm).
    fn turn(&mut self, now: Instant, rate: f64, burst: u32) -> Instant {
        let each = (1e9 / rate) as u64;
        let early = each.saturating_mul(u64::from(burst.saturating_sub(1)));
        self.next = self.next.max(now.as_nanos());
        let turn = self.next.saturating_sub(early).max(now.as_nanos());
        self.next = self.next.saturating_add(each);
        Instant::from_nanos(turn)
    }

    fn pay(&mut self, rule: &BudgetRule, price: Price) {
        if let BudgetRule::Tokens { max, .. } = rule {
            self.spent = (self.spent + cost(rule, price)).min(*max);
        }
    }

    fn pass(&mut self, now: Instant, window: Duration) {
        let slice = slice_of(now, window);
        while self.window.front().is_some_and(|(at, ..)| at + SLICES <= slice) {
            self.window.pop_front();
        }
    }

    fn slice(&mut self, now: Instant, window: Duration) -> &mut (u64, f64, f64) {
        self.pass(now, window);
        let slice = slice_of(now, window);
        // Workers of one process may hand in times that are a little out of order: the latest slice takes them.
        if self.window.back().is_none_or(|(at, ..)| *at < slice) {
            self.window.push_back((slice, 0.0, 0.0));
        }
        self.window.back_mut().expect("one was put there")
    }
}

fn slice_of(now: Instant, window: Duration) -> u64 {
    now.as_nanos() / (crate::time::nanos(window) / SLICES).max(1)
}

fn cost(rule: &BudgetRule, price: Price) -> f64 {
    match (rule, price) {
        (BudgetRule::Tokens { cost, .. }, Price::Usual) => *cost,
        (BudgetRule::Tokens { timeout_cost, .. }, Price::Timeout) => *timeout_cost,
        (BudgetRule::Tokens { throttled_cost, .. }, Price::Throttled) => *throttled_cost,
        _ => 0.0,
    }
}

impl Budget {
    /// Its name, as in a list.
    pub fn name(&self) -> String {
        match self.rule {
            BudgetRule::Tokens { max, .. } => format!("{max} tokens"),
            BudgetRule::Ratio { share, floor, .. } => format!("{} % + {floor}/s", share * 100.0),
            BudgetRule::Concurrent { most, share: 0.0 } => format!("{most} at once"),
            BudgetRule::Concurrent { most, share } => format!("{} %, {most} at once", share * 100.0),
            BudgetRule::Bucket { rate, burst } => format!("bucket {rate}/s, {burst}"),
        }
    }

    pub(super) fn scaled(&self, factor: f64) -> Budget {
        let rule = match self.rule {
            BudgetRule::Ratio { share, floor, window } => {
                BudgetRule::Ratio { share, floor: floor / factor, window: scaled(window, factor) }
            }
            BudgetRule::Bucket { rate, burst } => BudgetRule::Bucket { rate: rate / factor, burst },
            same => same,
        };
        Budget { rule, scope: self.scope }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const AWS: BudgetRule = aws(5.0);

    const fn aws(cost: f64) -> BudgetRule {
        BudgetRule::Tokens {
            max: 500.0,
            cost,
            timeout_cost: 10.0,
            throttled_cost: cost,
            refill: 1.0,
            refund: true,
            threshold: -1.0,
            on_failure: false,
        }
    }

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn a_quota_pays_a_hundred_retries_and_then_refuses() {
        let mut balance = Balance::default();
        let paid = (0..200).filter(|job| balance.ask(&AWS, at(0), JobId(*job), Price::Usual) == Answer::Paid).count();
        assert_eq!((paid, balance.left(&AWS, at(0))), (100, 0.0));
    }

    #[test]
    fn tokens_rise_after_successes_and_a_retrys_cost_comes_back() {
        let mut balance = Balance::default();
        for job in 0..100 {
            balance.ask(&AWS, at(0), JobId(job), Price::Usual);
        }
        balance.ended(&AWS, JobId(0), None);
        assert_eq!(balance.left(&AWS, at(0)), 5.0, "a success after a retry brings back its cost");
        balance.ended(&AWS, JobId(1000), None);
        assert_eq!(balance.left(&AWS, at(0)), 6.0, "a success at the first try brings one");
    }

    #[test]
    fn grpc_throttles_below_half_of_its_tokens() {
        let rule = BudgetRule::Tokens {
            max: 10.0,
            cost: 1.0,
            timeout_cost: 1.0,
            throttled_cost: 1.0,
            refill: 0.1,
            refund: false,
            threshold: 5.0,
            on_failure: true,
        };
        let mut balance = Balance::default();
        let mut answers = Vec::new();
        for job in 0..6 {
            balance.ended(&rule, JobId(job), Some(Price::Usual));
            answers.push(balance.ask(&rule, at(0), JobId(job), Price::Usual) == Answer::Paid);
        }
        assert_eq!(answers, [true, true, true, true, false, false]);
    }

    /// T-52: tower makes an integer cost of the share, so that 0.7 behaves as 1.0 and 0.4 as 0.5. Ours is what it says.
    #[test]
    fn t52_the_measured_retry_ratio_is_the_configured_one() {
        for tenths in 1..=9 {
            let share = f64::from(tenths) / 10.0;
            let rule = BudgetRule::Ratio { share, floor: 0.0, window: Duration::from_secs(10) };
            let mut balance = Balance::default();
            let mut retries = 0.0;
            for job in 0..1000 {
                balance.called(&rule, at(job), true);
                retries += f64::from(balance.ask(&rule, at(job), JobId(job), Price::Usual) == Answer::Paid);
            }
            assert!((retries / 1000.0 - share).abs() < 0.002, "{share}: {retries}");
        }
    }

    /// T-56: a delaying bucket conserves work and keeps the rate.
    #[test]
    fn t56_a_delaying_bucket_refuses_nothing_and_keeps_ten_a_second() {
        let rule = BudgetRule::Bucket { rate: 10.0, burst: 100 };
        let mut balance = Balance::default();
        let turns: Vec<Instant> = (0..150)
            .map(|job| match balance.ask(&rule, at(0), JobId(job), Price::Usual) {
                Answer::NotBefore(turn) => turn,
                other => panic!("{other:?}"),
            })
            .collect();
        assert!(turns[..100].iter().all(|turn| *turn == at(0)), "a burst of a hundred at once");
        assert_eq!(turns[149], at(5000), "then ten a second");
    }

    /// T-57: per call, tokens change by (1−f) − c·f²(1−f) − 2c·f³ with two retries: zero at f = 0.32 for c = 5, 0.215 for 14.
    #[test]
    fn t57_a_token_quota_drains_above_its_break_even_and_not_below() {
        use crate::rng::{Seed, Stream};
        for (cost, even) in [(5.0, 0.32), (14.0, 0.215)] {
            for (failures, drains) in [(even - 0.05, false), (even + 0.05, true)] {
                let rule = aws(cost);
                let mut balance = Balance::default();
                let mut refused = 0;
                for job in 0..20_000 {
                    let mut draw = Seed(5).draw(Stream::Fault, JobId(job), 0);
                    for attempt in 0..3 {
                        let failed = draw.happens(failures);
                        balance.ended(&rule, JobId(job), failed.then_some(Price::Usual));
                        if !failed || attempt == 2 {
                            break;
                        }
                        if balance.ask(&rule, at(job), JobId(job), Price::Usual) == Answer::Refused {
                            refused += 1;
                            break;
                        }
                    }
                }
                assert_eq!(refused > 200, drains, "cost {cost}, failures {failures}: {refused} refused");
            }
        }
    }

    #[test]
    fn envoy_allows_three_retries_at_once() {
        let rule = BudgetRule::Concurrent { most: 3, share: 0.0 };
        let mut balance = Balance::default();
        let mut ask = |job| balance.ask(&rule, at(0), JobId(job), Price::Usual);
        assert_eq!((ask(1), ask(2), ask(3), ask(4)), (Answer::Paid, Answer::Paid, Answer::Paid, Answer::Refused));
        balance.ended(&rule, JobId(2), None);
        assert_eq!(balance.ask(&rule, at(0), JobId(4), Price::Usual), Answer::Paid);
    }

    proptest! {
        #[test]
        fn a_balance_is_never_negative(events in proptest::collection::vec((0..3_u8, 0..20_u64, 0..100_u64), 1..300), which in 0..4_usize) {
            let rule = [
                AWS,
                BudgetRule::Ratio { share: 0.2, floor: 0.5, window: Duration::from_secs(2) },
                BudgetRule::Concurrent { most: 3, share: 0.2 },
                BudgetRule::Tokens { max: 10.0, cost: 1.0, timeout_cost: 1.0, throttled_cost: 1.0, refill: 0.1, refund: false, threshold: 5.0, on_failure: true },
            ][which];
            let mut balance = Balance::default();
            let mut now = 0;
            for (what, job, step) in events {
                now += step;
                match what {
                    0 => balance.called(&rule, at(now), true),
                    1 => balance.ended(&rule, JobId(job), (step % 2 == 0).then_some(Price::Timeout)),
                    _ => {
                        let before = balance.left(&rule, at(now));
                        let answer = balance.ask(&rule, at(now), JobId(job), Price::Usual);
                        prop_assert!(answer != Answer::Paid || before >= 0.0);
                    }
                }
                if matches!(rule, BudgetRule::Tokens { .. }) {
                    prop_assert!(balance.left(&rule, at(now)) >= 0.0);
                }
            }
        }
    }
}
