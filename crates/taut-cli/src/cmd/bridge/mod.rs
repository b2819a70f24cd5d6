//! `taut bridge`: any client to any server, whatever era and framing each of them speaks.
//!
//! Only leads from options to the library's proxy: `listen.rs` has the sockets, `record.rs` the capture,
//! `drain.rs` how it ends. Knows no message.

mod drain;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
mod listen;
mod record;

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use taut::types::Era;
use taut::wire::Framing;
use taut::{ClientBuilder, Proxy, Revision, proxy::ProxyEvent};
use tokio::sync::oneshot;

use crate::args::{self, Options};
use crate::asking::AskOptions;
use crate::files;
use crate::gate;
use crate::help;
use crate::hosts::{Target, resolve};
use crate::memory::GiveBack;
use crate::output::Output;
use crate::own;
use crate::problem::{Exit, Problem};
use crate::session::{builder, tell, told_by};
use crate::signals::Interrupts;
use record::Recording;

#[derive(clap::Args)]
#[command(after_help = help::BRIDGE)]
pub(crate) struct Bridge {
    /// A server by name (see `taut servers`), a URL, tcp:HOST:PORT or unix:PATH.
    name: Option<String>,
    /// Serve clients on a socket, not on stdin and stdout: HOST:PORT or unix:PATH. Addresses beyond
    /// loopback need a token.
    #[arg(long, value_name = "ADDRESS", help_heading = "Clients")]
    listen: Option<String>,
    /// Serve at most so many connections at once.
    #[arg(long, value_name = "N", requires = "listen", default_value_t = 256)]
    #[arg(help_heading = "Clients", value_parser = clap::value_parser!(u16).range(1..))]
    max_connections: u16,
    /// Over HTTP, keep at most so many sessions of legacy clients open; each has a server of its own.
    #[cfg(feature = "http")]
    #[arg(long, value_name = "N", requires = "listen", default_value_t = 64)]
    #[arg(help_heading = "Clients", value_parser = clap::value_parser!(u16).range(1..))]
    max_sessions: u16,
    /// Over HTTP, end a session and its server after this time without any use.
    #[cfg(feature = "http")]
    #[arg(long, value_name = "TIME", value_parser = args::duration, default_value = "30m")]
    #[arg(requires = "listen", help_heading = "Clients")]
    session_idle: Duration,
    /// Over HTTP, demand the token in this file from every client; needed beyond this machine.
    #[cfg(feature = "http")]
    #[arg(long, value_name = "FILE", requires = "listen", help_heading = "Clients")]
    token_file: Option<PathBuf>,
    /// The same with the token in this variable of the environment, which the server does not get.
    #[cfg(feature = "http")]
    #[arg(long, value_name = "VARIABLE", requires = "listen", conflicts_with = "token_file")]
    #[arg(help_heading = "Clients")]
    token_env: Option<String>,
    /// Over HTTP, also serve requests to this host name, which a reverse proxy has; can be repeated.
    #[cfg(feature = "http")]
    #[arg(long, value_name = "NAME", requires = "listen", help_heading = "Clients")]
    #[arg(value_parser = http::host_name)]
    allow_host: Vec<String>,
    /// Over HTTP, also serve web pages from this origin; can be repeated.
    #[cfg(feature = "http")]
    #[arg(long, value_name = "ORIGIN", requires = "listen", help_heading = "Clients")]
    #[arg(value_parser = http::origin)]
    allow_origin: Vec<String>,
    /// Speak TLS with the certificates in this file (PEM).
    #[cfg(feature = "http")]
    #[arg(long, value_name = "FILE", requires = "key", requires = "listen")]
    #[arg(value_parser = files::plain, value_hint = clap::ValueHint::FilePath)]
    #[arg(help_heading = "Clients")]
    certificate: Option<PathBuf>,
    /// The key of the certificate (PEM).
    #[cfg(feature = "http")]
    #[arg(long, value_name = "FILE", requires = "certificate", requires = "listen")]
    #[arg(value_parser = files::plain, value_hint = clap::ValueHint::FilePath)]
    #[arg(help_heading = "Clients")]
    key: Option<PathBuf>,
    /// Serve everyone who can reach the address, without a token. Unsafe unless a firewall keeps
    /// strangers out.
    #[cfg(feature = "http")]
    #[arg(long, requires = "listen", conflicts_with_all = ["token_file", "token_env"])]
    #[arg(help_heading = "Clients")]
    serve_everyone_unsafely: bool,
    /// Serve only clients of this era.
    #[arg(long, value_enum, value_name = "ERA", help_heading = "Clients")]
    #[arg(conflicts_with = "front_revision")]
    front_era: Option<EraArg>,
    /// Speak only this revision of the protocol to clients, such as 2025-11-25.
    #[arg(long, value_name = "DATE", value_parser = args::revision, help_heading = "Clients")]
    front_revision: Option<Revision>,
    /// Speak only this framing to clients, where they do not come over HTTP: lines or headers.
    #[arg(long, value_name = "FRAMING", value_parser = args::framing, help_heading = "Clients")]
    front_framing: Option<Framing>,
    /// How long open calls may take to finish after SIGTERM or Ctrl-C.
    #[arg(long, value_name = "TIME", value_parser = args::duration, default_value = "5s")]
    #[arg(help_heading = "Clients")]
    drain: Duration,
    /// Share so many servers among all clients; only for servers that keep no state.
    #[arg(long, value_name = "N", help_heading = "The server")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    children: Option<u16>,
    /// Ask a server one thing at a time, so that its questions belong to one call.
    #[arg(long, help_heading = "The server")]
    serial: bool,
    /// A server by its name in a host's file: see `taut servers`.
    #[arg(long = "server", short = 's', value_name = "NAME", help_heading = "The server")]
    named: Option<String>,
    /// Read servers only from this file, of any host; can be repeated.
    #[arg(long, value_name = "FILE", help_heading = "The server")]
    config: Vec<PathBuf>,
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
    /// Speak only revisions of this era to the server.
    #[arg(long, value_enum, value_name = "ERA", help_heading = "The server")]
    #[arg(conflicts_with = "revision")]
    era: Option<EraArg>,
    /// Speak only this revision of the protocol to the server, such as 2025-11-25.
    #[arg(long, value_name = "DATE", value_parser = args::revision, help_heading = "The server")]
    revision: Option<Revision>,
    /// Speak only this framing to the server: lines or headers.
    #[arg(long, value_name = "FRAMING", value_parser = args::framing, help_heading = "The server")]
    framing: Option<Framing>,
    /// Send this header to a server at a URL; can be repeated.
    #[arg(long, value_name = "NAME: VALUE", value_parser = args::header, help_heading = "The server")]
    header: Vec<(String, String)>,
    /// Trust the certificates in this file for a server at a URL, and no others.
    #[arg(long, value_name = "FILE", help_heading = "The server")]
    #[arg(value_parser = files::plain, value_hint = clap::ValueHint::FilePath)]
    ca_file: Option<PathBuf>,
    #[command(flatten)]
    broker: crate::nats::NatsArgs,
    /// Keep what passes on all connections in this file, as `taut trace` does; a folder gets a new file.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    record: Option<PathBuf>,
    /// Show what passes on a page; its address is told on stderr.
    #[arg(long, help_heading = "Output")]
    page: bool,
    /// Show on stderr which clients come and go, which servers are started and lost, and what goes wrong.
    #[arg(long, short, help_heading = "Output")]
    verbose: bool,
    /// The server's program and its arguments, passed on unchanged.
    #[arg(last = true, value_name = "COMMAND")]
    server: Vec<OsString>,
}

