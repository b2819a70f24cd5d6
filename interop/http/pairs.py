"""Other people's HTTP clients and servers with ours, both ways. `interop/http/pairs` prepares them and runs this.

A peer's server is called by `taut`; a peer's client calls `taut serve` behind `taut bridge --listen`. Each feature has to
work, unless `LIMITS` says what the peer cannot do over HTTP; a limit that is none any more fails as well.
"""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

INTEROP = pathlib.Path(__file__).resolve().parent.parent
CACHE = INTEROP / ".cache"
TAUT = sys.argv[1]
DEADLINE = 120

# What a peer's client has to do. Large texts are left out: over HTTP a request has at most 4 MiB, and an event at most 1 MiB
# for some clients.
CLIENT = ["connect", "list", "paging", "call", "structured", "error", "progress", "cancel", "log", "resources", "template",
          "subscribe", "prompts", "completion", "ask", "sample", "roots", "changed", "unicode", "hundred"]
SERVER = ["list", "call", "structured", "error", "progress", "resources", "prompts", "ask", "unicode", "mib1"]


def python(name, file):
    return [str(CACHE / name / "venv/bin/python"), str(INTEROP / "peers" / name / file)]


JAVA = ["java", "-cp", ":".join(f"{CACHE}/java/{part}" for part in ["http-classes", "classes", "lib/*", "http-lib/*"])]
RUST = str(CACHE / "rust-target/debug/rmcp-")
# The name, the server's command before a port, the client's command, the client's modes and what each has to agree on.
PEERS = [
    ("ts1", ["node", f"{CACHE}/ts1/server.mjs", "--http"], ["node", f"{CACHE}/ts1/client.mjs"],
     {"default": "2025-11-25"}),
    ("ts2", ["node", f"{CACHE}/ts2/server.mjs", "--http"], ["node", f"{CACHE}/ts2/client.mjs"],
     {"default": "2025-11-25", "auto": "2026-07-28", "modern": "2026-07-28"}),
    ("python1", python("python1", "server.py") + ["--http"], python("python1", "client.py"),
     {"default": "2025-11-25"}),
    ("python2", python("python2", "server.py") + ["--http"], python("python2", "client.py"),
     {"default": "2026-07-28", "legacy": "2025-11-25"}),
    ("fastmcp", python("fastmcp", "server.py") + ["--http"], python("fastmcp", "client.py"),
     {"default": "2026-07-28", "legacy": "2025-11-25"}),
    ("rmcp", [RUST + "http-server", "--transport"], [RUST + "client"],
     {"default": "2025-11-25", "auto": "2026-07-28"}),
    ("go-sdk", [f"{CACHE}/go-sdk/server", "--http"], [f"{CACHE}/go-sdk/client"],
     {"default": "2026-07-28", "legacy": "2025-11-25"}),
    ("java", JAVA + ["interop.HttpServer"], JAVA + ["interop.Client"], {"default": "2025-11-25"}),
]
# The peer, its end, the mode and the features that it cannot do there: why.
LIMITS = {
    ("ts2", "server", "2025-11-25"): {"ask": "its handler serves that revision without sessions, so it cannot ask"},
    ("java", "client", "default"): {"cancel": "the SDK has no notifications/cancelled"},
}


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Running:
    """A process and all that it starts, ended with the block."""

    def __init__(self, command, **more):
        self.process = subprocess.Popen(command, start_new_session=True, **more)

    def __enter__(self):
        return self.process

    def __exit__(self, *_):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


def wait_for(port, process):
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        if process.poll() is not None:
            raise SystemExit(f"the server has ended with {process.returncode}")
        with socket.socket() as sock:
            if sock.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise SystemExit(f"nobody listens on {port}")


def taut(*words, stdin=""):
    run = subprocess.run([TAUT, *words], input=stdin, capture_output=True, text=True, timeout=DEADLINE)
    return run.returncode, run.stdout, run.stderr


