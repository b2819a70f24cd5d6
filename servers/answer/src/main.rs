//! An MCP server that answers questions with web search and dated citations.
//!
//! A tutorial too: `tools.rs` shows how a server is built on taut. This file reads the command line.

#![allow(unreachable_pub, reason = "in a program, `pub` says: used by other files")]

mod citations;
mod config;
mod openai;
mod tools;

use std::error::Error;
use std::fs::File;
use std::io::{IsTerminal, Write, stderr, stdin};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgAction, Parser};
use config::Config;
use taut::Ending;

/// An MCP server that answers questions with web search and dated citations.
///
/// Settings come from the command line, then the environment, then the file, then defaults. The API
/// key comes from OPENAI_API_KEY, or from the variable that openai.api_key_env names.
#[derive(Parser)]
#[command(version, disable_version_flag = true)]
struct Args {
    /// Serve on stdin and stdout, also on a terminal; needed only beside --show-config
    #[arg(long)]
    stdio: bool,
    /// Read settings from this YAML file, not from ~/.config/taut-answer/config.yaml
    #[arg(long, value_name = "PATH")]
    config: Option<PathBuf>,
    /// Set one setting, such as request.max_retries=0; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_and_value)]
    set: Vec<(String, String)>,
    /// Show every setting and where it came from, on stderr; serve as well if --stdio is given
    #[arg(long)]
    show_config: bool,
    /// Tell each step on stderr, and in a file if one is named
    #[arg(long, value_name = "PATH", num_args = 0..=1, default_missing_value = "true")]
    debug: Option<String>,
    /// Print the version
    #[arg(short, long, visible_short_alias = 'V', action = ArgAction::Version)]
    version: Option<bool>,
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write it as KEY=VALUE")?;
    Ok((key.trim().to_owned(), value.to_owned()))
}

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(exit) => exit,
        Err(error) => {
            say(&format!("taut-answer: {error}; try --show-config, or --help"));
            ExitCode::from(2)
        }
    }
}

fn run(args: Args) -> Result<ExitCode, Box<dyn Error>> {
    let debug = args.debug.map(|debug| ("server.debug".to_owned(), debug));
    let mut config = Config::load(args.config, args.set.into_iter().chain(debug).collect())?;
    let steps = steps(&mut config)?;
    config.notes.iter().for_each(|note| say(&format!("taut-answer: {note}")));
    if args.show_config || config.text("server.show_config_on_start") == "true" {
        say(&config.to_string());
    }
    if args.show_config && !args.stdio {
        return Ok(ExitCode::SUCCESS);
    }
    if stdin().is_terminal() && !args.stdio {
        say("taut-answer is an MCP server: a host starts it and uses its stdin and stdout");
        say("  try: taut smoke -- taut-answer; --stdio to type messages here; --help");
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(file) = steps {
        tell_steps(&config, file)?;
    }
    if config.key.reveal().is_none() {
        let variable = config.text("openai.api_key_env");
        say(&format!("taut-answer: no API key: {variable} is not set; calls will fail"));
    }
    let server = tools::server(config)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match runtime.block_on(server.serve_stdio()) {
        // Which questions were dropped stands on stderr already.
        Err(taut::Error::Ended(Ending::DrainTimedOut { .. })) => Ok(ExitCode::FAILURE),
        served => Ok(served.map(|()| ExitCode::SUCCESS)?),
    }
}

/// Says one line on stderr. Not `eprintln!`, which panics when a host has closed it.
fn say(line: &str) {
    let _ = stderr().write_all(format!("{line}\n").as_bytes());
}

/// What debugging writes to: stderr, and the file that is inside if one is named. Nothing where it is off.
fn steps(config: &mut Config) -> Result<Option<Option<File>>, String> {
    let path = config.path("server.debug_file");
    if config.text("server.debug") != "true" || path.as_os_str().is_empty() {
        return Ok((config.text("server.debug") == "true").then_some(None));
    }
    let mut options = File::options();
    #[cfg(unix)] // For its owner only: questions and answers are in it.
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.create(true).append(true).open(&path) {
        Ok(file) => Ok(Some(Some(file))),
        // The variable may be another program's.
        Err(error) if config.is_from_environment("server.debug") => {
            config.leave_debug_off(&path.display().to_string(), &error.to_string());
            Ok(None)
        }
        Err(error) => Err(format!("server.debug_file is {path:?}: {error}")),
    }
}

/// Tells each step on stderr, and in the file if there is one. The key is taken out of every line.
fn tell_steps(config: &Config, file: Option<File>) -> Result<(), Box<dyn Error>> {
    let key = config.key.clone();
    let steps = taut::Steps::new(move |line: &str| {
        let line = key.hide_in(line);
        if let Some(mut file) = file.as_ref() {
            let _ = file.write_all(format!("{line}\n").as_bytes());
        }
        say(&line);
    });
    Ok(tracing::subscriber::set_global_default(steps.with("taut_answer"))?)
}
