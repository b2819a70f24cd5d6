//! Batches of 2025-03-26, and the roles that break them.

use std::sync::PoisonError;
use std::time::Duration;

use serde_json::{Value, json};

use crate::server::{Server, refusal};

impl Server {
    pub(crate) fn batch(&mut self, list: &[Value]) {
        let batches = self.agreed.as_deref() == Some("2025-03-26");
        if self.is("batches-dropped") {
            return;
        }
        let lax = self.is("rpc-batch-refused") || self.is("batch-one") && list.len() == 1;
        if !batches && !lax || list.is_empty() {
            if self.is("rpc-batch-empty") {
                return self.send(&json!([]));
            }
            if self.is("batch-dropped") && batches {
                return;
            }
            return self.refuse(None, -32600, "no batches");
        }
        let first = list.first().and_then(|one| one.get("id"));
        if self.is("batch-note-first") && first.is_none() {
            return;
        }
        let slow = |one: &&Value| {
            one["method"] == "tools/call" && one["params"]["name"] == "slow" && batches
        };
        let slows: Vec<Value> = list.iter().filter(slow).map(|one| one["id"].clone()).collect();
        let mut replies: Vec<Value> = Vec::new();
        for one in list.iter().filter(|one| !slow(one)) {
            let call = one["method"] == "tools/call" && one.get("id").is_some();
            replies.extend(match &*self.role() {
                "batch-no-calls" if call => Some(refusal(one.get("id"), -32600, "no calls here")),
                "batch-other-calls" if call => Some(refusal(one.get("id"), -32601, "no calls")),
                "batch-empty-id" if one.get("id") == Some(&json!("")) => None,
                "batch-list-apart" if one["method"] == "tools/list" => {
                    self.message(one).iter().for_each(|reply| self.send(reply));
                    None
                }
                _ => self.message(one),
            });
        }
        if !slows.is_empty() {
            return self.wait(slows, replies);
        }
        let failed = replies.iter().position(|reply| reply.get("error").is_some());
        if let (true, Some(at)) = (self.is("batch-stops"), failed) {
            replies.truncate(at + 1);
        }
        if self.is("rpc-batch-mixed") {
            replies.truncate(3);
        }
        if self.is("batch-errors") {
            replies.retain(|reply| reply.get("error").is_none());
        }
        if self.is("batch-late") {
            // Each request of it takes its time, and other requests are served meanwhile.
            let (out, pause) = (self.out(), Duration::from_millis(250));
            std::thread::spawn(move || {
                replies.iter().for_each(|_| std::thread::sleep(pause));
                if !replies.is_empty() {
                    out.send(&Value::Array(replies));
                }
            });
            return;
        }
        match replies.is_empty() {
            true if self.is("rpc-batch-notifications") => self.send(&json!([])),
            true => {}
            false
                if self.is("rpc-batch")
                    || self.is("batch-alone") && list.len() == 1
                    || !batches =>
            {
                replies.iter().for_each(|reply| self.send(reply))
            }
            false => self.send(&Value::Array(replies)),
        }
    }

    /// Answers a batch with calls that take 500 ms, or less if they are cancelled.
    fn wait(&self, mut slows: Vec<Value>, mut replies: Vec<Value>) {
        let (out, cancelled) = (self.out(), self.cancelled.clone());
        std::thread::spawn(move || {
            let count = slows.len();
            for _ in 0..50 {
                std::thread::sleep(Duration::from_millis(10));
                let cancelled = cancelled.lock().unwrap_or_else(PoisonError::into_inner);
                slows.retain(|id| !cancelled.contains(id));
            }
            if out.is("rpc-batch-cancel") && slows.len() < count {
                return;
            }
            let result = json!({ "content": [{ "type": "text", "text": "done" }] });
            let done = |id: Value| json!({ "jsonrpc": "2.0", "id": id, "result": result });
            replies.extend(slows.into_iter().map(done));
            if !replies.is_empty() {
                out.send(&Value::Array(replies));
            }
        });
    }
}