def server_feature(feature, url):
    """Whether `taut` and the server at `url` agree on a feature, and what was said otherwise."""
    text = {"call": "hello", "unicode": "π ☕ 日本語 👩‍👩‍👧", "mib1": "x" * (1 << 20)}
    if feature == "list":
        code, out, err = taut("list", *url, "--json")
        names = [tool["name"] for tool in json.loads(out).get("tools", [])] if code == 0 else []
        good = {"echo", "add", "slow", "ask"} <= set(names)
    elif feature in text:
        code, out, err = taut("call", "echo", *url, "--args", "-", stdin=json.dumps({"text": text[feature]}))
        good = code == 0 and out == text[feature] + "\n"
    elif feature == "structured":
        code, out, err = taut("call", "add", "a=2", "b=3", *url, "--json")
        good = code == 0 and json.loads(out).get("structuredContent") == {"sum": 5}
    elif feature == "error":
        code, out, err = taut("call", "fail", "reason=no beans", *url)
        good = code == 1 and "no beans" in out + err
    elif feature == "progress":
        code, out, err = taut("call", "slow", "steps=4", "step_ms=100", *url, "--debug")
        good = code == 0 and "done after 4 steps" in out and err.count("notifications/progress") >= 3
    elif feature == "resources":
        code, out, err = taut("read", "demo://readme", *url)
        good = code == 0 and out.startswith("# ")
    elif feature == "prompts":
        code, out, err = taut("prompt", "greet", "name=Ada", "language=Dutch", *url)
        good = code == 0 and "Greet Ada in Dutch." in out
    else:
        form = '{"size": "large", "milk": true, "name": "Ada", "right": true}'
        code, out, err = taut("call", "ask", *url, "--answer", "-", stdin=form)
        good = code == 0 and "one large coffee, with milk, for Ada" in out
    return good, f"exit {code}: {out[:200]} {err[:300]}"


def server_rows(name, command):
    port = free_port()
    last = f"http:{port}" if name == "rmcp" else str(port)
    with open(CACHE / "logs" / f"http-{name}-server.txt", "w") as log:
        with Running([*command, last], stdout=log, stderr=log, stdin=subprocess.DEVNULL) as process:
            wait_for(port, process)
            for mode in ["auto", "2025-11-25"]:
                url = [f"http://127.0.0.1:{port}/mcp"] + (["--revision", mode] if mode != "auto" else [])
                yield mode, {feature: server_feature(feature, url) for feature in SERVER}


def client_rows(name, command, modes):
    for mode, agreed in modes.items():
        bridge = [TAUT, "bridge", "--listen", "127.0.0.1:0", "--", TAUT, "serve", "--page-size", "5"]
        log = open(CACHE / "logs" / f"http-{name}-client-{mode}.txt", "w")
        with log, Running(bridge, stdout=subprocess.PIPE, stderr=log, text=True) as process:
            url = process.stdout.readline().strip().replace("tcp:", "http://") + "/mcp"
            with Running([*command, "--mode", mode, "--", url], stdout=subprocess.PIPE, stderr=log, text=True) as client:
                try:
                    out, _ = client.communicate(timeout=DEADLINE)
                except subprocess.TimeoutExpired:
                    out = ""
            log.write(out)
            lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
            found = {line["feature"]: (line["ok"] is True, line.get("note", "")) for line in lines if "feature" in line}
            said = next((line["agreed"] for line in lines if "agreed" in line), None)
            if said != agreed:
                found["connect"] = (False, f"agreed on {said}, not on {agreed}")
        yield mode, {feature: found.get(feature, (False, "nothing was said about it")) for feature in CLIENT}


def main():
    only = sys.argv[2:]
    (CACHE / "logs").mkdir(parents=True, exist_ok=True)
    table, faults = [], []
    for name, server, client, modes in PEERS:
        if only and name not in only:
            continue
        rows = [("server", *row) for row in server_rows(name, server)]
        rows += [("client", *row) for row in client_rows(name, client, modes)]
        for end, mode, found in rows:
            limits = LIMITS.get((name, end, mode), {})
            good = sum(fine for fine, _ in found.values())
            print(f"{name:8} {end} {mode:11} {good} of {len(found)}", flush=True)
            for feature, (fine, note) in found.items():
                if fine == (feature in limits):
                    words = "works, although LIMITS says otherwise" if fine else note
                    faults.append(f"{name} {end} {mode} {feature}: {words}")
                    print(f"  {faults[-1]}", flush=True)
            cannot = "; ".join(f"{feature}: {why}" for feature, why in limits.items())
            table.append(f"| {name} | {end} | {mode} | {good} of {len(found)} | {cannot} |")
    if not only:
        head = ["# HTTP, both ways", "", "Written by `interop/http/pairs`: real packages, pinned as in [RESULTS.md](../RESULTS.md).",
                "A peer's server is called by `taut`, a peer's client calls `taut serve` behind `taut bridge --listen`.", "",
                "| peer | its end | mode | features | what it cannot do |", "|---|---|---|---|---|"]
        (INTEROP / "http" / "PAIRS.md").write_text("\n".join(head + table) + "\n")
    if faults:
        raise SystemExit(f"{len(faults)} faults")


main()
