//! The text of `--help` besides the options: explanations and examples.
//!
//! The tests run every example as it is written. Three blanks end an example; what follows is said of it.

const TAUT: &str = "\
Everything after -- is the server's own command line, passed on unchanged. A server in a host's file \
can be given by its name; `taut servers` shows the names. One that listens can be given by its address: a \
URL, tcp:HOST:PORT or unix:PATH.

Examples:
  taut smoke                                    the demo, end to end
  taut smoke demo                               a server by its name in .mcp.json or another file
  taut list -- taut serve                       what a server offers
  taut call add a=2 b=3 -- taut serve           call one of its tools
  taut shell -- taut serve                      several calls in one session
  taut doctor -- taut serve                     why it does not connect
  taut smoke -- taut bridge -- taut serve       any client to any server
  taut check --list                             the rules that a server is checked for
  taut bench --quick -- taut serve              how fast it is

Settings are read from taut/taut.yaml in $XDG_CONFIG_HOME or ~/.config: debug, timeout, start-timeout, \
max-time, revision, framing, inherit-env, verbose. For debug, --debug comes before TAUT_DEBUG, and that \
before the file.

Exit codes:
  0    it worked
  1    the tool reported failure
  2    the command line is wrong
  3    the server refused, or asked something that was not answered
  4    the server could not be started, or did not connect
  5    the server broke the protocol, or ended
  6    a request timed out, or --max-time is over
  7    the result could not be written
  130  interrupted";

/// The help of `taut` itself, with what this system has.
pub(crate) fn taut() -> String {
    if cfg!(all(target_os = "linux", not(taut_portable))) {
        return TAUT.to_owned();
    }
    let lines: Vec<&str> = TAUT.lines().filter(|line| !line.contains("taut bench")).collect();
    let text = lines.join("\n");
    if !cfg!(windows) {
        return text;
    }
    let text = text
        .replace("taut/taut.yaml in $XDG_CONFIG_HOME or ~/.config", r"%APPDATA%\taut\taut.yaml");
    text.replace(" or unix:PATH", "")
}

pub(crate) const SERVE: &str = "\
A host starts it. It reads and writes JSON messages on stdin and stdout, and ends when stdin ends.

Examples:
  taut serve
  taut smoke -- taut serve
  taut smoke -- taut serve --transcript wire.log";

#[cfg(feature = "login")]
pub(crate) const LOGIN: &str = "\
Asks the server how it wants to be logged in to, opens the login page in a browser, and keeps the tokens in a \
file that only you can read. Other commands use and renew them; a logout counts for those that run as well. \
A server that serves everyone needs none, and taut says so. On a machine without a browser, open the address elsewhere and paste the \
address that the browser ends at.

Examples:
  taut login https://example.com/mcp
  taut logins
  taut logout https://example.com/mcp";

pub(crate) const SMOKE: &str = "\
Calls a tool only if it needs no arguments and is harmless: it declares that it only reads, or has a name \
such as get_time; none that needs the world or starts a browser. If that one fails, it is a note. Other tools are \
called only with --call, and then have to work. The exit code is 0 if every step worked, 5 if the official SDKs \
refuse what the server says. With --all, it is 0 if every server worked that was checked; servers that are switched off \
are not checked, and a server that lacks a variable counts as failed. Otherwise it is \
the code of the first server that failed, or 2 if only a file is broken.

Examples:
  taut smoke
  taut smoke demo
  taut smoke -- taut serve
  taut smoke --call add --args '{\"a\":2,\"b\":3}' -- taut serve
  taut smoke --revision 2025-06-18 -- taut serve
  taut smoke --json -- taut serve";

pub(crate) const CHECK: &str = "\
Starts the server up to 100 times, in each revision that it speaks, and calls nothing that --call or \
--fixture does not allow. A check that fails is tried once more, alone, before it counts. Exit 0 if \
all MUST hold, 1 if one does not. A broken SHOULD is a warning, unless --strict; advice never fails. \
The report ends with whose fault a failure is, where that is known, and with what to do next.

