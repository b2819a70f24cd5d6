//! What is hidden, and what is not: every kind of text, every spelling, every cut.

use super::*;

fn known(values: &[&str]) -> Secrets {
    let secrets = Secrets::new();
    values.iter().for_each(|value| secrets.hide_always(value));
    secrets
}

fn masked_with(values: &[&str], text: &str) -> String {
    let mut masker = Masker::new(&known(values));
    let (mut out, mut places) = (Vec::new(), Vec::new());
    masker.apply(text.as_bytes(), &mut out, &mut places);
    for place in places {
        assert_eq!(&out[place..place + 3], b"***", "{text}");
    }
    String::from_utf8(out).unwrap()
}

/// The same in two pieces, cut at each byte, and byte by byte: all must give the same.
fn masked_in_pieces(masker: &mut Masker, text: &[u8]) -> String {
    let mut whole = Vec::new();
    masker.apply(text, &mut whole, &mut Vec::new());
    // Of a long text some cuts: byte by byte there is one at each place anyway.
    let step = 1 + text.len() / 200;
    for cut in (0..=text.len()).step_by(step) {
        let mut out = Vec::new();
        masker.push(&text[..cut], &mut out);
        masker.push(&text[cut..], &mut out);
        masker.end(&mut out);
        let (out, whole) = (String::from_utf8_lossy(&out), String::from_utf8_lossy(&whole));
        assert_eq!(out, whole, "cut at {cut} of {}", String::from_utf8_lossy(text));
    }
    let mut out = Vec::new();
    text.iter().for_each(|byte| masker.push(&[*byte], &mut out));
    masker.end(&mut out);
    assert_eq!(out, whole);
    String::from_utf8(whole).unwrap()
}

type Writer = fn(char) -> String;

fn units(c: char) -> Vec<u16> {
    c.encode_utf16(&mut [0; 2]).to_vec()
}

fn lower(c: char) -> String {
    units(c).iter().map(|unit| format!("\\u{unit:04x}")).collect()
}

fn upper(c: char) -> String {
    units(c).iter().map(|unit| format!("\\u{unit:04X}")).collect()
}

/// How a writer of JSON may write a character within a string.
fn must(c: char) -> String {
    match c {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        c if c.is_control() => lower(c),
        c => c.into(),
    }
}

/// Writers of JSON, as they are found in the world.
const WRITERS: [(&str, Writer); 7] = [
    ("serde", must),
    ("Go", |c| if "&<>".contains(c) { lower(c) } else { must(c) }),
    (".NET", |c| if "&<>+'\"`".contains(c) || !c.is_ascii() { upper(c) } else { must(c) }),
    ("PHP", |c| match c {
        '/' => "\\/".to_owned(),
        c if !c.is_ascii() => lower(c),
        c => must(c),
    }),
    ("Python", |c| if c.is_ascii() { must(c) } else { lower(c) }),
    ("all lower", lower),
    ("all upper", upper),
];

fn quoted(text: &str, writer: Writer) -> String {
    text.chars().map(writer).collect()
}

const SECRETS: [&str; 5] = [
    "salt&pepper<oyster>77",
    "wälrus+carpenter/naïve==",
    "quo\"te\\back\tslash'ö",
    "face-😀-and-漢字-key",
    "plain-value-0123456789",
];

