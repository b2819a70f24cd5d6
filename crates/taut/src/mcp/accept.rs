//! How a server takes a request: judged alone, by what stands in it and by what was agreed before.
//!
//! Knows both eras and how to tell them apart; must not know tools or tasks. One process serves
//! both side by side (ERA-01, ERA-02). The order of judgement:
//!
//! | the request has | session | verdict |
//! |---|---|---|
//! | `_meta` with `protocolVersion` | any | modern: fields (−32602), version (−32022), method (−32601) |
//! | method `initialize` | none | handshake: a known version is echoed, others get a counter-offer |
//! | method `initialize` | agreed | −32600, the session stays (LIF-14) |
//! | method `ping` | any | answered (PNG-02) |
//! | anything else | agreed | legacy: method (−32601) |
//! | anything else | none, modern seen | −32602 naming the missing fields (STD-25) |
//! | anything else | none | −32600 that says how to begin (LIF-13) |

use std::sync::Arc;

use super::capabilities::{ClientCapabilities, Implementation};
use super::http::unsupported_version;
use super::logging::Level;
use super::meta::meta_keys;
use super::methods::{Method, MethodKind, Sender};
use super::request_meta::{RequestMeta, Trace};
use super::revision::Revision;
use crate::json::JsonRef;
use crate::rpc::{ErrorObject, Id, Params};

/// Who asks, and what it can do.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Asker {
    pub(crate) info: Option<Implementation>,
    pub(crate) capabilities: ClientCapabilities,
}

/// Under which rules a request is served, and what it says about itself.
#[derive(Debug)]
pub(crate) struct Terms {
    pub(crate) revision: Revision,
    pub(crate) asker: Arc<Asker>,
    /// The least severe log line that this request wants to see; modern only (LOG-09).
    pub(crate) log_level: Option<Level>,
    /// The token that reports of progress have to carry.
    pub(crate) progress_token: Result<Option<Id>, ErrorObject>,
    /// The trace that it is part of.
    pub(crate) trace: Trace,
    /// `_meta` as it came.
    pub(crate) meta: Option<Box<str>>,
}

impl Terms {
    fn new(revision: Revision, asker: Arc<Asker>, log_level: Option<Level>) -> Self {
        let (progress_token, trace) = (Ok(None), Trace::default());
        Self { revision, asker, log_level, progress_token, trace, meta: None }
    }

    /// The same with what `_meta` says.
    fn saying(mut self, meta: JsonRef<'_>, envelope: &RequestMeta<'_>) -> Arc<Self> {
        self.progress_token = envelope.progress_token();
        self.trace = envelope.trace();
        self.meta = Some(meta.text().into());
        Arc::new(self)
    }
}

/// What is to be done with a request.
#[derive(Debug)]
pub(crate) enum Verdict {
    Serve(Method, Arc<Terms>),
    /// The handshake has agreed on this.
    Welcome(Revision),
    /// Answer with an empty result.
    Pong,
    Refuse(ErrorObject),
}

/// A longer `_meta` is read each time: few are a tenth of this, and what is kept has a bound.
const REMEMBERED: usize = 4 << 10;

/// The opening of one connection, as the server sees it.
///
/// It remembers what it has read, not who asked (STD-25): most requests say the same of themselves
/// as the one before, word for word, and one that says something else is read anew.
#[derive(Debug, Default)]
pub(crate) struct Accept {
    agreed: Option<Arc<Terms>>,
    modern_seen: bool,
    /// What the last `_meta` came to.
    last: Option<Arc<Terms>>,
    /// The last modern client and the text that it was read from, for requests whose `_meta` differs
    /// only in what is about the request, such as its progress token.
    last_asker: Option<(Box<str>, Box<str>, Arc<Asker>)>,
}

impl Accept {
    /// The legacy session, if there is one.
    pub(crate) fn session(&self) -> Option<&Terms> {
        self.agreed.as_deref()
    }

    /// A modern request was seen that somebody else judges.
    #[cfg(feature = "client")]
    pub(crate) fn saw_modern(&mut self) {
        self.modern_seen = true;
    }

    /// Judges a request.
    pub(crate) fn judge(&mut self, name: &str, params: &Params<'_>) -> Verdict {
        if params.is_array() {
            return Verdict::Refuse(ErrorObject::invalid_params("params must be an object"));
        }
        let meta = params.member("_meta");
        if meta.is_some_and(|meta| !meta.is_object()) {
            return Verdict::Refuse(ErrorObject::invalid_params("params._meta must be an object"));
        }
        let Some(meta) = meta else {
            return self.judge_legacy(name, params, RequestMeta::default(), self.agreed.clone());
        };
        if let Some(last) = &self.last
            && last.meta.as_deref() == Some(meta.text())
        {
            let last = last.clone();
            return match last.revision.is_modern() {
                true => serve(name, Method::parse(name), last),
                false => self.judge_legacy(name, params, RequestMeta::default(), Some(last)),
            };
        }
        let envelope = RequestMeta::read(meta);
        if envelope.is_modern() {
            return self.judge_modern(name, meta, envelope);
        }
        let terms = self.agreed.as_ref().map(|agreed| {
            Terms::new(agreed.revision, agreed.asker.clone(), None).saying(meta, &envelope)
        });
        self.remember(terms.as_ref(), meta);
        self.judge_legacy(name, params, envelope, terms)
    }

