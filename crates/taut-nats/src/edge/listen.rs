//! A stream of changes that was opened again on another worker.
//!
//! Pure. The client has heard the acknowledgement of the first one. In place of the second it hears that
//! everything it follows may have changed, because it may have missed that.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Notification<'a> {
    method: &'a str,
    #[serde(borrow)]
    params: Option<Acknowledged<'a>>,
}

#[derive(Deserialize)]
struct Acknowledged<'a> {
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
    notifications: Option<Value>,
}

/// What a client hears in place of `json`, which came from a worker on a stream that was opened again; `None` if
/// it is no acknowledgement, and passes as it is.
pub(super) fn reopened(json: &[u8]) -> Option<Vec<Vec<u8>>> {
    let read: Notification<'_> = serde_json::from_slice(json).ok()?;
    if read.method != "notifications/subscriptions/acknowledged" {
        return None;
    }
    let params = read.params?;
    let meta = params.meta.map_or("{}", RawValue::get);
    let filter = params.notifications.unwrap_or_default();
    let lists = [
        ("toolsListChanged", "notifications/tools/list_changed"),
        ("promptsListChanged", "notifications/prompts/list_changed"),
        ("resourcesListChanged", "notifications/resources/list_changed"),
    ];
    let told = lists.into_iter().filter(|(name, _)| filter[name] == true).map(|(_, method)| {
        format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"_meta":{meta}}}}}"#)
    });
    let uris = filter["resourceSubscriptions"].as_array().into_iter().flatten();
    let updated = uris.map(|uri| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":{uri},"_meta":{meta}}}}}"#
        )
    });
    Some(told.chain(updated).map(String::into_bytes).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::reopened;

    #[test]
    fn all_that_is_followed_may_have_changed() {
        let ack = br#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7},"notifications":{"toolsListChanged":true,"promptsListChanged":false,"resourceSubscriptions":["a:b"]}}}"#;
        let told = reopened(ack).unwrap();
        let told: Vec<_> = told.iter().map(|json| String::from_utf8_lossy(json)).collect();
        assert_eq!(
            told,
            [
                r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}"#,
                r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b","_meta":{"io.modelcontextprotocol/subscriptionId":7}}}"#,
            ]
        );
        assert_eq!(reopened(br#"{"method":"notifications/tools/list_changed"}"#), None);
        assert_eq!(reopened(b"{"), None);
    }
}
