//! The schemas of a server that hosts refuse, through the doctor. Issue 19, must show 4.

use super::*;

/// Answers what the doctor asks, with one tool whose schema breaks the rules of hosts.
const SERVER: &str = r#"
while read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
    *server/discover*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"f","version":"1"}}}\n' "$id" ;;
    *tools/list*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"count","description":"Counts.","inputSchema":{"type":"object","properties":{"n":{"type":"integer","format":"uint64"},"label":{"type":["string","null"]},"list":{"type":"array"}},"required":["m"]}}]}}\n' "$id" ;;
    *'"ping"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{}}\n' "$id" ;;
    *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no"}}\n' "$id" ;;
  esac
done
"#;

#[test]
fn a_schema_that_hosts_refuse_is_found_by_the_doctor() {
    let server = ["sh", "-c", SERVER].map(str::to_owned);
    let document = run("doctor --json", &server).json();
    let findings = document["findings"].as_array().unwrap();
    let told: Vec<&str> = findings.iter().filter_map(|finding| finding["what"].as_str()).collect();
    for (rule, place) in [
        ("unknown-format: ", "count/properties/n"),
        ("type-list: ", "count/properties/label"),
        ("array-without-items: ", "count/properties/list"),
        ("required-unknown: ", "count"),
    ] {
        let found = told.iter().any(|what| what.starts_with(rule) && what.contains(place));
        assert!(found, "{rule} at {place}: {told:#?}");
    }
    let format =
        findings.iter().find(|f| f["what"].as_str().unwrap().starts_with("unknown-format"));
    assert!(format.unwrap()["hurts"].as_str().unwrap().contains("AutoGen"), "{findings:#?}");
}
