//! What is hidden, and what is not, in every kind of text.

use super::*;

fn masked_with(values: &[&str], text: &str) -> String {
    let mut masker = Masker::on();
    values.iter().for_each(|value| masker.hide(value));
    let (mut out, mut places) = (Vec::new(), Vec::new());
    masker.apply(text.as_bytes(), &mut out, &mut places);
    for place in places {
        assert_eq!(&out[place..place + 3], b"***", "{text}");
    }
    String::from_utf8(out).unwrap()
}

#[test]
fn values_of_secret_names_are_masked_in_json_of_any_depth() {
    let inner = r#"{"password":"hunter2hunter2","user":"ada"}"#;
    let once = serde_json::json!({ "text": inner }).to_string();
    let twice = serde_json::json!({ "text": once }).to_string();
    let thrice = serde_json::json!({ "text": twice }).to_string();
    for text in [inner.to_owned(), once, twice, thrice] {
        let masked = masked_with(&[], &text);
        assert!(!masked.contains("hunter2") && masked.contains("ada"), "{masked}");
        let value: serde_json::Value = serde_json::from_str(&masked).unwrap();
        assert!(value.to_string().contains("***"));
    }
}

#[test]
fn what_stays_is_untouched() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"params":{"_meta":{"progressToken":"0b6f4a4e-1f6c-4c6f-9d3e-1a2b3c4d5e6f"}}}"#,
        r#"{"maxTokens":100000000,"usage":{"tokens":12345678}}"#,
        r#"{"password":"short"}"#,
        r#"{"type":"string","description":"a sk-less word, npm_package, eyJhbGciOiJub25lIn0 alone"}"#,
        r#"{"data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}"#,
        r#"{"properties":{"password":{"type":"string"},"token":{"enum":["a","b"]}}}"#,
        "see https://example.org:8080/a?b=c and 12:34:56",
    ] {
        assert_eq!(masked_with(&["a-value-set"], text), text);
    }
}

#[test]
fn headers_variables_and_tokens_are_masked() {
    let table = [
        ("API_KEY=abcdefgh12 rest", "API_KEY=*** rest"),
        ("Authorization: Bearer abcdefgh12, x", "Authorization: Bearer ***, x"),
        (r#"{"authorization":"Bearer abcdefgh12"}"#, r#"{"authorization":"Bearer ***"}"#),
        (r#"{"pin":1234567890,"a":1}"#, r#"{"pin":"***","a":1}"#),
        (r#"{"t":"{\"pin\":1234567890}"}"#, r#"{"t":"{\"pin\":\"***\"}"}"#),
        ("use ghp_abcdefgh now", "use *** now"),
        ("sk-proj1234, sk-learn", "***, sk-learn"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "***"),
        ("got Bearer 12345678", "got Bearer ***"),
        (r#"{"password":"ends with \\","b":"x"}"#, r#"{"password":"***","b":"x"}"#),
        (r#"{"password":"has \" inside","b":"x"}"#, r#"{"password":"***","b":"x"}"#),
        (
            r#"{"a":"{\"password\":\"has \\\" inside\",\"b\":1}"}"#,
            r#"{"a":"{\"password\":\"***\",\"b\":1}"}"#,
        ),
    ];
    for (text, want) in table {
        assert_eq!(masked_with(&[], text), want);
    }
}

#[test]
fn known_values_are_masked_however_they_are_written() {
    let value = "pä\"ss/w\\ord";
    let mut text = value.to_owned();
    for _ in 0..3 {
        assert_eq!(masked_with(&[value], &format!("<{text}>")), "<***>");
        text = escaped(&text, false, false);
    }
    for form in ["p\\u00e4\\\"ss/w\\\\ord", "pä\\\"ss\\/w\\\\ord"] {
        assert_eq!(masked_with(&[value], form), "***");
    }
    assert_eq!(masked_with(&["postgres://me:correct-horse@db/x"], "pw correct-horse"), "pw ***");
    assert_eq!(masked_with(&["2"], "2 and 2"), "2 and 2");
}

#[test]
fn the_beginning_of_a_value_at_a_cut_is_left_out() {
    let mut masker = Masker::on();
    masker.hide("zebra-crossing");
    let (mut out, mut places) = (Vec::new(), Vec::new());
    masker.apply_to_cut(b"its zebra-cros", &mut out, &mut places);
    assert_eq!(out, b"its ");
}

#[test]
fn a_masker_that_is_off_changes_nothing() {
    let mut masker = Masker::off();
    masker.hide("whatever-it-is");
    let (mut out, mut places) = (Vec::new(), Vec::new());
    masker.apply(b"password=whatever-it-is", &mut out, &mut places);
    assert_eq!(out, b"password=whatever-it-is");
    assert!(places.is_empty());
}
