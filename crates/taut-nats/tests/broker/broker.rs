//! A real nats-server for a test, on a free port of the loopback.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use taut_nats::{ConnectOptions, Connection};

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Three brokers that are one cluster.
pub(crate) async fn cluster() -> [Broker; 3] {
    let routes =
        [free_port(), free_port(), free_port()].map(|port| format!("nats://127.0.0.1:{port}"));
    let all = routes.join(",");
    let [one, two, three] = routes.each_ref().map(|route| {
        let all = all.clone();
        async move {
            Broker::start(&["--cluster_name", "test", "--cluster", route, "--routes", &all]).await
        }
    });
    let (one, two, three) = tokio::join!(one, two, three);
    [one, two, three]
}

/// A broker; dropped, it is killed.
pub(crate) struct Broker {
    child: Option<Child>,
    port: u16,
    arguments: Vec<String>,
}

impl Broker {
    pub(crate) async fn start(arguments: &[&str]) -> Self {
        let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let (port, arguments) = (free_port(), arguments.clone());
            let mut broker = Self { child: None, port, arguments };
            if broker.launch().await {
                return broker;
            }
            // Somebody else has taken the port meanwhile.
            assert!(Instant::now() < end, "the broker does not start");
        }
    }

    pub(crate) async fn restart(&mut self) {
        let end = Instant::now() + Duration::from_secs(60);
        while !self.launch().await {
            assert!(Instant::now() < end, "the broker does not start again");
        }
    }

    /// Starts the process. Returns whether it came to be ready.
    async fn launch(&mut self) -> bool {
        let program = std::env::var("NATS_SERVER")
            .expect("NATS_SERVER names the nats-server to test with; interop/nats/run sets it");
        let mut child = Command::new(program)
            .args(["-a", "127.0.0.1", "-p", &self.port.to_string()])
            .args(&self.arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        self.child = Some(child);
        let (ready, told) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            let mut ready = Some(ready);
            for line in log.lines().map_while(Result::ok) {
                if line.ends_with("Server is ready") {
                    ready.take().map(|ready| ready.send(()));
                }
            }
        });
        if told.await.is_err() {
            self.kill();
            return false;
        }
        true
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub(crate) async fn connect(&self) -> Connection {
        ConnectOptions::new().url(self.url()).connect().await.unwrap()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
    }
}
