//! Durations as text: "10ms", "30s".

/// Parses a duration to nanoseconds: a whole number and a unit, `ns`, `us`, `ms`, `s`,
/// `m` or `h`. It is evaluated at compile time, so a mistake is a compile error.
pub const fn parse(text: &str) -> u64 {
    let text = text.as_bytes();
    let mut number: u64 = 0;
    let mut i = 0;
    while i < text.len() && text[i].is_ascii_digit() {
        let digit = (text[i] - b'0') as u64;
        number = match number.checked_mul(10) {
            Some(n) => n + digit,
            None => panic!("a duration is too long"),
        };
        i += 1;
    }
    let (_, unit) = text.split_at(i);
    let unit = match unit {
        b"ns" => 1,
        b"us" => 1_000,
        b"ms" => 1_000_000,
        b"s" => 1_000_000_000,
        b"m" => 60_000_000_000,
        b"h" => 3_600_000_000_000,
        _ => 0,
    };
    assert!(
        i > 0 && unit > 0,
        "a duration is a whole number and a unit: \"10ms\", \"30s\", \"5m\", \"24h\""
    );
    match number.checked_mul(unit) {
        Some(n) if n <= i64::MAX as u64 => n,
        _ => panic!("a duration is too long"),
    }
}

/// A duration in nanoseconds, as in the ABI; at most 292 years.
pub fn nanoseconds(duration: std::time::Duration) -> u64 {
    let nanoseconds = duration.as_secs().saturating_mul(1_000_000_000);
    let nanoseconds = nanoseconds.saturating_add(duration.subsec_nanos().into());
    nanoseconds.min(i64::MAX as u64)
}

#[cfg(test)]
mod tests {
    use super::{nanoseconds, parse};
    use std::time::Duration;

    #[test]
    fn durations() {
        assert_eq!(parse("0s"), 0);
        assert_eq!(parse("7ns"), 7);
        assert_eq!(parse("10ms"), 10_000_000);
        assert_eq!(parse("90m"), parse("5400s"));
        assert_eq!(parse("24h"), 86_400_000_000_000);
    }

    #[test]
    fn durations_of_the_standard_library() {
        assert_eq!(nanoseconds(Duration::new(1, 5)), 1_000_000_005);
        assert_eq!(nanoseconds(Duration::MAX), i64::MAX as u64);
    }

    #[test]
    fn what_is_none() {
        for text in [
            "",
            "10",
            "ms",
            "1.5s",
            "-1s",
            "10 ms",
            "9999999999h",
            "99999999999999999999s",
        ] {
            assert!(std::panic::catch_unwind(|| parse(text)).is_err(), "{text}");
        }
    }
}
