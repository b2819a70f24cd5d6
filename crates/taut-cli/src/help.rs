//! What `--help` teaches beside the options: examples, each of which runs as it stands.
//!
//! The tests run every line that starts with `taut`, so an example here cannot go stale.

pub(crate) const TAUT: &str = "\
Everything after -- is the server's own command line, untouched. A server that a host knows is also
found by its name, as `taut servers` shows it.

Examples:
  taut smoke                                    the demo, end to end
  taut smoke demo                               a server by its name in .mcp.json or another file
  taut list -- taut serve                       what a server offers
  taut call add a=2 b=3 -- taut serve           call one of its tools
  taut shell -- taut serve < /dev/null          several calls in one session
  taut doctor -- taut serve                     why it does not connect
  taut check --list                             the rules that a server is checked for
  taut bench --quick -- taut serve              how fast it is

Settings are read from taut/taut.yaml in $XDG_CONFIG_HOME or ~/.config: debug, timeout, start-timeout,
revision, framing, inherit-env, verbose. Debug is on if --debug says so, else TAUT_DEBUG, else the file.

Exit codes:
  0    it worked
  1    the tool reported failure
  2    the command line is wrong
  3    the server refused, or asked what nobody answered
  4    the server could not be started, or no connection came of it
  5    the server broke the protocol, or went away
  6    a request timed out
  7    the result could not be written
  130  interrupted";

pub(crate) const SERVE: &str = "\
For hosts, not for people: it speaks JSON on stdin and stdout, until stdin ends.

Examples:
  taut serve < /dev/null
  taut smoke -- taut serve
  taut smoke -- taut serve --transcript /dev/stderr";

pub(crate) const SMOKE: &str = "\
Calls a tool only if it looks harmless: one that says it only reads, or that needs no arguments
and has a name such as get_time. Any other only with --call. Exit 0 means that all of it worked.
With --all, that every server worked that was tried: those that are off or do not speak stdio are
not, one that lacks a variable counts as failed. Otherwise the code of the first that failed, or 2 if
only a file is broken.

Examples:
  taut smoke
  taut smoke demo
  taut smoke -- taut serve
  taut smoke --call add --args '{\"a\":2,\"b\":3}' -- taut serve
  taut smoke --revision 2025-06-18 -- taut serve
  taut smoke --json -- taut serve";

pub(crate) const CHECK: &str = "\
Starts the server up to 100 times, in each revision that it speaks, and calls nothing that --call or
--fixture does not allow. A check that fails is tried once more, alone, before it counts. Exit 0 if
all MUST and SHOULD hold, 1 if one does not; advice never fails.

Examples:
  taut check --list
  taut check --explain rpc-unknown-method
  taut check --only rpc --revision 2025-11-25 -- taut serve
  taut check --call echo --args '{\"text\":\"hello\"}' --only tools --revision 2026-07-28 -- taut serve";

pub(crate) const SERVERS: &str = "\
Reads the files of Claude Code, Claude Desktop, Cursor, VS Code, Codex, opencode and Gemini CLI: those
of this project, found from here up to the repository's root, before those of the user. Of two servers
with one name the first counts. Values of the environment, and what else looks like a secret, are not
shown. Exit 2 if a file is broken; the others are shown all the same.

Examples:
  taut servers
  taut servers --json
  taut servers -v";

pub(crate) const COMPLETIONS: &str = "\
Names of servers are completed too, in bash, zsh and fish. For bash this goes into ~/.bashrc:
  source <(taut completions bash)

Examples:
  taut completions bash
  taut completions zsh
  taut completions fish";

pub(crate) const MAN: &str = "\
Examples:
  taut man
  taut man smoke
  taut man > /dev/null";

pub(crate) const LIST: &str = "\
Examples:
  taut list -- taut serve
  taut list tools -- taut serve
  taut list tools demo
  taut list --only add -- taut serve
  taut list prompts --json -- taut serve";

pub(crate) const CALL: &str = "\
A value is read as the tool's schema says: a number, a boolean, text. An array takes its key several
times, or JSON; an object takes JSON. What is missing or wrong is shown with the schema, and nothing
is sent. --args is sent as it is.

Examples:
  taut call echo text='hello there' -- taut serve
  taut call add a=2 b=3 -- taut serve
  taut call add a=2 b=3 demo
  taut call add --args '{\"a\": 2, \"b\": 3}' --json -- taut serve
  echo '{\"a\": 2, \"b\": 3}' | taut call add --args - -- taut serve
  taut call slow steps=3 step_ms=10 --timeout 5s -- taut serve
  echo '[{\"size\": \"large\"}, {\"right\": true}]' | taut call ask --answer - -- taut serve
  taut call roots --root /tmp -- taut serve
  taut call image --out /dev/null -- taut serve";

pub(crate) const READ: &str = "\
Bytes are shown as their type and size on a terminal, and written as they are to a pipe or to --out.

Examples:
  taut read demo://readme -- taut serve
  taut read weather://Bern/today -- taut serve
  taut read demo://dot.png --out /dev/null -- taut serve";

pub(crate) const PROMPT: &str = "\
Examples:
  taut prompt hello -- taut serve
  taut prompt greet name=Ada language=Dutch -- taut serve
  taut prompt greet name=Ada --json -- taut serve";

pub(crate) const DOCTOR: &str = "\
Starts the server as a host would, three times at most, and looks at all that it does: how soon it
is there, what it speaks, what it prints where it should not, how it ends, what it leaves behind.
Calls no tool unless --call names one. The worst finding comes first. Exit 0 if there is none that
keeps a host from using the server.

Examples:
  taut doctor -- taut serve
  taut doctor --call echo --args '{\"text\": \"hi\"}' -- taut serve
  taut doctor --json -- taut serve";
