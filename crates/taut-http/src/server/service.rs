//! One endpoint as a `tower` service: every request is checked, told apart and served.
//!
//! Knows the order of the checks (HDR-12); must not know connections.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Buf;
use http::header::ORIGIN;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use taut::rpc::{Message, Messages};
use taut::transport::{ByteBudget, HeldBytes, MessageService};
use taut::types::ParameterHeader;

use super::auth;
use super::body::Body;
use super::guard::{allow_page, check_plain_post, check_post, check_source, preflight};
use super::learned::Learned;
use super::legacy::Legacy;
use super::options::Options;
use super::posted::{self, Era};
use super::refusal::{Refusal, empty};
use super::registry::Registry;
use super::turn::within;
use super::{modern, plain};

/// Any [`MessageService`] over HTTP: a `tower` service, for frameworks such as axum. It serves messages
/// at every path but those below `/.well-known/`: there it serves the metadata of
/// [`Options::protected_resource`], and nothing else. Clones serve the same sessions, which end with the
/// last clone.
#[derive(Clone)]
pub struct HttpService {
    service: Arc<dyn MessageService>,
    registry: Arc<Registry>,
    learned: Arc<Learned>,
    bodies: ByteBudget,
    options: Arc<Options>,
}

impl fmt::Debug for HttpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpService")
            .field("sessions", &self.open_sessions())
            .field("options", &self.options)
            .finish()
    }
}

impl HttpService {
    /// Serves `service` with these options. Paths, connections and TLS are the affair of whatever
    /// calls this service; see [`serve`](super::serve()) for a server of its own.
    pub fn new(service: impl MessageService, options: Options) -> Self {
        Self::shared(Arc::new(service), options)
    }

    /// The same for a service that is shared.
    #[must_use]
    pub fn shared(service: Arc<dyn MessageService>, options: Options) -> Self {
        let bodies = ByteBudget::new(options.bodies);
        if let Some(released) = options.on_release.clone() {
            bodies.on_release(move || released());
        }
        let (registry, learned) = Default::default();
        Self { service, registry, learned, bodies, options: Arc::new(options) }
    }

    /// How many legacy sessions are open.
    #[must_use]
    pub fn open_sessions(&self) -> usize {
        self.registry.len()
    }

    pub(super) fn service(&self) -> &Arc<dyn MessageService> {
        &self.service
    }

    pub(super) fn options(&self) -> &Arc<Options> {
        &self.options
    }

    pub(super) fn bodies(&self) -> &ByteBudget {
        &self.bodies
    }

    /// The response to a request that is not served.
    pub(super) fn refused(&self, refusal: Refusal) -> Response<Body> {
        refusal.with_null_id(!self.service.speaks_mcp()).into_response()
    }

    /// Serves one request.
    pub async fn handle<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body + Send,
        B::Error: fmt::Display,
    {
        let (head, body) = request.into_parts();
        let origin = head.headers.get(ORIGIN).cloned();
        let mut response = match self.route(head, body).await {
            Ok(response) => response,
            Err(refusal) => self.refused(refusal),
        };
        allow_page(&self.options, origin.as_ref(), response.headers_mut());
        response
    }