/// How long a server may take to end after its stdin was closed, and again after SIGTERM.
const GRACE: Duration = Duration::from_millis(750);

/// The era of clients, or of the server.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum EraArg {
    /// 2024-11-05 to 2025-11-25, which begin with initialize.
    Legacy,
    /// 2026-07-28.
    Modern,
}

impl From<EraArg> for Era {
    fn from(era: EraArg) -> Self {
        match era {
            EraArg::Legacy => Self::Legacy,
            EraArg::Modern => Self::Modern,
        }
    }
}

impl Bridge {
    /// The variables for the server. It has no business with the token of its clients, and would inherit it.
    fn variables(&self) -> Vec<(String, String)> {
        #[cfg(feature = "http")]
        let token = self.token_env.iter().filter(|_| !self.server.is_empty());
        #[cfg(not(feature = "http"))]
        let token = std::iter::empty::<&String>();
        token.map(|name| (name.clone(), String::new())).chain(self.env.iter().cloned()).collect()
    }

    /// The options that say which server is meant and how it is started.
    fn options(&self) -> Options {
        Options {
            named: self.named.clone(),
            config: self.config.clone(),
            // Not used: the timeouts of the clients hold.
            timeout: Duration::from_secs(60),
            start_timeout: Some(self.start_timeout),
            max_time: None,
            env: self.variables(),
            // A host gives a server's variables to us. A server by name has its own.
            inherit_env: !self.server.is_empty(),
            cwd: self.cwd.clone(),
            revision: self.revision,
            framing: self.framing,
            header: self.header.clone(),
            ca_file: self.ca_file.clone(),
            broker: self.broker.clone(),
            asked: AskOptions::default(),
            json: false,
            verbose: self.verbose,
            out: None,
        }
    }
}

pub(crate) async fn run(output: &Output, args: &Bridge) -> Result<Exit, Problem> {
    let output = &Output { verbose: args.verbose, ..output.clone() };
    // The default hook blocks while stderr is full, and all connections with it (A1).
    let panics = output.clone();
    std::panic::set_hook(Box::new(move |panic| panics.note(&panic.to_string())));
    let target = resolve(output, &args.options(), args.name.as_deref(), &args.server)?;
    let wanted = (args.record.as_deref(), args.page);
    let recording = Recording::start(output, wanted, &target, &args.server)?;
    crate::leftovers::keep_swept();
    gate::give_way();
    let memory = GiveBack::start();
    let proxy = proxy(output, args, target, (recording.as_ref(), &memory));
    let served = serve(output, args, &proxy, memory).await;
    if let Some(recording) = recording {
        recording.finish();
    }
    served
}