/// Every spelling, at three depths, across each cut. T27.
#[test]
fn a_known_value_is_masked_in_every_spelling_at_every_depth_and_across_each_cut() {
    let mut masker = Masker::new(&known(&SECRETS));
    for secret in SECRETS {
        for (name, writer) in WRITERS {
            let mut text = format!("it is {secret}, they say");
            let mut shown = "it is ***, they say".to_owned();
            for depth in 0..=3 {
                assert_eq!(masked_in_pieces(&mut masker, text.as_bytes()), shown, "{name} {depth}");
                // The next depth: all of it is a string in a message.
                text = format!(r#"{{"text":"{}"}}"#, quoted(&text, writer));
                shown = format!(r#"{{"text":"{}"}}"#, quoted(&shown, writer));
                if writer('a') != "a" {
                    // Its own letters are written with escapes, too: the mask replaces the value alone.
                    shown = shown.replace(&quoted("***", writer), "***");
                }
            }
        }
    }
}

/// A server passes on what another has written in another way.
#[test]
fn depths_may_be_spelled_each_in_its_own_way() {
    let mut masker = Masker::values(&known(&SECRETS));
    for secret in SECRETS {
        for (_, one) in WRITERS {
            for (_, two) in WRITERS {
                let text = quoted(&quoted(secret, one), two);
                let mut out = Vec::new();
                masker.apply(format!("<{text}>").as_bytes(), &mut out, &mut Vec::new());
                assert_eq!(String::from_utf8(out).unwrap(), "<***>", "{text}");
            }
        }
    }
}

#[test]
fn other_spellings_are_masked_too() {
    let percent = |secret: &str, plain: fn(u8) -> bool, upper: bool| -> String {
        let byte = |byte: u8| match byte {
            byte if plain(byte) => char::from(byte).to_string(),
            byte if upper => format!("%{byte:02X}"),
            byte => format!("%{byte:02x}"),
        };
        secret.bytes().map(byte).collect()
    };
    let mut masker = Masker::values(&known(&SECRETS));
    for secret in SECRETS {
        for plain in
            [|byte: u8| byte.is_ascii_alphanumeric(), |b: u8| b.is_ascii_graphic() && b != b'%']
        {
            for upper in [true, false] {
                let text = format!("/x?t={}&b=%20c", percent(secret, plain, upper));
                let shown = masked_in_pieces(&mut masker, text.as_bytes());
                assert_eq!(shown, "/x?t=***&b=%20c", "{text}");
            }
        }
        for (apostrophe, beyond) in [("&apos;", false), ("&#39;", true), ("&#x27;", true)] {
            let xml = secret.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            let xml = xml.replace('"', "&quot;").replace('\'', apostrophe);
            let number =
                |c: char| if c.is_ascii() { c.into() } else { format!("&#{};", u32::from(c)) };
            let xml: String = if beyond { xml.chars().map(number).collect() } else { xml };
            let shown = masked_in_pieces(&mut masker, format!("<a b=\"{xml}\">&</a>").as_bytes());
            assert_eq!(shown, "<a b=\"***\">&</a>", "{xml}");
        }
        let rust = format!("{secret:?}");
        assert_eq!(masked_in_pieces(&mut masker, rust.as_bytes()), "\"***\"");
        for (before, after) in [("", ""), ("u", "x"), ("me:", "\n"), ("user:", "12")] {
            let text = base64(format!("{before}{secret}{after}").as_bytes());
            for text in [text.clone(), text.replace('+', "-").replace('/', "_")] {
                let shown = masked_in_pieces(&mut masker, format!("Basic {text}.").as_bytes());
                // Up to two characters at each end have a part in other bytes as well.
                assert!(shown.contains("***") && shown.len() <= 23, "{text}: {shown}");
            }
        }
    }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let bits = three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - three.len()));
        for at in 0..=three.len() {
            let digit = bits >> (18 - 6 * at) & 63;
            out.push(char::from(DIGITS[usize::try_from(digit).unwrap()]));
        }
    }
    out + &"=="[..(3 - bytes.len() % 3) % 3]
}

#[test]
fn values_of_secret_names_are_masked_in_json_of_any_depth_and_across_each_cut() {
    let inner = r#"{"password":"hunter2","user":"ada"}"#;
    let once = serde_json::json!({ "text": inner }).to_string();
    let twice = serde_json::json!({ "text": once }).to_string();
    let thrice = serde_json::json!({ "text": twice }).to_string();
    for text in [inner.to_owned(), once, twice, thrice] {
        let masked = masked_in_pieces(&mut Masker::new(&Secrets::new()), text.as_bytes());
        assert!(!masked.contains("hunter2") && masked.contains("ada"), "{masked}");
        let value: serde_json::Value = serde_json::from_str(&masked).unwrap();
        assert!(value.to_string().contains("***"));
    }
}

