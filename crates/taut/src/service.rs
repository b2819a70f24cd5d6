//! Plain JSON-RPC 2.0 for everyone: a handler on one end, a [`Remote`] to the other.
//!
//! Knows requests, notifications and calls; must not know MCP. Over this process's stdin and
//! stdout, over any pair of byte streams, or in memory:
//!
//! ```
//! use taut::service::{RequestParams, ServiceRequest, serve};
//! use taut::Reject;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> taut::Result<()> {
//! let adder = serve(async |method: String, params: RequestParams, _request: ServiceRequest| {
//!     match method.as_str() {
//!         "add" => Ok(params.read::<Vec<f64>>()?.iter().sum::<f64>()),
//!         _ => Err(Reject::method_not_found(&method).into()),
//!     }
//! });
//! let remote = adder.memory();
//! let sum: f64 = remote.call("add", [2.0, 3.0]).await?;
//! assert_eq!(sum, 5.0);
//! # Ok(()) }
//! ```

mod remote;
mod reporter;
#[cfg(feature = "client")]
mod spawned;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::driver::{self, AnswerFuture, Flag, IncomingRequest, Link, Options, Service, no_json};
use crate::ending::Ending;
use crate::error::{Reject, Result};
use crate::rpc::{self, Config, Dialect, ErrorObject, Id, Peer, Trouble};
use crate::stdio;
use crate::stream::{Reader, Writer, pipe_in_memory};
use crate::transport::{Answers, Principal, Started};

pub use remote::{Remote, RemoteCall};
pub(crate) use reporter::Reporter;

/// The params of a request or notification, not yet read. They are written as they came, for a handler that
/// passes them on.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct RequestParams(Option<Box<RawValue>>);

impl RequestParams {
    /// Reads them as a `T`. Params that are absent are read as `null`, then as `{}`.
    ///
    /// # Errors
    /// They do not fit: −32602, saying where and why.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Reject> {
        let read = match &self.0 {
            Some(raw) => serde_json::from_str(raw.get()),
            None => serde_json::from_str("null").or_else(|_| serde_json::from_str("{}")),
        };
        read.map_err(|error| Reject::invalid_params(format!("invalid params: {error}")))
    }

    /// The JSON text, if there is any.
    #[must_use]
    pub fn as_json(&self) -> Option<&str> {
        self.0.as_deref().map(RawValue::get)
    }
}

/// A request being handled.
#[derive(Clone)]
pub struct ServiceRequest {
    id: Id,
    cancelled: Flag,
    remote: Remote,
}

impl ServiceRequest {
    /// The request's id.
    #[must_use]
    pub fn id(&self) -> &Id {
        &self.id
    }

    /// The other side, for calling it in the middle of this call.
    #[must_use]
    pub fn remote(&self) -> &Remote {
        &self.remote
    }

    /// Whether the other side no longer wants the answer.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.is_raised()
    }

    /// Waits until the other side no longer wants the answer.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + use<> {
        self.cancelled.raised()
    }
}

/// What a handler can fail with: a [`Reject`], sent as it is, or any error, sent as −32603 with
/// the name of its type in `data.exception`. A `Box<dyn Error>` and a text, which have no such name, are taken as well.
#[derive(Clone, Debug)]
pub struct Failed {
    error: ErrorObject,
    exception: Option<String>,
}

impl<E: Into<Box<dyn std::error::Error>>> From<E> for Failed {
    fn from(error: E) -> Self {
        let exception = exception(std::any::type_name::<E>());
        let error: Box<dyn std::error::Error> = error.into();
        if let Some(reject) = error.downcast_ref::<Reject>() {
            return Self { error: reject.error().clone(), exception: None };
        }
        Self { error: ErrorObject::internal(error.to_string()), exception }
    }
}

impl Failed {
    fn into_error(self, with_exception: bool) -> ErrorObject {
        match self.exception {
            Some(exception) if with_exception => {
                self.error.with_data(&serde_json::json!({ "exception": exception }))
            }
            _ => self.error,
        }
    }
}

/// The name of an error's type as programmers write it: `io::Error` of `std::io::error::Error`, `Wrapper` of
/// `my::Wrapper<other::Thing>`. Nothing for what is no type of an error.
fn exception(name: &str) -> Option<String> {
    let plain = name.split('<').next().unwrap_or(name);
    let (path, last) = plain.rsplit_once("::").unwrap_or(("", plain));
    let is_text = ["alloc::string", "alloc::boxed", "alloc::borrow"].contains(&path);
    if is_text || plain.starts_with('&') {
        return None;
    }
    // A name that many crates use says which of them it is.
    let module = path.rsplit("::").find(|module| !["", "error", "errors"].contains(module));
    Some(match module.filter(|_| last == "Error") {
        Some(module) => format!("{module}::{last}"),
        None => last.to_owned(),
    })
}

