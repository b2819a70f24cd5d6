//! Services on a NATS broker: how the broker is reached, and what a build without it says.
//!
//! Must not know what is asked of a service.

use taut::rpc::ErrorObject;

use crate::problem::Problem;

/// How a service is written where a server's name may stand.
const PREFIX: &str = "nats:";

/// The service that a word names; `None` if it does not look like one.
pub(crate) fn service(word: &str) -> Option<&str> {
    word.strip_prefix(PREFIX)
}

/// What an edge gives as the reason of an error that is its own, not the server's, and whether the call may have run.
fn reason(error: &ErrorObject) -> Option<(String, bool)> {
    let data: serde_json::Value = serde_json::from_str(error.data.as_ref()?.get()).ok()?;
    let may_have_run = data.get("mayHaveRun").and_then(serde_json::Value::as_bool);
    Some((data.get("fleet")?.as_str()?.to_owned(), may_have_run.unwrap_or(true)))
}

/// What to try after an error of an edge; `None` if it is the server's.
pub(crate) fn next_of(error: &ErrorObject) -> Option<&'static str> {
    let (reason, may_have_run) = reason(error)?;
    Some(match reason.as_str() {
        _ if may_have_run => {
            "look whether it ran before you repeat it; `taut fleet` shows who is there"
        }
        "nobody" => "start a worker with `taut worker`, and see who is there with `taut fleet`",
        "busy" => "try again later, or start more workers",
        "disconnected" => "see that the broker runs; the connection is opened again by itself",
        _ => "see what the workers say on stderr; `taut fleet` shows who is there",
    })
}

/// That this build cannot do it.
#[cfg(not(feature = "fleet"))]
pub(crate) fn left_out(what: &str) -> Problem {
    Problem::Usage {
        what: format!("{what} needs NATS, and this build has none"),
        next: Some(
            "cargo install --path crates/taut-cli --profile dist --features fleet".to_owned(),
        ),
    }
}

/// Where the broker is: nothing to say about it in this build.
#[cfg(not(feature = "fleet"))]
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct NatsArgs {}

#[cfg(feature = "fleet")]
pub(crate) use with_nats::{NatsArgs, Service, name};

#[cfg(feature = "fleet")]
mod with_nats {
    use std::fmt;
    use std::io;
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::time::Duration;

    use taut::{Client, ClientBuilder, Ending, Error, error::ConnectReason};
    use taut_nats::{ConnectOptions, Connection, Edge, EdgeOptions, NatsError, ServiceName};
    use tokio::sync::OnceCell;

    use super::Problem;
    use crate::args::duration;
    use crate::files;
    use crate::reach::CONNECTING;

    /// Where the broker is. What is not typed is taken from the variables that NATS's own command reads.
    #[derive(clap::Args, Clone, Debug, Default)]
    pub(crate) struct NatsArgs {
        /// The broker, for nats:SERVICE; several of a cluster with commas [default: $NATS_URL, or
        /// nats://127.0.0.1:4222].
        #[arg(long = "nats", value_name = "URL", help_heading = "The broker")]
        url: Option<String>,
        /// The file with the credentials for the broker [default: $NATS_CREDS].
        #[arg(long, value_name = "FILE", help_heading = "The broker")]
        #[arg(value_parser = files::plain, value_hint = clap::ValueHint::FilePath)]
        creds: Option<PathBuf>,
        /// Also trust the authorities in this file (PEM) for the broker [default: $NATS_CA].
        #[arg(long, value_name = "FILE", help_heading = "The broker")]
        #[arg(value_parser = files::plain, value_hint = clap::ValueHint::FilePath)]
        tls_ca: Option<PathBuf>,
        /// Show the broker this certificate (PEM) [default: $NATS_CERT].
        #[arg(long, value_name = "FILE", requires = "tls_key", help_heading = "The broker")]
        #[arg(value_parser = files::plain, value_hint = clap::ValueHint::FilePath)]
        tls_cert: Option<PathBuf>,
        /// The key of that certificate (PEM) [default: $NATS_KEY].
        #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = "The broker")]
        #[arg(value_parser = files::plain, value_hint = clap::ValueHint::FilePath)]
        tls_key: Option<PathBuf>,
        /// How long a call waits for a worker with a free slot, or for the broker.
        #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s")]
        #[arg(help_heading = "The broker")]
        wait: Duration,
        /// How long a call to nats:SERVICE may take in all; its worker cancels it then.
        #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "The broker")]
        deadline: Option<Duration>,
    }

