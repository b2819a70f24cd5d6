//! Who gives out the tokens for a server.
//!
//! Knows the order of questions; must not know what the documents have to say (`metadata`). AUC-02, AUC-03.

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

/// Finds out who gives out the tokens for `server`.
pub(super) async fn discover(
    requests: &Requests,
    server: &Url,
    challenge: Option<&Challenge>,
) -> Result<Discovered, HttpError> {
    let Some(found) = resource_metadata(requests, server, challenge).await? else {
        // 2025-03-26: the server is its own authorization server.
        let metadata = match server_metadata(requests, &server.origin().to_string()).await? {
            Some(metadata) => metadata,
            None => ServerMetadata::assumed(server),
        };
        return Ok(Discovered { resource: resource(server, None)?, scopes: None, metadata });
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
    Ok(Discovered { resource, scopes: found.scopes_supported, metadata })
}

async fn resource_metadata(
    requests: &Requests,
    server: &Url,
    challenge: Option<&Challenge>,
) -> Result<Option<ResourceMetadata>, HttpError> {
    if let Some(named) = challenge.and_then(Challenge::resource_metadata) {
        let url = server.join(named).and_then(|url| safe(&url.to_string()))?;
        return match requests.document(&url).await? {
            Some(found) => Ok(Some(found)),
            None => Err(refuse(format!(
                "there is no metadata at {}, where the server says it is",
                crate::client::http::shown(&url)
            ))),
        };
    }
    for url in resource_metadata_at(server) {
        if let Some(found) = requests.document(&url?).await? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

async fn server_metadata(
    requests: &Requests,
    issuer: &str,
) -> Result<Option<ServerMetadata>, HttpError> {
    let address = safe(issuer)?;
    for url in server_metadata_at(&address) {
        if let Some(found) = requests.document::<ServerMetadata>(&url?).await? {
            found.check(issuer)?;
            return Ok(Some(found));
        }
    }
    Ok(None)
}
