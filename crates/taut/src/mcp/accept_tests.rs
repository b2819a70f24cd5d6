//! The table at the top of `accept.rs`, row by row.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::*;

fn judge(accept: &mut Accept, method: &str, params: Value) -> String {
    let raw: Box<RawValue> = serde_json::value::to_raw_value(&params).unwrap();
    match accept.judge(method, &Params::from(Some(&*raw))) {
        Verdict::Serve(method, terms) => format!("{} at {}", method.as_str(), terms.revision),
        Verdict::Welcome(revision) => format!("welcome {revision}"),
        Verdict::Pong => "pong".into(),
        Verdict::Refuse(error) => error.code.to_string(),
    }
}

fn hello(version: &str) -> Value {
    json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } })
}

fn modern(version: &str) -> Value {
    json!({ "_meta": {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    } })
}

#[test]
fn lif_04_05_06_known_versions_are_echoed_and_others_get_a_counter_offer() {
    for (asked, answered) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
        ("", "2025-11-25"),
    ] {
        let got = judge(&mut Accept::default(), "initialize", hello(asked));
        assert_eq!(got, format!("welcome {answered}"), "{asked}");
    }
}

#[test]
fn lif_13_14_l1_before_the_handshake_and_after_it() {
    let mut accept = Accept::default();
    assert_eq!(judge(&mut accept, "tools/list", json!({})), "-32600");
    assert_eq!(judge(&mut accept, "no/such", json!({})), "-32600");
    assert_eq!(judge(&mut accept, "ping", json!({})), "pong");
    assert_eq!(judge(&mut accept, "initialize", json!({ "capabilities": {} })), "-32602");
    assert_eq!(judge(&mut accept, "initialize", hello("2025-06-18")), "welcome 2025-06-18");
    assert_eq!(judge(&mut accept, "initialize", hello("2025-06-18")), "-32600");
    assert_eq!(judge(&mut accept, "tools/list", json!({})), "tools/list at 2025-06-18");
    assert_eq!(judge(&mut accept, "server/discover", json!({})), "-32601");
    assert_eq!(judge(&mut accept, "subscriptions/listen", json!({})), "-32601");
    assert_eq!(judge(&mut accept, "roots/list", json!({})), "-32601");
    assert_eq!(judge(&mut accept, "notifications/initialized", json!({})), "-32601");
}

/// LIF-02 binds clients: one that leaves out who it is and what it can do is served.
#[test]
fn lif_02_a_client_need_not_say_who_it_is_or_what_it_can_do() {
    let with = |more: Value| {
        let mut params = json!({ "protocolVersion": "2025-06-18" });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    let named = Some(("c".to_owned(), "1".to_owned()));
    for (more, info) in [
        (json!({}), None),
        (json!({ "capabilities": {} }), None),
        (json!({ "capabilities": null, "clientInfo": null }), None),
        (json!({ "clientInfo": {} }), None),
        (json!({ "clientInfo": { "version": "1" } }), None),
        (json!({ "clientInfo": { "name": null, "version": "1" } }), None),
        (json!({ "clientInfo": { "name": "c" } }), Some(("c".to_owned(), String::new()))),
        (json!({ "clientInfo": { "name": "c", "version": "1" } }), named),
    ] {
        let mut accept = Accept::default();
        let got = judge(&mut accept, "initialize", with(more.clone()));
        assert_eq!(got, "welcome 2025-06-18", "{more}");
        let asker = &accept.session().unwrap().asker;
        let got = asker.info.as_ref().map(|info| (info.name.clone(), info.version.clone()));
        assert_eq!(got, info, "{more}");
        assert_eq!(asker.capabilities, ClientCapabilities::default());
        assert_eq!(judge(&mut accept, "tools/list", json!({})), "tools/list at 2025-06-18");
    }
    // What is there has to be of the right kind.
    for more in [
        json!({ "capabilities": [] }),
        json!({ "clientInfo": "me" }),
        json!({ "clientInfo": [] }),
        json!({ "clientInfo": { "name": 5 } }),
        json!({ "clientInfo": { "name": "c", "version": 1 } }),
    ] {
        let got = judge(&mut Accept::default(), "initialize", with(more.clone()));
        assert_eq!(got, "-32602", "{more}");
    }
    let unversioned = json!({ "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
    assert_eq!(judge(&mut Accept::default(), "initialize", unversioned), "-32602");
}

#[test]
fn era_01_both_eras_are_served_on_one_pipe() {
    let mut accept = Accept::default();
    let now = "2026-07-28";
    assert_eq!(judge(&mut accept, "server/discover", modern(now)), "server/discover at 2026-07-28");
    assert_eq!(judge(&mut accept, "tools/list", modern(now)), "tools/list at 2026-07-28");
    // STD-25: nothing is remembered for a request that says nothing.
    assert_eq!(judge(&mut accept, "tools/list", json!({})), "-32602");
    // ERA-06: a probe does not decide the era.
    assert_eq!(judge(&mut accept, "initialize", hello("2025-11-25")), "welcome 2025-11-25");
    assert_eq!(judge(&mut accept, "tools/list", json!({})), "tools/list at 2025-11-25");
    assert_eq!(judge(&mut accept, "tools/list", modern(now)), "tools/list at 2026-07-28");
}

#[test]
fn met_02_ver_01_dep_02_what_a_modern_request_gets_wrong() {
    let mut accept = Accept::default();
    let half = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } });
    assert_eq!(judge(&mut accept, "tools/list", half), "-32602");
    for version in ["2025-11-25", "1900-01-01", ""] {
        assert_eq!(judge(&mut accept, "tools/list", modern(version)), "-32022", "{version}");
    }
    for gone in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "tasks/list"] {
        assert_eq!(judge(&mut accept, gone, modern("2026-07-28")), "-32601", "{gone}");
    }
}

#[test]
fn err_08_the_refusal_names_both_versions() {
    let raw = serde_json::value::to_raw_value(&modern("1900-01-01")).unwrap();
    let Verdict::Refuse(error) = Accept::default().judge("tools/list", &Params::from(Some(&*raw)))
    else {
        panic!()
    };
    let data: Value = serde_json::from_str(error.data.unwrap().get()).unwrap();
    assert_eq!(data, json!({ "supported": ["2026-07-28"], "requested": "1900-01-01" }));
}

#[test]
fn std_25_who_asks_is_judged_by_each_request_alone() {
    let mut accept = Accept::default();
    let mut ask = |capabilities: Value| {
        let mut params = modern("2026-07-28");
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
        let raw = serde_json::value::to_raw_value(&params).unwrap();
        match accept.judge("tools/list", &Params::from(Some(&*raw))) {
            Verdict::Serve(_, terms) => Ok(terms.asker.capabilities.sampling.is_some()),
            Verdict::Refuse(error) => Err(error.code),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ask(json!({})), Ok(false));
    assert_eq!(ask(json!({ "sampling": {} })), Ok(true));
    assert_eq!(ask(json!({ "sampling": {} })), Ok(true));
    assert_eq!(ask(json!([])), Err(-32602));
    assert_eq!(ask(json!({})), Ok(false));
}

#[test]
fn rpc_14_params_and_meta_have_to_be_objects() {
    for (params, words) in [
        (json!([]), "params must be an object"),
        (json!({ "_meta": 1 }), "params._meta must be an object"),
    ] {
        let raw = serde_json::value::to_raw_value(&params).unwrap();
        match Accept::default().judge("tools/list", &Params::from(Some(&*raw))) {
            Verdict::Refuse(error) => assert_eq!((error.code, &*error.message), (-32602, words)),
            other => panic!("{other:?}"),
        }
    }
}
