//! Raw lines on both sides of the proxy: what is not named by the mapping of eras keeps its bytes.

use std::time::Duration;

use taut::{ClientBuilder, Proxy};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::mpsc;

/// One side of a connection, line by line.
pub(crate) struct Wire {
    lines: BufReader<ReadHalf<DuplexStream>>,
    out: WriteHalf<DuplexStream>,
}

impl Wire {
    pub(crate) fn new(stream: DuplexStream) -> Self {
        let (reader, out) = tokio::io::split(stream);
        Self { lines: BufReader::new(reader), out }
    }

    pub(crate) async fn send(&mut self, line: &str) {
        self.out.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    pub(crate) async fn next(&mut self) -> String {
        let mut line = String::new();
        let read = self.lines.read_line(&mut line);
        tokio::time::timeout(Duration::from_secs(20), read).await.unwrap().unwrap();
        line.trim_end().to_owned()
    }

    /// Its two halves, so that one can be closed before the other, or used beside it.
    pub(crate) fn split(self) -> (WireReader, WireWriter) {
        (WireReader(self.lines), WireWriter(self.out))
    }
}

/// What comes from the other side, line by line.
pub(crate) struct WireReader(BufReader<ReadHalf<DuplexStream>>);

impl WireReader {
    /// The next line; nothing at the end.
    pub(crate) async fn next(&mut self) -> String {
        let mut line = String::new();
        let read = self.0.read_line(&mut line);
        tokio::time::timeout(Duration::from_secs(60), read).await.unwrap().unwrap();
        line.trim_end().to_owned()
    }
}

/// What goes to the other side.
pub(crate) struct WireWriter(WriteHalf<DuplexStream>);

impl WireWriter {
    pub(crate) async fn send_all(mut self, lines: &str) -> Self {
        self.0.write_all(format!("{lines}\n").as_bytes()).await.unwrap();
        self
    }

    pub(crate) async fn close(mut self) {
        self.0.shutdown().await.unwrap();
    }
}

/// A proxy whose connections to the server are given out here.
pub(crate) fn proxy() -> (taut::proxy::ProxyBuilder, mpsc::UnboundedReceiver<Wire>) {
    let (given, taken) = mpsc::unbounded_channel();
    let connector = move |client: ClientBuilder| {
        let (near, far) = tokio::io::duplex(1 << 20);
        let _ = given.send(Wire::new(far));
        let (reader, writer) = tokio::io::split(near);
        client.connect(reader, writer)
    };
    (Proxy::builder(connector), taken)
}

/// A client of the proxy.
pub(crate) fn front(proxy: &Proxy) -> Wire {
    let (near, far) = tokio::io::duplex(1 << 20);
    let proxy = proxy.clone();
    tokio::spawn(async move {
        let (reader, writer) = tokio::io::split(far);
        proxy.serve(reader, writer).await
    });
    Wire::new(near)
}

pub(crate) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{},"x-own":12345678901234567890123456789},"clientInfo":{"name":"f","version":"1","y":-0}}}"#;
pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const WELCOME: &str = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{"subscribe":true},"logging":{},"x":12345678901234567890123456789},"serverInfo":{"name":"b","version":"2"},"instructions":"\u2028"}"#;
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"io.modelcontextprotocol/clientInfo":{"name":"f","version":"1"},"k":1e400,"k":2}"#;

/// Values that lose something when they are read and written again.
const ODD: &str = r#"{"n":1234567890123456789012345678901234567890,"e":1e400,"z":-0,"d":1,"d":2,"b":{"z":1,"a":2},"s":"\u2028\ud800\/é","f":[ 1.50 , 0.10 ]}"#;

