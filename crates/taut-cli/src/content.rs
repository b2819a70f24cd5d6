//! Shows blocks of content on a terminal, in a pipe or in a file.
//!
//! Handles text, bytes and base64, and structured data. Must not know which request they answer.

use taut::Content;
use taut::types::ResourceContents;

use crate::gate::escape;
use crate::output::{CYAN, DIM, GREEN, Output, YELLOW, size};
use crate::problem::Problem;
use crate::sent::Sent;

/// One thing to show.
pub(crate) enum Piece {
    Text(String),
    /// Bytes, or what stands in base64's place and is none.
    Bytes {
        mime: String,
        bytes: Result<Vec<u8>, ()>,
    },
    Link {
        uri: String,
        name: String,
    },
}

impl Piece {
    pub(crate) fn of(content: &Content) -> Self {
        match content {
            Content::Text(text) => Self::Text(text.text.clone()),
            Content::Image(image) => Self::bytes(&image.mime_type, &image.data),
            Content::Audio(audio) => Self::bytes(&audio.mime_type, &audio.data),
            Content::ResourceLink(link) => {
                Self::Link { uri: link.uri.clone(), name: link.name.clone() }
            }
            Content::Resource(resource) => Self::of_resource(&resource.resource),
            // A kind that is not known yet is shown as it came.
            other => Self::Text(serde_json::to_string(other).unwrap_or_default()),
        }
    }

    pub(crate) fn of_resource(contents: &ResourceContents) -> Self {
        let mime = contents.mime_type.as_deref();
        match (&contents.text, &contents.blob) {
            (Some(text), _) => Self::Text(text.clone()),
            (None, Some(blob)) => Self::bytes(mime.unwrap_or("application/octet-stream"), blob),
            (None, None) => Self::Text(String::new()),
        }
    }

    fn bytes(mime: &str, base64: &str) -> Self {
        Self::Bytes { mime: mime.to_owned(), bytes: decode(base64).ok_or(()) }
    }

    /// As a line or more of text.
    fn shown(&self, output: &Output) -> String {
        let named = |words: String| output.out.paint(DIM, format!("[{}]", output.out.line(&words)));
        match self {
            Self::Text(text) => output.out.text(text).into_owned(),
            Self::Bytes { mime, bytes: Ok(bytes) } => {
                named(format!("{mime}, {}", size(bytes.len())))
            }
            Self::Bytes { mime, bytes: Err(()) } => named(format!("{mime}, no base64")),
            Self::Link { uri, name } => named(format!("{name}: {uri}")),
        }
    }
}

/// As lines of text, for a transcript.
pub(crate) fn lines(output: &Output, piece: &Piece) -> Vec<String> {
    piece.shown(output).lines().map(str::to_owned).collect()
}

/// Whether a result is this data and nothing more: no content, or its JSON as text.
pub(crate) fn is_only(pieces: &[Piece], data: &Sent) -> bool {
    match pieces {
        [] => true,
        [Piece::Text(text)] => serde_json::from_str::<Sent>(text).is_ok_and(|text| {
            // Members may stand in another order.
            serde_json::to_value(&text).ok() == serde_json::to_value(data).ok()
        }),
        _ => false,
    }
}

/// Data for a person: indented, names and values in colours.
pub(crate) fn indented(output: &Output, data: &Sent) -> String {
    fn value(out: &mut String, output: &Output, data: &Sent, depth: usize) {
        let reader = output.out;
        let line = |out: &mut String, depth: usize| {
            out.push('\n');
            out.push_str(&"  ".repeat(depth));
        };
        let json = |data: &Sent| serde_json::to_string(data).unwrap_or_default();
        match data {
            Sent::Array(all) if !all.is_empty() => {
                out.push('[');
                for (at, each) in all.iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { "," });
                    line(out, depth + 1);
                    value(out, output, each, depth + 1);
                }
                line(out, depth);
                out.push(']');
            }
            Sent::Object(all) if !all.is_empty() => {
                out.push('{');
                for (at, (name, each)) in all.iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { "," });
                    line(out, depth + 1);
                    let name = json(&Sent::Text(name.clone()));
                    out.push_str(&reader.paint(CYAN, escape::json(&name)));
                    out.push_str(": ");
                    value(out, output, each, depth + 1);
                }
                line(out, depth);
                out.push('}');
            }
            Sent::Text(_) => out.push_str(&reader.paint(GREEN, escape::json(&json(data)))),
            Sent::Array(_) | Sent::Object(_) => out.push_str(&json(data)),
            _ => out.push_str(&reader.paint(YELLOW, json(data))),
        }
    }
    let mut out = String::new();
    value(&mut out, output, data, 0);
    out
}

/// Prints all of it as text.
pub(crate) fn print(output: &Output, pieces: &[Piece]) -> Result<(), Problem> {
    if output.file.is_some() || output.verbatim {
        return save(output, pieces);
    }
    // Many small pieces are one write, and a large one is not copied.
    let mut small = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) if text.len() < AT_ONCE => {
                small.push_str(text);
                if !text.ends_with('\n') {
                    small.push('\n');
                }
            }
            other => {
                flush(output, &mut small)?;
                match other {
                    Piece::Text(text) => output.print_content(text)?,
                    other => output.print(&format!("{}\n", other.shown(output)))?,
                }
            }
        }
        if small.len() >= AT_ONCE {
            flush(output, &mut small)?;
        }
    }
    flush(output, &mut small)
}

/// Bytes of text that are written at once.
const AT_ONCE: usize = 64 << 10;

/// Prints what was gathered.
fn flush(output: &Output, small: &mut String) -> Result<(), Problem> {
    let text = std::mem::take(small);
    if text.is_empty() { Ok(()) } else { output.print_content(&text) }
}

/// Writes the content itself to where `--out` says: the bytes if there are any, else the text.
fn save(output: &Output, pieces: &[Piece]) -> Result<(), Problem> {
    let mut kinds = Vec::new();
    let mut all = Vec::new();
    for piece in pieces {
        if let Piece::Bytes { mime, bytes: Ok(bytes) } = piece {
            kinds.push(mime.as_str());
            all.extend_from_slice(bytes);
        }
    }
    if kinds.is_empty() {
        let texts = pieces.iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(text.as_str()),
            _ => None,
        });
        all.extend_from_slice(texts.collect::<Vec<_>>().join("\n").as_bytes());
        kinds.push("text");
    }
    output.write(&all)?;
    let Some(file) = &output.file else { return Ok(()) };
    output.note(&format!("{}, {} in {}", kinds.join(" and "), size(all.len()), file.display()));
    Ok(())
}

/// The bytes behind base64, with or without padding; nothing if it is none.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut held) = (0u32, 0u32);
    for byte in text.trim_end_matches('=').bytes() {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'\n' | b'\r' => continue,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        held += 6;
        if held >= 8 {
            held -= 8;
            // The lowest byte of what is held is what is wanted.
            #[allow(clippy::cast_possible_truncation)]
            out.push((bits >> held) as u8);
        }
    }
    (held < 6).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_with_and_without_padding() {
        let table: [(&str, Option<&[u8]>); 8] = [
            ("", Some(b"")),
            ("Zg==", Some(b"f")),
            ("Zm8", Some(b"fo")),
            ("Zm9v", Some(b"foo")),
            ("Zm9v\nYmFy", Some(b"foobar")),
            ("-_-_", Some(&[0xfb, 0xff, 0xbf])),
            ("Z", None),
            ("Zm 9v", None),
        ];
        for (text, bytes) in table {
            assert_eq!(decode(text).as_deref(), bytes, "{text}");
        }
    }
}
