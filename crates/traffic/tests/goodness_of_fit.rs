//! Whether samples follow their distributions. Each test also rejects the same samples against a parameter that is a
//! little off, so that passing means something.

use statrs::distribution::{
    Cauchy, ChiSquared, ContinuousCDF, Discrete, Exp, Gamma, Normal, Pareto, Poisson, StudentsT,
    Uniform, Weibull,
};
use tunnelbench_traffic::process::Distribution;

const SEED: u64 = 1;
const SAMPLES: usize = 50_000;

/// The critical value of the Kolmogorov–Smirnov statistic times the root of the number of samples, at 1 %.
const CRITICAL: f64 = 1.628;

fn samples(distribution: &Distribution) -> Vec<f64> {
    distribution.validate().unwrap();
    let mut sampler = distribution.sampler(SEED);
    (0..SAMPLES).map(|_| sampler.next()).collect()
}

fn distance(distribution: &Distribution, cdf: impl Fn(f64) -> f64) -> f64 {
    distance_of(samples(distribution), cdf)
}

/// The greatest distance between the share of samples up to a value and `cdf` (Kolmogorov–Smirnov), scaled.
fn distance_of(mut samples: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
    samples.sort_unstable_by(f64::total_cmp);
    let count = samples.len() as f64;
    let greatest = samples
        .iter()
        .enumerate()
        .map(|(below, value)| {
            let expected = cdf(*value);
            let (below, up_to) = (below as f64 / count, (below + 1) as f64 / count);
            (expected - below).abs().max((up_to - expected).abs())
        })
        .fold(0.0, f64::max);
    greatest * count.sqrt()
}

fn fits<C: ContinuousCDF<f64, f64>>(distribution: &Distribution, right: &C, wrong: &[C]) {
    let found = distance(distribution, |value| right.cdf(value));
    assert!(found < CRITICAL, "{distribution:?}: {found}");
    for other in wrong {
        let found = distance(distribution, |value| other.cdf(value));
        assert!(found > CRITICAL, "{distribution:?}: {found} passes too");
    }
}

#[test]
fn uniform() {
    let distribution = Distribution::Uniform {
        low: 100.0,
        high: 320.0,
    };
    let cdf = |low, high| Uniform::new(low, high).unwrap();
    let wrong = [cdf(100.0, 326.0), cdf(96.0, 320.0)];
    fits(&distribution, &cdf(100.0, 320.0), &wrong);
}

/// One seed that passes might be luck; of many, as many must fail as the level of the test says.
#[test]
fn seeds_fail_as_often_as_chance_says() {
    let distribution = Distribution::Uniform {
        low: 0.0,
        high: 1.0,
    };
    let beyond_five_percent = (0..400)
        .filter(|seed| {
            let mut sampler = distribution.sampler(*seed);
            let samples = (0..2_000).map(|_| sampler.next()).collect();
            distance_of(samples, |value| value) > 1.358
        })
        .count();
    assert!(
        (8..=34).contains(&beyond_five_percent),
        "{beyond_five_percent}"
    );
}

#[test]
fn exponential() {
    let distribution = Distribution::Exponential { mean: 4.29 };
    let cdf = |mean: f64| Exp::new(1.0 / mean).unwrap();
    fits(&distribution, &cdf(4.29), &[cdf(4.2), cdf(4.4)]);
}

#[test]
fn normal() {
    let distribution = Distribution::Normal {
        mean: 64.15,
        deviation: 3.2,
    };
    let cdf = |mean, deviation| Normal::new(mean, deviation).unwrap();
    let wrong = [cdf(64.23, 3.2), cdf(64.15, 3.3)];
    fits(&distribution, &cdf(64.15, 3.2), &wrong);
}

#[test]
fn pareto() {
    let distribution = Distribution::Pareto {
        shape: 0.95,
        scale: 1.1,
    };
    let cdf = |scale, shape| Pareto::new(scale, shape).unwrap();
    fits(
        &distribution,
        &cdf(1.1, 0.95),
        &[cdf(1.1, 0.98), cdf(1.08, 0.95)],
    );
}

#[test]
fn cauchy() {
    let distribution = Distribution::Cauchy {
        location: -3.0,
        scale: 2.0,
    };
    let cdf = |location, scale| Cauchy::new(location, scale).unwrap();
    fits(
        &distribution,
        &cdf(-3.0, 2.0),
        &[cdf(-2.92, 2.0), cdf(-3.0, 2.1)],
    );
}

#[test]
fn student() {
    for degrees in [0.704, 1.083, 7.0] {
        let distribution = Distribution::Student {
            location: 41.7,
            scale: 0.1,
            degrees,
        };
        let cdf = |location, scale, degrees| StudentsT::new(location, scale, degrees).unwrap();
        let wrong = [
            cdf(41.71, 0.1, degrees),
            cdf(41.7, 0.106, degrees),
            cdf(41.7, 0.1, degrees * 0.7),
        ];
        fits(&distribution, &cdf(41.7, 0.1, degrees), &wrong);
    }
}