Examples:
  taut check --list
  taut check --explain rpc-unknown-method
  taut check --only rpc --revision 2025-11-25 -- taut serve
  taut check --call echo --args '{\"text\":\"hello\"}' --only tools --revision 2026-07-28 -- taut serve";

pub(crate) const SERVERS: &str = "\
Reads the files of Claude Code, Claude Desktop, Cursor, VS Code, Codex, opencode and Gemini CLI: first \
those of this project, from this folder up to the root of the repository, then those of the user. Of two \
servers with one name the first is used. Values of the environment, and other values that look like \
secrets, are not shown. The exit code is 2 if a file is broken; the other files are shown anyway.

Examples:
  taut servers
  taut servers --json
  taut servers -v";

pub(crate) const COMPLETIONS: &str = "\
The names of servers are completed as well, in bash, zsh and fish. For bash, put this into ~/.bashrc:
  source <(taut completions bash)

Examples:
  taut completions bash
  taut completions zsh
  taut completions fish";

pub(crate) const MAN: &str = "\
Examples:
  taut man
  taut man smoke
  taut man --dir man";

pub(crate) const LIST: &str = "\
Examples:
  taut list -- taut serve
  taut list tools -- taut serve
  taut list tools demo
  taut list --only add -- taut serve
  taut list prompts --json -- taut serve";

pub(crate) const CALL: &str = "\
A value is read as the tool's schema says: as a number, a boolean or text. For an array, give the key \
several times, or JSON; for an object, give JSON. If something is missing or wrong, it is shown with the \
schema, and nothing is sent. --args is sent without a check.

Examples:
  taut call echo text='hello there' -- taut serve
  taut call add a=2 b=3 -- taut serve
  taut call add a=2 b=3 demo
  taut call add --args '{\"a\": 2, \"b\": 3}' --json -- taut serve
  echo '{\"a\": 2, \"b\": 3}' | taut call add --args - -- taut serve
  taut call slow steps=3 step_ms=10 --timeout 5s -- taut serve
  echo '[{\"size\": \"large\"}, {\"right\": true}]' | taut call ask --answer - -- taut serve
  taut call roots --root /tmp -- taut serve
  taut call image --out dot.png -- taut serve";

pub(crate) const READ: &str = "\
On a terminal, bytes are shown as their type and size; a pipe and --out get the bytes themselves.

Examples:
  taut read demo://readme -- taut serve
  taut read weather://Bern/today -- taut serve
  taut read demo://dot.png --out dot.png -- taut serve";

pub(crate) const COMPLETE: &str = "\
The last key=value is the one to complete. Those before it are sent to the server as the arguments that \
are already chosen. In `taut shell`, Tab does the same.

Examples:
  taut complete greet language=D -- taut serve
  taut complete greet name=Ada language= demo
  taut complete 'weather://{city}/today' city=B -- taut serve
  taut complete greet language= --json -- taut serve";

pub(crate) const PROMPT: &str = "\
Examples:
  taut prompt hello -- taut serve
  taut prompt greet name=Ada language=Dutch -- taut serve
  taut prompt greet name=Ada --json -- taut serve";

pub(crate) const TRACE: &str = "\
Put it before a server's command, and everything passes as before: every byte in both directions, stderr, \
signals, the exit status. What cannot be recorded in time is counted in the capture, and never waited for. \
Without --record and --page it shows on stderr what passes. Values that the server's entry sets, those of \
names that sound secret, and tokens are masked.

Examples:
  taut trace --record kept.jsonl -- taut serve   in a host's file: keep what passes
  taut trace --page -- taut serve                in a host's file: see it in a browser
  taut trace --record kept.jsonl demo            a server by its name
  taut smoke -- taut trace -- taut serve         see what `taut smoke` says
  taut trace view kept.jsonl                     read what was kept";

