//! How good a voice call would sound: the E-model of ITU-T G.107 (06/2015), with its default values but for what the
//! network and the codec decide.
//!
//! Codec impairments are those of ITU-T G.113 Appendix I (05/2007). A receiver is taken to have a jitter buffer of fixed
//! depth, [`JITTER_BUFFER`]: what comes later than that after the quickest packet is as good as lost.

use serde::{Deserialize, Serialize};

/// How long the jitter buffer holds the quickest packet back, ns: two packets of 20 ms.
pub const JITTER_BUFFER: u64 = 40_000_000;

/// R0, the signal-to-noise ratio of a call with G.107's default values.
const BASIC_SIGNAL_TO_NOISE: f64 = 94.768_8;

/// Is, what loudness, sidetone and quantization take away with G.107's default values.
const SIMULTANEOUS_IMPAIRMENT: f64 = 1.413_6;

/// Roe, the signal-to-noise ratio that talker echo is judged against, with G.107's default values.
const ECHO_SIGNAL_TO_NOISE: f64 = 94.768_8;

/// TELR, the loudness of talker echo, dB: G.107's default, an echo canceller at work.
const TALKER_ECHO: f64 = 65.0;

/// WEPL, the loss along the echo path of the listener, dB: G.107's default.
const LISTENER_ECHO: f64 = 110.0;

/// How speech is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Codec {
    /// 64 kbit/s; lost packets are silence.
    #[serde(rename = "g711")]
    G711,
    /// 64 kbit/s with packet loss concealment (G.711 Appendix I).
    #[serde(rename = "g711_plc")]
    G711Concealed,
    /// 8 kbit/s.
    #[serde(rename = "g729a")]
    G729A,
    /// 6.3 kbit/s.
    #[serde(rename = "g723_1")]
    G723,
}

/// What a call would be like.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VoiceQuality {
    /// Transmission rating, 0 to 100; 93.2 is a call without impairments, below 60 nearly all users are dissatisfied.
    pub r_factor: f64,
    /// Mean opinion score, 1 to 4.5.
    pub mos: f64,
}

impl VoiceQuality {
    /// The quality of a call in one direction.
    ///
    /// `quickest` is the lowest one-way delay of the network, ns; `loss` the share of packets that were lost or came
    /// more than [`JITTER_BUFFER`] after it, 0 to 1; `burst_ratio` that of [`burst_ratio`].
    pub fn of(codec: Codec, quickest: u64, loss: f64, burst_ratio: f64) -> Self {
        let delay = quickest + JITTER_BUFFER + codec.delay();
        let r_factor = r_factor(codec, delay as f64 / 1e6, loss, burst_ratio);
        Self {
            r_factor,
            mos: mean_opinion_score(r_factor),
        }
    }
}

impl Codec {
    /// From the sound to its packet, ns: packets of 20 ms (30 ms for G.723.1) and the look-ahead; computing takes none.
    pub fn delay(self) -> u64 {
        match self {
            Self::G711 | Self::G711Concealed => 20_000_000,
            Self::G729A => 25_000_000,
            Self::G723 => 37_500_000,
        }
    }

    /// Ie and Bpl: what coding takes away, and how well it stands packet loss.
    fn impairment(self) -> (f64, f64) {
        match self {
            Self::G711 => (0.0, 4.3),
            Self::G711Concealed => (0.0, 25.1),
            Self::G729A => (11.0, 19.0),
            Self::G723 => (15.0, 16.1),
        }
    }
}

/// BurstR: how much longer runs of lost packets are, on average, than if each packet were lost by chance; at least 1.
///
/// G.107 trusts a ratio above 2 only for a loss below 2 %.
pub fn burst_ratio(mean_run: f64, loss: f64) -> f64 {
    (mean_run * (1.0 - loss)).max(1.0)
}

/// The transmission rating R of a call whose mouth-to-ear delay is `delay` ms.
fn r_factor(codec: Codec, delay: f64, loss: f64, burst_ratio: f64) -> f64 {
    let (coding, robustness) = codec.impairment();
    let percent = loss * 100.0;
    let equipment = coding + (95.0 - coding) * percent / (percent / burst_ratio + robustness);
    let rating =
        BASIC_SIGNAL_TO_NOISE - SIMULTANEOUS_IMPAIRMENT - delay_impairment(delay) - equipment;
    rating.clamp(0.0, 100.0)
}

