//! One server from start to end: options, signals, and its stderr.
//!
//! Makes a client from the options, and closes the server whatever happens: the first signal cancels the
//! requests and closes the server, the second kills it. Must not know what is requested.

use std::ffi::OsString;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use taut::types::{Implementation, LogParams};
use taut::{Client, ClientBuilder, Command, Error, Level, client::ClientEvent};

use crate::args::Options;
use crate::asking::Host;
use crate::mask;
use crate::output::{CYAN, DIM, Output, time};
use crate::problem::{Exit, Problem};
use crate::reach::Reach;
use crate::secrets;
use crate::signals::{self, Interrupts};
use crate::spinner::Spinner;

/// The command that was typed after `--`.
pub(crate) fn command(typed: &[OsString], options: &Options) -> Command {
    let (program, args) = match typed {
        [program, args @ ..] => (program.clone(), args),
        [] => (OsString::new(), typed),
    };
    let mut command = Command::new(program).args(args.iter().cloned()).network_env(true);
    if options.inherit_env {
        secrets::hide_ours();
        command = command.inherit_env();
    }
    for (name, value) in &options.env {
        secrets::hide(name, value);
        command = command.env(name, value);
    }
    match &options.cwd {
        Some(dir) => command.current_dir(dir),
        None => command,
    }
}

/// The same, for people, with secrets masked.
pub(crate) fn shown(typed: &[OsString]) -> String {
    let words: Vec<_> = typed.iter().map(|word| word.to_string_lossy()).collect();
    quoted(mask::words(words.iter().map(AsRef::as_ref)))
}