#[test]
fn gamma() {
    for shape in [0.3, 1.0, 2.5, 40.0] {
        let distribution = Distribution::Gamma { shape, scale: 2.0 };
        let cdf = |shape, scale: f64| Gamma::new(shape, 1.0 / scale).unwrap();
        let wrong = [cdf(shape * 1.04, 2.0), cdf(shape, 2.1)];
        fits(&distribution, &cdf(shape, 2.0), &wrong);
    }
}

#[test]
fn weibull() {
    for shape in [0.7, 2.0] {
        let distribution = Distribution::Weibull { shape, scale: 5.0 };
        let cdf = |shape, scale| Weibull::new(shape, scale).unwrap();
        let wrong = [cdf(shape * 1.05, 5.0), cdf(shape, 5.2)];
        fits(&distribution, &cdf(shape, 5.0), &wrong);
    }
}

#[test]
fn mixture() {
    let distribution = Distribution::Mixture {
        parts: vec![
            Distribution::Normal {
                mean: 34.8352,
                deviation: 4.3915,
            },
            Distribution::Normal {
                mean: 49.4904,
                deviation: 3.6186,
            },
        ],
        weights: vec![0.3732, 0.6268],
    };
    let first = Normal::new(34.8352, 4.3915).unwrap();
    let second = Normal::new(49.4904, 3.6186).unwrap();
    let fit = |share: f64| {
        distance(&distribution, |value| {
            share * first.cdf(value) + (1.0 - share) * second.cdf(value)
        })
    };
    assert!(fit(0.3732) < CRITICAL);
    assert!(fit(0.39) > CRITICAL);
}

/// The probability of counts at least this far from those expected (Pearson's chi-squared test). Neighbours are put
/// together until at least 10 are expected.
fn chi_squared(observed: &[f64], expected: &[f64]) -> f64 {
    let mut statistic = 0.0;
    let mut cells = 0;
    let (mut seen, mut wanted) = (0.0, 0.0);
    for (index, (one, other)) in observed.iter().zip(expected).enumerate() {
        (seen, wanted) = (seen + one, wanted + other);
        let left: f64 = expected[index + 1..].iter().sum();
        if wanted >= 10.0 && (left >= 10.0 || left == 0.0) {
            statistic += (seen - wanted).powi(2) / wanted;
            cells += 1;
            (seen, wanted) = (0.0, 0.0);
        }
    }
    statistic += if wanted > 0.0 {
        (seen - wanted).powi(2) / wanted
    } else {
        0.0
    };
    cells += usize::from(wanted > 0.0);
    1.0 - ChiSquared::new((cells - 1) as f64).unwrap().cdf(statistic)
}

#[test]
fn poisson() {
    for mean in [0.5, 9.9, 10.0, 1_000.0] {
        let drawn = samples(&Distribution::Poisson { mean });
        assert!(
            drawn
                .iter()
                .all(|value| *value >= 0.0 && value.fract() == 0.0)
        );
        let most = (mean + 8.0 * mean.sqrt() + 10.0) as usize;
        let mut observed = vec![0.0; most + 1];
        drawn
            .iter()
            .for_each(|value| observed[(*value as usize).min(most)] += 1.0);
        let probability = |mean: f64| {
            let right = Poisson::new(mean).unwrap();
            let expected: Vec<f64> = (0..=most)
                .map(|count| right.pmf(count as u64) * SAMPLES as f64)
                .collect();
            chi_squared(&observed, &expected)
        };
        let (right, wrong) = (probability(mean), probability(mean + 0.04 * mean.sqrt()));
        assert!(right > 0.01, "mean {mean}: {right}");
        assert!(wrong < 0.01, "mean {mean}: {wrong} passes too");
    }
}

#[test]
fn choice() {
    let values = [12.0, 548.0, 1_472.0, 3.0];
    let drawn = samples(&Distribution::Choice {
        values: values.to_vec(),
        weights: vec![7.0, 4.0, 1.0, 0.0],
    });
    let observed = values.map(|value| drawn.iter().filter(|drawn| **drawn == value).count() as f64);
    assert_eq!(observed[3], 0.0);
    let probability = |weights: [f64; 3]| {
        let total: f64 = weights.iter().sum();
        let expected = weights.map(|weight| weight / total * SAMPLES as f64);
        chi_squared(&observed[..3], &expected)
    };
    assert!(probability([7.0, 4.0, 1.0]) > 0.01);
    assert!(probability([7.0, 4.0, 1.1]) < 0.01);
}