#[test]
fn what_stays_is_untouched() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"params":{"_meta":{"progressToken":"0b6f4a4e-1f6c-4c6f-9d3e-1a2b3c4d5e6f"}}}"#,
        r#"{"maxTokens":100000000,"usage":{"tokens":12345678,"inputTokens":4321,"output_tokens":12}}"#,
        r#"{"password":"abc","useToken":false,"key":"city","auth":"none","secret":true,"apiKey":null}"#,
        r#"{"type":"string","description":"a sk-less word, npm_package, eyJhbGciOiJub25lIn0 alone"}"#,
        r#"{"data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}"#,
        r#"{"properties":{"password":{"type":"string"},"token":{"enum":["a","b"]}}}"#,
        "see https://example.org:8080/a?b=c and 12:34:56, 100% and 50%25",
        r#"say "token" to me, C:\new\users, \ud83d, \u12, "key":"#,
        "pass: 1234 fail: 0; the token: lost",
    ] {
        let mut masker = Masker::new(&known(&["a-value-set"]));
        assert_eq!(masked_in_pieces(&mut masker, text.as_bytes()), text);
    }
}

#[test]
fn headers_variables_and_tokens_are_masked() {
    let table = [
        ("API_KEY=abcdefgh12 rest", "API_KEY=*** rest"),
        ("Authorization: Bearer abcdefgh12, x", "Authorization: Bearer ***, x"),
        (r#"{"authorization":"Bearer abcdefgh12"}"#, r#"{"authorization":"Bearer ***"}"#),
        (r#"{"pin":1234567890,"a":1}"#, r#"{"pin":"***","a":1}"#),
        (r#"{"pin" : 12345 }"#, r#"{"pin" : "***" }"#),
        (r#"{"t":"{\"pin\":1234567890}"}"#, r#"{"t":"{\"pin\":\"***\"}"}"#),
        ("use ghp_abcdefgh now", "use *** now"),
        ("sk-proj1234, sk-learn", "***, sk-learn"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "***"),
        ("got Bearer 12345678", "got Bearer ***"),
        (r#"{"password":"ends with \\","b":"x"}"#, r#"{"password":"***","b":"x"}"#),
        (r#"{"password":"has \" inside","b":"x"}"#, r#"{"password":"***","b":"x"}"#),
        (r#"{"to\u006ben" : "hunt\"er2", "b":2"#, r#"{"to\u006ben" : "***", "b":2"#),
        (r#"{"a":1,"apiKey":"hunter2"#, r#"{"a":1,"apiKey":"***"#),
        (
            r#"{"a":"{\"password\":\"has \\\" inside\",\"b\":1}"}"#,
            r#"{"a":"{\"password\":\"***\",\"b\":1}"}"#,
        ),
    ];
    for (text, want) in table {
        let mut masker = Masker::new(&Secrets::new());
        assert_eq!(masked_in_pieces(&mut masker, text.as_bytes()), want);
    }
    let long = format!(r#"{{"key":"{}","b":1}}"#, "0123456789".repeat(30_000));
    assert_eq!(masked_with(&[], &long), r#"{"key":"***","b":1}"#);
}

/// Issue 19, D4: escapes were decoded, and a message with one lost its order and its numbers.
#[test]
fn a_message_is_whole_and_as_it_was() {
    let long = "é".repeat(9000);
    let text = format!(
        r#"{{ "z":1.50, "a":"caf\u00e9 \/ \ud83d\ude00 {long}","to\u006ben" : "hunt\"er2" , "pin":12345 ,"b":[ ] }}"#
    );
    let shown = text.replace(r#"hunt\"er2"#, "***").replace("12345", r#""***""#);
    assert_eq!(masked_with(&["not-there-at-all"], &text), shown);
    let plain = r#"{"text":"na\u00EFve","n":1e3, "a":{}}"#;
    assert_eq!(masked_with(&["not-there-at-all"], plain), plain);
}

#[test]
fn parts_of_a_value_are_masked_where_they_stand_alone() {
    let values = [
        "postgres://me:correct-horse@db/x",
        "Bearer battery-staple-77",
        "-----BEGIN KEY-----\nMIIabcdefgh\n-----END KEY-----",
        "several words of mine",
    ];
    let told = "correct-horse battery-staple-77 MIIabcdefgh several+words+of+mine";
    assert_eq!(masked_with(&values, told), "*** *** *** ***");
    assert_eq!(masked_with(&["2", "abc"], "2 and abc"), "2 and abc");
    // One that overlaps another, or holds it, leaves no rest.
    assert_eq!(masked_with(&["first-half", "half-second"], "a first-half-second b"), "a *** b");
    assert_eq!(masked_with(&["inner", "an inner one"], "an inner one, an inner"), "***, an ***");
}

#[test]
fn what_a_cut_has_left_of_a_value_is_masked() {
    let secrets = known(&["zebra-crossing-9&", "walrus-and-carpenter"]);
    let table = [
        ("its zebra-cros… and zeb… and zebra-crossing-9&…", "its ***… and zeb… and ***…"),
        ("a …d-carpenter b …ter c …wordplay", "a …*** b …ter c …wordplay"),
        (r"a …ssing-9\u0026 b zebra-crossing-9\u00…", "a …*** b ***…"),
    ];
    for (text, shown) in table {
        assert_eq!(secrets.masked(text), shown);
    }
    assert_eq!(secrets.masked_tail("and-carpenter\nnext"), "***\nnext");
    assert_eq!(secrets.masked_tail(r"ing-9\u0026 next"), "*** next");
    assert_eq!(secrets.masked_tail("plain"), "plain");
    let mut masker = Masker::new(&secrets);
    for (text, shown) in
        [("its zebra-cros", "its ***"), (r"zebra-crossing-9\u00", "***"), ("a ze", "a ze")]
    {
        let mut out = Vec::new();
        masker.apply_to_cut(text.as_bytes(), &mut out, &mut Vec::new());
        assert_eq!(String::from_utf8(out).unwrap(), shown);
    }
}

#[test]
fn a_masker_that_is_off_changes_nothing() {
    let mut masker = Masker::off();
    let (mut out, mut places) = (Vec::new(), Vec::new());
    masker.apply(b"password=whatever-it-is", &mut out, &mut places);
    assert_eq!(out, b"password=whatever-it-is");
    assert!(places.is_empty() && !masker.is_on());
}

/// A login is made while a server is heard.
#[test]
fn a_value_that_is_hidden_later_is_masked_from_then_on() {
    let secrets = known(&["zebra-crossing"]);
    let mut masker = Masker::values(&secrets);
    let mut out = Vec::new();
    masker.push(b"a zebra-", &mut out);
    secrets.hide("access token", "zebra-token-9");
    masker.push(b"token-9 b zebra-crossing", &mut out);
    masker.end(&mut out);
    assert_eq!(String::from_utf8(out).unwrap(), "a *** b ***");
    assert!(!format!("{secrets:?} {masker:?}").contains("zebra"));
}

/// What is held back is bounded by the values, whatever a server writes.
#[test]
fn little_is_held_back_of_a_text_without_end() {
    let mut masker = Masker::new(&known(&["aaaaaaaaaaaaaaab", "zebra-crossing"]));
    let mut out = Vec::new();
    for piece in [
        "a",
        "\\",
        "\\u00",
        "%6",
        "&am",
        "&#3",
        "\"key\":\"",
        "eyJ",
        "Bearer ",
        "x: ",
        "…",
        "zebra-",
    ] {
        for _ in 0..20_000 {
            masker.push(piece.as_bytes(), &mut out);
            assert!(masker.held() <= 4096, "{piece}: {}", masker.held());
        }
        out.clear();
        masker.end(&mut out);
        assert!(out.len() <= 4096, "{piece}");
        out.clear();
    }
}
