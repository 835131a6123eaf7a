//! What `simq verify` shows, on a smaller scale: a test for each subject, and each of its checks with its own tolerance.

use simq::verify::{CHAPTERS, Effort};

fn holds(title: &str) {
    let chapter = CHAPTERS.iter().find(|chapter| chapter.title == title).expect("there is such a chapter");
    let checks = (chapter.run)(&Effort::SMALL);
    assert!(checks.len() >= 6, "{title} has checks");
    let off: Vec<String> = checks.iter().filter(|check| !check.holds()).map(|check| format!("{check:?}")).collect();
    assert!(off.is_empty(), "{title}:\n  {}", off.join("\n  "));
}

#[test]
fn queues_behave_as_theory_says() {
    holds("Queues");
}

#[test]
fn backoff_at_a_busy_server_behaves_as_the_retrial_queue() {
    holds("Backoff at a busy server");
}

#[test]
fn a_closed_loop_behaves_as_mean_value_analysis_says() {
    holds("A closed loop");
}

#[test]
fn tries_follow_the_powers_and_budgets_bound_them() {
    holds("Tries");
}

#[test]
fn delays_have_the_moments_of_their_distributions() {
    holds("Delays");
}

#[test]
fn stampedes_peak_as_balls_in_bins_and_a_herd_as_counted_by_hand() {
    holds("Stampedes");
}

#[test]
fn outages_follow_renewal_theory_and_lose_nothing() {
    holds("Outages");
}

#[test]
fn contention_of_10_agrees_with_the_published_simulator() {
    holds("Contention, 10 clients");
}

#[test]
fn contention_of_20_agrees_with_the_published_simulator() {
    holds("Contention, 20 clients");
}

#[test]
fn contention_of_50_agrees_with_the_published_simulator() {
    holds("Contention, 50 clients");
}

#[test]
fn contention_of_100_agrees_with_the_published_simulator() {
    holds("Contention, 100 clients");
}

#[test]
fn contention_of_one_and_two_can_be_counted() {
    holds("Contention, exactly");
}

#[test]
fn every_chapter_has_a_test() {
    let source = include_str!("verify.rs");
    let missing: Vec<&str> =
        CHAPTERS.iter().map(|chapter| chapter.title).filter(|title| !source.contains(&format!("holds(\"{title}\")"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
