//! An MCP server that answers questions with web search and dated citations.
//!
//! A tutorial as much as a tool: `tools.rs` is how a server is built on taut, the rest is what any
//! server needs around that. This file reads the command line and starts; nothing else.

#![allow(unreachable_pub, reason = "in a program, `pub` says: used by other files")]

mod citations;
mod config;
mod debug;
mod openai;
mod tools;

use std::error::Error;
use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{ArgAction, Parser};
use config::Config;
use debug::{Log, say};

/// An MCP server that answers questions with web search and dated citations.
///
/// Settings come from the command line, then the environment, then the file, then defaults. The API
/// key comes from OPENAI_API_KEY, or from the variable that openai.api_key_env names.
#[derive(Parser)]
#[command(version, disable_version_flag = true, arg_required_else_help = true)]
struct Args {
    /// Serve on stdin and stdout; not needed beside other options, except --show-config
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
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("taut-answer: {error}; try --show-config, or --help"));
            ExitCode::from(2)
        }
    }
}

fn run(args: Args) -> Result<(), Box<dyn Error>> {
    let debug = args.debug.map(|debug| ("server.debug".to_owned(), debug));
    let config = Config::load(args.config, args.set.into_iter().chain(debug).collect())?;
    if args.show_config || config.text("server.show_config_on_start") == "true" {
        say(&config.to_string());
    }
    if args.show_config && !args.stdio {
        return Ok(());
    }
    if config.text("server.debug") == "true" {
        let path = config.path("server.debug_file");
        let file = File::options().create(true).append(true).open(&path);
        let file = file.map_err(|error| format!("server.debug_file is {path:?}: {error}"));
        let file = if path.as_os_str().is_empty() { None } else { Some(file?) };
        tracing::subscriber::set_global_default(Log { file, key: config.key.clone() })?;
    }
    if config.key.reveal().is_none() {
        let variable = config.text("openai.api_key_env");
        say(&format!("taut-answer: no API key: {variable} is not set; calls will fail"));
    }
    let server = tools::server(config)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(server.serve_stdio())?)
}

/// Today as YYYY-MM-DD, in Japan's time as users of the original know it: UTC+9, no summer time.
fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    date((since.as_secs() + 9 * 3600) / 86_400)
}

/// The date so many days after 1970-01-01. Counts in years that begin in March, so that the leap day
/// is the last of its year, and in eras of 400 years, which all have the same number of days.
fn date(days: u64) -> String {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        let table = [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (20_514, "2026-03-02"),
            (47_540, "2100-02-28"),
            (47_541, "2100-03-01"),
        ];
        for (days, want) in table {
            assert_eq!(date(days), want);
        }
    }
}