/// Id: talker echo, listener echo and the delay itself, for one way of `delay` ms and an echo from the far end.
fn delay_impairment(delay: f64) -> f64 {
    talker_echo(delay) + listener_echo(2.0 * delay) + absolute_delay(delay)
}

fn talker_echo(delay: f64) -> f64 {
    let heard = TALKER_ECHO - 40.0 * ((1.0 + delay / 10.0) / (1.0 + delay / 150.0)).log10()
        + 6.0 * (-0.3 * delay * delay).exp();
    let half = (ECHO_SIGNAL_TO_NOISE - 80.0 - 2.5 * (heard - 14.0)) / 2.0;
    let impairment = (half + (half * half + 100.0).sqrt() - 1.0) * (1.0 - (-delay).exp());
    impairment.max(0.0)
}

fn listener_echo(round_trip: f64) -> f64 {
    let heard = 10.5 * (LISTENER_ECHO + 7.0) * (round_trip + 1.0).powf(-0.25);
    let half = (BASIC_SIGNAL_TO_NOISE - heard) / 2.0;
    half + (half * half + 169.0).sqrt()
}

fn absolute_delay(delay: f64) -> f64 {
    if delay <= 100.0 {
        return 0.0;
    }
    let x = (delay / 100.0).log2();
    let sixth = |value: f64| (1.0 + value.powi(6)).powf(1.0 / 6.0);
    25.0 * (sixth(x) - 3.0 * sixth(x / 3.0) + 2.0)
}

