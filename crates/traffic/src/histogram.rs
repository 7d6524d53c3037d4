//! Distributions of times: recorded in a few hundred kilobytes, whatever their number, with three significant digits.

use hdrhistogram::Histogram as HdrHistogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

const SIGNIFICANT_DIGITS: u8 = 3;
const LONGEST: u64 = 3_600_000_000_000;

/// The unit of every histogram of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
}

/// A distribution, summed up and whole. The quantiles are exact to three significant digits, minimum, maximum and mean entirely.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// Unit of all values.
    pub unit: Unit,
    /// Number of values, at least 1.
    pub count: u64,
    /// Of those, how many were negative and were recorded as 0: a sign of clocks that are apart.
    pub negative: u64,
    /// Smallest.
    pub min: u64,
    /// Largest.
    pub max: u64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// The whole distribution as HdrHistogram's compressed V2 encoding, which its libraries in all languages read.
    pub encoded: ByteBuf,
}

/// Takes values one by one.
pub(crate) struct Recorder {
    histogram: HdrHistogram<u64>,
    negative: u64,
    min: u64,
    max: u64,
    sum: u128,
}

impl Recorder {
    pub fn new() -> Self {
        let histogram = HdrHistogram::new_with_bounds(1, LONGEST, SIGNIFICANT_DIGITS).expect(
            "an hour in nanoseconds with three digits is within what the library documents",
        );
        Self {
            histogram,
            negative: 0,
            min: u64::MAX,
            max: 0,
            sum: 0,
        }
    }

    /// Values below 0 count as 0, values above an hour as an hour in the quantiles.
    pub fn record(&mut self, value: i64) {
        self.record_n(value, 1);
    }

    pub fn record_n(&mut self, value: i64, count: u64) {
        if value < 0 {
            self.negative += count;
        }
        let value = value.max(0) as u64;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += u128::from(value) * u128::from(count);
        self.histogram.saturating_record_n(value, count);
    }

    /// None where nothing was recorded.
    pub fn finish(self) -> Option<Histogram> {
        let count = self.histogram.len();
        if count == 0 {
            return None;
        }
        let mut encoded = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.histogram, &mut encoded)
            .expect("writing to memory does not fail and the counts are below 2^63");
        let quantile = |quantile| self.histogram.value_at_quantile(quantile).min(self.max);
        Some(Histogram {
            unit: Unit::Nanoseconds,
            count,
            negative: self.negative,
            min: self.min,
            max: self.max,
            mean: self.sum as f64 / count as f64,
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p999: quantile(0.999),
            encoded: ByteBuf::from(encoded),
        })
    }
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::Deserializer;
    use proptest::prelude::*;

    use super::*;

    fn histogram(values: &[i64]) -> Option<Histogram> {
        let mut recorder = Recorder::new();
        values.iter().for_each(|value| recorder.record(*value));
        recorder.finish()
    }

    #[test]
    fn nothing_recorded_is_no_histogram() {
        assert_eq!(histogram(&[]), None);
    }

    #[test]
    fn negative_values_are_counted_and_clamped() {
        let histogram = histogram(&[-5, -1, 7]).unwrap();
        assert_eq!(
            (
                histogram.count,
                histogram.negative,
                histogram.min,
                histogram.max
            ),
            (3, 2, 0, 7)
        );
    }

    proptest! {
        #[test]
        fn quantiles_are_those_of_the_sorted_values(
            values in prop::collection::vec(0_i64..10_000_000_000, 1..300),
        ) {
            let histogram = histogram(&values).unwrap();
            let mut sorted = values;
            sorted.sort_unstable();
            for (quantile, found) in [(0.5, histogram.p50), (0.9, histogram.p90), (0.99, histogram.p99)] {
                let rank = (sorted.len() as f64 * quantile).ceil() as usize - 1;
                let exact = sorted[rank] as f64;
                prop_assert!((found as f64 - exact).abs() <= exact * 0.001 + 1.0, "{} is not {}", found, exact);
            }
            prop_assert_eq!(histogram.min as i64, sorted[0]);
            prop_assert_eq!(histogram.max as i64, sorted[sorted.len() - 1]);
        }

        #[test]
        fn the_encoding_holds_all_values(values in prop::collection::vec(0_i64..LONGEST as i64 * 2, 1..300)) {
            let histogram = histogram(&values).unwrap();
            let decoded: HdrHistogram<u64> = Deserializer::new().deserialize(&mut histogram.encoded.as_slice()).unwrap();
            prop_assert_eq!(decoded.len(), values.len() as u64);
            prop_assert_eq!(decoded.value_at_quantile(0.5).min(histogram.max), histogram.p50);
        }
    }
}
