//! `taut doctor --markdown`: a report that can be pasted into the issue tracker of a server.
//!
//! What a server says stands only within fences that are longer than any in it, so that it stays text: no link, no
//! mention of a person, no picture. Must not judge.

use std::fmt::Write as _;

use super::facts::Facts;
use super::findings::Finding;
use super::show::{LONGEST, row};
use crate::cells::cut;
use crate::gate::Reader;
use crate::output::Output;
use crate::problem::Problem;
use crate::secrets;
use crate::version;

/// Lines of what a server wrote: its end has the cause.
const LINES: usize = 40;

pub(super) fn print(
    output: &Output,
    name: &str,
    facts: &Facts,
    found: &[Finding],
    entry: Option<&str>,
) -> Result<(), Problem> {
    // The same on a terminal as in a file: no colours, no width.
    let plain = Output { out: Reader::file(), ..output.clone() };
    plain.print(&text(&plain, name, facts, found, entry))
}

fn text(
    output: &Output,
    name: &str,
    facts: &Facts,
    found: &[Finding],
    entry: Option<&str>,
) -> String {
    let line = |text: &str| {
        let masked = secrets::masked(text);
        cut(&output.out.line(&masked), LONGEST).into_owned()
    };
    let system = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
    let mut text = format!(
        "### What happens when a host starts this server\n\n{} on {system}, by taut doctor.\n\n",
        version::short()
    );
    text += &fenced(&format!("$ {}", line(name)));
    let phases: String = facts.phases().iter().map(|phase| row(output, phase)).collect();
    text += "\n";
    text += &fenced(&secrets::masked(&phases));
    let head = match found.len() {
        0 => "no finding".to_owned(),
        1 => "1 finding".to_owned(),
        count => format!("{count} findings"),
    };
    let _ = write!(text, "\n#### {head}\n");
    for (number, finding) in found.iter().enumerate() {
        let mut words = format!("{}\n", line(&finding.what));
        for each in &finding.list {
            let _ = writeln!(words, "  {}", line(each));
        }
        let _ =
            write!(words, "hurts:  {}\nchange: {}", line(&finding.hurts), line(&finding.change));
        let _ =
            write!(text, "\n**{}. {}**\n\n{}", number + 1, finding.level.word(), fenced(&words));
    }
    if let Some(entry) = entry {
        text += "\nUntil then, taut bridge in the host's file cures what it can:\n\n";
        text += &fenced(&line(entry));
    }
    for (stream, said) in [("stdout", &facts.stdout), ("stderr", &facts.stderr)] {
        if said.trim().is_empty() {
            continue;
        }
        let masked = secrets::masked(said);
        let lines: Vec<&str> = masked.lines().collect();
        let end: Vec<String> =
            lines[lines.len().saturating_sub(LINES)..].iter().map(|said| line(said)).collect();
        let summary = format!("<summary>the end of what it wrote on {stream}</summary>");
        let _ = write!(text, "\n<details>{summary}\n\n{}\n</details>\n", fenced(&end.join("\n")));
    }
    text
}

/// Text within a fence that no line of it can close.
fn fenced(text: &str) -> String {
    let (mut longest, mut run) = (0, 0);
    for character in text.chars() {
        run = if character == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}text\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::fenced;

    #[test]
    fn no_text_closes_its_own_fence() {
        assert_eq!(fenced("a\n"), "```text\na\n```\n");
        assert_eq!(fenced("a\n```\n@ada"), "````text\na\n```\n@ada\n````\n");
        assert!(fenced(&"`".repeat(9)).starts_with(&format!("{}text\n", "`".repeat(10))));
    }
}
