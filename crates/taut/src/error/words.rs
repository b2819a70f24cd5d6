//! The end of what a server printed, as it stands in an error.
//!
//! Knows text that is not trusted: bounded, and without characters that steer a terminal (SEC-05).

use std::fmt;

/// Lines of stderr in an error's text: a stack trace's end, not the whole of it.
const LINES: usize = 20;

/// Lines of a Python traceback that is shown from its head, where the user's own file stands.
const TRACE: usize = 25;

/// Lines from the head of a traceback that is longer than that: its title, and the first frame or two.
const HEAD: usize = 6;

/// Characters of one line.
const WIDTH: usize = 400;

/// Shows the end of what a server printed that is no message: each line on a line of its own, and
/// nothing for a stream that has none.
pub(super) fn last_lines(f: &mut fmt::Formatter<'_>, stdout: &str, stderr: &str) -> fmt::Result {
    let mut joint = "; ";
    for (stream, text) in [("stdout", stdout), ("stderr", stderr)] {
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        if !lines.is_empty() {
            write!(f, "{joint}its last lines on {stream}:")?;
            show(f, &lines)?;
            joint = "\n";
        }
    }
    Ok(())
}

/// Text of a server for `Debug`: its end only, which [`last_lines`] would show.
pub(super) struct LastLines<'a>(pub(super) &'a str);

impl fmt::Debug for LastLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<&str> = self.0.lines().collect();
        let cut = |line: &&str| line.chars().take(WIDTH).collect::<String>();
        f.debug_list().entries(tail(&lines).iter().map(cut)).finish()
    }
}

fn show(f: &mut fmt::Formatter<'_>, lines: &[&str]) -> fmt::Result {
    for line in tail(lines) {
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

/// The lines worth showing: the last few, or a traceback from its head, its middle left out if it is long.
fn tail<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let last = lines.len().saturating_sub(LINES);
    let head = lines.iter().rposition(|line| line.contains("Traceback (most recent call last)"));
    match head.filter(|head| *head < last) {
        None => lines[last..].to_vec(),
        Some(head) if lines.len() - head <= TRACE => lines[head..].to_vec(),
        Some(head) => {
            let end = &lines[lines.len() - (TRACE - HEAD - 1)..];
            [&lines[head..head + HEAD], &["…"], end].concat()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Shown<'a>(&'a str);

    impl fmt::Display for Shown<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            last_lines(f, "", self.0)
        }
    }

    #[test]
    fn sec_05_words_are_short_and_cannot_steer_a_terminal() {
        assert_eq!(Shown("").to_string(), "");
        assert_eq!(Shown("\n \n").to_string(), "");
        assert_eq!(
            Shown("a\r\n\n\x1b[31mred\tb").to_string(),
            "; its last lines on stderr:\n  a\n  \\u{1b}[31mred\tb"
        );
        let many: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let shown = Shown(&many).to_string();
        assert!(shown.ends_with("\n  line 99") && !shown.contains("line 79\n"), "{shown}");
        let long = "x".repeat(10_000);
        assert!(Shown(&long).to_string().len() < WIDTH + 50);
    }

    #[test]
    fn debug_shows_no_more_than_display() {
        let long = "x".repeat(10_000) + "\n" + &"line\n".repeat(1_000);
        assert_eq!(format!("{:?}", LastLines("a\nb")), r#"["a", "b"]"#);
        assert!(format!("{:?}", LastLines(&long)).len() < LINES * 10);
        assert!(format!("{:?}", LastLines(&long[..9_000])).len() < WIDTH + 50);
    }

    /// E10
    #[test]
    fn both_streams_are_shown_one_after_the_other() {
        struct Both;
        impl fmt::Display for Both {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                last_lines(f, "a\nb\n", "c")
            }
        }
        let expected = "; its last lines on stdout:\n  a\n  b\nits last lines on stderr:\n  c";
        assert_eq!(Both.to_string(), expected);
    }

    /// A traceback of so many frames, two lines each, with other things before it.
    fn traceback(frames: usize) -> String {
        let mut text = "noise\n".repeat(30) + "Traceback (most recent call last):\n";
        for n in 0..frames {
            text += &format!("  File \"/srv/f{n}.py\", line {n}\n    call()\n");
        }
        text + "KeyError: 'DATABASE_URL'\n"
    }

    #[test]
    fn a_traceback_is_shown_from_its_head() {
        let shown = Shown(&traceback(11)).to_string();
        let lines: Vec<_> = shown.lines().skip(1).collect();
        assert_eq!(lines[0], "  Traceback (most recent call last):");
        assert_eq!((lines.len(), lines[23]), (24, "  KeyError: 'DATABASE_URL'"));
        let shown = Shown(&traceback(40)).to_string();
        let lines: Vec<_> = shown.lines().skip(1).collect();
        assert_eq!((lines.len(), lines[6]), (TRACE, "  …"), "{shown}");
        assert!(lines[1].contains("/srv/f0.py") && lines[22].contains("/srv/f39.py"), "{shown}");
        assert_eq!(Shown(&traceback(2)).to_string().lines().count(), 1 + LINES);
    }
}
