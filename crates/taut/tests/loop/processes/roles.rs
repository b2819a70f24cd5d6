//! What the other process does: a server whose handlers do everything that handlers should not.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::io::BufRead;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use taut::Ending;
use taut::service::{Failed, RequestParams, ServiceRequest, serve};

/// Started by the tests, never by hand.
#[test]
#[ignore = "a role, not a test"]
fn play() {
    let Ok(role) = std::env::var("TAUT_LOOP_ROLE") else { return };
    let runtime = match role.as_str() {
        "threads" => tokio::runtime::Builder::new_multi_thread(),
        _ => tokio::runtime::Builder::new_current_thread(),
    }
    .enable_all()
    .build()
    .unwrap();
    let drain = if role == "short drain" { 500 } else { 30_000 };
    let service = serve(rude).drain(Duration::from_millis(drain));
    let ending = runtime.block_on(async {
        let ending = service.serve_stdio().await.unwrap();
        // S17
        assert!(matches!(service.serve_stdio().await, Err(taut::Error::Stdio(_))));
        ending
    });
    drop(runtime);
    // S19: what prints after the end finds a stdout.
    println!("ended: {ending}");
    std::process::exit(match ending {
        Ending::Eof | Ending::ReaderGone => 0,
        Ending::Signal(_) => 10,
        Ending::DrainTimedOut { .. } => 11,
        _ => 12,
    });
}

async fn rude(
    method: String,
    params: RequestParams,
    call: ServiceRequest,
) -> Result<Value, Failed> {
    match method.as_str() {
        "echo" => Ok(params.read()?),
        "big" => Ok(json!("x".repeat(params.read::<[usize; 1]>()?[0]))),
        "sleep" => {
            let [milliseconds] = params.read::<[u64; 1]>()?;
            tokio::time::sleep(Duration::from_millis(milliseconds)).await;
            Ok(json!(milliseconds))
        }
        "never" => std::future::pending().await,
        "block" => {
            let [milliseconds] = params.read::<[u64; 1]>()?;
            std::thread::sleep(Duration::from_millis(milliseconds));
            Ok(json!(milliseconds))
        }
        "block a thread of the pool" => {
            let hour = Duration::from_secs(3600);
            tokio::task::spawn_blocking(move || std::thread::sleep(hour)).await?;
            Ok(json!(null))
        }
        "noise" => Ok(noise()),
        "leave a child" => {
            let child = Command::new("sleep").arg("600").spawn()?;
            Ok(json!(child.id()))
        }
        "serve again" => {
            let second =
                serve(async |_: String, _: RequestParams, _: ServiceRequest| Ok::<(), Failed>(()));
            Ok(json!(second.serve_stdio().await.unwrap_err().to_string()))
        }
        "panic" => panic!("words for the log"),
        "ask" => Ok(call.remote().call("question", ()).await?),
        _ => Ok(json!(null)),
    }
}

/// S13, S14, S15: everything that could reach the wire, at once.
fn noise() -> Value {
    let threads: Vec<_> = (0..4)
        .map(|n| {
            std::thread::spawn(move || {
                for _ in 0..20 {
                    println!("printed {n}");
                    let _ = rustix::io::write(rustix::stdio::stdout(), b"written below\n");
                }
            })
        })
        .collect();
    let child = Command::new("sh").args(["-c", "echo from a child; cat; cat <&0 >&1"]).status();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line).unwrap();
    json!({ "child": child.unwrap().success(), "read": read })
}
