//! `taut worker`: children that answer the calls of a service.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use taut::{Client, ClientBuilder, Proxy, Revision};
use taut_nats::{Worker, WorkerOptions};
use tokio::sync::oneshot;

use crate::args::{self, Options};
use crate::asking::AskOptions;
use crate::help;
use crate::hosts::{Target, resolve};
use crate::nats::{NatsArgs, name};
use crate::output::Output;
use crate::problem::{Exit, Problem};
use crate::session::{builder, tell};
use crate::signals::Interrupts;

#[derive(clap::Args)]
#[command(after_help = help::WORKER)]
pub(crate) struct WorkerArgs {
    /// The name of the service: letters, digits, - and _.
    service: String,
    /// Run so many calls at once; more go to other workers.
    #[arg(long, value_name = "N", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    slots: u16,
    /// Start so many servers and share the calls among them.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "The server")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    children: u16,
    /// Ask a server one thing at a time, so that its questions belong to one call.
    #[arg(long, help_heading = "The server")]
    serial: bool,
    /// How long running calls may take to finish after SIGTERM or Ctrl-C.
    #[arg(long, value_name = "TIME", value_parser = args::duration, default_value = "60s")]
    drain: Duration,
    /// How often edges hear that a call is still worked on; they give up after five times that.
    #[arg(long, value_name = "TIME", value_parser = args::duration, default_value = "1s")]
    heartbeat: Duration,
    /// Make this file when calls can come, and remove it when told to stop: for a probe of readiness.
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// How long the server may take to be ready.
    #[arg(long, value_name = "TIME", value_parser = args::duration, default_value = "60s")]
    #[arg(help_heading = "The server")]
    start_timeout: Duration,
    /// Set a variable in the server's environment; can be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = args::variable, help_heading = "The server")]
    env: Vec<(String, String)>,
    /// Start the server in this directory.
    #[arg(long, value_name = "DIR", help_heading = "The server")]
    cwd: Option<PathBuf>,
    /// Speak only this revision of the protocol to the server, such as 2025-11-25.
    #[arg(long, value_name = "DATE", value_parser = args::revision, help_heading = "The server")]
    revision: Option<Revision>,
    #[command(flatten)]
    broker: NatsArgs,
    /// Show on stderr which servers are started and lost, and what goes wrong.
    #[arg(long, short, help_heading = "Output")]
    verbose: bool,
    /// The server's program and its arguments, passed on unchanged.
    #[arg(last = true, value_name = "COMMAND", required = true)]
    server: Vec<OsString>,
}

impl WorkerArgs {
    /// The options that say how the server is started.
    fn options(&self) -> Options {
        Options {
            named: None,
            config: Vec::new(),
            // Not used: the timeouts of the clients hold.
            timeout: Duration::from_secs(60),
            start_timeout: Some(self.start_timeout),
            max_time: None,
            env: self.env.clone(),
            inherit_env: true,
            cwd: self.cwd.clone(),
            revision: self.revision,
            framing: None,
            header: Vec::new(),
            ca_file: None,
            broker: self.broker.clone(),
            asked: AskOptions::default(),
            json: false,
            verbose: self.verbose,
            out: None,
        }
    }
}

pub(super) async fn run(output: &Output, args: &WorkerArgs) -> Result<Exit, Problem> {
    let output = &Output { verbose: args.verbose, ..output.clone() };
    let service = name(&args.service)?;
    let mut interrupts = Interrupts::new()?;
    let target = resolve(output, &args.options(), None, &args.server)?;
    let proxy = proxy(output, args, target);
    // A server that cannot be started must not take calls.
    let server = server_of(&proxy, args.start_timeout).await?;
    let connection = args.broker.connect(&format!("worker of {service}")).await?;
    let mut options = WorkerOptions::new()
        .slots(usize::from(args.slots))
        .heartbeat(args.heartbeat)
        .drain(args.drain);
    if let Some(server) = server {
        options = options.server(server);
    }
    let url = connection.url().to_owned();
    let worker = Worker::new(connection, service.clone(), Arc::new(proxy.clone()), options);
    let (told, line) =
        (output.clone(), format!("worker {} serves {service} at {url}", worker.id()));
    let ready = ReadyFile::new(args.ready_file.clone())?;
    let shown = ready.clone();
    let worker = worker.on_ready(move || {
        shown.make(&told);
        told.note(&line);
    });
    let (stop, stopped) = oneshot::channel::<()>();
    let mut working = std::pin::pin!(worker.run(async {
        let _ = stopped.await;
    }));
    tokio::select! {
        done = &mut working => {
            ready.remove();
            done?;
        }
        () = interrupts.next() => {
            ready.remove();
            // Nobody hears it only if it has ended just now.
            let _ = stop.send(());
            tokio::select! {
                done = &mut working => done?,
                // A second signal: now.
                () = interrupts.next() => {}
            }
        }
    }
    proxy.close().await;
    Ok(Exit::Worked)
}

/// The file that says that calls can come. It does not outlive the worker, unless that is killed.
#[derive(Clone)]
struct ReadyFile(Option<PathBuf>);

impl ReadyFile {
    /// Removes what another worker has left.
    fn new(path: Option<PathBuf>) -> Result<Self, Problem> {
        match path.as_deref().map(std::fs::remove_file) {
            Some(Err(error)) if error.kind() != std::io::ErrorKind::NotFound => {
                let shown = path.unwrap_or_default();
                Err(Problem::File { what: format!("removing {}", shown.display()), error })
            }
            _ => Ok(Self(path)),
        }
    }

    fn make(&self, output: &Output) {
        if let Some(path) = &self.0
            && let Err(error) = std::fs::write(path, "")
        {
            output.note(&format!("{} cannot be written: {error}", path.display()));
        }
    }

    fn remove(&self) {
        // Gone already is as well.
        let _ = self.0.as_deref().map(std::fs::remove_file);
    }
}

fn proxy(output: &Output, args: &WorkerArgs, target: Target) -> Proxy {
    let mut client = builder(output, &target.options);
    if !output.verbose {
        let lines = output.clone();
        client = client.on_stderr(move |line| lines.note(&lines.err.line(line)));
    }
    let reach = target.reach;
    let connector = move |client: ClientBuilder| {
        let reach = reach.clone();
        async move { reach.open(client).await }
    };
    let mut proxy = Proxy::builder(connector)
        .client(client)
        .serial(args.serial)
        .children(usize::from(args.children))
        .leave_signals();
    if output.verbose {
        let told = output.clone();
        proxy = proxy.on_event(move |event| tell(&told, "taut", &event.to_string()));
    }
    proxy.build()
}

/// Starts a server and asks it for its name and version.
async fn server_of(proxy: &Proxy, limit: Duration) -> Result<Option<String>, Problem> {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let (reader, writer) = tokio::io::split(theirs);
    let served = proxy.clone();
    let serving = tokio::spawn(async move { served.serve(reader, writer).await });
    let (reader, writer) = tokio::io::split(ours);
    let client = Client::builder().revision(Revision::V2026_07_28).start_timeout(limit);
    let client = client.connect(reader, writer).await?;
    let server = client.server_info().map(|info| format!("{} {}", info.name, info.version));
    client.close().await?;
    // It ends with its client.
    let _ = serving.await;
    Ok(server)
}