pub(crate) const TRACE_VIEW: &str = "\
Examples:
  taut trace view session.jsonl
  taut trace view session.jsonl --filter tools/call
  taut trace view session.jsonl --stats
  taut trace view session.jsonl --only 3
  taut trace view session.jsonl --html session.html";

pub(crate) const TRACE_MOCK: &str = "\
Says what the server had said, with the ids of whoever asks now. A request that is not in the capture gets \
an error that says so. A capture of `taut bridge` has several connections; --link names one of them.

Examples:
  taut trace mock session.jsonl
  taut smoke -- taut trace mock session.jsonl";

pub(crate) const TRACE_REPLAY: &str = "\
Sends what the client had sent, each message once the server has said what it had said before. Exit 1 if \
anything is missing, new, changed, fails now, or comes in another order.

Examples:
  taut trace replay session.jsonl -- taut trace mock session.jsonl
  taut trace replay session.jsonl --ignore /result/content/0/text -- taut trace mock session.jsonl";

pub(crate) const TRACE_DIFF: &str = "\
Exit 1 if there is a difference.

Examples:
  taut trace diff session.jsonl session.jsonl";

pub(crate) const BRIDGE: &str = "\
Put it before a server's command in a host's file, and the host gets a server without faults: what is \
no message is left out, both framings and all revisions of the protocol are translated, a server that \
dies is started again, and nothing of it is left behind (on macOS: but for what makes a session of its \
own; on Linux: but for what has TAUT_LEAVE_RUNNING=1 in its environment). Each legacy session has a server of its own; \
clients of 2026-07-28 share one. A server after -- gets your whole environment.

With --listen, the address is printed on stdout. Only this machine can connect by TCP, unless clients \
need a token (--token-file, --token-env), and only you by unix:PATH. Lines, Content-Length headers and HTTP are told apart by the first bytes; web pages are \
refused. SIGTERM and Ctrl-C let open calls finish, then end the servers.

--record and --page keep and show what passes as `taut trace` does, clients and servers in one capture.

Examples:
  taut bridge -- taut serve                           in a host's file
  taut bridge demo                                    a server by its name
  taut bridge --record kept.jsonl -- taut serve       keep what passes
  taut smoke -- taut bridge -- taut serve             does it work so?
  taut bridge --listen 127.0.0.1:7000 -- taut serve   over HTTP and TCP
  taut bridge --listen unix:demo.sock -- taut serve   for you alone";

#[cfg(feature = "fleet")]
pub(crate) const WORKER: &str = "\
Joins the workers of a service on a NATS broker and runs its calls with the server's command. Start it on \
as many machines as you like; `taut bridge nats:SERVICE` is the server for a host, and every command takes \
nats:SERVICE where a server's name may stand. The server must keep no state between calls: any worker \
may get the next one.

SIGTERM and Ctrl-C let running calls finish, while others take the new ones; then it exits with 0. The whole \
guide: docs/guides/fleet.md

Examples:
  taut worker --help";

#[cfg(feature = "fleet")]
pub(crate) const FLEET: &str = "\
Asks all workers on the broker, by NATS's own service API; `nats micro ls` shows them as well. On a terminal the \
table is drawn again each second until Ctrl-C; --once prints it once, and so do a pipe and --json. Exits with 4 if \
there are none.

Examples:
  taut fleet --help";

pub(crate) const DOCTOR: &str = "\
Starts the server as a host would, three times at most, and checks what it does: how soon it is ready, \
which revision it speaks, what it prints on stdout that is no message, its schemas, how it ends, and \
whether it leaves processes behind. Calls no tool unless --call names one. The worst finding comes first. \
Without a server it looks at all that hosts' files have: on a terminal it asks first, elsewhere it wants --all. \
The exit code is 0 if hosts can use the server.

Examples:
  taut doctor -- taut serve
  taut doctor --call echo --args '{\"text\": \"hi\"}' -- taut serve
  taut doctor --lint -- taut serve
  taut doctor --json -- taut serve";
