//! One command line out of a program and its arguments, as Windows wants it.
//!
//! Pure: knows how programs take a command line apart, and how `cmd.exe` reads one before it starts a
//! `.cmd` or `.bat` file. Works on UTF-16, which is what the system gets, so that every argument
//! survives. Tested on every system. Obeys the scars W1 and W9.

/// A text in UTF-16, without an end mark.
type Wide = Vec<u16>;

const QUOTE: u16 = b'"' as u16;
const BACKSLASH: u16 = b'\\' as u16;

fn wide(text: &str) -> impl Iterator<Item = u16> {
    text.encode_utf16()
}

/// The command line for a program that takes its arguments apart as the C runtime does: nearly all.
pub(super) fn for_program(program: &[u16], args: &[Wide]) -> Wide {
    // A path holds no quotes, and its backslashes mean nothing here.
    let mut line: Wide =
        [QUOTE].into_iter().chain(program.iter().copied()).chain([QUOTE]).collect();
    for arg in args {
        line.extend(wide(" "));
        let bare = !arg.is_empty() && !arg.iter().any(|unit| is_blank(*unit) || *unit == QUOTE);
        if bare {
            line.extend(arg);
        } else {
            quote(&mut line, arg, &[BACKSLASH, QUOTE]);
        }
    }
    line
}

fn is_blank(unit: u16) -> bool {
    matches!(char::from_u32(unit.into()), Some(' ' | '\t' | '\n' | '\x0b'))
}

/// Appends `arg` in quotes, with `inner` in the place of each quote inside.
fn quote(line: &mut Wide, arg: &[u16], inner: &[u16]) {
    line.push(QUOTE);
    let mut backslashes = 0;
    for unit in arg {
        match *unit {
            BACKSLASH => backslashes += 1,
            QUOTE => {
                // Before a quote each backslash counts only if it is doubled.
                line.extend(std::iter::repeat_n(BACKSLASH, backslashes));
                line.extend(inner);
                backslashes = 0;
                continue;
            }
            _ => backslashes = 0,
        }
        line.push(*unit);
    }
    line.extend(std::iter::repeat_n(BACKSLASH, backslashes));
    line.push(QUOTE);
}

/// Why an argument cannot be passed to a `.cmd` or `.bat` file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unsafe {
    /// `cmd.exe` takes text between percent signs for the name of a variable, also in quotes.
    Percent,
    /// `cmd.exe` ends the command at the end of a line.
    LineEnd,
}

impl Unsafe {
    pub(super) const fn reason(&self) -> &'static str {
        match self {
            Self::Percent => {
                "an argument holds a percent sign, which cmd.exe would take for the name of a \
                 variable"
            }
            Self::LineEnd => "an argument holds a line end, at which cmd.exe would stop reading",
        }
    }
}

/// The command line with which `cmd.exe` starts a `.cmd` or `.bat` file.
///
/// Everything is in quotes, within which only the quote, the percent sign and the line end mean
/// something to `cmd.exe`. A quote is doubled, which leaves the text in quotes for `cmd.exe` and is
/// one quote to the program behind the file. For the other two there is no way that is known to be safe.
pub(super) fn for_script(cmd: &[u16], script: &[u16], args: &[Wide]) -> Result<Wide, Unsafe> {
    let mut line: Wide = [QUOTE].into_iter().chain(cmd.iter().copied()).chain([QUOTE]).collect();
    // Extensions as usual, no delayed expansion (`!`), nothing from the registry. The outer quotes are
    // taken off by cmd.exe.
    line.extend(wide(" /e:ON /v:OFF /d /c \""));
    for (at, word) in std::iter::once(script).chain(args.iter().map(Vec::as_slice)).enumerate() {
        if at > 0 {
            line.extend(wide(" "));
        }
        for unit in word {
            match char::from_u32((*unit).into()) {
                Some('%') => return Err(Unsafe::Percent),
                Some('\r' | '\n') => return Err(Unsafe::LineEnd),
                _ => {}
            }
        }
        quote(&mut line, word, &[QUOTE, QUOTE]);
    }
    line.push(QUOTE);
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(program: &str, args: &[&str]) -> String {
        let args: Vec<Wide> = args.iter().map(|arg| wide(arg).collect()).collect();
        String::from_utf16(&for_program(&wide(program).collect::<Wide>(), &args)).unwrap()
    }

    /// W9
    #[test]
    fn w9_what_has_blanks_or_quotes_is_quoted_and_nothing_else_is() {
        let cases: &[(&[&str], &str)] = &[
            (&[], r#""p""#),
            (&["a", "-b=c"], r#""p" a -b=c"#),
            (&[""], r#""p" """#),
            (&["a b"], r#""p" "a b""#),
            (&["a\tb"], "\"p\" \"a\tb\""),
            (&[r#"say "hi""#], r#""p" "say \"hi\"""#),
            (&[r"c:\dir\"], r#""p" c:\dir\"#),
            (&[r"c:\my dir\"], r#""p" "c:\my dir\\""#),
            (&[r#"\\"x"#], r#""p" "\\\\\"x""#),
            (&["é😀"], r#""p" é😀"#),
        ];
        for (args, expected) in cases {
            assert_eq!(line("p", args), *expected, "{args:?}");
        }
        assert_eq!(line(r"c:\Program Files\x.exe", &[]), r#""c:\Program Files\x.exe""#);
    }

    fn script(args: &[&str]) -> Result<String, Unsafe> {
        let args: Vec<Wide> = args.iter().map(|arg| wide(arg).collect()).collect();
        let text = |text: &str| wide(text).collect::<Wide>();
        for_script(&text("cmd"), &text(r"c:\a b\npx.cmd"), &args)
            .map(|line| String::from_utf16(&line).unwrap())
    }

    #[test]
    fn w1_everything_for_a_script_is_quoted() {
        let start = r#""cmd" /e:ON /v:OFF /d /c ""c:\a b\npx.cmd""#;
        assert_eq!(script(&[]).unwrap(), format!(r#"{start}""#));
        let cases: &[(&str, &str)] = &[
            ("-y", r#""-y""#),
            ("a&b|c<d>e^f(g)!", r#""a&b|c<d>e^f(g)!""#),
            (r#"{"a":1}"#, r#""{""a"":1}""#),
            (r"c:\dir\", r#""c:\dir\\""#),
            ("", r#""""#),
        ];
        for (arg, quoted) in cases {
            assert_eq!(script(&[arg]).unwrap(), format!(r#"{start} {quoted}""#), "{arg}");
        }
    }

    #[test]
    fn w1_what_cannot_be_quoted_for_a_script_is_refused() {
        assert_eq!(script(&["a", "%PATH%"]), Err(Unsafe::Percent));
        assert_eq!(script(&["a\nb"]), Err(Unsafe::LineEnd));
        assert_eq!(script(&["a\rb"]), Err(Unsafe::LineEnd));
        assert!(Unsafe::Percent.reason().contains("percent sign"));
    }
}
