//! Lengths of time as people write them.

use std::time::Duration;

const UNITS: [(&str, f64); 6] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("ms", 1e6),
    ("min", 60e9),
    ("h", 3600e9),
    ("s", 1e9),
];

/// Reads a length such as `100ms`, `1.5s` or `2min`; a bare number counts seconds.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let (number, factor) = UNITS
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)))
        .unwrap_or((text, 1e9));
    match number.trim().parse::<f64>() {
        Ok(number) if number > 0.0 && number * factor <= 3600e9 => {
            Ok(Duration::from_nanos((number * factor).round() as u64))
        }
        Ok(_) => Err("a window is longer than nothing and no longer than an hour".into()),
        Err(_) => Err("write a length such as `100ms`, `1s` or `2min`".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_units() {
        for (text, nanoseconds) in [
            ("100ms", 100_000_000),
            ("1s", 1_000_000_000),
            ("0.5", 500_000_000),
            ("2 min", 120_000_000_000),
            ("7us", 7_000),
            ("1h", 3_600_000_000_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_nanos(nanoseconds)), "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "ms", "x", "-1s", "0", "2h", "nan", "inf", "1e300s"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
