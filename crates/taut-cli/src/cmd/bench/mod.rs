//! `taut bench`: how fast a server is, beside others, with every answer checked.
//!
//! One concern each: `load.rs` sends, over `wire.rs`, what `request.rs` writes; `template.rs` and
//! `judge.rs` compare answers, `ledger.rs` counts them; `watch.rs` keeps deadlines, `figures.rs` knows
//! what the server costs; `phases.rs` and `rounds.rs` say what happens when; the rest shows it. This
//! file only joins them. Linux only: costs are read from `/proc`.

mod about;
mod document;
mod fault;
mod figures;
mod judge;
mod ledger;
mod load;
pub(crate) mod options;
mod panel;
mod phases;
mod pinning;
mod plot;
mod process;
mod progress;
mod request;
mod rounds;
mod session;
mod stats;
mod table;
mod target;
mod template;
mod watch;
mod wire;

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::cmd::call::object;
use crate::hosts;
use crate::mask;
use crate::output::{Output, YELLOW};
use crate::own;
use crate::problem::{Exit, Problem};
use crate::reach::carrier;
use crate::secrets;
use crate::session::{builder, shown};
use crate::signals::Interrupts;
use fault::Fault;
use options::{Bench, Kind, Over};
use phases::{Extent, Phase};
use pinning::Machine;
use process::Start;
use progress::Progress;
use rounds::{Plan, Row};
use target::Wish;

/// Calls in flight unless something else is said.
const IN_FLIGHT: [u16; 2] = [8, 64];

/// Sizes unless something else is said. At 16 MiB many servers stop, and that is worth knowing.
const SIZES: [usize; 7] = [64, 1 << 10, 16 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20];

/// The same with --quick.
const QUICK_SIZES: [usize; 3] = [64, 16 << 10, 1 << 20];

