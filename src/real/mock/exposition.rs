//! The counts for Prometheus, in its text format 0.0.4.

use std::fmt::Write as _;

use super::state::State;
use crate::time::Instant;

/// Everything that is counted, as one page.
pub(super) fn metrics(state: &mut State, now: Instant) -> String {
    let mut page = Page(String::new());
    page.family("simq_mock_requests_total", "counter", "Requests by what the service does with them.");
    for (outcome, count) in &state.outcomes {
        page.value("simq_mock_requests_total", &format!("{{outcome=\"{outcome}\"}}"), *count as f64);
    }
    let in_house = state.downstream.in_house(now) as f64;
    let place = state.downstream.place(now).as_secs_f64();
    let frozen = f64::from(u8::from(state.downstream.is_frozen()));
    for (name, kind, help, value) in [
        ("arrivals_total", "counter", "Requests that reached the model.", state.arrivals as f64),
        ("callers_gone_total", "counter", "Callers that left before they had an answer.", state.gone as f64),
        ("bad_requests_total", "counter", "Requests too large or too slow for the model to see.", state.bad_requests as f64),
        ("connections", "gauge", "Connections held.", state.connections as f64),
        (
            "connections_turned_away_total",
            "counter",
            "Connections beyond the most there may be.",
            state.connections_turned_away as f64,
        ),
        ("in_house", "gauge", "Requests that are worked on or wait for a server.", in_house),
        ("timeline_seconds", "gauge", "Where the timeline is.", place),
        ("timeline_frozen", "gauge", "Whether it stands still.", frozen),
    ] {
        let name = format!("simq_mock_{name}");
        page.family(&name, kind, help);
        page.value(&name, "", value);
    }
    page.family("simq_mock_fault_active", "gauge", "Whether a fault strikes at this moment.");
    for fault in state.downstream.faults(now) {
        let labels = format!("{{id=\"{}\",mode=\"{}\"}}", fault.id, fault.outage.mode.name());
        page.value("simq_mock_fault_active", &labels, f64::from(u8::from(fault.active)));
    }
    lateness(&mut page, state);
    page.0
}

fn lateness(page: &mut Page, state: &State) {
    let name = "simq_mock_lateness_seconds";
    page.family(name, "summary", "By how much answers left later than the model said.");
    for quantile in [0.5, 0.99, 1.0] {
        let seconds = state.lateness.value_at_quantile(quantile) as f64 / 1e6;
        page.value(name, &format!("{{quantile=\"{quantile}\"}}"), seconds);
    }
    page.value(&format!("{name}_sum"), "", state.late.as_secs_f64());
    page.value(&format!("{name}_count"), "", state.lateness.len() as f64);
}

struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn value(&mut self, name: &str, labels: &str, value: f64) {
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }
}