    /// Judges a request that is served, if at all, under `terms`.
    fn judge_legacy(
        &mut self,
        name: &str,
        params: &Params<'_>,
        envelope: RequestMeta<'_>,
        terms: Option<Arc<Terms>>,
    ) -> Verdict {
        let method = Method::parse(name);
        match (method, terms) {
            (Some(Method::Initialize), None) => self.shake_hands(params),
            (Some(Method::Initialize), Some(_)) => Verdict::Refuse(ErrorObject::invalid_request(
                "already initialized; the session goes on as agreed",
            )),
            (Some(Method::Ping), _) => Verdict::Pong,
            (_, Some(terms)) => serve(name, method, terms),
            (_, None) if self.modern_seen => Verdict::Refuse(envelope.missing()),
            (_, None) => Verdict::Refuse(not_initialized()),
        }
    }

    fn judge_modern(
        &mut self,
        name: &str,
        meta: JsonRef<'_>,
        envelope: RequestMeta<'_>,
    ) -> Verdict {
        self.modern_seen = true;
        // MET-10: fields, then version, then method.
        let read = envelope.claims().and_then(|claims| Ok((claims, self.asker(&envelope)?)));
        let (claims, asker) = match read {
            Ok(read) => read,
            Err(error) => return Verdict::Refuse(error),
        };
        // VER-04: a legacy revision cannot be asked for here either.
        if claims.protocol_version != Revision::MODERN.as_str() {
            return Verdict::Refuse(unsupported_version(&claims.protocol_version));
        }
        let terms = Terms::new(Revision::MODERN, asker, claims.log_level).saying(meta, &envelope);
        self.remember(Some(&terms), meta);
        serve(name, Method::parse(name), terms)
    }

    fn remember(&mut self, terms: Option<&Arc<Terms>>, meta: JsonRef<'_>) {
        self.last = terms.filter(|_| meta.text().len() <= REMEMBERED).cloned();
    }

    /// Who asks, read anew only if the request says something else than the one before.
    fn asker(&mut self, envelope: &RequestMeta<'_>) -> Result<Arc<Asker>, ErrorObject> {
        let (capabilities, info) = envelope.asker_text();
        if let Some((same, too, asker)) = &self.last_asker
            && (**same == *capabilities, **too == *info) == (true, true)
        {
            return Ok(asker.clone());
        }
        let asker = Arc::new(Asker {
            capabilities: envelope.client_capabilities()?,
            info: envelope.client_info()?,
        });
        if capabilities.len() + info.len() <= REMEMBERED {
            self.last_asker = Some((capabilities.into(), info.into(), asker.clone()));
        }
        Ok(asker)
    }

    fn shake_hands(&mut self, params: &Params<'_>) -> Verdict {
        let read = || -> Result<(String, Asker), ErrorObject> {
            Ok((params.required("protocolVersion")?, asker_of(params)?))
        };
        let (version, asker) = match read() {
            Ok(read) => read,
            // LIF-02
            Err(ErrorObject { message, .. }) => {
                return Verdict::Refuse(ErrorObject::invalid_params(format!(
                    "{message}; initialize needs protocolVersion, capabilities and clientInfo"
                )));
            }
        };
        // LIF-04: a legacy version that we know is echoed. LIF-05, LIF-06: for any other, the
        // modern one included, the newest that a handshake can agree on is offered.
        let revision = Revision::parse(&version)
            .filter(|revision| !revision.is_modern())
            .unwrap_or(Revision::LATEST_LEGACY);
        self.agreed = Some(Arc::new(Terms::new(revision, Arc::new(asker), None)));
        self.last = None;
        Verdict::Welcome(revision)
    }
}

/// Who opens a legacy session. LIF-02 binds clients; those that were written by hand, as scripts are, leave out who
/// they are and what they can do, and are served all the same.
fn asker_of(params: &Params<'_>) -> Result<Asker, ErrorObject> {
    let capabilities = params.optional("capabilities")?.unwrap_or_default();
    let info = params.member("clientInfo").filter(|info| info.is_object());
    let member = |name| info?.member(name).filter(|member| member.text() != "null");
    let info = match (info, member("name").map(JsonRef::string), member("version")) {
        (Some(_), None, _) => None,
        (Some(_), Some(Some(name)), None) => Some(Implementation::new(name, "")),
        _ => params.optional("clientInfo")?,
    };
    Ok(Asker { info, capabilities })
}

/// Serves what a server answers in the revision of `terms`.
fn serve(name: &str, method: Option<Method>, terms: Arc<Terms>) -> Verdict {
    let served = method.filter(|method| {
        method.kind() == MethodKind::Request && method.may_come_from(Sender::Client, terms.revision)
    });
    match served {
        Some(method) => Verdict::Serve(method, terms),
        None => Verdict::Refuse(ErrorObject::method_not_found(name)),
    }
}

fn not_initialized() -> ErrorObject {
    let supported: Vec<&str> = Revision::ALL.iter().map(|revision| revision.as_str()).collect();
    ErrorObject::invalid_request(format!(
        "not initialized: send initialize first, or put {} and {} into params._meta",
        meta_keys::PROTOCOL_VERSION,
        meta_keys::CLIENT_CAPABILITIES
    ))
    .with_data(&serde_json::json!({ "supported": supported }))
}

#[cfg(test)]
#[path = "accept_tests.rs"]
mod tests;