pub(crate) async fn run(output: &Output, args: Bench) -> Result<Exit, Problem> {
    if let Some(path) = &args.plot {
        save(path, "")?;
    }
    let (args, env) = by_name(output, args).await?;
    if matches!(env!("TAUT_OPT_LEVEL"), "0" | "1") {
        let words = "this taut is not optimised, so its load is slow, and the figures are not those of the server \
                     alone; build it with --profile dist";
        output.note(&output.err.paint(YELLOW, words));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let mut interrupts = Interrupts::new()?;
    let (shown, asked) = (output.clone(), stop.clone());
    // It blocks, and it is pinned to a core: on a thread of its own.
    let mut work = tokio::task::spawn_blocking(move || measure(&shown, &args, env, &asked));
    let done = tokio::select! {
        done = &mut work => done,
        () = interrupts.next() => {
            stop.store(true, Ordering::Relaxed);
            // It ends the server that it measures.
            let _ = work.await;
            return Err(Problem::Interrupted);
        }
    };
    done.unwrap_or_else(|error| {
        Err(Problem::File { what: "measuring".into(), error: error.into() })
    })
}

/// The same, with the command of the server that is named, and the environment that only it gets.
async fn by_name(
    output: &Output,
    mut args: Bench,
) -> Result<(Bench, Vec<(String, String)>), Problem> {
    args.named = args.named.or_else(|| args.by_option.take());
    if let Some(text) = &args.args {
        args.args = Some(Value::Object(object(text)?).to_string());
    }
    let Some(name) = &args.named else {
        if args.server.is_empty() {
            // An error, which says which servers there are.
            hosts::resolve(output, &args.options(), None, &[])?;
        }
        return Ok((args, Vec::new()));
    };
    if hosts::listens(name, &args.config)? {
        let shown = mask::url(name);
        // Who is not there is told of as by every other command.
        let options = args.options();
        let target = hosts::resolve(output, &options, Some(name), &[])?;
        target.reach.open(builder(output, &options)).await?.close().await?;
        // The load speaks over pipes, and measures a process.
        let mut words = carrier(name, &args.config)?;
        for (name, value) in &args.header {
            secrets::hide(name, value);
            words.extend(["--header".into(), format!("{name}: {value}").into()]);
        }
        if let Some(file) = &args.ca_file {
            words.extend(["--ca-file".into(), file.into()]);
        }
        args.server = words;
        args.name.get_or_insert_with(|| format!("{shown}, bridged"));
        output.note(&own::named(
            "a server that is not started here is measured through `taut bridge`, which has its own costs",
        ));
        return Ok((args, Vec::new()));
    }
    let start = hosts::start_of(output, name, &args.config, &args.env)?;
    args.name.get_or_insert_with(|| name.clone());
    args.server = start.words.into_iter().map(OsString::from).collect();
    args.cwd = args.cwd.or(start.cwd);
    args.inherit_env |= start.inherit;
    start.env.iter().for_each(|(name, value)| secrets::hide(name, value));
    Ok((args, start.env))
}

fn measure(
    output: &Output,
    args: &Bench,
    env: Vec<(String, String)>,
    stop: &Arc<AtomicBool>,
) -> Result<Exit, Problem> {
    let machine = Machine::look();
    let plan = plan(args, &machine);
    let mut rows = rows(args)?;
    rows[0].env = env;
    let how = Start {
        over: args.over,
        env: args.env.clone(),
        inherit_env: args.inherit_env,
        cwd: args.cwd.clone(),
        patience: args.timeout,
        stop: stop.clone(),
    };
    let turns: usize = plan.pinnings.iter().map(|pinning| plan.on(*pinning).count()).sum();
    let mut progress = Progress::new(output, turns * plan.rounds * rows.len());
    let done = rounds::run(&plan, &machine, &how, &mut rows, &mut progress);
    machine.release();
    drop(progress);
    if done == Err(Fault::Stopped) {
        return Err(Problem::Interrupted);
    }
    let exit = rows[0].first_fault().map_or(Exit::Worked, Fault::exit);
    let over = if args.over == Over::Pipes { "pipes" } else { "sockets" };
    if let Some(path) = &args.plot {
        save(path, &plot::draw(&plan, &rows))?;
    }
    if output.json {
        let about = about::document(&machine);
        output.document(&document::document(&plan, &rows, &about, over, exit))?;
    } else {
        output.print(&table::show(output, &plan, &rows, &about::words(&machine), over))?;
    }
    Ok(exit)
}

/// The server, then those that it is compared with.
fn rows(args: &Bench) -> Result<Vec<Row>, Problem> {
    let name = args.name.clone().unwrap_or_else(|| {
        let program = args.server.first().map(Path::new).and_then(Path::file_name);
        program.map_or_else(|| shown(&args.server), |name| name.to_string_lossy().into_owned())
    });
    let mut rows = vec![Row::new(name, args.server.clone())];
    for (name, command) in &args.compare {
        let words = words(command).filter(|words| !words.is_empty()).ok_or_else(|| {
            Problem::usage(format!("--compare {name}: a quote that is not closed, or no command"))
        })?;
        rows.push(Row::new(name.clone(), words));
    }
    Ok(rows)
}

fn plan(args: &Bench, machine: &Machine) -> Plan {
    let wished = |kind: Kind| args.only.is_empty() || args.only.contains(&kind);
    let (in_flight, sizes) =
        if args.quick { (&IN_FLIGHT[1..], &QUICK_SIZES[..]) } else { (&IN_FLIGHT[..], &SIZES[..]) };
    let in_flight = if args.in_flight.is_empty() { in_flight } else { &args.in_flight };
    let sizes = if args.size.is_empty() { sizes } else { &args.size };
    let mut phases = vec![Phase::Start, Phase::Sequential];
    phases.extend(in_flight.iter().map(|count| Phase::InFlight(usize::from(*count))));
    // The largest last: what it leaves in a server's memory belongs to no other phase.
    phases.extend([Phase::FireHose, Phase::List]);
    phases.extend(sizes.iter().map(|size| Phase::Payload(*size)));
    phases.retain(|phase| wished(phase.kind()));
    let rounds = args.rounds.map_or(if args.quick { 1 } else { 5 }, usize::from);
    Plan {
        rounds,
        pinnings: machine.pinnings(args.cores),
        phases,
        extent: Extent { quick: args.quick, fire: args.fire.map(|calls| calls as usize) },
        era: args.era,
        tool: args.call.clone().map(|tool| {
            let (argument, arguments) = (args.arg.clone(), args.args.clone());
            Wish { tool, argument, arguments }
        }),
    }
}

fn save(path: &Path, text: &str) -> Result<(), Problem> {
    let what = || format!("cannot write {}", path.display());
    std::fs::write(path, text).map_err(|error| Problem::File { what: what(), error })
}

/// A command line split at its blanks, except within quotes. No shell: it would be measured too.
fn words(text: &str) -> Option<Vec<OsString>> {
    let (mut all, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for character in text.chars() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, _) if character.is_whitespace() => all.extend(word.take().map(OsString::from)),
            _ => word.get_or_insert_default().push(character),
        }
    }
    all.extend(word.map(OsString::from));
    quote.is_none().then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_split_at_blanks_and_joined_by_quotes() {
        let table = [
            ("cat", Some(vec!["cat"])),
            ("  a  b\tc ", Some(vec!["a", "b", "c"])),
            (r#"sh -c 'exec "x y"' """#, Some(vec!["sh", "-c", r#"exec "x y""#, ""])),
            ("a 'b", None),
            ("", Some(vec![])),
        ];
        for (text, wants) in table {
            let wants =
                wants.map(|words| words.into_iter().map(OsString::from).collect::<Vec<_>>());
            assert_eq!(words(text), wants, "{text}");
        }
    }
}
