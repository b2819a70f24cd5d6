//! One server from start to end, with us between it and its host.
//!
//! Starts the server, passes signals on, and ends as the server ended: with its code, or by its signal. At a
//! terminal a second Ctrl-C kills it (`stop.rs`).
//! The server gets a process group of its own, so that a signal for our group reaches it once, through
//! us; on Linux it is killed when we are. On Windows it is in a job, which ends with us. Must not look at the bytes.

use std::path::PathBuf;
use std::process::ExitStatus;
#[cfg(not(windows))]
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use taut_trace::{End, Recorder};

use super::pump::{self, Ends, Progress};
#[cfg(unix)]
use super::stop::Stop;
use super::wake::{self, Heard};
use crate::leftovers::{self, Sweeper};
use crate::problem::{Exit, Problem};

#[cfg(windows)]
pub(super) use std::io::{
    PipeReader as ChildStderr, PipeReader as ChildStdout, PipeWriter as ChildStdin,
};
#[cfg(not(windows))]
pub(super) use std::process::{Child, ChildStderr, ChildStdin, ChildStdout};
#[cfg(windows)]
pub(super) use taut::process::JobChild as Child;

/// How long what the server wrote before its end may take to reach the host, once somebody wants us gone.
const LAST_BYTES: Duration = Duration::from_secs(2);

/// How long nothing may be on its way before that is believed: a thread that was interrupted between its
/// read and its word about it is on its way again by then.
const QUIET: Duration = Duration::from_millis(50);

/// What to start.
#[derive(Debug, Default)]
pub(super) struct Launch {
    /// The program and its arguments.
    pub(super) words: Vec<std::ffi::OsString>,
    /// Set on top of our own environment.
    pub(super) env: Vec<(String, String)>,
    /// Whether only the short list of harmless variables is passed on of our own environment.
    pub(super) short_env: bool,
    pub(super) cwd: Option<PathBuf>,
}

impl Launch {
    /// The same for the library, which knows where a program is looked for and what is harmless.
    fn described(&self) -> taut::Command {
        let mut words = self.words.iter().cloned();
        let command = taut::Command::new(words.next().unwrap_or_default()).args(words);
        let command = if self.short_env { command } else { command.inherit_env() };
        let command =
            self.env.iter().fold(command, |command, (name, value)| command.env(name, value));
        match &self.cwd {
            Some(dir) => command.current_dir(dir),
            None => command,
        }
    }

    /// The program with its arguments.
    #[cfg(not(windows))]
    fn command(&self) -> Command {
        let mut words = self.words.iter();
        let mut command = Command::new(words.next().map_or_else(Default::default, Clone::clone));
        command.args(words);
        command
    }

    /// Gives a process the environment and the directory of the server.
    #[cfg(not(windows))]
    fn surround<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        if self.short_env {
            command.env_clear().envs(self.described().effective_env());
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some(dir) = &self.cwd {
            command.current_dir(dir);
        }
        command
    }

    /// Starts the server on its own, and lets go what it writes to stderr.
    #[cfg(not(windows))]
    pub(super) fn start_alone(&self) -> std::io::Result<Child> {
        let mut command = self.command();
        self.surround(&mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
    }

    /// Starts the server on its own, and lets go what it writes to stderr.
    #[cfg(windows)]
    pub(super) fn start_alone(&self) -> std::io::Result<Child> {
        let mut child = self.described().start_in_job()?;
        if let Some(mut stderr) = child.stderr.take() {
            std::thread::Builder::new().name("stderr".to_owned()).spawn(move || {
                let _ = std::io::copy(&mut stderr, &mut std::io::sink());
            })?;
        }
        Ok(child)
    }

    /// What to say where the server could not be started: where it was looked for, if it is not there.
    pub(super) fn not_started(&self, error: std::io::Error) -> Problem {
        match self.described().find_program() {
            Err(missing) => taut::Error::from(missing).into(),
            Ok(program) => Problem::File { what: format!("starting {}", program.display()), error },
        }
    }
}

/// Carries until the server has ended. Does not return: the process ends as the server did.
///
/// `tell` tells a person who may press Ctrl-C; there is none without.
pub(super) fn carry(
    launch: &Launch,
    recorder: Recorder,
    tell: Option<&dyn Fn(&str)>,
) -> Result<std::convert::Infallible, Problem> {
    let (mut heard, waker) = wake::listen()?;
    let mut child = match start(launch) {
        Ok(child) => child,
        Err(error) => {
            recorder.ended(End::NotStarted(error.to_string()));
            recorder.finish();
            return Err(launch.not_started(error));
        }
    };
    recorder.started(child.id());
    let ends = match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
        (Some(stdin), Some(stdout), Some(stderr)) => Ends { stdin, stdout, stderr },
        _ => return Err(Problem::usage("the system gave no pipes for the server")),
    };
    let progress = pump::start(ends, &recorder, &waker)
        .map_err(|error| Problem::File { what: "starting a thread".to_owned(), error })?;
    let (status, killed) = wait(&mut child, &mut heard, &progress, tell);
    drain(&progress);
    recorder.ended(ended(status));
    recorder.finish();
    leftovers::end();
    if killed {
        // The person ended it, and it is we who used the signal.
        std::process::exit(Exit::Interrupted as i32);
    }
    end_like(status)
}