/// The mean opinion score of a rating of 0 to 100 (G.107 Annex B), whose formula dips below 1 for the lowest ratings.
fn mean_opinion_score(r_factor: f64) -> f64 {
    let score = 1.0 + 0.035 * r_factor + r_factor * (r_factor - 60.0) * (100.0 - r_factor) * 7e-6;
    score.clamp(1.0, 4.5)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn near(value: f64, expected: f64, tolerance: f64) -> bool {
        (value - expected).abs() <= tolerance
    }

    /// G.107, 7.7: with all default values R is 93.2 and MOS 4.41.
    #[test]
    fn a_call_without_impairments_has_the_published_rating() {
        let rating = r_factor(Codec::G711, 0.0, 0.0, 1.0);
        assert!(near(rating, 93.2, 0.05), "{rating}");
        assert!(near(mean_opinion_score(rating), 4.41, 0.005));
    }

    /// G.107 Annex B, table B.1; its score at 80 is a hundredth off its formula.
    #[test]
    fn scores_are_those_of_the_published_table() {
        for (rating, score) in [
            (90.0, 4.34),
            (80.0, 4.03),
            (70.0, 3.60),
            (60.0, 3.10),
            (50.0, 2.58),
        ] {
            assert!(near(mean_opinion_score(rating), score, 0.01), "{rating}");
        }
        assert_eq!([0.0, 3.0, 100.0].map(mean_opinion_score), [1.0, 1.0, 4.5]);
    }

    /// Cole and Rosenbluth, Voice over IP performance monitoring (2001): a line that they fitted to G.107's Id.
    #[test]
    fn delay_takes_what_the_published_approximation_says() {
        for delay in [50.0_f64, 100.0, 150.0, 200.0, 250.0, 300.0] {
            let line = 0.024 * delay + 0.11 * (delay - 177.3).max(0.0);
            let found = delay_impairment(delay);
            assert!(near(found, line, 0.4), "{delay} ms: {found}, not {line}");
        }
    }

    /// G.114: nearly everyone is satisfied up to 150 ms, and 400 ms is where planning ends; without echo 400 ms take an
    /// undisturbed call of R 94 to R 70 (Janssen, De Vleeschauwer and Petit 2000).
    #[test]
    fn a_delay_of_150_ms_is_hardly_heard_and_one_of_400_ms_is() {
        assert!(near(absolute_delay(150.0), 0.16, 0.01));
        assert!(near(absolute_delay(400.0), 24.1, 0.1));
        let rating = |delay| r_factor(Codec::G711, delay, 0.0, 1.0);
        assert!(rating(150.0) > 89.0);
        assert!((60.0..65.0).contains(&rating(400.0)));
    }

    /// G.113 Appendix I, before its parameters were fitted: Ie at 2 % of random loss.
    #[test]
    fn loss_takes_what_was_measured() {
        let equipment = |codec| 93.355 - delay_impairment(0.0) - r_factor(codec, 0.0, 0.02, 1.0);
        assert!(near(equipment(Codec::G711Concealed), 7.0, 0.5));
        assert!(near(equipment(Codec::G729A), 19.0, 0.5));
        assert!(near(equipment(Codec::G723), 24.0, 0.5));
    }

    #[test]
    fn bursts_of_loss_are_worse_than_the_same_loss_by_chance() {
        assert_eq!(burst_ratio(1.0, 0.02), 1.0);
        assert!(near(burst_ratio(4.0, 0.5), 2.0, 1e-12));
        let rating = |ratio| r_factor(Codec::G729A, 50.0, 0.02, ratio);
        assert!(rating(2.0) < rating(1.0));
    }

    #[test]
    fn the_call_waits_for_its_packets_and_its_jitter_buffer() {
        let quality = VoiceQuality::of(Codec::G711, 50_000_000, 0.0, 1.0);
        assert_eq!(quality.r_factor, r_factor(Codec::G711, 110.0, 0.0, 1.0));
        assert!(near(quality.mos, 4.35, 0.01), "{quality:?}");
    }

    /// G.107, tables 2 and 3 and equations 7-2 to 7-16, for a delay long enough that sidetone and echo are apart.
    #[test]
    fn the_constants_follow_from_the_default_values() {
        let (slr, rlr, stmr, dr, ds) = (8.0_f64, 2.0_f64, 15.0_f64, 3.0, 3.0);
        let (ps, pr, nc, nfor) = (35.0_f64, 35.0_f64, -70.0_f64, -64.0);
        let power = |decibel: f64| 10_f64.powf(decibel / 10.0);
        let olr = slr + rlr;
        let nos = ps - slr - ds - 100.0 + 0.004 * (ps - olr - ds - 14.0).powi(2);
        let pre = pr + 10.0 * (1.0 + power(10.0 - stmr - dr)).log10();
        let nor = rlr - 121.0 + pre + 0.008 * (pre - 35.0).powi(2);
        let no = 10.0 * (power(nc) + power(nos) + power(nor) + power(nfor + rlr)).log10();
        let ro = 15.0 - 1.5 * (slr + no);
        assert!(near(ro, BASIC_SIGNAL_TO_NOISE, 1e-4), "{ro}");
        assert!(
            near(-1.5 * (no - rlr), ECHO_SIGNAL_TO_NOISE, 1e-4),
            "{}",
            -1.5 * (no - rlr)
        );

        let xolr = olr + 0.2 * (64.0 + no - rlr);
        let iolr = 20.0 * ((1.0 + (xolr / 8.0).powi(8)).powf(0.125) - xolr / 8.0);
        let term = |value: f64, order: i32| (1.0 + value.powi(order)).powf(1.0 / f64::from(order));
        let ist = 12.0 * term((stmr - 13.0) / 6.0, 8)
            - 28.0 * term((stmr + 1.0) / 19.4, 35)
            - 13.0 * term((stmr - 3.0) / 33.0, 13)
            + 29.0;
        let q = 37.0;
        let g = 1.07 + 0.258 * q + 0.0602 * q * q;
        let y = (ro - 100.0) / 15.0 + 46.0 / 8.4 - g / 9.0;
        let z = 46.0 / 30.0 - g / 40.0;
        let iq = 15.0 * (1.0 + 10_f64.powf(y) + 10_f64.powf(z)).log10();
        let is = iolr + ist + iq;
        assert!(near(is, SIMULTANEOUS_IMPAIRMENT, 1e-4), "{is}");
    }

    proptest! {
        #[test]
        fn more_delay_and_more_loss_are_never_better(
            delay in 1.0_f64..2_000.0, more_delay in 0.0_f64..500.0,
            loss in 0.0_f64..=1.0, more_loss in 0.0_f64..=1.0, ratio in 1.0_f64..50.0,
        ) {
            for codec in [Codec::G711, Codec::G711Concealed, Codec::G729A, Codec::G723] {
                let rating = r_factor(codec, delay, loss, ratio);
                prop_assert!((0.0..=100.0).contains(&rating));
                prop_assert!(r_factor(codec, delay + more_delay, loss, ratio) <= rating + 1e-9);
                prop_assert!(r_factor(codec, delay, (loss + more_loss).min(1.0), ratio) <= rating + 1e-9);
            }
        }
    }
}
