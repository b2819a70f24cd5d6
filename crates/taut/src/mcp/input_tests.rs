//! States that were changed, swapped, kept or grown too long, and how questions are told apart.

use super::*;
use serde_json::{Value, json};

fn raw(value: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap()
}

fn memory() -> Memory {
    let mut memory = Memory::default();
    memory.answers.insert("0-ab".into(), raw(&json!({ "action": "accept" })));
    memory.asked.insert("1-cd".into());
    memory.onces.insert("paid".into(), raw(&json!(7)));
    memory
}

fn refused(key: &SealKey, state: &str, bound_to: &str, now: u64) -> BadState {
    key.open(state, bound_to, now).unwrap_err()
}

#[test]
fn mrtr_09_a_state_comes_back_as_it_was_sealed() {
    let key = SealKey::new("k");
    let state = key.seal(memory(), "b".into(), 100).unwrap();
    let opened = key.open(&state, "b", 100).unwrap();
    assert_eq!(opened.answers["0-ab"].get(), r#"{"action":"accept"}"#);
    assert_eq!(opened.onces["paid"].get(), "7");
}

#[test]
fn mrtr_09_10_a_state_that_was_changed_swapped_or_kept_too_long_is_refused() {
    let key = SealKey::new("k");
    let state = key.seal(memory(), "b".into(), 100).unwrap();
    assert_eq!(refused(&key, &state.replace('7', "8"), "b", 1), BadState::Seal);
    assert_eq!(refused(&key, &state[1..], "b", 1), BadState::Seal);
    assert_eq!(refused(&key, "", "b", 1), BadState::Seal);
    assert_eq!(refused(&key, "x.{}", "b", 1), BadState::Seal);
    assert_eq!(refused(&SealKey::new("other"), &state, "b", 1), BadState::Seal);
    assert_eq!(refused(&key, &state, "c", 1), BadState::Other);
    assert_eq!(refused(&key, &state, "b", 101), BadState::Expired);
}

#[test]
fn a_state_over_the_limit_is_neither_made_nor_read() {
    let key = SealKey::new("k");
    let mut large = Memory::default();
    large.onces.insert("x".into(), raw(&json!("y".repeat(MAX_STATE))));
    assert_eq!(key.seal(large, "b".into(), 1), Err(Unsealed::TooLong));
    let long = format!("{}.{}", "0".repeat(64), " ".repeat(MAX_STATE));
    assert_eq!(refused(&key, &long, "b", 1), BadState::Seal);
}

#[test]
fn the_order_of_arguments_does_not_matter_and_everything_else_does() {
    let of = |name: &str, text: &str| {
        let raw: Box<RawValue> = serde_json::from_str(text).unwrap();
        binding(Method::CallTool, name, Some(raw.get()))
    };
    assert_eq!(of("t", r#"{"a":1,"b":[2]}"#), of("t", r#"{ "b": [2], "a": 1 }"#));
    assert_ne!(of("t", r#"{"a":1}"#), of("u", r#"{"a":1}"#));
    assert_ne!(of("t", r#"{"a":1}"#), of("t", r#"{"a":2}"#));
    assert_ne!(of("t", r#"{"a":["b","c"]}"#), of("t", r#"{"a":["bc"]}"#));
    assert_eq!(of("t", r#"{"a":"b"}"#), of("t", r#"{"\u0061":"\u0062"}"#));
    assert_ne!(of("t", r#"{"a":"1"}"#), of("t", r#"{"a":1}"#));
    assert_eq!(of("t", "{}"), binding(Method::CallTool, "t", None));
    assert_ne!(of("t", "{}"), binding(Method::GetPrompt, "t", None));
}

/// MRTR-10: each pair looked alike once.
#[test]
fn mrtr_10_long_lists_large_numbers_and_deep_nests_do_not_fall_together() {
    let of = |text: &str| {
        let raw: Box<RawValue> = serde_json::from_str(text).unwrap();
        binding(Method::CallTool, "t", Some(raw.get()))
    };
    let ones = vec!["1"; 256].join(",");
    assert_ne!(of(&format!(r#"{{"a":[[],{ones}]}}"#)), of(&format!(r#"{{"a":[[{ones}]]}}"#)));
    assert_ne!(of(r#"{"a":12345678901234567890123}"#), of(r#"{"a":12345678901234567890124}"#));
    assert_ne!(of(r#"{"a":1e999}"#), of("{}"));
    let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_ne!(of(&format!(r#"{{"a":{}}}"#, deep("1"))), of(&format!(r#"{{"a":{}}}"#, deep("2"))));
}

/// MRTR-12
#[test]
fn mrtr_12_only_what_was_asked_is_learnt_and_only_once() {
    let mut memory = memory();
    let bring =
        |value: u8| ["0-ab", "1-cd", "9-zz"].map(|key| (key.to_owned(), raw(&json!(value)))).into();
    memory.learn(bring(1));
    memory.learn(bring(2));
    let answers: Vec<_> = memory.answers.iter().map(|(k, v)| (k.as_str(), v.get())).collect();
    assert_eq!(answers, [("0-ab", r#"{"action":"accept"}"#), ("1-cd", "1")]);
}

#[test]
fn without_a_key_nothing_is_sealed_and_nothing_verifies() {
    let none = SealKey::new([]);
    assert_eq!(none.seal(memory(), "b".into(), 1), Err(Unsealed::NoKey));
    let text = r#"{"bound_to":"b","expires":9,"memory":{"answers":{},"asked":[],"onces":{}}}"#;
    let forged = format!("{}.{text}", hex(&HMAC::mac(text, [])));
    assert_eq!(refused(&none, &forged, "b", 1), BadState::Seal);
}

#[test]
fn a_question_is_named_by_its_words() {
    let question =
        |method, text: &str| Question { method, params: json!({ "message": text }).into() };
    let a = question("a/b", "a").digest();
    assert_eq!(a, question("a/b", "a").digest());
    assert_ne!(a, question("a/b", "b").digest());
    assert_ne!(a, question("a/c", "a").digest());
}

/// MRTR-02, MRTR-03, MRTR-14
#[test]
fn mrtr_03_questions_leave_as_they_were_put() {
    let params: Box<RawValue> = serde_json::from_str(r#"{"z":1,"a":2}"#).unwrap();
    let question = Question { method: Method::Elicit.as_str(), params: (&*params).into() };
    let required = InputRequired {
        result_type: ResultType::InputRequired,
        input_requests: [("1-x".to_owned(), question)].into(),
        request_state: "s".into(),
        meta: Meta::new().with(crate::mcp::meta_keys::SERVER_INFO, json!({})),
    };
    assert_eq!(
        serde_json::to_string(&required).unwrap(),
        concat!(
            r#"{"resultType":"input_required","inputRequests":{"1-x":{"method":"#,
            r#""elicitation/create","params":{"z":1,"a":2}}},"requestState":"s","#,
            r#""_meta":{"io.modelcontextprotocol/serverInfo":{}}}"#
        )
    );
}
