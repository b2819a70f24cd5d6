//! The formats of text (ELI-10), checked just enough to find typing errors.
//!
//! Must not be stricter than a server: unusual but possible values pass.

/// How a text has to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Email,
    Uri,
    Date,
    DateTime,
}

impl Format {
    /// The format of this name; nothing if nobody knows it, so that nothing is refused for it.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "email" => Self::Email,
            "uri" => Self::Uri,
            "date" => Self::Date,
            "date-time" => Self::DateTime,
            _ => return None,
        })
    }

    pub(crate) fn words(&self) -> &'static str {
        match self {
            Self::Email => "an address such as ada@example.org",
            Self::Uri => "an address such as https://example.org",
            Self::Date => "a date such as 2026-11-15",
            Self::DateTime => "a date and time such as 2026-11-15T09:30:00Z",
        }
    }

    pub(crate) fn fits(self, text: &str) -> bool {
        match self {
            Self::Email => is_email(text),
            Self::Uri => is_uri(text),
            Self::Date => is_date(text),
            Self::DateTime => is_date_time(text),
        }
    }
}

fn is_email(text: &str) -> bool {
    let Some((user, host)) = text.rsplit_once('@') else { return false };
    let sound = |part: &str| !part.is_empty() && !part.chars().any(char::is_whitespace);
    sound(user) && sound(host) && !host.starts_with('.') && !host.ends_with('.')
}

fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let mut letters = scheme.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
        && !rest.is_empty()
        && !rest.chars().any(|letter| letter.is_whitespace() || letter.is_control())
}

fn is_date(text: &str) -> bool {
    let Some([year, month, day]) = numbers(text, '-', [4, 2, 2]) else { return false };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// RFC 3339: a date, `T` or a space, a time, and how far it is from UTC.
fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't', ' ']) else { return false };
    let (clock, offset) = match time.strip_suffix(['Z', 'z']) {
        Some(clock) => (clock, None),
        None => match time.rfind(['+', '-']) {
            Some(at) => (&time[..at], Some(&time[at + 1..])),
            None => return false,
        },
    };
    let (clock, fraction) = match clock.split_once('.') {
        Some((clock, fraction)) => (clock, Some(fraction)),
        None => (clock, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // A second may be the 61st.
    let on_clock = numbers(clock, ':', [2, 2, 2])
        .is_some_and(|[hour, minute, second]| hour < 24 && minute < 60 && second <= 60);
    let near = offset.is_none_or(|offset| {
        numbers(offset, ':', [2, 2]).is_some_and(|[hours, minutes]| hours < 24 && minutes < 60)
    });
    is_date(date) && on_clock && fraction.is_none_or(digits) && near
}

/// Numbers of so many digits each, with something between them.
fn numbers<const N: usize>(text: &str, between: char, lengths: [usize; N]) -> Option<[u32; N]> {
    let mut parts = text.split(between);
    let mut found = [0; N];
    for (length, number) in lengths.into_iter().zip(&mut found) {
        let part = parts.next().filter(|part| part.len() == length)?;
        let digits = part.bytes().all(|byte| byte.is_ascii_digit());
        *number = part.parse().ok().filter(|_| digits)?;
    }
    parts.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eli_10_a_format_catches_slips_and_lets_the_unusual_pass() {
        let table: [(Format, &[&str], &[&str]); 4] = [
            (
                Format::Email,
                &["ada@example.org", "a.b+c@localhost", "ä@bücher.example", "\"a@b\"@c.d"],
                &["", "ada", "@example.org", "ada@", "a b@c.d", "ada@example.", "ada@.org"],
            ),
            (
                Format::Uri,
                &["https://a.b/c?d#e", "mailto:a@b", "urn:isbn:0", "a+b-c.d:x"],
                &["", "a.b/c", "https:", "://x", "1a:b", "https://a b"],
            ),
            (
                Format::Date,
                &["2026-11-15", "2024-02-29", "0000-01-01", "2000-02-29"],
                &[
                    "",
                    "15.11.2026",
                    "2026-11-31",
                    "2026-13-01",
                    "2023-02-29",
                    "1900-02-29",
                    "2026-1-5",
                ],
            ),
            (
                Format::DateTime,
                &[
                    "2026-11-15T09:30:00Z",
                    "2026-11-15t09:30:00.123z",
                    "2026-11-15 23:59:60+01:00",
                    "2026-11-15T09:30:00-23:59",
                ],
                &[
                    "2026-11-15",
                    "2026-11-15T09:30:00",
                    "2026-11-15T24:00:00Z",
                    "2026-11-15T09:30Z",
                    "2026-11-15T09:30:00.Z",
                    "2026-11-15T09:30:00+1:00",
                    "2026-02-30T09:30:00Z",
                ],
            ),
        ];
        for (format, good, bad) in table {
            good.iter().for_each(|text| assert!(format.fits(text), "{format:?}: {text:?}"));
            bad.iter().for_each(|text| assert!(!format.fits(text), "{format:?}: {text:?}"));
        }
        assert_eq!(Format::of("colour"), None);
    }
}
