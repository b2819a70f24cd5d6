//! A service on one end of a pipe in memory, and this end of it as lines.

use serde_json::Value;
use taut::Ending;
use taut::service::Serve;
use tokio::io::{
    AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf,
};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::PATIENCE;

/// As much as a pipe holds.
const CAPACITY: usize = 64 << 10;

/// This end.
pub(crate) struct Wire {
    pub(crate) to: WriteHalf<DuplexStream>,
    pub(crate) from: BufReader<ReadHalf<DuplexStream>>,
    /// The other end.
    pub(crate) served: JoinHandle<Ending>,
}

/// Serves on the other end of a pipe.
pub(crate) fn serving(service: Serve) -> Wire {
    serving_over(service, CAPACITY)
}

/// The same over a pipe that holds so much.
pub(crate) fn serving_over(service: Serve, capacity: usize) -> Wire {
    let (near, far) = tokio::io::duplex(capacity);
    let served = tokio::spawn(async move {
        let (reader, writer) = tokio::io::split(far);
        service.serve(reader, writer).await
    });
    let (from, to) = tokio::io::split(near);
    Wire { to, from: BufReader::new(from), served }
}

impl Wire {
    pub(crate) async fn send(&mut self, line: &str) {
        let line = format!("{line}\n");
        timeout(PATIENCE, self.to.write_all(line.as_bytes())).await.unwrap().unwrap();
    }

    pub(crate) async fn line(&mut self) -> String {
        let mut line = String::new();
        timeout(PATIENCE, self.from.read_line(&mut line)).await.expect("nothing came").unwrap();
        line
    }

    pub(crate) async fn value(&mut self) -> Value {
        let line = self.line().await;
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Sends a request and reads the next line.
    pub(crate) async fn ask(&mut self, line: &str) -> Value {
        self.send(line).await;
        self.value().await
    }

    /// Closes our end and reads what still comes.
    pub(crate) async fn finish(mut self) -> (Vec<Value>, Ending) {
        self.to.shutdown().await.unwrap();
        let mut rest = String::new();
        timeout(PATIENCE, self.from.read_to_string(&mut rest)).await.unwrap().unwrap();
        let ending = timeout(PATIENCE, self.served).await.unwrap().unwrap();
        (rest.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), ending)
    }
}

/// A request.
pub(crate) fn request(id: u64, method: &str, params: &Value) -> String {
    serde_json::json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
        .to_string()
}