/// Serves clients until the end.
async fn serve(
    output: &Output,
    args: &Bridge,
    proxy: &Proxy,
    memory: GiveBack,
) -> Result<Exit, Problem> {
    match &args.listen {
        Some(word) => {
            #[cfg(feature = "http")]
            return http::run(output, proxy, word, clients(output, args, memory)?).await;
            #[cfg(not(feature = "http"))]
            drop(memory);
            #[cfg(not(feature = "http"))]
            Err(Problem::Usage {
                what: format!(
                    "--listen {word}: this build has no HTTP, and serves stdin and stdout only"
                ),
                next: Some("cargo install taut-cli --features http".to_owned()),
            })
        }
        None => {
            if std::io::stdin().is_terminal() {
                output.note(&own::named(
                    "taut bridge serves MCP on stdin and stdout: start it from a host, or type JSON and end \
                     with Ctrl-D",
                ));
                output.note("  try: --listen 127.0.0.1:7000, to serve on a socket");
            }
            stdio(proxy, args.drain).await
        }
    }
}

/// How clients over HTTP are served.
#[cfg(feature = "http")]
fn clients(output: &Output, args: &Bridge, memory: GiveBack) -> Result<http::Clients, Problem> {
    let token = match (&args.token_file, &args.token_env) {
        (Some(path), _) => Some(http::token_in_file(output, path)?),
        (None, Some(name)) => Some(http::token_in_variable(name)?),
        (None, None) => None,
    };
    Ok(http::Clients {
        at_once: usize::from(args.max_connections),
        sessions: usize::from(args.max_sessions),
        idle: args.session_idle,
        limit: args.drain,
        token,
        hosts: args.allow_host.clone(),
        origins: args.allow_origin.clone(),
        certificate: args.certificate.clone().zip(args.key.clone()),
        everyone: args.serve_everyone_unsafely,
        memory,
    })
}

fn proxy(
    output: &Output,
    args: &Bridge,
    target: Target,
    (recording, memory): (Option<&Recording>, &GiveBack),
) -> Proxy {
    let links = recording.map(|recording| recording.links.clone());
    // Hosts wait two seconds for the end of a server; what is behind us has to end within that.
    let mut client = builder(output, &target.options).eof_grace(GRACE).term_grace(GRACE);
    if let Some(era) = args.era {
        client = client.era(era.into());
    }
    #[cfg(feature = "http")]
    if args.token_file.is_some() || args.token_env.is_some() || args.serve_everyone_unsafely {
        // Others than this user read the errors. What the server says stands on our stderr.
        client = client.output_in_errors(false);
    }
    let (lines, kept) = (output.clone(), links.clone());
    client = client.on_stderr(move |line| {
        if let Some(links) = &kept {
            links.stderr(line);
        }
        if lines.verbose {
            lines.pass_on(&told_by(&lines, "stderr", line));
        } else {
            // A host keeps what its server writes there.
            lines.pass_on(&lines.err.line(line));
        }
    });
    let reach = target.reach;
    #[cfg(feature = "fleet")]
    let is_far = matches!(reach, crate::reach::Reach::Nats(_));
    let connector = move |client: ClientBuilder| {
        let reach = reach.clone();
        async move { reach.open(client).await }
    };
    let mut proxy = Proxy::builder(connector).client(client).serial(args.serial);
    #[cfg(feature = "fleet")]
    if is_far {
        // One read: the broker begins with it before all that waits here was read.
        proxy = proxy.turn(8 << 10);
    }
    #[cfg(feature = "http")]
    {
        proxy = proxy.idle(args.session_idle);
    }
    if let Some(children) = args.children {
        proxy = proxy.children(usize::from(children));
    }
    if let Some(era) = args.front_era {
        proxy = proxy.era(era.into());
    }
    if let Some(revision) = args.front_revision {
        proxy = proxy.revision(revision);
    }
    if let Some(framing) = args.front_framing {
        proxy = proxy.framing(framing);
    }
    let (told, memory) = (output.clone(), memory.clone());
    proxy = proxy.on_event(move |event| {
        if matches!(event, ProxyEvent::Lost { .. } | ProxyEvent::Closed | ProxyEvent::Calm) {
            memory.soon();
        }
        if let Some(links) = &links {
            record::happened(links, event);
        }
        if told.verbose && !matches!(event, ProxyEvent::Calm) {
            tell(&told, "taut", &event.to_string());
        }
    });
    proxy.build()
}

/// One client, on stdin and stdout.
async fn stdio(proxy: &Proxy, limit: Duration) -> Result<Exit, Problem> {
    let mut interrupts = Interrupts::new()?;
    let (stop, stopped) = oneshot::channel::<()>();
    let mut serving = std::pin::pin!(proxy.serve_stdio_until(async {
        let _ = stopped.await;
    }));
    tokio::select! {
        served = &mut serving => served?,
        () = interrupts.next() => {
            // Nobody hears it only if it has ended just now.
            let _ = stop.send(());
            drain::finish(proxy, limit, &mut interrupts, serving).await.transpose()?;
        }
    }
    Ok(Exit::Worked)
}
