//! Distributions of times: recorded in a few hundred kilobytes, whatever their number, with three significant digits.

use hdrhistogram::Histogram as HdrHistogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use crate::readable_bytes;

const SIGNIFICANT_DIGITS: u8 = 3;
const LONGEST: u64 = 3_600_000_000_000;

/// The unit of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Packets.
    #[serde(rename = "packets")]
    Packets,
}

/// A distribution, summed up and whole. The quantiles are exact to three significant digits, all else entirely.
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
    /// Standard deviation.
    pub deviation: f64,
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// The whole distribution as HdrHistogram's compressed V2 encoding, which its libraries in all languages read.
    #[serde(with = "readable_bytes")]
    pub encoded: ByteBuf,
}

impl Histogram {
    /// How many values are above `value`, to three significant digits of it; none where `encoded` is no histogram.
    #[must_use]
    pub fn count_above(&self, value: u64) -> Option<u64> {
        let whole: HdrHistogram<u64> = Deserializer::new()
            .deserialize(&mut self.encoded.as_slice())
            .ok()?;
        Some(whole.len() - whole.count_between(0, value))
    }

    /// Takes the quantiles from `recorded` and all else from `exact`.
    pub(crate) fn of(
        unit: Unit,
        recorded: &HdrHistogram<u64>,
        exact: &Moments,
        negative: u64,
    ) -> Self {
        let mut encoded = Vec::new();
        V2DeflateSerializer::new()
            .serialize(recorded, &mut encoded)
            .expect("writing to memory does not fail and the counts are below 2^63");
        let (min, max) = (exact.min() as u64, exact.max() as u64);
        let quantile = |quantile| recorded.value_at_quantile(quantile).clamp(min, max);
        Self {
            unit,
            count: exact.count(),
            negative,
            min,
            max,
            mean: exact.mean(),
            deviation: exact.deviation(),
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p999: quantile(0.999),
            encoded: ByteBuf::from(encoded),
        }
    }
}

/// An empty distribution for values of up to an hour in nanoseconds.
pub(crate) fn empty() -> HdrHistogram<u64> {
    HdrHistogram::new_with_bounds(1, LONGEST, SIGNIFICANT_DIGITS)
        .expect("an hour in nanoseconds with three digits is within what the library documents")
}

/// Takes values one by one.
pub(crate) struct Recorder {
    unit: Unit,
    histogram: HdrHistogram<u64>,
    exact: Moments,
    negative: u64,
}

impl Recorder {
    /// For times.
    pub fn new() -> Self {
        Self::of(Unit::Nanoseconds)
    }

    /// For numbers of packets.
    pub fn of_packets() -> Self {
        Self::of(Unit::Packets)
    }

    fn of(unit: Unit) -> Self {
        Self {
            unit,
            histogram: empty(),
            exact: Moments::new(),
            negative: 0,
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
        let value = value.max(0);
        self.exact.add(value, count);
        self.histogram.saturating_record_n(value as u64, count);
    }

    /// Adds what another recorder of the same unit took.
    pub fn merge(&mut self, other: &Self) {
        self.histogram
            .add(&other.histogram)
            .expect("all recorders have the same bounds");
        self.exact.merge(&other.exact);
        self.negative += other.negative;
    }

    /// None where nothing was recorded.
    pub fn finish(self) -> Option<Histogram> {
        (self.exact.count() > 0)
            .then(|| Histogram::of(self.unit, &self.histogram, &self.exact, self.negative))
    }
}

/// Count, extremes, mean and deviation of values up to a few days in nanoseconds: exact, as all sums are of integers.
#[derive(Clone, Debug)]
pub(crate) struct Moments {
    count: u64,
    min: i64,
    max: i64,
    sum: i128,
    /// The first value. Squares are of distances from it, so that large values with small differences keep their digits.
    origin: i64,
    squares: u128,
}

impl Moments {
    pub fn new() -> Self {
        Self {
            count: 0,
            min: i64::MAX,
            max: i64::MIN,
            sum: 0,
            origin: 0,
            squares: 0,
        }
    }

    pub fn add(&mut self, value: i64, count: u64) {
        if self.count == 0 {
            self.origin = value;
        }
        self.count += count;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += i128::from(value) * i128::from(count);
        let distance = u128::from(value.abs_diff(self.origin));
        self.squares += distance * distance * u128::from(count);
    }

    /// Adds what others were added to.
    pub fn merge(&mut self, other: &Self) {
        if self.count == 0 {
            self.clone_from(other);
            return;
        }
        if other.count == 0 {
            return;
        }
        let (count, apart) = (
            i128::from(other.count),
            i128::from(other.origin) - i128::from(self.origin),
        );
        let distances = other.sum - i128::from(other.origin) * count;
        let moved = 2 * apart * distances + apart * apart * count;
        self.squares = self
            .squares
            .wrapping_add(other.squares)
            .wrapping_add_signed(moved);
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn min(&self) -> i64 {
        self.min
    }

    pub fn max(&self) -> i64 {
        self.max
    }

    /// The mean; not a number where there is no value.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count as f64
    }

