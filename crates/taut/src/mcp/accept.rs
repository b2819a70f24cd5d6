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
use super::codes::{UNSUPPORTED_PROTOCOL_VERSION, UnsupportedVersion};
use super::envelope::MetaError;
use super::logging::Level;
use super::meta::meta_keys;
use super::methods::{Kind, Method, Sender};
use super::opening::InitializeParams;
use super::params::Params;
use super::revision::Revision;
use crate::rpc::ErrorObject;

/// Who asks, and what it can do.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Asker {
    pub(crate) info: Option<Implementation>,
    pub(crate) capabilities: ClientCapabilities,
}

/// Under which rules a request is served.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) revision: Revision,
    pub(crate) asker: Arc<Asker>,
    /// The least severe log line that this request wants to see; modern only (LOG-09).
    pub(crate) log_level: Option<Level>,
}

/// What is to be done with a request.
#[derive(Debug)]
pub(crate) enum Verdict {
    Serve(Method, Terms),
    /// The handshake has agreed on this.
    Welcome(Revision),
    /// Answer with an empty result.
    Pong,
    Refuse(ErrorObject),
}

/// The opening of one connection, as the server sees it.
#[derive(Debug, Default)]
pub(crate) struct Accept {
    agreed: Option<Terms>,
    modern_seen: bool,
    /// The last modern client and the text that it was read from. A memory of what was read, not
    /// of who asked: a request that says something else is read anew (STD-25).
    last: Option<(Box<str>, Box<str>, Arc<Asker>)>,
}

impl Accept {
    /// The legacy session, if there is one.
    pub(crate) fn session(&self) -> Option<&Terms> {
        self.agreed.as_ref()
    }

    /// Judges a request.
    pub(crate) fn judge(&mut self, name: &str, params: &Params<'_>) -> Verdict {
        if params.envelope.is_modern() {
            return self.judge_modern(name, params);
        }
        let method = Method::parse(name);
        match (method, &self.agreed) {
            (Some(Method::Initialize), None) => self.shake_hands(params),
            (Some(Method::Initialize), Some(_)) => Verdict::Refuse(ErrorObject::invalid_request(
                "already initialized; the session goes on as agreed",
            )),
            (Some(Method::Ping), _) => Verdict::Pong,
            (_, Some(terms)) => match served(method, terms.revision) {
                Some(method) => Verdict::Serve(method, terms.clone()),
                None => Verdict::Refuse(ErrorObject::method_not_found(name)),
            },
            (_, None) if self.modern_seen => Verdict::Refuse(ErrorObject::invalid_params(format!(
                "params._meta lacks {}",
                params.envelope.missing().join(" and ")
            ))),
            (_, None) => Verdict::Refuse(not_initialized()),
        }
    }

    fn judge_modern(&mut self, name: &str, params: &Params<'_>) -> Verdict {
        self.modern_seen = true;
        // MET-10: fields, then version, then method.
        let read = params.envelope.claims().and_then(|claims| Ok((claims, self.asker(params)?)));
        let (claims, asker) = match read {
            Ok(read) => read,
            Err(error) => return Verdict::Refuse(ErrorObject::invalid_params(error.to_string())),
        };
        // VER-04: a legacy revision cannot be asked for here either.
        if claims.protocol_version != Revision::MODERN.as_str() {
            return Verdict::Refuse(unsupported(&claims.protocol_version));
        }
        let Some(method) = served(Method::parse(name), Revision::MODERN) else {
            return Verdict::Refuse(ErrorObject::method_not_found(name));
        };
        let terms = Terms { revision: Revision::MODERN, asker, log_level: claims.log_level };
        Verdict::Serve(method, terms)
    }

    /// Who asks, read anew only if the request says something else than the one before.
    fn asker(&mut self, params: &Params<'_>) -> Result<Arc<Asker>, MetaError> {
        let (capabilities, info) = params.envelope.asker_text();
        if let Some((same, too, asker)) = &self.last
            && (**same == *capabilities, **too == *info) == (true, true)
        {
            return Ok(asker.clone());
        }
        let asker = Arc::new(Asker {
            capabilities: params.envelope.client_capabilities()?,
            info: params.envelope.client_info()?,
        });
        self.last = Some((capabilities.into(), info.into(), asker.clone()));
        Ok(asker)
    }

    fn shake_hands(&mut self, params: &Params<'_>) -> Verdict {
        let read = || -> Result<InitializeParams, String> {
            let error = |error: super::params::ParamsError| error.to_string();
            Ok(InitializeParams::new(
                params.required::<String>("protocolVersion").map_err(error)?,
                params.required::<ClientCapabilities>("capabilities").map_err(error)?,
                params.required::<Implementation>("clientInfo").map_err(error)?,
            ))
        };
        let asked = match read() {
            Ok(asked) => asked,
            // LIF-02
            Err(reason) => {
                return Verdict::Refuse(ErrorObject::invalid_params(format!(
                    "{reason}; initialize needs protocolVersion, capabilities and clientInfo"
                )));
            }
        };
        // LIF-04: a legacy version that we know is echoed. LIF-05, LIF-06: for any other, the
        // modern one included, the newest that a handshake can agree on is offered.
        let revision = Revision::parse(&asked.protocol_version)
            .filter(|revision| !revision.is_modern())
            .unwrap_or(Revision::LATEST_LEGACY);
        let asker = Asker { info: Some(asked.client_info), capabilities: asked.capabilities };
        self.agreed = Some(Terms { revision, asker: Arc::new(asker), log_level: None });
        Verdict::Welcome(revision)
    }
}

/// A request that a server answers in `revision`.
fn served(method: Option<Method>, revision: Revision) -> Option<Method> {
    method.filter(|method| {
        method.kind() == Kind::Request && method.may_come_from(Sender::Client, revision)
    })
}

/// ERR-08
fn unsupported(requested: &str) -> ErrorObject {
    let supported = vec![Revision::MODERN.to_string()];
    ErrorObject::new(UNSUPPORTED_PROTOCOL_VERSION, "unsupported protocol version")
        .with_data(&UnsupportedVersion::new(supported, requested))
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