    async fn route<B>(&self, head: Parts, body: B) -> Result<Response<Body>, Refusal>
    where
        B: http_body::Body + Send,
        B::Error: fmt::Display,
    {
        // A web page that was refused gets no second try on the same connection.
        check_source(&self.options, &head).map_err(Refusal::closing)?;
        if auth::is_well_known(head.uri.path()) {
            return auth::metadata(&self.options, &head);
        }
        match head.method {
            Method::POST | Method::GET | Method::DELETE => {}
            Method::OPTIONS if head.headers.contains_key(ORIGIN) => return Ok(preflight(&head)),
            _ => {
                return Err(Refusal::method_not_allowed("send messages with POST"));
            }
        }
        let principal = auth::authenticate(&self.options, &head).await?;
        let service = &*self.service;
        if !service.speaks_mcp() {
            if head.method != Method::POST {
                return Err(Refusal::method_not_allowed("plain JSON-RPC is served: use POST"));
            }
            check_plain_post(&head)?;
            let body = self.read(body).await?;
            return plain::serve(service, principal, &head.headers, body, &self.options).await;
        }
        let legacy = Legacy { service, registry: &self.registry, options: &self.options };
        match head.method {
            Method::GET => return legacy.get(&head, &principal),
            Method::DELETE => return legacy.delete(&head, &principal),
            _ => {}
        }
        check_post(&head)?;
        let (body, held) = self.read(body).await?;
        let parameters = |tool: &str| match service.tool_schema(tool) {
            // A tool whose annotations are wrong has none (PAR-04).
            Some(schema) => ParameterHeader::of_schema(schema.text()).unwrap_or_default(),
            None => self.learned.of(&principal, tool),
        };
        match posted::judge(&head, &body, parameters)? {
            Era::Ignored => Ok(empty(StatusCode::ACCEPTED)),
            Era::Modern { id, lists } => {
                let (learned, who) = (&self.learned, principal.clone());
                let answered = |answer: &[u8]| {
                    if lists
                        && let Ok(Messages::One(message)) = taut::rpc::read(answer)
                        && let Message::Response { outcome: Ok(result), .. } = message
                    {
                        learned.see(&who, result);
                    }
                };
                modern::serve(service, principal, &id, (body, held), &self.options, answered).await
            }
            Era::Legacy(posted) => legacy.post(&head, principal, posted, body).await,
        }
    }

    /// The whole body, within its limits in bytes and time, and what it takes of the bound on all bodies.
    async fn read<B>(&self, body: B) -> Result<(Vec<u8>, HeldBytes), Refusal>
    where
        B: http_body::Body + Send,
        B::Error: fmt::Display,
    {
        let limit = self.options.body_limit;
        let too_long = || {
            let message = format!("the body is longer than {limit} bytes: send less at once");
            Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message).closing()
        };
        let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        if announced > limit {
            return Err(too_long());
        }
        let reading = async {
            /// What is announced is not believed: memory is taken as the bytes arrive.
            const FIRST: usize = 16 << 10;
            let mut held = self.bodies.hold();
            let mut bytes = Vec::with_capacity(announced.min(FIRST));
            let mut body = std::pin::pin!(body);
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|error| {
                    Refusal::bad_request(format!("the body cannot be read: {error}")).closing()
                })?;
                let Ok(mut data) = frame.into_data() else { continue };
                let wanted = bytes.len() + data.remaining();
                if wanted > limit {
                    return Err(too_long());
                }
                if wanted > bytes.capacity() {
                    let most = if announced > 0 { announced } else { limit };
                    let room = bytes.capacity().saturating_mul(2).min(most).max(wanted);
                    if !held.resize(room) {
                        return Err(crowded());
                    }
                    bytes.reserve_exact(room - bytes.len());
                }
                while data.has_remaining() {
                    let chunk = data.chunk();
                    bytes.extend_from_slice(chunk);
                    let length = chunk.len();
                    data.advance(length);
                }
            }
            Ok((bytes, held))
        };
        match within(self.options.body_timeout, reading).await {
            Ok(read) => read,
            Err(_) => Err(Refusal::new(
                StatusCode::REQUEST_TIMEOUT,
                "the body did not arrive in time: send it faster, or in smaller messages",
            )
            .closing()),
        }
    }
}

/// The refusal of a body that all bodies together have no room for.
fn crowded() -> Refusal {
    Refusal::busy("other requests have used up the memory for bodies: try again later").closing()
}

impl<B> tower_service::Service<Request<B>> for HttpService
where
    B: http_body::Body<Data: Send> + Send + 'static,
    B::Error: fmt::Display + Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.handle(request).await) })
    }
}
