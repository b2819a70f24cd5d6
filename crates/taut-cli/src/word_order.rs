//! The order of a command's words: the tool first, the server's name last, its command after `--`.
//!
//! Finds usual mistakes and says what to type instead. Must not decide what the words mean.

use crate::args::Options;
use crate::hosts::is_known;
use crate::own;
use crate::problem::Problem;
use crate::session::quoted;

/// Stands for the server in a hint of what to type.
pub(crate) const SERVER: &str = " -- …";

/// The same problem, whose hint names the server as it was named: so the hint can be typed as it is.
pub(crate) fn with_name(problem: Problem, name: Option<&str>, options: &Options) -> Problem {
    let typed = match (name, &options.named) {
        (Some(name), _) => format!(" {}", quoted([name])),
        (None, Some(name)) => format!(" -s {}", quoted([name])),
        (None, None) => return problem,
    };
    match problem {
        Problem::Usage { what, next } => {
            Problem::Usage { what, next: next.map(|next| next.replace(SERVER, &typed)) }
        }
        other => other,
    }
}

/// The words of a command in the order in which they were typed, for when that is the mistake.
pub(crate) struct Order<'a> {
    pub(crate) command: &'a str,
    pub(crate) first: &'a str,
    /// What the first word should be.
    pub(crate) is: &'a str,
    pub(crate) rest: &'a [String],
}

impl Order<'_> {
    /// What stands for the first word in a hint.
    fn placeholder(&self) -> &'static str {
        match self.command {
            "call" => "TOOL",
            "read" => "ADDRESS",
            "prompt" => "PROMPT",
            _ => "PROMPT KEY=…",
        }
    }

    /// The problem, or the slip in the order of the words that led to it.
    pub(crate) fn mend(&self, problem: Problem, options: &Options) -> Problem {
        if !matches!(problem, Problem::Usage { .. }) || options.named.is_some() {
            return problem;
        }
        let Self { command, first, is, rest } = self;
        let is_plain = |word: &&String| !word.contains('=') && !word.starts_with('{');
        let line = |words: &[&str]| Some(format!("{} {command} {}", own::name(), words.join(" ")));
        let words = || rest.iter().map(String::as_str);
        let known = |word: &str| is_known(word, options);
        // As some hosts write it: weather.forecast, weather/forecast.
        if let Some((server, inner)) = first.split_once(['.', '/', ':'])
            && known(server)
            && !inner.is_empty()
        {
            return Problem::Usage {
                what: format!("{first}: {server} is a server; {is} comes first, its name last"),
                next: line(&[inner].into_iter().chain(words()).chain([server]).collect::<Vec<_>>()),
            };
        }
        if rest.is_empty() && known(first) {
            return Problem::Usage {
                what: format!("{first} is a server; {is} comes first"),
                next: Some(format!("{} {command} {} {first}", own::name(), self.placeholder())),
            };
        }
        if rest.first().is_some_and(|word| is_plain(&word)) && known(first) {
            return Problem::Usage {
                what: format!("{first} is a server; {is} comes first"),
                next: line(&words().chain([*first]).collect::<Vec<_>>()),
            };
        }
        if let Some(name) = rest.iter().filter(is_plain).find(|word| known(word))
            && rest.last() != Some(name)
        {
            let others = words().filter(|word| word != name);
            return Problem::Usage {
                what: format!("{name} is a server; its name comes last"),
                next: line(
                    &[*first].into_iter().chain(others).chain([name.as_str()]).collect::<Vec<_>>(),
                ),
            };
        }
        let plain: Vec<&str> = rest.iter().filter(is_plain).map(String::as_str).collect();
        if let [_, _, ..] = plain.as_slice() {
            let at = words().position(|word| word == plain[0]).unwrap_or_default();
            let (ours, theirs) = rest.split_at(at);
            let ours = ours.iter().map(String::as_str);
            let theirs = theirs.iter().map(String::as_str);
            return Problem::Usage {
                what: "the server's command goes after two dashes".to_owned(),
                next: line(
                    &[*first]
                        .into_iter()
                        .chain(ours)
                        .chain(["--"])
                        .chain(theirs)
                        .collect::<Vec<_>>(),
                ),
            };
        }
        problem
    }
}