/// Waits until the server has ended and its output too. A process that the server leaves behind may keep
/// its output open; then a signal, or a host that closes, ends it all.
///
/// Says whether we killed it.
fn wait(
    child: &mut Child,
    heard: &mut Heard,
    progress: &Progress,
    tell: Option<&dyn Fn(&str)>,
) -> (ExitStatus, bool) {
    let mut status = None;
    let mut stopped = false;
    let mut stop = Stop::new(tell);
    let mut sweeper = Sweeper::default();
    loop {
        if status.is_none() {
            status = child.try_wait().ok().flatten();
        }
        if let Some(status) = status
            && (progress.has_ended() || stopped || stop.killed() || progress.host_closed())
        {
            return (status, stop.killed());
        }
        let time = if status.is_none() { stop.due(child) } else { None };
        let time = [time, sweeper.collect(child.id())].into_iter().flatten().min();
        for signal in heard.wait(time) {
            stopped |= heed(child, signal, status.is_some(), &mut stop);
        }
    }
}

/// Passes a signal on to a server that runs. Says whether one that came later asks us to end.
#[cfg(unix)]
fn heed(child: &Child, signal: i32, has_ended: bool, stop: &mut Stop<'_>) -> bool {
    let is_key = signal == signal_hook::consts::SIGINT;
    if !has_ended && (!is_key || stop.interrupted(child)) {
        pass_on(child, signal);
    }
    has_ended && is_wish_to_end(signal)
}

/// There are no signals here.
#[cfg(not(unix))]
const fn heed(_: &Child, _: i32, has_ended: bool, _: &mut Stop<'_>) -> bool {
    has_ended
}

/// There is no Ctrl-C to pass on here: the system ends us, and the job ends the server.
#[cfg(not(unix))]
struct Stop<'a>(std::marker::PhantomData<&'a ()>);

#[cfg(not(unix))]
impl<'a> Stop<'a> {
    const fn new(_: Option<&'a dyn Fn(&str)>) -> Self {
        Self(std::marker::PhantomData)
    }

    const fn killed(&self) -> bool {
        false
    }

    const fn due(&mut self, _: &Child) -> Option<Duration> {
        None
    }
}

/// The environment and the pipes of the server, for whichever process becomes it.
#[cfg(not(windows))]
fn prepare<'c>(command: &'c mut Command, launch: &Launch) -> &'c mut Command {
    launch.surround(command).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped())
}

/// In a job, which ends with this process. The library finds the program, as it does for every other command (W1).
#[cfg(windows)]
fn start(launch: &Launch) -> std::io::Result<Child> {
    launch.described().start_in_job()
}

#[cfg(all(unix, not(all(target_os = "linux", not(taut_portable)))))]
fn start(launch: &Launch) -> std::io::Result<Child> {
    let mut command = launch.command();
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    prepare(&mut command, launch).spawn()
}

/// Only a process itself can ask to be killed with its parent, so this program is started again, asks,
/// and becomes the server.
#[cfg(all(target_os = "linux", not(taut_portable)))]
fn start(launch: &Launch) -> std::io::Result<Child> {
    use std::os::unix::process::CommandExt as _;
    let mut command = Command::new("/proc/self/exe");
    command.arg0("taut").args(["trace", "--become", &std::process::id().to_string(), "--"]);
    command.args(&launch.words).process_group(0);
    prepare(&mut command, launch).spawn()
}

/// The second start: asks to be killed with `parent`, and becomes the server.
#[cfg(all(target_os = "linux", not(taut_portable)))]
pub(super) fn become_server(parent: i32, words: &[std::ffi::OsString]) -> Problem {
    use std::os::unix::process::CommandExt as _;

    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    let launch = Launch { words: words.to_vec(), ..Launch::default() };
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return launch.not_started(error.into());
    }
    // If the parent died before the line above took effect, no signal will come any more.
    if getppid().map(|pid| pid.as_raw_nonzero().get()) != Some(parent) {
        return Problem::Interrupted;
    }
    let error = launch.command().exec();
    // As shells say it: 127 is not found, 126 cannot be executed.
    let code = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
    crate::output::Output::new(None).report(&launch.not_started(error));
    std::process::exit(code)
}

fn ended(status: ExitStatus) -> End {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return End::Signal(signal);
    }
    End::Code(status.code().unwrap_or(1))
}

/// Ends this process as the server's ended.
fn end_like(status: ExitStatus) -> ! {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        die_by(signal);
        std::process::exit(128 + signal);
    }
    std::process::exit(status.code().unwrap_or(1))
}

#[cfg(unix)]
fn die_by(signal: i32) {
    use rustix::process::{Resource, Rlimit, Signal, getpid, kill_process, setrlimit};
    // The server's memory is what somebody wants to look at, not ours.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    if let Some(signal) = Signal::from_named_raw(signal) {
        let _ = kill_process(getpid(), signal);
    }
}

#[cfg(unix)]
fn is_wish_to_end(signal: i32) -> bool {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    [SIGHUP, SIGINT, SIGQUIT, SIGTERM].contains(&signal)
}

#[cfg(unix)]
fn pass_on(child: &Child, signal: i32) {
    use rustix::process::{Pid, Signal, getpid, kill_process};
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    // The process was not waited for yet, so the number is still its own.
    if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(signal)) {
        let _ = kill_process(pid, signal);
        if signal == Signal::TSTP {
            let _ = kill_process(getpid(), Signal::STOP);
        }
    }
}

/// Waits until what the server wrote has been passed on: everything, if its output has ended, else what
/// is in the pipes now.
fn drain(progress: &Progress) {
    let until = Instant::now() + LAST_BYTES;
    let mut quiet_since = None;
    while Instant::now() < until && !progress.has_ended() {
        if progress.is_quiet() {
            let since = *quiet_since.get_or_insert_with(Instant::now);
            if since.elapsed() > QUIET {
                return;
            }
        } else {
            quiet_since = None;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