    impl NatsArgs {
        /// Connects.
        pub(crate) async fn connect(&self, role: &str) -> Result<Connection, NatsError> {
            let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
            let file = |typed: &Option<PathBuf>, name: &str| {
                typed.clone().or_else(|| variable(name).map(PathBuf::from))
            };
            let mut options = ConnectOptions::new().name(format!("taut {role}"));
            let url = self.url.clone();
            if let Some(url) = url.or_else(|| variable("NATS_URL")?.into_string().ok()) {
                options = options.url(url);
            }
            if let Some(creds) = file(&self.creds, "NATS_CREDS") {
                options = options.credentials(creds);
            }
            if let Some(authorities) = file(&self.tls_ca, "NATS_CA") {
                options = options.authorities(authorities);
            }
            let own = (file(&self.tls_cert, "NATS_CERT"), file(&self.tls_key, "NATS_KEY"));
            if let (Some(certificate), Some(key)) = own {
                options = options.certificate(certificate, key);
            }
            options.connect().await
        }
    }

    /// The name of a service as it was typed.
    pub(crate) fn name(word: &str) -> Result<ServiceName, Problem> {
        word.parse().map_err(|error: taut_nats::BadServiceName| Problem::usage(error.to_string()))
    }

    /// A service on a broker.
    #[derive(Clone)]
    pub(crate) struct Service {
        name: ServiceName,
        broker: NatsArgs,
        /// All connections to the service share one to the broker.
        edge: Arc<OnceCell<Edge>>,
    }

    impl fmt::Display for Service {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "nats:{}", self.name)
        }
    }

    impl fmt::Debug for Service {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            fmt::Display::fmt(self, f)
        }
    }

    impl Service {
        pub(crate) fn new(name: ServiceName, broker: NatsArgs) -> Self {
            Self { name, broker, edge: Arc::default() }
        }

        /// Opens a connection.
        pub(crate) async fn open(&self, builder: ClientBuilder) -> taut::Result<Client> {
            let edge = self.edge.get_or_try_init(|| async {
                let connection = self.broker.connect(&format!("edge of {}", self.name)).await?;
                let mut options = EdgeOptions::new().wait(self.broker.wait);
                if let Some(deadline) = self.broker.deadline {
                    options = options.deadline(deadline);
                }
                Edge::new(connection, self.name.clone(), options).await
            });
            edge.await.map_err(failed)?.open(builder).await.map_err(not_a_refusal)
        }
    }

    /// If nobody could be asked, that is no refusal of the server: the edge's own words stand for it.
    fn not_a_refusal(error: Error) -> Error {
        let Error::Connect(no_connection) = &error else { return error };
        let ConnectReason::Refused(refused) = &no_connection.reason else { return error };
        match super::reason(refused).as_ref().map(|(reason, _)| reason.as_str()) {
            Some("nobody" | "busy" | "disconnected") => no_way(io::Error::other(&*refused.message)),
            _ => error,
        }
    }

    /// That there is no connection, and why.
    pub(crate) fn failed(error: NatsError) -> Error {
        no_way(io::Error::other(error))
    }

    fn no_way(error: io::Error) -> Error {
        Error::Ended(Ending::Io { during: CONNECTING, error: Arc::new(error) })
    }

    impl From<NatsError> for Problem {
        fn from(error: NatsError) -> Self {
            failed(error).into()
        }
    }
}
