//! What a header line says. Knows names, colons and digits; must not know where lines end.

use super::frame::HeaderFault;

/// The two names that open a header block, each with its colon, in lower case.
const OPENERS: [&[u8]; 2] = [b"content-length:", b"content-type:"];

/// The length of the longer one.
pub(super) const OPENER_LENGTH: usize = OPENERS[0].len();

/// Whether some bytes open a header block.
pub(super) enum HeaderStart {
    /// They do.
    Yes,
    /// They do not.
    No,
    /// Too few bytes to tell.
    Unknown,
}

/// Whether a frame that starts so is a header block rather than a line.
pub(super) fn opens_header(bytes: &[u8]) -> HeaderStart {
    let mut opening = HeaderStart::No;
    for name in OPENERS {
        let common = name.len().min(bytes.len());
        if bytes[..common].eq_ignore_ascii_case(&name[..common]) {
            if common == name.len() {
                return HeaderStart::Yes;
            }
            opening = HeaderStart::Unknown;
        }
    }
    opening
}

/// Where the next header block may begin.
pub(super) fn find_opener(bytes: &[u8]) -> Option<usize> {
    memchr::memchr2_iter(b'c', b'C', bytes)
        .find(|at| matches!(opens_header(&bytes[*at..]), HeaderStart::Yes))
}

/// The length that one header line names, or nothing if it names something else.
pub(super) fn read_header(line: &[u8]) -> Result<Option<u64>, HeaderFault> {
    let colon = memchr::memchr(b':', line).ok_or(HeaderFault::NotAHeader)?;
    let (name, value) = (line[..colon].trim_ascii(), line[colon + 1..].trim_ascii());
    if !name.eq_ignore_ascii_case(b"content-length") {
        return Ok(None);
    }
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return Err(HeaderFault::BadLength);
    }
    // Digits that overflow are still a number, only an absurd one.
    let length = value
        .iter()
        .fold(0u64, |sum, digit| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
    Ok(Some(length))
}
