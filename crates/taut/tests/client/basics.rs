//! What a polite server and a client say to each other.

use serde_json::json;
use taut::{Revision, Rung};

use super::*;

#[tokio::test]
async fn a_server_is_started_listed_called_and_closed() {
    for role in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let client = start(role).await;
        assert_eq!(client.revision().to_string(), role);
        let names: Vec<_> = client.tools().await.unwrap().into_iter().map(|t| t.name).collect();
        assert_eq!(names, ["t0", "t1", "t2", "t3", "t4", "t5"]);
        let sum = client.call("add", json!({ "a": 2, "b": 3 })).timeout(ms(5_000)).await.unwrap();
        assert_eq!(sum.text().unwrap(), "5");
        let failed = client.call("fail", ()).await.unwrap();
        assert!(failed.failed());
        let pid = client.pid().unwrap();
        let closed = in_time(client.close()).await.unwrap();
        assert_eq!(closed.process.unwrap().rung, Rung::Eof, "{closed}");
        assert_eq!(closed.to_string(), "the server exited with code 0 once its stdin was closed");
        assert!(!alive(pid));
        let again = in_time(client.close()).await.unwrap();
        assert_eq!(again.process, closed.process);
    }
    let client = start("both").await;
    assert_eq!(client.revision(), Revision::MODERN);
}