    /// The standard deviation of the values as a whole population.
    pub fn deviation(&self) -> f64 {
        let count = self.count as f64;
        let distances = self.sum - i128::from(self.origin) * i128::from(self.count);
        let mean = distances as f64 / count;
        (self.squares as f64 / count - mean * mean).max(0.0).sqrt()
    }

    /// Of the same values with `by` added to each.
    pub fn shifted(&self, by: i64) -> Self {
        Self {
            count: self.count,
            min: self.min + by,
            max: self.max + by,
            sum: self.sum + i128::from(by) * i128::from(self.count),
            origin: self.origin + by,
            squares: self.squares,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn histogram(values: &[i64]) -> Option<Histogram> {
        let mut recorder = Recorder::new();
        values.iter().for_each(|value| recorder.record(*value));
        recorder.finish()
    }

    #[test]
    fn the_encoding_is_base64_in_json_and_bytes_in_messagepack() {
        let histogram = histogram(&[1, 2, 3]).unwrap();
        let json = serde_json::to_value(&histogram).unwrap();
        // HdrHistogram's logs write it like this too: base64 of the cookie of compressed V2.
        assert!(json["encoded"].as_str().unwrap().starts_with("HISTFAAA"));
        assert_eq!(
            serde_json::from_value::<Histogram>(json).unwrap(),
            histogram
        );
        let packed = rmp_serde::to_vec_named(&histogram).unwrap();
        assert!(
            packed
                .windows(histogram.encoded.len())
                .any(|part| part == histogram.encoded.as_slice())
        );
        assert_eq!(
            rmp_serde::from_slice::<Histogram>(&packed).unwrap(),
            histogram
        );
    }

    #[test]
    fn nothing_recorded_is_no_histogram() {
        assert_eq!(histogram(&[]), None);
    }

    proptest! {
        #[test]
        fn recorders_add_up(
            first in prop::collection::vec(0_i64..10_000_000_000, 0..50),
            second in prop::collection::vec(0_i64..10_000_000_000, 0..50),
        ) {
            let (mut all, mut other) = (Recorder::new(), Recorder::new());
            first.iter().for_each(|value| all.record(*value));
            second.iter().for_each(|value| other.record(*value));
            all.merge(&other);
            let whole = [first, second].concat();
            prop_assert_eq!(
                all.finish().map(|merged| (merged.count, merged.min, merged.max, merged.mean, merged.encoded)),
                histogram(&whole).map(|whole| (whole.count, whole.min, whole.max, whole.mean, whole.encoded))
            );
        }

        #[test]
        fn deviations_add_up(values in prop::collection::vec(0_i64..10_000_000_000, 2..50), cut in 0_usize..50) {
            let (first, second) = values.split_at(cut.min(values.len()));
            let moments = |values: &[i64]| values.iter().fold(Moments::new(), |mut moments, value| {
                moments.add(*value, 1);
                moments
            });
            let mut merged = moments(first);
            merged.merge(&moments(second));
            prop_assert_eq!(merged.deviation(), moments(&values).deviation());
        }
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

    #[test]
    fn values_above_another_are_counted() {
        let histogram = histogram(&[10, 20, 30, 40_000_000, 41_000_000]).unwrap();
        let above = [0, 20, 40_000_000, 42_000_000].map(|value| histogram.count_above(value));
        assert_eq!(above, [Some(5), Some(3), Some(1), Some(0)]);
        let broken = Histogram {
            encoded: ByteBuf::from(vec![1, 2, 3]),
            ..histogram
        };
        assert_eq!(broken.count_above(0), None);
    }

    #[test]
    fn small_differences_of_large_values_keep_their_digits() {
        let values: Vec<i64> = (0..1000)
            .map(|index| 3_000_000_000_000 + index % 2)
            .collect();
        assert_eq!(histogram(&values).unwrap().deviation, 0.5);
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
            let count = sorted.len() as f64;
            let mean = sorted.iter().sum::<i64>() as f64 / count;
            let variance = sorted.iter().map(|value| (*value as f64 - mean).powi(2)).sum::<f64>() / count;
            prop_assert!((histogram.mean - mean).abs() <= mean * 1e-12);
            prop_assert!((histogram.deviation - variance.sqrt()).abs() <= variance.sqrt() * 1e-6 + 1e-3);
        }

        #[test]
        fn the_encoding_holds_all_values(values in prop::collection::vec(0_i64..LONGEST as i64 * 2, 1..300)) {
            let histogram = histogram(&values).unwrap();
            let decoded: HdrHistogram<u64> = Deserializer::new().deserialize(&mut histogram.encoded.as_slice()).unwrap();
            prop_assert_eq!(decoded.len(), values.len() as u64);
            prop_assert_eq!(decoded.value_at_quantile(0.5).clamp(histogram.min, histogram.max), histogram.p50);
        }
    }
}
