//! The list of tools, read again when a server says that the headers of a call do not fit.
//!
//! PAR-06.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;

use super::exchange::Asked;
use super::{Carrier, lock};
use crate::client::error::HttpError;
use crate::client::message::{Message, method};

#[derive(Deserialize)]
struct Page {
    #[serde(rename = "nextCursor")]
    next: Option<String>,
}

impl Carrier {
    /// PAR-06: what is known of the tools is out of date.
    pub(super) async fn list_tools_again(&self, asked: &Asked) -> Result<(), HttpError> {
        let mut cursor: Option<String> = None;
        // As much as a client reads; a server that goes round in circles has more.
        let mut bytes = 0;
        for page in 0..1000 {
            let Some(listing) = listing(asked, page, cursor.as_deref()) else { return Ok(()) };
            let (headers, _) = self.request_headers(&listing)?;
            let ask = self.post(headers, listing.json.clone());
            let answer = self.ask_for_one(&listing, &ask).await?;
            let Some(result) = Message::read(&answer).and_then(|message| message.result) else {
                return Ok(());
            };
            lock(&self.annotations).learn(result);
            bytes += answer.len();
            let next = serde_json::from_str::<Page>(result.get()).ok().and_then(|page| page.next);
            if next == cursor || bytes > self.http.options.max_message_bytes {
                return Ok(());
            }
            cursor = next;
            if cursor.is_none() {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// A request for a page of tools, in the words of the modern request `like`.
fn listing(like: &Asked, page: usize, cursor: Option<&str>) -> Option<Asked> {
    let message = Message::read(&like.json)?;
    let mut meta: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(message.params().meta?.get()).ok()?;
    meta.remove(taut::types::meta_keys::PROGRESS_TOKEN);
    let mut params = json!({ "_meta": meta });
    if let Some(cursor) = cursor {
        params["cursor"] = cursor.into();
    }
    // No id of the client is a string that begins so.
    let id = format!("taut-http/tools/{}/{page}", like.id.as_json().trim_matches('"'));
    let json =
        json!({ "jsonrpc": "2.0", "id": id, "method": method::LIST_TOOLS, "params": params });
    let json = Bytes::from(json.to_string());
    Asked::read(&Message::read(&json)?, json.clone())
}
