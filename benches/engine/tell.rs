//! Figures as lines: medians and ratios.

use std::time::Duration;

use super::place::Spent;

/// What one contender did in each round.
#[derive(Clone, Default)]
pub struct Rounds(pub Vec<(u64, Spent)>);

impl Rounds {
    pub fn add(&mut self, jobs: u64, spent: Spent) {
        self.0.push((jobs, spent));
    }

    /// Median jobs per second.
    pub fn rate(&self) -> f64 {
        median(self.0.iter().map(|(jobs, spent)| *jobs as f64 / spent.wall.as_secs_f64()).collect())
    }

    /// Median processor time per job, in microseconds.
    fn micros(&self, of: fn(&Spent) -> Duration) -> f64 {
        median(self.0.iter().map(|(jobs, spent)| of(spent).as_secs_f64() * 1e6 / *jobs as f64).collect())
    }

    pub fn tell(&self, name: &str, beside: Option<(&str, &Rounds)>) {
        let ratio = beside.map_or(String::new(), |(what, limit)| format!("  {:.2} of {what}", self.rate() / limit.rate()));
        println!(
            "{name:<44} {:>9.0} jobs/s  {:>6.1} us here  {:>6.1} us in the server{ratio}",
            self.rate(),
            self.micros(|spent| spent.client),
            self.micros(|spent| spent.server),
        );
    }
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