/// Serves JSON-RPC with a handler: `(method, params, call)` to a result or an error.
///
/// A named `async fn` or an `async` closure that captures nothing will do; one that captures is
/// written `move |method, params, call| { let x = x.clone(); async move { … } }`.
pub fn serve<H, F, T>(handler: H) -> Serve
where
    H: Fn(String, RequestParams, ServiceRequest) -> F + Send + Sync + 'static,
    F: Future<Output = Result<T, Failed>> + Send + 'static,
    T: Serialize + Send + 'static,
{
    let handler = move |method, params, request: ServiceRequest, exceptions| -> AnswerFuture {
        let link = request.remote.link.clone();
        let work = handler(method, params, request);
        Box::pin(async move {
            let result = work.await.map_err(|failed| failed.into_error(exceptions))?;
            link.answer_buffer().with(&result).map_err(|error| no_json(&error))
        })
    };
    Serve {
        handler: Arc::new(handler),
        notified: Arc::new(|_, _, _| {}),
        config: Config::new(Dialect::PLAIN, true),
        options: Options::default(),
        exceptions: true,
        signals: true,
    }
}

/// The last argument says whether the type of an error is sent.
type PlainHandler =
    dyn Fn(String, RequestParams, ServiceRequest, bool) -> AnswerFuture + Send + Sync;

type Notified = dyn Fn(&str, &RequestParams, &Remote) + Send + Sync;

/// A JSON-RPC service, ready to be served. Clones are the same service.
#[derive(Clone)]
#[must_use = "a service does nothing until it is served"]
pub struct Serve {
    handler: Arc<PlainHandler>,
    notified: Arc<Notified>,
    config: Config,
    options: Options,
    exceptions: bool,
    signals: bool,
}

