//! The textbooks' closed forms. Loads are in Erlang, mean service times are 1.
//!
//! Sources: Kleinrock, "Queueing Systems", vol. 1, 1975; Falin and Templeton, "Retrial Queues", 1997; Lazowska et al., "Quantitative
//! System Performance", 1984.

/// Erlang B: the share of calls that `servers` without a queue lose, by the stable recursion.
pub(super) fn erlang_b(servers: u32, load: f64) -> f64 {
    (1..=servers).fold(1.0, |loss, k| load * loss / (f64::from(k) + load * loss))
}

/// Erlang C: the share of calls that wait in M/M/c.
pub(super) fn erlang_c(servers: u32, load: f64) -> f64 {
    let (loss, utilisation) = (erlang_b(servers, load), load / f64::from(servers));
    loss / (1.0 - utilisation + utilisation * loss)
}

/// The mean wait in M/M/c.
pub(super) fn wait(servers: u32, load: f64) -> f64 {
    erlang_c(servers, load) / (f64::from(servers) - load)
}

/// The wait that one call in a hundred exceeds in M/M/c.
pub(super) fn wait_p99(servers: u32, load: f64) -> f64 {
    (100.0 * erlang_c(servers, load)).ln() / (f64::from(servers) - load)
}

/// Pollaczek and Khinchine: the mean wait in M/G/1, for a service time with this squared coefficient of variation.
pub(super) fn wait_of_any_shape(load: f64, cv2: f64) -> f64 {
    load * (1.0 + cv2) / (2.0 * (1.0 - load))
}

/// The share that M/M/1 with room for `places` calls, the one in service among them, loses.
pub(super) fn loss_of_bounded(load: f64, places: u32) -> f64 {
    if load == 1.0 {
        return 1.0 / f64::from(places + 1);
    }
    let places = places as i32;
    (1.0 - load) * load.powi(places) / (1.0 - load.powi(places + 1))
}

/// Tries per job where a busy server rejects, and each rejected job comes back after an exponential delay of rate `theta`, for ever.
pub(super) fn retrial_tries(load: f64, theta: f64) -> f64 {
    1.0 + theta * retrial_orbit(load, theta) / load
}

/// Jobs that back off at a time, in the same model.
pub(super) fn retrial_orbit(load: f64, theta: f64) -> f64 {
    load * (load + load * theta) / ((1.0 - load) * theta)
}

/// The mean response time of one server to `clients` that think for `think` on average between an answer and the next call: exact mean
/// value analysis.
pub(super) fn closed_response(clients: u32, think: f64) -> f64 {
    let mut response = 1.0;
    let mut queue = 0.0;
    for n in 1..=clients {
        response = 1.0 + queue;
        queue = f64::from(n) / (think + response) * response;
    }
    response
}

/// The n-th harmonic number: the mean of the greatest of n exponential times of mean 1.
pub(super) fn harmonic(n: u32) -> f64 {
    (1..=n).map(|k| 1.0 / f64::from(k)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: f64, published: f64) {
        assert!((value / published - 1.0).abs() < 5e-7, "{value} is not {published}");
    }

    #[test]
    fn the_formulas_give_the_published_figures() {
        for (servers, utilisation, delayed, mean, p99) in [
            (2, 0.5, 0.333_333_333_3, 0.333_333_333_3, 3.506_558),
            (4, 0.8, 0.596_432_471_8, 0.745_540_589_7, 5.110_476),
            (10, 0.7, 0.221_731_215_9, 0.073_910_405_3, 1.032_960),
            (50, 0.9, 0.363_864_467_2, 0.072_772_893_4, 0.718_839),
        ] {
            let load = utilisation * f64::from(servers);
            near(erlang_c(servers, load), delayed);
            near(wait(servers, load), mean);
            assert!((wait_p99(servers, load) - p99).abs() < 1e-6);
        }
        near(erlang_b(4, 3.2), 0.228_144_93);
        near(erlang_b(100, 90.0), 0.026_957_380_5);
        near(loss_of_bounded(0.8, 5), 0.088_819_498_7);
        near(loss_of_bounded(1.0, 10), 0.090_909_090_9);
        near(wait_of_any_shape(0.8, 1.0 / 3.0), 2.666_666_67);
        near(retrial_orbit(0.7, 0.1), 17.966_666_67);
        near(retrial_tries(0.7, 1.0), 5.666_666_67);
        near(closed_response(10, 11.45), 2.419_631_7);
        near(closed_response(20, 10.0), 10.037_451_0);
        near(harmonic(100), 5.187_377_5);
    }
}
