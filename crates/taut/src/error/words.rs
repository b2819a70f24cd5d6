//! The last words of a server, as they stand in an error.
//!
//! Knows text from a stranger: bounded, and without characters that steer a terminal (SEC-05).

use std::fmt;

/// Lines of stderr in an error's text: a stack trace's end, not the whole of it.
const LINES: usize = 10;

/// Characters of one line.
const WIDTH: usize = 400;

/// Shows the end of `stderr`, each line on a line of its own; nothing if there is none.
pub(super) fn last_words(f: &mut fmt::Formatter<'_>, stderr: &str) -> fmt::Result {
    let lines: Vec<&str> = stderr.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.is_empty() {
        return Ok(());
    }
    f.write_str("; its last words on stderr:")?;
    for line in &lines[lines.len().saturating_sub(LINES)..] {
        f.write_str("\n  ")?;
        for character in line.trim_end().chars().take(WIDTH) {
            if character.is_control() && character != '\t' {
                write!(f, "{}", character.escape_default())?;
            } else {
                write!(f, "{character}")?;
            }
        }
        if line.trim_end().chars().nth(WIDTH).is_some() {
            f.write_str("…")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Shown<'a>(&'a str);

    impl fmt::Display for Shown<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            last_words(f, self.0)
        }
    }

    #[test]
    fn sec_05_words_are_short_and_cannot_steer_a_terminal() {
        assert_eq!(Shown("").to_string(), "");
        assert_eq!(Shown("\n \n").to_string(), "");
        assert_eq!(
            Shown("a\r\n\n\x1b[31mred\tb").to_string(),
            "; its last words on stderr:\n  a\n  \\u{1b}[31mred\tb"
        );
        let many: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let shown = Shown(&many).to_string();
        assert!(shown.ends_with("\n  line 99") && !shown.contains("line 89\n"), "{shown}");
        let long = "x".repeat(10_000);
        assert!(Shown(&long).to_string().len() < WIDTH + 50);
    }
}