/// Words as a command line, which a shell would split into the same words.
pub(crate) fn quoted<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> String {
    let quote = |word: W| {
        let word = word.as_ref();
        // A mask is none of the command's own words.
        let plain = |c: char| c.is_alphanumeric() || "_@%+=:,./-*".contains(c);
        let plain = |c: char| plain(c) || (cfg!(windows) && c == '\\');
        match word.chars().all(plain) && !word.is_empty() {
            true => word.to_owned(),
            false if cfg!(windows) => format!("\"{}\"", word.replace('"', "\\\"")),
            false => format!("'{}'", word.replace('\'', r"'\''")),
        }
    };
    words.into_iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// How long a server may take to be ready unless something else is said: a first run may install it.
const START: Duration = Duration::from_secs(60);

/// A client as the options want it.
pub(crate) fn builder(output: &Output, options: &Options) -> ClientBuilder {
    let mut builder = Client::builder()
        .info(Implementation::new("taut", env!("CARGO_PKG_VERSION")))
        .start_timeout(options.start_timeout.unwrap_or(START))
        .request_timeout(options.timeout);
    if let Some(revision) = options.revision {
        builder = builder.revision(revision);
    }
    if let Some(framing) = options.framing {
        builder = builder.framing(framing);
    }
    let (lines, events) = (output.clone(), output.clone());
    builder
        .secrets(secrets::all().clone())
        .on_stderr(move |line| hear_line(&lines, line))
        .on_event(move |event| hear(&events, event))
}

/// Takes a line of the server's stderr: told with -v, else kept in case that it is all that comes.
pub(crate) fn hear_line(output: &Output, line: &str) {
    match output.verbose {
        true => tell(output, "stderr", line),
        false => output.heard.add(line),
    }
}

/// The same for what happens; without -v only a line on stdout that is no message is kept.
pub(crate) fn hear(output: &Output, event: &ClientEvent<'_>) {
    match event {
        _ if output.verbose => tell_event(output, event),
        ClientEvent::InvalidMessage(junk) => output.heard.add_stray(&junk.excerpt),
        ClientEvent::StartingSecond { .. } if !output.heard.is_deaf() => output
            .note(&output.err.paint(
            CYAN,
            "the server is silent so far; also trying Content-Length headers, in a second process",
        )),
        _ => {}
    }
}

/// One line beside the result, with -v.
pub(crate) fn tell(output: &Output, who: &str, line: &str) {
    output.note(&told_by(output, who, line));
}

/// A line with the one who says it before it.
pub(crate) fn told_by(output: &Output, who: &str, line: &str) -> String {
    let who = output.err.paint(DIM, format!("{who:>6} │"));
    format!("{who} {}", output.err.line(line))
}

/// Whether the last thing that a server reported was the same change of a list: some report each tool that they
/// add, which is one change to a reader.
fn is_repeated(method: &str, words: &str) -> bool {
    static LAST: Mutex<String> = Mutex::new(String::new());
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let same = method.ends_with("/list_changed") && *last == words;
    words.clone_into(&mut last);
    same
}

/// Passes on what happens, with -v.
fn tell_event(output: &Output, event: &ClientEvent<'_>) {
    let line = match event {
        ClientEvent::ProcessStarted { pid } => format!("started as process {pid}"),
        ClientEvent::OpeningSent { phase, revision } => format!("asked {phase}, {revision}"),
        ClientEvent::FirstOutput => "first output".to_owned(),
        ClientEvent::Notification { method, params } => {
            let params = params.map_or("", |params| params.get());
            let words = match serde_json::from_str::<LogParams>(params) {
                Ok(log) => {
                    let from = log.logger.map(|name| format!("{name}: ")).unwrap_or_default();
                    format!("{} {from}{}", log.level, log.data.text())
                }
                Err(_) => format!("{method} {params}"),
            };
            if is_repeated(method, &words) {
                return;
            }
            return tell(output, "server", &words);
        }
        ClientEvent::InvalidMessage(junk) => {
            format!("no message on stdout: {} ({})", junk.excerpt, junk.fault)
        }
        ClientEvent::StrayError(error) => format!("an error that belongs to nothing: {error}"),
        ClientEvent::Refused { method } => format!("refused the server's {method}"),
        ClientEvent::Restarting { framing } => format!("starting it again, speaking {framing}"),
        ClientEvent::StartingSecond { framing } => {
            format!("silent so far; starting another beside it, speaking {framing}")
        }
        _ => return,
    };
    tell(output, "taut", &line);
}

/// Starts a server, runs `work`, and closes the server in every case. Returns the exit code for success,
/// which is not 0 if a question of the server was left unanswered.
pub(crate) async fn with_server<T>(
    output: &Output,
    options: &Options,
    reach: Reach,
    work: impl AsyncFnOnce(&Client, &Spinner) -> Result<T, Problem>,
) -> Result<(T, Exit), Problem> {
    let host = Host::new(output, &options.asked)?;
    if output.verbose
        && let Some(words) = host.unoffered()
    {
        tell(output, "taut", &words);
    }
    let mut interrupts = Interrupts::new()?;
    let spinner = Spinner::start(output, "starting the server");
    let builder = host.attach(builder(output, options)).on_event(host.hearing());
    let opening = reach.open_until(output, builder, &mut interrupts);
    let client = patient(output, options, opening).await?.ok_or(Problem::Interrupted)?;
    if output.verbose && client.capabilities().logging.is_some() {
        // With -v the server's log is shown too. A server that refuses is used anyway.
        let _ = client.set_level(Level::Debug).await;
    }
    let worked = tokio::select! {
        worked = work(&client, &spinner) => worked.map_err(|problem| {
            let problem = host.explain(problem);
            strays(output, &problem, &client);
            with_words(problem, &client, output)
        }),
        // What was asked is withdrawn by being dropped.
        () = interrupts.next() => {
            if signals::over().is_some() {
                output.overheard();
            }
            Err(Problem::Interrupted)
        }
    };
    spinner.say("waiting for the server to end");
    let interrupted = matches!(worked, Err(Problem::Interrupted | Problem::Ended));
    let closing = async {
        if interrupted { told(output, client.close()).await } else { client.close().await }
    };
    let closed = tokio::select! {
        closed = closing => closed,
        () = interrupts.next() => return Err(Problem::Interrupted),
    };
    let worked = worked?;
    closed?;
    Ok((worked, host.judge(Exit::Worked)))
}

/// Says why an answer did not come, where that is known: it came, with another id.
fn strays(output: &Output, problem: &Problem, client: &Client) {
    let Problem::Server { error: Error::TimedOut { .. }, .. } = problem else { return };
    let Some(id) = client.diagnostics().first_unknown else { return };
    let kind = if id.starts_with('"') { ", a string, and ours are numbers" } else { "" };
    let line = format!("an answer came that belongs to nothing: its id is {id}{kind}");
    output.note(&output.err.paint(CYAN, output.err.line(&line)));
}

/// The same with what the server has printed, where the error does not say it.
pub(crate) fn with_words(problem: Problem, client: &Client, output: &Output) -> Problem {
    match problem {
        Problem::Server { error, .. } => {
            let shown = matches!(error, Error::Connect(_) | Error::Lost(_));
            let stderr = if shown { String::new() } else { client.stderr() };
            // Only what does not answer may have said there why.
            let silent = matches!(error, Error::TimedOut { .. });
            let stdout = if silent { output.heard.stray() } else { String::new() };
            Problem::Server { error, stdout: stdout.into(), stderr: stderr.into() }
        }
        Problem::Hinted { problem, next } => with_words(*problem, client, output).hinted(next),
        other => other,
    }
}

/// Waits until a server is ready. `--timeout` is for requests, and a first start may install the server; where that
/// takes longer than a request may, says what the limit is.
pub(crate) async fn patient<T>(
    output: &Output,
    options: &Options,
    opening: impl Future<Output = T>,
) -> T {
    let limit = options.start_timeout.unwrap_or(START);
    let mut opening = std::pin::pin!(opening);
    if options.timeout < limit {
        tokio::select! {
            opened = &mut opening => return opened,
            () = tokio::time::sleep(options.timeout) => {}
        }
        let (after, limit) = (time(options.timeout), time(limit));
        let words =
            format!("the server is not ready after {after}; it has {limit} (--start-timeout)");
        output.note(&output.err.paint(CYAN, words));
    }
    opening.await
}

/// A server that ends within this time after a stop need not be told of.
const SOON: Duration = Duration::from_millis(300);

/// Waits until a server has ended after a stop; where that takes long, says so. After `--max-time` nobody is there
/// who could press Ctrl-C once more; the clock does it.
pub(crate) async fn told<T>(output: &Output, ending: impl Future<Output = T>) -> T {
    let mut ending = std::pin::pin!(ending);
    tokio::select! {
        ended = &mut ending => return ended,
        () = tokio::time::sleep(SOON) => {}
    }
    let words = match signals::over() {
        Some(_) => "closing the server",
        None => "closing the server; once more kills it",
    };
    output.note(&output.err.paint(CYAN, words));
    ending.await
}

/// Closes a server after the first signal; the second kills it.
pub(crate) async fn hang_up(output: &Output, client: &Client, interrupts: &mut Interrupts) {
    tokio::select! {
        // The person wants it to end, so how it ends is not reported.
        _ = told(output, client.close()) => {}
        () = interrupts.next() => {}
    }
}