/// Errors with this code that lose something when they are read and written again.
fn odd_errors(code: i64) -> [String; 5] {
    [
        format!(r#"{{"code":{code},"message":"no","data":{ODD}}}"#),
        format!(r#"{{"code":{code},"message":"no","data":null}}"#),
        format!(r#"{{"own":{ODD},"code":{code},"message":"no","own":1}}"#),
        format!(r#"{{"code":{code},"message":"\u2028\/","data":{ODD}}}"#),
        format!(r#"{{"message":"half \ud800","data":{ODD},"code":{code}}}"#),
    ]
}

/// The id of a request on the wire.
pub(crate) fn id_of(line: &str) -> String {
    // Not by serde_json: it does not take all numbers that pass here.
    let rest = &line[line.find("\"id\":").unwrap() + 5..];
    rest[..rest.find([',', '}']).unwrap()].to_owned()
}

/// A legacy session, relayed to a legacy server.
pub(crate) async fn legacy(
    proxy: &Proxy,
    backs: &mut mpsc::UnboundedReceiver<Wire>,
) -> (Wire, Wire) {
    let mut front = front(proxy);
    front.send(INITIALIZE).await;
    front.send(INITIALIZED).await;
    let mut back = backs.recv().await.unwrap();
    let line = back.next().await;
    assert!(line.contains(r#""method":"initialize""#), "{line}");
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{WELCOME}}}"#, id_of(&line));
    back.send(&answer).await;
    front.next().await;
    assert_eq!(back.next().await, INITIALIZED);
    (front, back)
}

/// The params of a modern request: what `members` names, and who sends it. Each member ends with a comma.
pub(crate) fn modern_params(members: &str, capabilities: &str) -> String {
    format!(
        r#"{{{members}"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{capabilities},"io.modelcontextprotocol/clientInfo":{{"name":"f","version":"1"}}}}}}"#
    )
}

/// A modern request.
pub(crate) fn modern(id: &str, method: &str, members: &str) -> String {
    let everything = r#"{"roots":{},"sampling":{},"elicitation":{"form":{},"url":{}}}"#;
    let params = modern_params(members, everything);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

/// The answer to a request on the wire.
pub(crate) fn answer(request: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, id_of(request))
}

/// The refusal of a request on the wire.
pub(crate) fn refusal(request: &str, error: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, id_of(request))
}

/// Opens a legacy server that was asked for by a modern client: it refuses the probe.
pub(crate) async fn opened_legacy(
    backs: &mut mpsc::UnboundedReceiver<Wire>,
    capabilities: &str,
) -> Wire {
    let mut back = backs.recv().await.unwrap();
    let probe = back.next().await;
    assert!(probe.contains("server/discover"), "{probe}");
    back.send(&refusal(&probe, r#"{"code":-32601,"message":"what?"}"#)).await;
    let initialize = back.next().await;
    assert!(initialize.contains(r#""method":"initialize""#), "{initialize}");
    let welcome = format!(
        r#"{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"serverInfo":{{"name":"b","version":"2"}}}}"#
    );
    back.send(&answer(&initialize, &welcome)).await;
    assert_eq!(back.next().await, INITIALIZED);
    back
}

/// Opens a modern server that was asked for by a legacy client: it refuses the handshake.
pub(crate) async fn opened_modern(
    backs: &mut mpsc::UnboundedReceiver<Wire>,
    capabilities: &str,
) -> Wire {
    let mut back = backs.recv().await.unwrap();
    let initialize = back.next().await;
    assert!(initialize.contains(r#""method":"initialize""#), "{initialize}");
    let error =
        r#"{"code":-32022,"message":"no","data":{"supported":["2026-07-28"],"requested":"x"}}"#;
    back.send(&refusal(&initialize, error)).await;
    let discover = back.next().await;
    assert!(discover.contains("server/discover"), "{discover}");
    let discovery = format!(
        r#"{{"supportedVersions":["2026-07-28"],"capabilities":{capabilities},"_meta":{{"io.modelcontextprotocol/serverInfo":{{"name":"b","version":"2"}}}}}}"#
    );
    back.send(&answer(&discover, &discovery)).await;
    back
}

/// A legacy session in front of a modern server. The client has not yet said that it is ready.
pub(crate) async fn legacy_to_modern(
    proxy: &Proxy,
    backs: &mut mpsc::UnboundedReceiver<Wire>,
    capabilities: &str,
) -> (Wire, Wire) {
    let mut front = front(proxy);
    front.send(INITIALIZE).await;
    let back = opened_modern(backs, capabilities).await;
    let welcome = front.next().await;
    assert!(welcome.contains(r#""protocolVersion":"2025-06-18""#), "{welcome}");
    (front, back)
}

/// T13: version and capabilities arrive as they were sent.
#[tokio::test]
async fn the_handshake_of_a_legacy_session_is_relayed_word_for_word() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let mut front = front(&proxy);
    front.send(INITIALIZE).await;
    let mut back = backs.recv().await.unwrap();
    // Must show 6: the first thing that the server hears is the client's own handshake, no probe.
    let line = back.next().await;
    let params = &INITIALIZE[INITIALIZE.find(r#""params""#).unwrap()..];
    assert!(line.ends_with(params), "{line}");
    back.send(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{WELCOME}}}"#, id_of(&line))).await;
    assert_eq!(front.next().await, format!(r#"{{"jsonrpc":"2.0","id":"i","result":{WELCOME}}}"#));
}

#[tokio::test]
async fn equal_eras_are_relayed_byte_for_byte() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let (mut front, mut back) = legacy(&proxy, &mut backs).await;
    let call = |id: &str, token: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t","arguments":{ODD},"_meta":{{"progressToken":{token},"x":{ODD}}},"more":{ODD}}}}}"#
        )
    };
    front.send(&call("\"a\"", "\"tok\"")).await;
    let relayed = back.next().await;
    let id = id_of(&relayed);
    assert_eq!(relayed, call(&id, &id));
    let progress = |token: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progress":1,"progressToken":{token},"x":{ODD}}}}}"#
        )
    };
    back.send(&progress(&id)).await;
    assert_eq!(front.next().await, progress("\"tok\""));
    back.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{ODD}}}"#)).await;
    assert_eq!(front.next().await, format!(r#"{{"jsonrpc":"2.0","id":"a","result":{ODD}}}"#));
    // Errors.
    for error in odd_errors(-31999) {
        front.send(&call("2", "1")).await;
        let id = id_of(&back.next().await);
        back.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)).await;
        assert_eq!(front.next().await, format!(r#"{{"jsonrpc":"2.0","id":2,"error":{error}}}"#));
    }
    // What nobody knows passes in both directions.
    let odd = format!(r#"{{"jsonrpc":"2.0","method":"notifications/own","params":{ODD}}}"#);
    front.send(&odd).await;
    assert_eq!(back.next().await, odd);
    back.send(&odd).await;
    assert_eq!(front.next().await, odd);
    let own =
        |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"own/method","params":{ODD}}}"#);
    front.send(&own("3")).await;
    let relayed = back.next().await;
    assert_eq!(relayed, own(&id_of(&relayed)));
    // A question of the server, with a token of its own.
    let ask = |id: &str, token: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"sampling/createMessage","params":{{"x":{ODD},"_meta":{{"progressToken":{token}}}}}}}"#
        )
    };
    back.send(&ask("\"q\"", "7")).await;
    let asked = front.next().await;
    let id = id_of(&asked);
    assert_eq!(asked, ask(&id, &id));
    front.send(&progress(&id)).await;
    assert_eq!(back.next().await, progress("7"));
    front.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{ODD}}}"#)).await;
    assert_eq!(back.next().await, format!(r#"{{"jsonrpc":"2.0","id":"q","result":{ODD}}}"#));
}

#[tokio::test]
async fn a_modern_request_changes_only_what_the_mapping_names() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let mut front = front(&proxy);
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{ODD},{META}}}}}"#
    );
    front.send(&call).await;
    let mut back = backs.recv().await.unwrap();
    // In the client's era first.
    let probe = back.next().await;
    assert!(probe.contains("server/discover"), "{probe}");
    back.send(&format!(
        r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32601,"message":"what?"}}}}"#,
        id_of(&probe)
    ))
    .await;
    let initialize = back.next().await;
    back.send(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{WELCOME}}}"#, id_of(&initialize)))
        .await;
    assert_eq!(back.next().await, INITIALIZED);
    let relayed = back.next().await;
    let id = id_of(&relayed);
    assert_eq!(
        relayed,
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t","arguments":{ODD},"_meta":{{"k":1e400,"k":2}}}}}}"#
        )
    );
    let result = format!(r#"{{"content":[],"structuredContent":{ODD}"#);
    back.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}}}"#)).await;
    assert_eq!(
        front.next().await,
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{result},"resultType":"complete","_meta":{{"io.modelcontextprotocol/serverInfo":{{"name":"b","version":"2"}}}}}}}}"#
        )
    );
}

