//! What a handler's failure costs: one request, never the connection.

use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use taut::Reject;
use taut::service::{Failed, RequestParams, Serve, ServiceRequest, serve};

use super::memory::{request, serving};

/// A result whose writing does what it is told.
enum Odd {
    Plain(Value),
    Panics,
    HasNoJson,
    /// Uses the connection while it is being written.
    Talks(ServiceRequest),
}

impl Serialize for Odd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Plain(value) => value.serialize(serializer),
            Self::Panics => {
                use serde::ser::SerializeSeq;
                let mut half = serializer.serialize_seq(None)?;
                half.serialize_element("half of a message")?;
                panic!("while writing")
            }
            Self::HasNoJson => Err(serde::ser::Error::custom("no such thing")),
            Self::Talks(call) => {
                call.remote().notify("talking", json!([])).map_err(serde::ser::Error::custom)?;
                json!("talked").serialize(serializer)
            }
        }
    }
}

/// Panics when it is dropped.
struct Grenade;

impl Drop for Grenade {
    fn drop(&mut self) {
        panic!("while being dropped");
    }
}

async fn odd(method: String, params: RequestParams, call: ServiceRequest) -> Result<Odd, Failed> {
    match method.as_str() {
        "plain" => Ok(Odd::Plain(json!("fine"))),
        "parse" => Ok(Odd::Plain(json!(params.read::<[String; 1]>()?[0].parse::<i64>()?))),
        "file" => Err(std::io::Error::other("disk on fire").into()),
        "refuse" => Err(Reject::new(-7, "not today").data(&json!({ "why": "rain" })).into()),
        "panic" => panic!("at once"),
        "panic later" => {
            tokio::task::yield_now().await;
            panic!("later")
        }
        "panic at drop" => {
            let _grenade = Grenade;
            tokio::task::yield_now().await;
            Ok(Odd::Plain(json!("never seen")))
        }
        "panic in writing" => Ok(Odd::Panics),
        "panic in writing later" => {
            tokio::task::yield_now().await;
            Ok(Odd::Panics)
        }
        "no json" => Ok(Odd::HasNoJson),
        "talk" => Ok(Odd::Talks(call)),
        "talk later" => {
            tokio::task::yield_now().await;
            Ok(Odd::Talks(call))
        }
        _ => Err(Reject::method_not_found(&method).into()),
    }
}

fn service() -> Serve {
    serve(odd)
}

#[tokio::test]
async fn every_kind_of_error_has_its_code_and_names_its_type() {
    let mut wire = serving(service());
    for (method, params, error) in [
        ("nothing", json!([]), json!({ "code": -32601 })),
        ("parse", json!({ "a": 1 }), json!({ "code": -32602 })),
        ("parse", json!(["x"]), json!({ "code": -32603, "data": "ParseIntError" })),
        ("file", json!([]), json!({ "code": -32603, "data": "io::Error" })),
        ("no json", json!([]), json!({ "code": -32603 })),
    ] {
        let answer = wire.ask(&request(1, method, &params)).await;
        assert_eq!(answer["id"], 1);
        assert_eq!(answer["error"]["code"], error["code"], "{method}: {answer}");
        assert_eq!(answer["error"]["data"]["exception"], error["data"], "{method}: {answer}");
    }
    let refused = wire.ask(&request(2, "refuse", &json!([]))).await;
    let error = json!({ "code": -7, "message": "not today", "data": { "why": "rain" } });
    assert_eq!(refused["error"], error);
}

#[tokio::test]
async fn the_type_of_an_error_can_be_kept_back() {
    let mut wire = serving(service().hide_exceptions());
    let answer = wire.ask(&request(1, "parse", &json!(["x"]))).await;
    assert_eq!(answer["error"]["code"], -32603);
    assert_eq!(answer["error"].get("data"), None);
}

#[tokio::test]
async fn c14_a_panic_wherever_it_happens_costs_one_request() {
    let mut wire = serving(service());
    for method in
        ["panic", "panic later", "panic at drop", "panic in writing", "panic in writing later"]
    {
        let answer = wire.ask(&request(1, method, &json!([]))).await;
        assert_eq!(answer["error"]["code"], -32603, "{method}: {answer}");
        assert_eq!(answer["error"]["data"]["exception"], "panic", "{method}: {answer}");
        assert!(!answer.to_string().contains("while"), "its words stay here: {answer}");
        assert_eq!(wire.ask(&request(1, "plain", &json!([]))).await["result"], "fine");
    }
    let (rest, _) = wire.finish().await;
    assert_eq!(rest, Vec::<Value>::new(), "nothing else was written");
}

#[tokio::test]
async fn c14_a_panic_in_a_notification_handler_ends_nothing() {
    let service = service().on_notification(|method, _, _| panic!("{method}"));
    let mut wire = serving(service);
    wire.send(r#"{"jsonrpc":"2.0","method":"boom"}"#).await;
    assert_eq!(wire.ask(&request(1, "plain", &json!([]))).await["result"], "fine");
}

#[tokio::test]
async fn a_result_that_uses_the_connection_while_it_is_written_waits_for_nobody() {
    let mut wire = serving(service());
    for method in ["talk", "talk later"] {
        wire.send(&request(1, method, &json!([]))).await;
        assert_eq!(wire.value().await["method"], "talking");
        assert_eq!(wire.value().await["result"], "talked");
    }
}

/// F2, F8: a line that is no message costs itself.
#[tokio::test]
async fn f2_f8_bad_lines_are_answered_one_by_one_and_the_next_request_is_served() {
    let mut wire = serving(service());
    for bad in ["not json", r#"{"jsonrpc":"2.0","id":1,"method":"x","params":null}"#, "7"] {
        assert!(wire.ask(bad).await["error"]["code"].is_i64(), "{bad}");
    }
    use tokio::io::AsyncWriteExt;
    wire.to.write_all(b"{\"a\":\"\xff\"}\n").await.unwrap();
    assert_eq!(wire.value().await["error"]["code"], -32700);
    assert_eq!(wire.ask(&request(1, "plain", &json!([]))).await["result"], "fine");
}
