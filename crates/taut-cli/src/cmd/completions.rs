//! `taut completions SHELL`: a script that completes the words of the command.
//!
//! clap writes the script. This file adds the names of servers, from `taut servers --names`, and that a
//! command of its own follows `--`.

use std::fmt::Write as _;

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory as _, ValueEnum as _, ValueHint};
use clap_complete::Shell;
use taut::Revision;

use crate::args::Args;
use crate::help;
use crate::output::Output;
use crate::own;
use crate::problem::{Exit, Problem};

#[derive(clap::Args)]
#[command(after_help = help::COMPLETIONS)]
pub(crate) struct Completions {
    /// bash, elvish, fish, powershell or zsh.
    #[arg(value_parser = shell, hide_possible_values = true)]
    shell: Shell,
}

fn shell(name: &str) -> Result<Shell, String> {
    Shell::from_str(name, true).map_err(|_| "expected bash, elvish, fish, powershell or zsh".into())
}

pub(crate) fn run(output: &Output, args: &Completions) -> Result<Exit, Problem> {
    output.print(&script(args.shell))?;
    Ok(Exit::Worked)
}

fn script(shell: Shell) -> String {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut hinted(Args::command()), "taut", &mut bytes);
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    match shell {
        Shell::Bash => text = bash(&text),
        Shell::Zsh => text = zsh(&text),
        Shell::Fish => text += &fish(),
        _ => {}
    }
    for_name(&text, &own::base(), own::name())
}

/// The same for a program of another name: the functions keep theirs, but are registered for what is typed, and ask
/// the program by `start`.
fn for_name(text: &str, name: &str, start: &str) -> String {
    // Most words stand between marks of the shell, where a path that needs marks of its own would end them.
    let mut text = match start.contains(['\'', '"']) {
        true => text.replace(&format!("taut {ASKED}"), &format!("{start} {ASKED}")),
        false => own::renamed(text).into_owned(),
    };
    if name != "taut" {
        for (ours, end) in [
            ("#compdef ", "\n"),
            ("compdef _taut ", "\n"),
            ("complete -c ", " "),
            ("-F _taut_with_servers -o nosort ", " "),
            ("-F _taut_with_servers ", "\n"),
            ("-CommandName '", "'"),
            ("arg-completer[", "]"),
        ] {
            text = text.replace(&format!("{ours}taut{end}"), &format!("{ours}{name}{end}"));
        }
    }
    text
}

/// Says what stands where, so that no shell offers files for a time or a revision.
fn hinted(taut: Command) -> Command {
    // Owned for as long as the program runs, as clap wants its names.
    let leak = |name: &str| -> &'static str { Box::leak(name.to_owned().into_boxed_str()) };
    let commands: Vec<_> = taut.get_subcommands().map(|command| leak(command.get_name())).collect();
    let hint = |arg: Arg| {
        if !arg.get_action().takes_values() {
            return arg;
        }
        match arg.get_id().as_str() {
            "framing" => arg.value_parser(["lines", "headers"]),
            "revision" => arg.value_parser(Revision::ALL.map(Revision::as_str)),
            "shell" => arg.value_parser(SHELLS),
            "command" => arg.value_parser(PossibleValuesParser::new(commands.iter().copied())),
            "cwd" | "root" | "dir" => arg.value_hint(ValueHint::DirPath),
            _ => match arg.get_value_hint() {
                ValueHint::AnyPath | ValueHint::FilePath => arg.value_hint(ValueHint::FilePath),
                _ => arg.value_hint(ValueHint::Other),
            },
        }
    };
    taut.mut_subcommands(|command| {
        command.mut_args(hint).mut_subcommands(|inner| inner.mut_args(hint))
    })
}

const SHELLS: [&str; 5] = ["bash", "elvish", "fish", "powershell", "zsh"];

/// What the scripts ask this program.
const ASKED: &str = "servers --names";

const NAMES: &str = "taut servers --names 2>/dev/null";

/// Where a plain word may be the name of a server.
const BY_NAME: [&str; 13] = [
    "smoke", "bridge", "list", "doctor", "check", "servers", "shell", "watch", "bench", "call",
    "read", "prompt", "complete",
];

