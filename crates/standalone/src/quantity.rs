//! Rates, times and sizes as people write and read them.

use std::time::Duration;

use tunnelbench_traffic::process::Departures;

/// Reads `max`, payload bits per second such as `50Mbit`, or datagrams per second such as `10000pps`.
///
/// # Errors
/// What is wrong with any other text.
pub fn parse_rate(text: &str) -> Result<Departures, String> {
    if text == "max" {
        return Ok(Departures::Max);
    }
    let (number, unit) = split(text)?;
    let of = |factor: f64| whole(number * factor, text);
    match unit {
        "pps" => Ok(Departures::PacketsPerSecond { value: of(1.0)? }),
        "kpps" => Ok(Departures::PacketsPerSecond { value: of(1e3)? }),
        "Mpps" => Ok(Departures::PacketsPerSecond { value: of(1e6)? }),
        _ => match bit_factor(unit) {
            Some(factor) => Ok(Departures::BitsPerSecond { value: of(factor)? }),
            None => Err(format!(
                "`{text}` is no rate: write `max`, `50Mbit` or `10000pps`"
            )),
        },
    }
}

/// Reads bits per second such as `1Gbit`.
///
/// # Errors
/// What is wrong with any other text.
pub fn parse_bits(text: &str) -> Result<u64, String> {
    match parse_rate(text)? {
        Departures::BitsPerSecond { value } => Ok(value),
        _ => Err(format!(
            "`{text}` is no bit rate: write for example `1Gbit`"
        )),
    }
}

/// Reads a time such as `10ms`, `1.5s` or `2min`; a bare number counts seconds.
///
/// # Errors
/// What is wrong with any other text.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text)?;
    let nanoseconds = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" | "" => 1e9,
        "min" => 60e9,
        "h" => 3600e9,
        _ => {
            return Err(format!(
                "`{text}` is no time: write for example `10ms`, `30s` or `2min`"
            ));
        }
    };
    // Longer than any session, and far from overflowing when times are added up.
    if number * nanoseconds > 1e18 {
        return Err(format!("`{text}` is too long"));
    }
    Ok(Duration::from_nanos((number * nanoseconds).round() as u64))
}

/// For example `940.3 Mbit/s`.
pub(crate) fn bits_per_second(rate: f64) -> String {
    scaled(
        rate,
        &[(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")],
        "bit/s",
    )
}

/// For example `412.7 k/s`.
pub(crate) fn packets_per_second(rate: f64) -> String {
    scaled(rate, &[(1e6, "M/s"), (1e3, "k/s")], "/s")
}

/// For example `1.25 ms`.
pub(crate) fn duration(nanoseconds: u128) -> String {
    signed_duration(nanoseconds as f64)
}

/// The same of a time that may be negative.
pub(crate) fn signed_duration(nanoseconds: f64) -> String {
    scaled(nanoseconds, &[(1e9, "s"), (1e6, "ms"), (1e3, "µs")], "ns")
}

fn scaled(value: f64, units: &[(f64, &str)], smallest: &str) -> String {
    let (factor, unit) = units
        .iter()
        .find(|(factor, _)| value.abs() >= *factor)
        .copied()
        .unwrap_or((1.0, smallest));
    let value = value / factor;
    // Four significant digits, as far as they say anything.
    let digits = match value.abs() {
        _ if factor == 1.0 && value.fract() == 0.0 => 0,
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    format!("{text} {unit}")
}

fn bit_factor(unit: &str) -> Option<f64> {
    match unit.strip_suffix("/s").unwrap_or(unit) {
        "bit" => Some(1.0),
        "kbit" => Some(1e3),
        "Mbit" => Some(1e6),
        "Gbit" => Some(1e9),
        _ => None,
    }
}

fn split(text: &str) -> Result<(f64, &str), String> {
    let end = text
        .find(|sign: char| !sign.is_ascii_digit() && sign != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number = number
        .parse()
        .map_err(|_| format!("`{text}` does not begin with a number"))?;
    Ok((number, unit))
}

fn whole(value: f64, text: &str) -> Result<u64, String> {
    match value.round() {
        value if (1.0..1e15).contains(&value) => Ok(value as u64),
        _ => Err(format!("`{text}` is not between 1 and 10^15 per second")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rates_are_read_as_written() {
        let rate = |text| parse_rate(text).unwrap();
        assert_eq!(rate("max"), Departures::Max);
        assert_eq!(
            rate("50Mbit"),
            Departures::BitsPerSecond { value: 50_000_000 }
        );
        assert_eq!(
            rate("1.5Gbit/s"),
            Departures::BitsPerSecond {
                value: 1_500_000_000
            }
        );
        assert_eq!(
            rate("10000pps"),
            Departures::PacketsPerSecond { value: 10_000 }
        );
        for wrong in [
            "", "50", "50mbit", "0pps", "-1Mbit", "1e99pps", "Mbit", "1..2bit",
        ] {
            assert!(parse_rate(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_bits("1Gbit"), Ok(1_000_000_000));
        assert!(parse_bits("1pps").is_err());
    }

    #[test]
    fn times_are_read_as_written() {
        assert_eq!(parse_duration("10ms"), Ok(Duration::from_millis(10)));
        assert_eq!(parse_duration("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_duration("2min"), Ok(Duration::from_secs(120)));
        for wrong in ["", "ms", "10 m", "9999999999999h", "-1s"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn figures_have_the_unit_that_suits_them() {
        assert_eq!(bits_per_second(940_312_345.0), "940.3 Mbit/s");
        assert_eq!(packets_per_second(999.0), "999 /s");
        assert_eq!(duration(1_250_000), "1.25 ms");
        assert_eq!(signed_duration(-20_000.0), "-20 µs");
        assert_eq!(duration(0), "0 ns");
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "\\PC{0,12}") {
            let _ = (parse_rate(&text), parse_bits(&text), parse_duration(&text));
        }
    }
}
