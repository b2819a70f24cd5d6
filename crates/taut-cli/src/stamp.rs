//! A moment as everybody reads it: `2026-11-15T12:50:22.123Z`.
//!
//! Pure: seconds go in. Ours because it is a dozen lines, and a crate for it would bring the zones.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, in UTC.
pub(crate) fn now() -> String {
    // A clock before 1970 is wrong anyway.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    stamp(since.as_secs(), since.subsec_millis())
}

fn stamp(seconds: u64, millis: u32) -> String {
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// The date of a day since 1970.
fn date(mut days: u64) -> (u64, usize, u64) {
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    loop {
        let length = if leap(year) { 366 } else { 365 };
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let february = if leap(year) { 29 } else { 28 };
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    for (at, length) in months.into_iter().enumerate() {
        if days < length {
            return (year, at + 1, days + 1);
        }
        days -= length;
    }
    (year, 12, 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_as_everybody_reads_it() {
        let table = [
            (0, "1970-01-01T00:00:00.007Z"),
            (951_782_399, "2000-02-28T23:59:59.007Z"),
            (951_782_400, "2000-02-29T00:00:00.007Z"),
            (1_709_251_200, "2024-03-01T00:00:00.007Z"),
            (1_767_225_599, "2025-12-31T23:59:59.007Z"),
            (1_794_747_022, "2026-11-15T12:50:22.007Z"),
            (4_102_444_800, "2100-01-01T00:00:00.007Z"),
        ];
        for (seconds, text) in table {
            assert_eq!(stamp(seconds, 7), text);
        }
    }
}
