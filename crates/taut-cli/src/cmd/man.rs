//! `taut man`: the manual page, made from the same definition as `--help`.

use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory as _};
use clap_mangen::Man as Page;

use crate::args::Args;
use crate::arguments::closest;
use crate::help;
use crate::output::Output;
use crate::problem::{Exit, Problem};

#[derive(clap::Args)]
#[command(after_help = help::MAN)]
pub(crate) struct Man {
    /// The page of this command; of taut itself unless given.
    command: Option<String>,
    /// Write all pages into this directory.
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(output: &Output, args: &Man) -> Result<Exit, Problem> {
    let taut = Args::command();
    if let Some(dir) = &args.dir {
        let what = || format!("making the folder {}", dir.display());
        std::fs::create_dir_all(dir).map_err(|error| Problem::File { what: what(), error })?;
        write(dir, &taut, "taut")?;
        for command in taut.get_subcommands() {
            write(dir, command, &format!("taut-{}", command.get_name()))?;
        }
        return Ok(Exit::Worked);
    }
    let bytes = match &args.command {
        None => page(&taut, "taut"),
        Some(name) => {
            let command = taut.find_subcommand(name).ok_or_else(|| unknown(&taut, name))?;
            page(command, &format!("taut-{name}"))
        }
    };
    output.write(&bytes.map_err(failed)?)?;
    Ok(Exit::Worked)
}

fn page(command: &Command, name: &str) -> std::io::Result<Vec<u8>> {
    // Owned for as long as the program runs, as clap wants its names.
    let title: &'static str = Box::leak(name.to_owned().into_boxed_str());
    let mut bytes = Vec::new();
    let command = command.clone().name(title).bin_name(title.replacen('-', " ", 1));
    Page::new(command).render(&mut bytes)?;
    Ok(bytes)
}

fn write(dir: &Path, command: &Command, name: &str) -> Result<(), Problem> {
    let path = dir.join(format!("{name}.1"));
    let what = || format!("writing {}", path.display());
    let written = page(command, name).and_then(|bytes| std::fs::write(&path, bytes));
    written.map_err(|error| Problem::File { what: what(), error })
}

fn failed(error: std::io::Error) -> Problem {
    Problem::File { what: "writing the page".to_owned(), error }
}

fn unknown(taut: &Command, name: &str) -> Problem {
    let shown = || taut.get_subcommands().filter(|command| !command.is_hide_set());
    let names = || shown().map(Command::get_name);
    let meant = closest(name, names()).map(|meant| format!("; did you mean {meant}?"));
    Problem::Usage {
        what: format!("there is no command {name:?}{}", meant.unwrap_or_default()),
        next: Some(format!("one of {}", names().collect::<Vec<_>>().join(", "))),
    }
}
