//! Inter-arrival jitter as RTP receivers report it.

/// The estimator of RFC 3550 section 6.4.1: `J += (|D| - J) / 16`, where D is by how much the time between two arrivals
/// differs from the time between their intended departures.
#[derive(Debug, Default)]
pub(crate) struct Jitter {
    last_transit: Option<i64>,
    estimate: f64,
    sum: f64,
    count: u64,
}

impl Jitter {
    /// `transit` is arrival minus intended departure, ns; a constant offset between two clocks cancels out.
    pub fn observe(&mut self, transit: i64) {
        if let Some(last) = self.last_transit.replace(transit) {
            self.estimate += (transit.abs_diff(last) as f64 - self.estimate) / 16.0;
            self.sum += self.estimate;
            self.count += 1;
        }
    }

    /// The estimate after the last arrival, ns.
    pub fn last(&self) -> Option<f64> {
        (self.count > 0).then_some(self.estimate)
    }

    /// The mean of the estimate over all arrivals but the first, ns.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jitter(transits: &[i64]) -> Jitter {
        let mut jitter = Jitter::default();
        transits.iter().for_each(|transit| jitter.observe(*transit));
        jitter
    }

    #[test]
    fn equal_transits_have_none_whatever_the_clock_offset() {
        assert_eq!(jitter(&[-7_000; 50]).last(), Some(0.0));
        assert_eq!(jitter(&[-7_000; 50]).mean(), Some(0.0));
    }

    #[test]
    fn follows_the_formula() {
        let jitter = jitter(&[0, 160, 160]);
        assert_eq!(jitter.last(), Some(10.0 - 10.0 / 16.0));
        assert_eq!(jitter.mean(), Some((10.0 + 9.375) / 2.0));
    }

    #[test]
    fn alternating_transits_converge_to_their_difference() {
        let transits: Vec<i64> = (0..1000)
            .map(|index| if index % 2 == 0 { 0 } else { 500 })
            .collect();
        assert!((jitter(&transits).last().unwrap() - 500.0).abs() < 1e-6);
    }

    #[test]
    fn one_arrival_has_no_jitter() {
        assert_eq!(jitter(&[5]).last(), None);
        assert_eq!(jitter(&[]).mean(), None);
    }
}
