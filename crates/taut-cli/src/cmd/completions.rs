//! `taut completions SHELL`: what the shell has to know to complete our words.
//!
//! clap writes the scripts; the few lines added here ask `taut servers --names` for the names of servers,
//! which no script can know.

use std::fmt::Write as _;

use clap::{CommandFactory as _, ValueEnum as _};
use clap_complete::Shell;

use crate::args::Args;
use crate::help;
use crate::output::Output;
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
    clap_complete::generate(shell, &mut Args::command(), "taut", &mut bytes);
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    match shell {
        Shell::Bash => text += BASH,
        Shell::Zsh => text = zsh(&text),
        Shell::Fish => {
            for command in BY_NAME {
                let _ = writeln!(
                    text,
                    "complete -c taut -n \"__fish_taut_using_subcommand {command}\" -f -a \"({NAMES})\""
                );
            }
            text += "complete -c taut -n \"__fish_taut_using_subcommand list\" -f \\\n    -a \"tools resources templates prompts\"\n";
            let _ = writeln!(text, "complete -c taut -s s -l server -x -a \"({NAMES})\"");
        }
        _ => {}
    }
    text
}

const NAMES: &str = "taut servers --names 2>/dev/null";

/// Where a plain word may be the name of a server.
const BY_NAME: [&str; 9] =
    ["smoke", "list", "doctor", "servers", "shell", "watch", "call", "read", "prompt"];

/// After what clap's function found: names where one may stand, and only there.
const BASH: &str = r#"
_taut_with_servers() {
    _taut "$@"
    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" kinds="" each
    for each in "${COMP_WORDS[@]:0:COMP_CWORD}"; do
        [[ $each == -- ]] && return 0
    done
    if [[ $before == -s || $before == --server ]]; then
        COMPREPLY=($(compgen -W "$(taut servers --names 2>/dev/null)" -- "$word"))
        return 0
    fi
    [[ $word == -* || $before == -* || $COMP_CWORD -lt 2 ]] && return 0
    case "${COMP_WORDS[1]}" in
        smoke|doctor|servers|shell|watch) ;;
        list) [[ $before == list ]] && kinds="tools resources templates prompts" ;;
        call|read|prompt) [[ $COMP_CWORD -gt 2 ]] || return 0 ;;
        *) return 0 ;;
    esac
    COMPREPLY+=($(compgen -W "$kinds $(taut servers --names 2>/dev/null)" -- "$word"))
}
complete -F _taut_with_servers -o nosort -o bashdefault -o default taut
"#;

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

/// Where clap falls back to file names for the name of a server, it asks us.
fn zsh(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let of_server =
            line.contains(":NAME:_default") || line.contains("name -- A server by name");
        let line =
            if of_server { line.replace(":_default", ":_taut_servers") } else { line.into() };
        let _ = writeln!(out, "{line}");
        if line.starts_with("autoload ") {
            out += ZSH;
        }
    }
    out
}
