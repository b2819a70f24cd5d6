#!/usr/bin/env python3
"""Makes the captures that the tests play again: sessions with `taut serve` through `taut trace`.

  scripts/captures.py target/debug/taut

Only what the demo says the same way each time is asked for.
"""
import json
import subprocess
import sys
from pathlib import Path

TAUT = str(Path(sys.argv[1]).resolve())
TO = Path(__file__).resolve().parent.parent / "crates/taut-cli/tests/trace/captures"


class Session:
    def __init__(self, name, headers=False):
        env = {"PATH": str(Path(TAUT).parent) + ":/usr/bin:/bin"}
        words = [TAUT, "trace", "--quiet", "--as", "demo", "--record", TO / f"{name}.jsonl", "--", "taut", "serve"]
        self.headers, self.next = headers, 0
        self.child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)

    def send(self, **message):
        text = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode()
        text = b"Content-Length: %d\r\n\r\n%s" % (len(text), text) if self.headers else text + b"\n"
        self.child.stdin.write(text)
        self.child.stdin.flush()

    def read(self):
        line = self.child.stdout.readline()
        if not self.headers:
            return json.loads(line)
        length = int(line.split(b":")[1])
        self.child.stdout.readline()
        return json.loads(self.child.stdout.read(length))

    def ask(self, method, params=None, on=None):
        self.next += 1
        own = self.next
        self.send(id=own, method=method, **({"params": params} if params is not None else {}))
        while True:
            message = self.read()
            if message.get("method") and "id" in message:
                self.send(id=message["id"], result=on)
            elif message.get("id") == own and "method" not in message:
                return message

    def call(self, name, arguments=None, meta=None, on=None, **more):
        params = {"name": name, "arguments": arguments or {}, **more}
        if meta:
            params["_meta"] = meta
        return self.ask("tools/call", params, on)

    def close(self):
        self.child.stdin.close()
        self.child.stdout.read()
        assert self.child.wait() == 0


def legacy(name, revision, headers=False):
    session = Session(name, headers)
    capabilities = {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}
    client = {"name": "captures", "version": "1"}
    session.ask("initialize", {"protocolVersion": revision, "capabilities": capabilities, "clientInfo": client})
    session.send(method="notifications/initialized")
    for method in ["tools/list", "resources/list", "resources/templates/list", "prompts/list", "ping"]:
        session.ask(method)
    session.call("echo", {"text": "hello there"})
    session.call("echo", {"text": "hello there"})
    session.call("add", {"a": 2, "b": 3})
    session.call("slow", {"steps": 3, "step_ms": 1}, {"progressToken": "walk"})
    session.call("fail", {"reason": "no coffee"})
    session.call("no_such_tool")
    session.ask("no/such/method")
    session.call("log", {"level": "warning", "message": "careful"})
    session.ask("resources/read", {"uri": "demo://readme"})
    session.ask("prompts/get", {"name": "greet", "arguments": {"name": "Ada", "language": "Dutch"}})
    session.call("sample", {"prompt": "the capital of Portugal"},
                 on={"role": "assistant", "content": {"type": "text", "text": "Lisbon"}, "model": "m", "stopReason": "endTurn"})
    session.call("roots", on={"roots": [{"uri": "file:///project"}]})
    session.close()


def modern(name):
    session = Session(name)
    prefix = "io.modelcontextprotocol/"
    meta = {prefix + "protocolVersion": "2026-07-28", prefix + "clientInfo": {"name": "captures", "version": "1"},
            prefix + "clientCapabilities": {"elicitation": {"form": {}}}}
    session.ask("server/discover", {"_meta": meta})
    for method in ["tools/list", "resources/list", "prompts/list"]:
        session.ask(method, {"_meta": meta})
    session.call("echo", {"text": "hello there"}, meta)
    session.call("add", {"a": 2, "b": 3}, meta)
    session.call("slow", {"steps": 3, "step_ms": 1}, {**meta, "progressToken": 7})
    session.call("fail", {"reason": "no coffee"}, meta)
    asked = session.call("ask", {}, meta)["result"]
    answers = {"size": "large", "milk": True, "name": "Ada", "right": True}
    while asked.get("resultType") == "input_required":
        responses = {}
        for key, question in asked["inputRequests"].items():
            fields = question["params"]["requestedSchema"]["properties"]
            responses[key] = {"action": "accept", "content": {field: answers[field] for field in fields}}
        asked = session.call("ask", {}, meta, inputResponses=responses, requestState=asked["requestState"])["result"]
    session.close()


legacy("legacy", "2025-11-25")
legacy("oldest", "2024-11-05")
legacy("headers", "2025-06-18", headers=True)
modern("modern")