/// Around what clap's function finds: names where one may stand, and after `--` the server's command.
const BASH: &str = r#"
_taut_add_servers() {
    local name quoted
    while IFS= read -r name; do
        printf -v quoted %q "$name"
        case "$1" in
            [\"\']*) [[ $name == "${1:1}"* ]] && COMPREPLY+=("$name") ;;
            *) [[ $quoted == "$1"* ]] && COMPREPLY+=("$quoted") ;;
        esac
    done < <(taut servers --names 2>/dev/null)
    return 0
}
_taut_command() {
    local word="${COMP_WORDS[COMP_CWORD]}" line
    if declare -F _command_offset >/dev/null; then
        _command_offset "$1"
    elif [[ $COMP_CWORD -eq $1 && $word != */* ]]; then
        COMPREPLY=($(compgen -c -- "$word"))
    else
        COMPREPLY=()
        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$word")
        compopt -o filenames 2>/dev/null
    fi
    return 0
}
_taut_with_servers() {
    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" at
    for ((at = 1; at < COMP_CWORD; at++)); do
        [[ ${COMP_WORDS[at]} == -- ]] && { _taut_command $((at + 1)); return 0; }
    done
    _taut "$@"
    if [[ $before == -s || $before == --server ]]; then
        COMPREPLY=()
        _taut_add_servers "$word"
        return 0
    fi
    [[ $word == -* || $before == -* || $COMP_CWORD -lt 2 ]] && return 0
    case "${COMP_WORDS[1]}" in
        smoke|bridge|doctor|servers|shell|watch|bench) ;;
        list)
            [[ $before == list ]] &&
                COMPREPLY+=($(compgen -W "tools resources templates prompts" -- "$word")) ;;
        call|read|prompt|complete) [[ $COMP_CWORD -gt 2 ]] || return 0 ;;
        *) return 0 ;;
    esac
    _taut_add_servers "$word"
}
complete -F _taut_with_servers -o nosort taut 2>/dev/null || complete -F _taut_with_servers taut
"#;

/// Ours instead of clap's: its own falls back to files wherever it knows nothing.
fn bash(text: &str) -> String {
    let own = text.find("\nif [[ \"${BASH_VERSINFO[0]}\"").unwrap_or(text.len());
    format!("{}\n{BASH}", text[..own].trim_end())
}

const ZSH: &str = r#"
_taut_servers() {
    local -a names
    names=(${(f)"$(taut servers --names 2>/dev/null)"})
    compadd -a names
}
_taut_kinds() {
    compadd tools resources templates prompts
    _taut_servers
}
"#;

/// After `--` another command begins.
const ZSH_COMMAND: &str = r#"    local dashes=${words[(i)--]}
    if (( dashes < CURRENT )); then
        shift $dashes words
        (( CURRENT -= dashes ))
        _normal
        return
    fi
"#;

/// Where clap knows nothing of the names of servers, it asks us.
fn zsh(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let names = line.contains(":NAME:") || line.contains("A server by name");
        let names = names || line.starts_with("'*::pairs --");
        let line = match line {
            _ if line.starts_with("'::first --") => line.replace(":' \\", ":_taut_kinds' \\"),
            _ if names => line.replace(":' \\", ":_taut_servers' \\"),
            _ => line.to_owned(),
        };
        let _ = writeln!(out, "{line}");
        if line.starts_with("autoload ") {
            out += ZSH;
        } else if line == "_taut() {" {
            out += ZSH_COMMAND;
        }
    }
    out
}

const FISH: &str = r#"
function __fish_taut_dashed
    contains -- -- (commandline -opc)
end
function __fish_taut_command
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words)
    set -e words[1..$at]
    complete -C (string join ' ' -- (string escape -- $words) (commandline -ct))
end
complete -c taut -n __fish_taut_dashed -x -a "(__fish_taut_command)"
"#;

fn fish() -> String {
    let mut text = FISH.to_owned();
    let mut offer = |command: &str, words: &str| {
        let _ = writeln!(
            text,
            "complete -c taut -n \"__fish_taut_using_subcommand {command}; and not __fish_taut_dashed\" \
             -f -a \"{words}\""
        );
    };
    for command in BY_NAME {
        offer(command, &format!("({NAMES})"));
    }
    offer("list", "tools resources templates prompts");
    offer("completions", &SHELLS.join(" "));
    let taut = Args::command();
    let commands: Vec<&str> = taut.get_subcommands().map(Command::get_name).collect();
    offer("man", &commands.join(" "));
    let _ = writeln!(text, "complete -c taut -s s -l server -x -a \"({NAMES})\"");
    text
}
