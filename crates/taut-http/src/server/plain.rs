//! Plain JSON-RPC over HTTP: a message or an array in, its answers out.
//!
//! Knows the JSON-RPC envelope; must not know MCP. There are no sessions and no streams.

use http::{Response, StatusCode};
use taut::rpc::Messages;
use taut::transport::{MessageService, Principal, Relation};

use super::body::Body;
use super::posted::{Entry, entries, malformed};
use super::refusal::{Refusal, empty, json};

/// Serves one POST.
pub(super) async fn serve(
    service: &dyn MessageService,
    principal: Principal,
    body: Vec<u8>,
) -> Result<Response<Body>, Refusal> {
    let read = taut::rpc::read(&body).map_err(|error| malformed(&error))?;
    let batch = matches!(read, Messages::Batch(_));
    let mut answers: Vec<Vec<u8>> = Vec::new();
    let mut messages = Vec::new();
    if batch {
        for entry in entries(&body)? {
            match entry {
                Entry::Message { json, .. } => messages.push(json),
                Entry::Malformed { error } => answers.push(error),
            }
        }
    } else {
        messages.push(body);
    }
    let (sender, mut receiver) = service.open(principal).split();
    let sending = async {
        for message in messages {
            sender.send(message).await?;
        }
        sender.close();
        Ok(())
    };
    let receiving = async {
        while let Some(message) = receiver.recv().await {
            if let Relation::Answer(_) = message.relation {
                answers.push(message.json);
            }
        }
    };
    let (sent, ()) = tokio::join!(sending, receiving);
    sent.map_err(|error: taut::transport::SendMessageError| {
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, error.to_string())
    })?;
    Ok(match (batch, answers.pop()) {
        (_, None) => empty(StatusCode::ACCEPTED),
        (false, Some(answer)) => json(StatusCode::OK, answer),
        (true, Some(last)) => {
            answers.push(last);
            json(StatusCode::OK, [b"[", &*answers.join(&b","[..]), b"]"].concat())
        }
    })
}
