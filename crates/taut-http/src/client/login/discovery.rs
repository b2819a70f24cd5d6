//! Who gives out the tokens for a server.
//!
//! Knows the order of questions; must not know what the documents have to say (`metadata`). AUC-02, AUC-03.

use serde::de::DeserializeOwned;

use super::metadata::{
    ResourceMetadata, ServerMetadata, refuse, resource, resource_metadata_at, safe,
    server_metadata_at,
};
use super::requests::Requests;
use crate::client::url::Url;
use crate::client::{Challenge, HttpError};

/// What was found out about a server.
#[derive(Clone, Debug)]
pub(super) struct Discovered {
    /// The name of the server in tokens.
    pub(super) resource: String,
    /// The scopes that it knows.
    pub(super) scopes: Option<Vec<String>>,
    pub(super) metadata: ServerMetadata,
}

/// Whether a server that names nobody is taken to give out its tokens itself, at the paths of 2025-03-26.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Assume {
    Yes,
    No,
}

/// Finds out who gives out the tokens for `server`; `None` if nothing says so, and nothing is assumed.
pub(super) async fn discover(
    requests: &Requests,
    server: &Url,
    challenge: Option<&Challenge>,
    assume: Assume,
) -> Result<Option<Discovered>, HttpError> {
    let (found, failed) = match resource_metadata(requests, server, challenge).await {
        Ok(found) => (found, None),
        // Some answer 500 to each path that they do not know.
        Err(error @ HttpError::Unavailable { .. }) => (None, Some(error)),
        Err(error) => return Err(error),
    };
    let Some(found) = found else {
        // 2025-03-26: the server is its own authorization server.
        let origin = server.origin().to_string();
        let metadata = match (server_metadata(requests, &origin).await?, failed) {
            (Some(metadata), _) => metadata,
            (None, Some(error)) => return Err(error),
            (None, None) if assume == Assume::No => return Ok(None),
            (None, None) => ServerMetadata::assumed(server),
        };
        let resource = resource(server, None)?;
        return Ok(Some(Discovered { resource, scopes: None, metadata }));
    };
    // Before anything else is asked: a server that lies about its name gets no token of another.
    let resource = resource(server, found.resource.as_deref())?;
    let Some(issuer) = found.authorization_servers.first() else {
        return Err(refuse("the server does not say who gives out its tokens"));
    };
    let Some(metadata) = server_metadata(requests, issuer).await? else {
        return Err(refuse(format!(
            "the authorization server {} publishes no metadata",
            crate::client::http::excerpt(issuer)
        )));
    };
    Ok(Some(Discovered { resource, scopes: found.scopes_supported, metadata }))
}

/// What a protected server says about itself: where its refusal says that it is, else at the well-known places.
async fn resource_metadata(
    requests: &Requests,
    server: &Url,
    challenge: Option<&Challenge>,
) -> Result<Option<ResourceMetadata>, HttpError> {
    let mut failed = None;
    if let Some(named) = challenge.and_then(Challenge::resource_metadata) {
        match named_metadata(requests, server, named).await {
            Ok(found) => return Ok(Some(found)),
            // A server behind a proxy may name an address of its own machine.
            Err(error) => failed = Some(error),
        }
    }
    match first(requests, resource_metadata_at(server)).await {
        Ok(None) => failed.map_or(Ok(None), Err),
        Err(error) => Err(failed.unwrap_or(error)),
        found => found,
    }
}

async fn named_metadata(
    requests: &Requests,
    server: &Url,
    named: &str,
) -> Result<ResourceMetadata, HttpError> {
    let url = server.join(named).and_then(|url| safe(&url.to_string()))?;
    requests.document(&url).await?.ok_or_else(|| {
        refuse(format!(
            "there is no metadata at {}, where the server says it is",
            crate::client::http::shown(&url)
        ))
    })
}

/// The first of these documents that there is. One that cannot be had now counts only if there is no other.
async fn first<T: DeserializeOwned>(
    requests: &Requests,
    places: Vec<Result<Url, HttpError>>,
) -> Result<Option<T>, HttpError> {
    let mut failed = None;
    for url in places {
        match requests.document(&url?).await {
            Ok(None) => {}
            Ok(found) => return Ok(found),
            Err(error @ HttpError::Unavailable { .. }) => failed = failed.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    failed.map_or(Ok(None), Err)
}

async fn server_metadata(
    requests: &Requests,
    issuer: &str,
) -> Result<Option<ServerMetadata>, HttpError> {
    let places = server_metadata_at(&safe(issuer)?);
    let Some(found) = first::<ServerMetadata>(requests, places).await? else { return Ok(None) };
    found.check(issuer)?;
    Ok(Some(found))
}