setters! { Serve;
    /// Takes in notifications, in order: each before the next message is looked at.
    on_notification(notified: impl Fn(&str, &RequestParams, &Remote) + Send + Sync + 'static)
        => notified = Arc::new(notified);

    /// Leaves the type of an error out of what is sent.
    hide_exceptions() => exceptions = false;

    /// Leaves SIGINT and SIGTERM to the program.
    leave_signals() => signals = false;

    /// How long accepted requests may take once the input has ended. 30 s.
    drain(limit: Duration) => options.drain;

    /// How long a cancelled request may go on before its future is dropped. 1 s.
    cancel_grace(grace: Duration) => options.grace;
}

impl Serve {
    /// Bounds, in full.
    pub fn config(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// Serves this process's stdin and stdout until the other side is done.
    ///
    /// SIGINT and SIGTERM end it, and half a second later the process if it is still there; see
    /// [`leave_signals`](Self::leave_signals).
    ///
    /// # Errors
    /// Something else has them already.
    pub async fn serve_stdio(&self) -> Result<Ending> {
        let wire = stdio::take()?;
        let (link, service) = self.start(true);
        Ok(run_stdio(wire, link, service, self.options, self.signals).await)
    }

    /// Serves a pair of byte streams until the other side is done.
    pub async fn serve<R, W>(&self, reader: R, writer: W) -> Ending
    where
        R: AsyncRead + Unpin + Send,
        W: AsyncWrite + Unpin + Send,
    {
        let (link, service) = self.start(false);
        let never = std::future::pending();
        driver::run(link, Reader(reader), Writer(writer), Box::new(service), self.options, never)
            .await
    }

    /// The same as [`serve`](Self::serve), in a task of its own, with a handle for calling the
    /// other side.
    pub fn connect<R, W>(&self, reader: R, writer: W) -> Remote
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (link, service) = self.start(false);
        let (remote, service) = (service.remote.clone(), Box::new(service));
        let (options, never) = (self.options, std::future::pending());
        tokio::spawn(driver::run(link, Reader(reader), Writer(writer), service, options, never));
        remote
    }

    /// A handle on this service without a process or a stream in between, for tests.
    #[must_use]
    pub fn memory(&self) -> Remote {
        let [near, far] = pipe_in_memory();
        self.connect(far.0, far.1);
        serve(refuse).connect(near.0, near.1)
    }

    fn start(&self, on_stdio: bool) -> (Link, Plain) {
        let link = Link::new(Peer::new(self.config));
        (link.clone(), self.plain(link, on_stdio))
    }

    fn plain(&self, link: Link, on_stdio: bool) -> Plain {
        let (remote, reporter) = (Remote { link }, Reporter::new(on_stdio));
        Plain { serve: self.clone(), remote, reporter }
    }
}

impl Answers for Serve {
    fn start(&self, _: Principal, adjust: &dyn Fn(Config) -> Config) -> Started {
        Started::new(adjust(self.config), self.options, |link| Box::new(self.plain(link, false)))
    }

    fn is_mcp(&self) -> bool {
        false
    }
}

/// The handler of a side that only calls.
pub(crate) async fn refuse(
    method: String,
    _: RequestParams,
    _: ServiceRequest,
) -> Result<(), Failed> {
    Err(Reject::method_not_found(&method).into())
}

/// Runs a service on this process's stdin and stdout, with signals if they are wanted.
pub(crate) async fn run_stdio(
    mut wire: stdio::Stdio,
    link: Link,
    service: impl Service,
    options: Options,
    signals: bool,
) -> Ending {
    // Kept until the end: dropping them says that all is well.
    let (signals, watchdog) = wire.watch(options.drain, signals);
    let stop = async {
        match &signals {
            Some(signals) => Ending::Signal(signals.stopped().await.number()),
            None => std::future::pending().await,
        }
    };
    let service = Box::new(service);
    let dropped = link.clone();
    let ending = driver::run(link, wire.input, wire.output, service, options, stop).await;
    drop(watchdog);
    if let Ending::Signal(_) = ending {
        // S9: a handler in the runtime's blocking pool holds the process after the loop has ended,
        // because the runtime waits for it. So the guard stays, and its half second runs on.
        std::mem::forget(signals);
    }
    match &ending {
        Ending::Eof | Ending::Signal(_) | Ending::ReaderGone | Ending::Closed => {
            tracing::debug!(%ending, "served");
        }
        Ending::DrainTimedOut { .. } => {
            stdio::say(&format!("{ending}: dropped {}", dropped.dropped()));
        }
        unusual => stdio::say(&unusual.to_string()),
    }
    ending
}

/// The loop's service for one connection.
struct Plain {
    serve: Serve,
    remote: Remote,
    reporter: Reporter,
}

impl Service for Plain {
    fn request(&mut self, request: IncomingRequest<'_>) -> AnswerFuture {
        let call = ServiceRequest {
            id: request.id.clone(),
            cancelled: request.cancelled.clone(),
            remote: self.remote.clone(),
        };
        let params = RequestParams(request.params.raw().map(ToOwned::to_owned));
        (self.serve.handler)(request.method.to_owned(), params, call, self.serve.exceptions)
    }

    fn notification(&mut self, method: &str, params: &rpc::Params<'_>) {
        let params = RequestParams(params.raw().map(ToOwned::to_owned));
        (self.serve.notified)(method, &params, &self.remote);
    }

    fn trouble(&mut self, trouble: &Trouble) {
        self.reporter.trouble(trouble);
    }

    fn blocked(&mut self, method: &str, _: &rpc::Params<'_>, took: Duration) {
        self.reporter.say(&format!(
            "the handler of {method:?} kept the connection waiting for {took:?}; await instead of \
             blocking, or use tokio::task::spawn_blocking"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_has_the_name_that_programmers_write() {
        for (name, expected) in [
            ("std::io::error::Error", Some("io::Error")),
            ("core::fmt::Error", Some("fmt::Error")),
            ("serde_json::error::Error", Some("serde_json::Error")),
            ("core::num::error::ParseIntError", Some("ParseIntError")),
            ("my::Wrapper<other::Error>", Some("Wrapper")),
            ("Error", Some("Error")),
            ("&str", None),
            ("alloc::string::String", None),
            ("alloc::boxed::Box<dyn core::error::Error>", None),
        ] {
            assert_eq!(exception(name).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn a_handler_may_fail_with_any_error_also_one_in_a_box() {
        fn boxed() -> Result<(), Box<dyn std::error::Error>> {
            Err("no".parse::<i64>().unwrap_err())?
        }
        fn rejects() -> Result<(), Box<dyn std::error::Error>> {
            Err(Reject::new(7, "seven"))?
        }
        let fails = |which: u8| -> Result<(), Failed> {
            match which {
                0 => boxed()?,
                1 => rejects()?,
                2 => Err(std::io::Error::other("disk"))?,
                _ => Err("words")?,
            }
            Ok(())
        };
        let sent = |which| {
            let error = fails(which).unwrap_err().into_error(true);
            (error.code, error.message, error.data.map(|data| data.get().to_owned()))
        };
        assert_eq!(sent(0), (-32603, "invalid digit found in string".into(), None));
        assert_eq!(sent(1), (7, "seven".into(), None));
        let data = r#"{"exception":"io::Error"}"#.to_owned();
        assert_eq!(sent(2), (-32603, "disk".into(), Some(data)));
        assert_eq!(sent(3), (-32603, "words".into(), None));
    }
}