#[tokio::test]
async fn a_legacy_request_to_a_modern_server_keeps_what_is_its_own() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let mut front = front(&proxy);
    front.send(INITIALIZE).await;
    let mut back = backs.recv().await.unwrap();
    let line = back.next().await;
    let refusal =
        r#"{"code":-32022,"message":"no","data":{"supported":["2026-07-28"],"requested":"x"}}"#;
    back.send(&format!(r#"{{"jsonrpc":"2.0","id":{},"error":{refusal}}}"#, id_of(&line))).await;
    let line = back.next().await;
    assert!(line.contains("server/discover"), "{line}");
    let discovery = r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"b","version":"2"}}}"#;
    back.send(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{discovery}}}"#, id_of(&line))).await;
    let welcome = front.next().await;
    assert!(welcome.contains(r#""protocolVersion":"2025-06-18""#), "{welcome}");
    front
        .send(&format!(
            r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"name":"t","arguments":{ODD},"_meta":{{"x":{ODD}}}}}}}"#
        ))
        .await;
    let relayed = back.next().await;
    assert!(relayed.contains(&format!(r#""arguments":{ODD}"#)), "{relayed}");
    assert!(
        relayed.contains(&format!(r#""_meta":{{"x":{ODD},"io.modelcontextprotocol/"#)),
        "{relayed}"
    );
    let result = format!(r#""content":[],"structuredContent":{ODD}"#);
    back.send(&format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"resultType":"complete",{result},"ttlMs":5}}}}"#,
        id_of(&relayed)
    ))
    .await;
    assert_eq!(front.next().await, format!(r#"{{"jsonrpc":"2.0","id":5,"result":{{{result}}}}}"#));
}

/// The four combinations of eras: whether the client is modern, and whether the server is.
const ERAS: [(bool, bool); 4] = [(false, false), (false, true), (true, false), (true, true)];

/// A client and a server of these eras, joined.
async fn joined(front_modern: bool, back_modern: bool) -> (Wire, Wire) {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    match (front_modern, back_modern) {
        (false, false) => legacy(&proxy, &mut backs).await,
        (false, true) => legacy_to_modern(&proxy, &mut backs, r#"{"tools":{}}"#).await,
        (true, _) => {
            let mut front = front(&proxy);
            front.send(&modern("0", "tools/list", "")).await;
            let mut back = if back_modern {
                let mut back = backs.recv().await.unwrap();
                let discover = back.next().await;
                assert!(discover.contains("server/discover"), "{discover}");
                let discovery = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"b","version":"2"}}}"#;
                back.send(&answer(&discover, discovery)).await;
                back
            } else {
                opened_legacy(&mut backs, r#"{"tools":{}}"#).await
            };
            let list = back.next().await;
            back.send(&answer(&list, r#"{"tools":[]}"#)).await;
            front.next().await;
            (front, back)
        }
    }
}

/// Sends from one side, and reads at the other. Long messages do not fit into the pipe of a test.
async fn pass(from: &mut Wire, line: &str, to: &mut Wire) -> String {
    let (heard, ()) = tokio::join!(to.next(), from.send(line));
    heard
}

/// That two lines are the same; where they are long, only the place where they differ is shown.
#[track_caller]
fn same(heard: &str, expected: &str, what: &str) {
    if heard != expected {
        let pairs = heard.bytes().zip(expected.bytes());
        let at = pairs.take_while(|(one, two)| one == two).count();
        let show = |text: &str| {
            let bytes = &text.as_bytes()[at.saturating_sub(60)..];
            String::from_utf8_lossy(&bytes[..bytes.len().min(160)]).into_owned()
        };
        panic!("{what}: at {at}\n{}\ninstead of\n{}", show(heard), show(expected));
    }
}

/// Passes this value in arguments, results, `_meta` and error data, in all four combinations of eras.
async fn keeps_every_byte(value: &str) {
    let modern_keys = modern_params("", r#"{"elicitation":{}}"#);
    // The keys of the modern envelope, without what is around them.
    let envelope = &modern_keys[r#"{"_meta":{"#.len()..modern_keys.len() - 2];
    let info = r#""io.modelcontextprotocol/serverInfo":{"name":"b","version":"2"}"#;
    for (front_modern, back_modern) in ERAS {
        let what = format!("{front_modern} {back_modern}");
        let (mut front, mut back) = joined(front_modern, back_modern).await;
        let head = format!(r#"{{"name":"t","arguments":{value},"own":{value}"#);
        let sent = match front_modern {
            true => format!(r#"{head},"_meta":{{"x":{value},{envelope}}}}}"#),
            false => format!(r#"{head},"_meta":{{"x":{value}}}}}"#),
        };
        let call = |id: &str, params: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#)
        };
        let heard = pass(&mut front, &call("7", &sent), &mut back).await;
        let id = id_of(&heard);
        match (front_modern, back_modern) {
            (false, true) => {
                let kept = call(&id, &format!(r#"{head},"_meta":{{"x":{value},"#));
                let kept = &kept[..kept.len() - 1];
                same(&heard[..kept.len().min(heard.len())], kept, &what);
            }
            (true, false) => {
                let params = format!(r#"{head},"_meta":{{"x":{value}}}}}"#);
                same(&heard, &call(&id, &params), &what);
            }
            _ => same(&heard, &call(&id, &sent), &what),
        }
        // The result, with what only the modern era has where the server is modern.
        let body = format!(r#""content":[],"structuredContent":{value},"own":{value}"#);
        let result = match back_modern {
            true => format!(r#"{{"resultType":"complete",{body},"_meta":{{"x":{value},{info}}}}}"#),
            false => format!(r#"{{{body},"_meta":{{"x":{value}}}}}"#),
        };
        let expected = match (front_modern, back_modern) {
            (true, false) => {
                format!(r#"{{{body},"resultType":"complete","_meta":{{"x":{value},{info}}}}}"#)
            }
            (false, true) => format!(r#"{{{body},"_meta":{{"x":{value}}}}}"#),
            _ => result.clone(),
        };
        let heard = pass(&mut back, &answer(&format!(r#""id":{id},"#), &result), &mut front).await;
        same(&heard, &answer(r#""id":7,"#, &expected), &what);
        // Errors whose code means the same everywhere, and one whose code does not.
        for code in [-31999, -32007] {
            let request = pass(&mut front, &call("8", &sent), &mut back).await;
            let mapped = front_modern && !back_modern && code == -32007;
            let error = format!(
                r#"{{"own":{value},"message":"\u2028 \ud800","data":{value},"code":{code}}}"#
            );
            let data = format!(r#"{{"code":{code},"data":{value}}}"#);
            let expected = match mapped {
                true => format!(
                    r#"{{"own":{value},"message":"\u2028 \ud800","data":{data},"code":-32603}}"#
                ),
                false => error.clone(),
            };
            let heard = pass(&mut back, &refusal(&request, &error), &mut front).await;
            same(&heard, &refusal(r#""id":8,"#, &expected), &what);
        }
    }
}

#[tokio::test]
async fn odd_values_keep_every_byte_in_all_combinations_of_eras() {
    keeps_every_byte(ODD).await;
}

/// LIF-02: a client that was written by hand leaves out who it is and what it can do; a server on a strict SDK
/// refuses such an `initialize`, so the proxy completes it and keeps the rest as it came.
#[tokio::test]
async fn lif_02_what_a_client_leaves_out_of_initialize_is_completed_for_the_server() {
    let unnamed = r#""clientInfo":{"name":"unnamed","version":"0"}"#;
    for (sent, heard) in [
        (String::new(), format!(r#","capabilities":{{}},{unnamed}"#)),
        (
            r#","capabilities":{"x":12345678901234567890123456789}"#.into(),
            format!(r#","capabilities":{{"x":12345678901234567890123456789}},{unnamed}"#),
        ),
        (
            r#","clientInfo":{},"capabilities":{}"#.into(),
            format!(r#","capabilities":{{}},{unnamed}"#),
        ),
        (
            r#","capabilities":{},"clientInfo":{"name":"c"}"#.into(),
            r#","capabilities":{},"clientInfo":{"name":"c","version":"0"}"#.into(),
        ),
    ] {
        let (builder, mut backs) = proxy();
        let proxy = builder.build();
        let mut front = front(&proxy);
        front
            .send(&format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-06-18"{sent}}}}}"#
            ))
            .await;
        let opened = tokio::time::timeout(Duration::from_secs(20), backs.recv()).await;
        let mut back = opened.unwrap().unwrap();
        let line = back.next().await;
        let params = format!(r#""params":{{"protocolVersion":"2025-06-18"{heard}}}}}"#);
        assert!(line.ends_with(&params), "{line}\n{params}");
        back.send(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{WELCOME}}}"#, id_of(&line)))
            .await;
        assert!(front.next().await.contains(r#""result":{"protocolVersion":"2025-06-18""#));
    }
}

/// Each place has a message of its own: together they would be over the limit. Equal eras share the code, so
/// each of the two has only some of them.
#[tokio::test]
async fn sixteen_mebibytes_keep_every_byte_in_all_combinations_of_eras() {
    // Not one letter: bytes that change their place would not be seen.
    let block: String = (0..8192).map(|n| format!("{n:07x}")).collect();
    let text: String = (0..293).map(|n| format!("{n:04}{block}")).collect();
    assert!(text.len() >= 16 << 20 && text.len() < 17 << 20);
    for (front_modern, back_modern) in ERAS {
        let what = format!("{front_modern} {back_modern}");
        let (mut front, mut back) = joined(front_modern, back_modern).await;
        let envelope = modern_params("", "{}");
        let envelope = match front_modern {
            true => &envelope[r#"{"_meta":{"#.len()..envelope.len() - 2],
            false => r#""y":1"#,
        };
        let in_params = [
            format!(r#""name":"t","arguments":{{"t":"{text}"}},"_meta":{{"x":1,{envelope}}}"#),
            format!(r#""name":"t","_meta":{{"x":"{text}",{envelope}}}"#),
        ];
        for (params, kept) in in_params.iter().zip([r#""arguments":{"t":""#, r#""_meta":{"x":""#]) {
            let of_arguments = kept.starts_with("\"arg");
            if front_modern == back_modern && of_arguments == front_modern {
                continue;
            }
            let call = format!(
                r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{{params}}}}}"#
            );
            let heard = pass(&mut front, &call, &mut back).await;
            let at = heard.find(kept).unwrap() + kept.len();
            same(heard.get(at..at + text.len()).unwrap(), &text, &what);
            let id = id_of(&heard[..100]);
            let result = match of_arguments {
                true => format!(
                    r#"{{"resultType":"complete","content":[{{"type":"text","text":"{text}"}}]}}"#
                ),
                false => {
                    format!(r#"{{"resultType":"complete","content":[],"_meta":{{"x":"{text}"}}}}"#)
                }
            };
            let heard =
                pass(&mut back, &answer(&format!(r#""id":{id},"#), &result), &mut front).await;
            let at = heard.find(&text[..64]).unwrap();
            same(heard.get(at..at + text.len()).unwrap(), &text, &what);
        }
        if front_modern && back_modern {
            continue;
        }
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{{"name":"t","_meta":{{{envelope}}}}}}}"#
        );
        let request = pass(&mut front, &call, &mut back).await;
        let error = format!(r#"{{"code":-31999,"message":"no","data":"{text}"}}"#);
        let heard = pass(&mut back, &refusal(&request, &error), &mut front).await;
        same(&heard, &refusal(r#""id":8,"#, &error), &what);
    }
}
