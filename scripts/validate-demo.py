#!/usr/bin/env python3
"""Drives a server through its features in all five revisions and checks every message it sends.

usage: scripts/validate-demo.py SCHEMAS [-- SERVER COMMAND...]      default: target/release/taut serve

SCHEMAS is a directory with the official schema-<revision>.json of each revision. Each message is
checked against the definition it should be, and once more against the same schema closed, so that
a member of a newer revision shows as well. Prints what does not fit; the exit status says whether
anything did not. Needs Python 3.10 and `pip install jsonschema==4.26.0`.
"""

import json
import queue
import subprocess
import sys
import threading

from jsonschema import validators

REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
MODERN = "2026-07-28"
PATIENCE = 20  # seconds; far above what any answer takes

RESULTS = {
    "initialize": "InitializeResult",
    "server/discover": "DiscoverResult",
    "ping": "EmptyResult",
    "logging/setLevel": "EmptyResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "resources/read": "ReadResourceResult",
    "resources/subscribe": "EmptyResult",
    "resources/unsubscribe": "EmptyResult",
    "prompts/list": "ListPromptsResult",
    "prompts/get": "GetPromptResult",
    "completion/complete": "CompleteResult",
    "subscriptions/listen": "SubscriptionsListenResult",
}
SENT = {
    "notifications/progress": "ProgressNotification",
    "notifications/message": "LoggingMessageNotification",
    "notifications/cancelled": "CancelledNotification",
    "notifications/tools/list_changed": "ToolListChangedNotification",
    "notifications/prompts/list_changed": "PromptListChangedNotification",
    "notifications/resources/list_changed": "ResourceListChangedNotification",
    "notifications/resources/updated": "ResourceUpdatedNotification",
    "notifications/subscriptions/acknowledged": "SubscriptionsAcknowledgedNotification",
    "notifications/elicitation/complete": "ElicitationCompleteNotification",
    "elicitation/create": "ElicitRequest",
    "sampling/createMessage": "CreateMessageRequest",
    "roots/list": "ListRootsRequest",
    "ping": "PingRequest",
}
# What the demo's tools are called with; one that is not here is called with nothing.
ARGUMENTS = {
    "echo": [{"text": "hello"}, {"text": 5}, {}],
    "add": [{"a": 2, "b": 3.5}],
    "slow": [{"steps": 3, "step_ms": 60}],
    "fail": [{}, {"reason": "no luck"}],
    "print": [{"text": "a stray line"}],
    "big": [{"bytes": 100000}],
    "log": [{"level": level, "message": "words"} for level in ("debug", "info", "emergency", "loud")],
}
CLIENT = {
    "2024-11-05": {"roots": {}, "sampling": {}},
    "2025-03-26": {"roots": {}, "sampling": {}},
    "2025-06-18": {"roots": {}, "sampling": {}, "elicitation": {}},
    "2025-11-25": {"roots": {}, "sampling": {}, "elicitation": {"form": {}, "url": {}}},
    "2026-07-28": {"roots": {}, "sampling": {}, "elicitation": {"form": {}, "url": {}}},
}
ANSWERS = {
    "elicitation/create": {"action": "decline"},
    "sampling/createMessage": {"role": "assistant", "model": "none", "content": {"type": "text", "text": "ok"}},
    "roots/list": {"roots": [{"uri": "file:///tmp", "name": "tmp"}]},
    "ping": {},
}
META = "io.modelcontextprotocol/"


def closed(node):
    """The schema with nothing allowed beyond the properties it lists."""
    if isinstance(node, list):
        return [closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: closed(value) for key, value in node.items()}
    if node.get("type") == "object" and node.get("properties") and "additionalProperties" not in node:
        node["additionalProperties"] = False
    return node


def is_open(path, message):
    """Whether a closed schema is too strict here."""
    # Data of tools and logs is anybody's, and `_meta` is open by its rules.
    if set(path) & {"structuredContent", "data", "inputSchema", "outputSchema", "_meta"}:
        return True
    # Older schemas leave the envelope to another definition; an error's parts are spread over an `allOf`.
    return path == ["error"] or (not path and ("'jsonrpc'" in message or "'id'" in message))


class Checker:
    """The schema of one revision, open and closed."""

    def __init__(self, directory, revision):
        with open(f"{directory}/schema-{revision}.json", encoding="utf-8") as file:
            schema = json.load(file)
        self.revision = revision
        self.place = "$defs" if "$defs" in schema else "definitions"
        self.schemas = {"": schema, " (closed)": closed(schema)}
        self.names = schema[self.place]
        self.checked = 0
        self.faults = []
        self.validators = {}

    def check(self, name, value, whole):
        self.checked += 1
        if name not in self.names:
            self.faults.append(f"{self.revision}: no {name} in this revision: {str(whole)[:200]}")
            return
        for label, schema in self.schemas.items():
            if (label, name) not in self.validators:
                one = {"$schema": schema["$schema"], "$ref": f"#/{self.place}/{name}", self.place: schema[self.place]}
                self.validators[label, name] = validators.validator_for(one)(one)
            for error in self.validators[label, name].iter_errors(value):
                while error.context:
                    error = max(error.context, key=lambda inner: len(inner.absolute_path))
                where = "/".join(map(str, error.absolute_path))
                if label and is_open(list(error.absolute_path), error.message):
                    continue
                self.faults.append(f"{self.revision}: {name}{label} at /{where}: {error.message[:300]}")


class Host:
    """One process of the server, spoken to in one revision."""

    def __init__(self, command, checker):
        self.checker, self.revision = checker, checker.revision
        self.modern = self.revision == MODERN
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        self.asked = {}
        self.answers = {}
        self.seen = {}
        self.next_id = 0

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def send(self, message):
        self.process.stdin.write(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method, params=None, meta=None):
        self.next_id += 1
        params = dict(params or {})
        meta = dict(meta or {})
        if self.modern:
            meta.setdefault(META + "protocolVersion", MODERN)
            meta.setdefault(META + "clientCapabilities", CLIENT[MODERN])
            meta.setdefault(META + "clientInfo", {"name": "validator", "version": "1"})
        if meta:
            params["_meta"] = meta
        self.asked[self.next_id] = method
        self.send({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params})
        return self.next_id

    def ask(self, method, params=None, meta=None):
        """Sends a request and waits for its answer; a question in between is answered."""
        params = dict(params or {})
        for _ in range(8):
            wanted = self.request(method, params, meta)
            while wanted not in self.answers:
                self.take()
            answer = self.answers[wanted]
            result = answer.get("result", {})
            if result.get("resultType") != "input_required":
                return answer
            params.pop("requestState", None)
            params["inputResponses"] = {key: ANSWERS[question["method"]]
                                        for key, question in result.get("inputRequests", {}).items()}
            if "requestState" in result:
                params["requestState"] = result["requestState"]
        raise SystemExit(f"{self.revision}: {method} never stops asking")

    def take(self):
        line = self.lines.get(timeout=PATIENCE)
        if line is None:
            raise SystemExit(f"{self.revision}: the server ended")
        message = json.loads(line.decode("utf-8"))
        for one in message if isinstance(message, list) else [message]:
            self.look(one)
        if isinstance(message, list):
            self.checker.check("JSONRPCBatchResponse", message, message)

    def look(self, message):
        check = self.checker.check
        check("JSONRPCMessage", message, message)
        method = message.get("method")
        if method is not None:
            self.seen[method] = self.seen.get(method, 0) + 1
            check(SENT.get(method, method), message, message)
            if "id" in message:
                self.send({"jsonrpc": "2.0", "id": message["id"], "result": ANSWERS[method]})
            return
        identity = message.get("id")
        if "error" in message:
            named = {-32022: "UnsupportedProtocolVersionError", -32021: "MissingRequiredClientCapabilityError"}
            legacy = "JSONRPCError" if "JSONRPCError" in self.checker.names else "JSONRPCErrorResponse"
            check(named.get(message["error"]["code"], legacy), message, message)
            kind = message["error"]["code"]
        else:
            result = message["result"]
            name = RESULTS[self.asked[identity]]
            if result.get("resultType") == "input_required":
                name = "InputRequiredResult"
            check(name, result, message)
            kind = name
        self.seen[kind] = self.seen.get(kind, 0) + 1
        self.answers[identity] = message

    def end(self):
        self.process.stdin.close()
        while (line := self.lines.get(timeout=PATIENCE)) is not None:
            self.lines.queue.appendleft(line)
            self.take()
        if self.process.wait(PATIENCE) != 0:
            self.checker.faults.append(f"{self.revision}: exit status {self.process.returncode}")


def pages(host, method, member):
    items, params = [], {}
    while True:
        result = host.ask(method, params).get("result", {})
        items += result.get(member, [])
        if "nextCursor" not in result:
            return items
        params = {"cursor": result["nextCursor"]}


def open_session(host):
    if host.modern:
        return host.ask("server/discover")["result"]["capabilities"]
    opening = host.ask("initialize", {"protocolVersion": host.revision, "capabilities": CLIENT[host.revision],
                                      "clientInfo": {"name": "validator", "version": "1"}})
    host.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    host.ask("ping")
    return opening["result"]["capabilities"]


def tools(host):
    level = {META + "logLevel": "debug"} if host.modern else {}
    if not host.modern:
        host.ask("logging/setLevel", {"level": "debug"})
        host.ask("logging/setLevel", {"level": "loud"})
    for tool in pages(host, "tools/list", "tools"):
        for arguments in ARGUMENTS.get(tool["name"], [{}]):
            host.ask("tools/call", {"name": tool["name"], "arguments": arguments}, {"progressToken": "t", **level})
    host.ask("tools/call", {"name": "no such tool"})
    host.ask("tools/call", {})
    host.ask("tools/list", {"cursor": "bogus"})
    slow = host.request("tools/call", {"name": "slow", "arguments": {"steps": 100, "step_ms": 60}})
    host.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": slow, "reason": "x"}})


def resources(host, capabilities):
    for resource in pages(host, "resources/list", "resources"):
        host.ask("resources/read", {"uri": resource["uri"]})
        if not host.modern and capabilities.get("resources", {}).get("subscribe"):
            host.ask("resources/subscribe", {"uri": resource["uri"]})
            host.ask("resources/unsubscribe", {"uri": resource["uri"]})
    for template in pages(host, "resources/templates/list", "resourceTemplates"):
        name = template["uriTemplate"].split("{")[1].split("}")[0]
        asked = {"ref": {"type": "ref/resource", "uri": template["uriTemplate"]}, "argument": {"name": name, "value": ""}}
        found = host.ask("completion/complete", asked).get("result", {}).get("completion", {}).get("values", [])
        for value in found[:1] + ["no-such"]:
            host.ask("resources/read", {"uri": template["uriTemplate"].replace("{%s}" % name, value)})
    host.ask("resources/read", {"uri": "file:///no/such"})


def prompts(host):
    for prompt in pages(host, "prompts/list", "prompts"):
        arguments = {argument["name"]: "Ada" for argument in prompt.get("arguments", [])}
        host.ask("prompts/get", {"name": prompt["name"], "arguments": arguments})
        for name in arguments:
            host.ask("completion/complete", {"ref": {"type": "ref/prompt", "name": prompt["name"]},
                                             "argument": {"name": name, "value": ""}})
    host.ask("prompts/get", {"name": "no such prompt"})
    host.ask("completion/complete", {"ref": {"type": "ref/prompt", "name": "no"}, "argument": {"name": "x", "value": ""}})


def oddities(host):
    host.ask("no/such")
    if host.revision in ("2025-11-25", MODERN):
        # Older schemas know no error without an id (RPC-13).
        host.send(b"this is no JSON\n{}\n")
    if host.revision == "2025-03-26":
        first, second = host.next_id + 1, host.next_id + 2
        host.next_id = second
        host.asked |= {first: "ping", second: "tools/list"}
        host.send([{"jsonrpc": "2.0", "id": first, "method": "ping"},
                   {"jsonrpc": "2.0", "id": second, "method": "tools/list"}])
        while second not in host.answers:
            host.take()
    if not host.modern:
        return
    for version, capabilities in (("1900-01-01", {}), ("2025-11-25", {}), (5, {}), (MODERN, [])):
        meta = {META + "protocolVersion": version, META + "clientCapabilities": capabilities}
        host.ask("tools/list", {}, meta)
    for tool in pages(host, "tools/list", "tools"):
        # A client that can do nothing: whoever asks back has to refuse.
        host.ask("tools/call", {"name": tool["name"], "arguments": ARGUMENTS.get(tool["name"], [{}])[0]},
                 {META + "clientCapabilities": {}})
    everything = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True,
                  "resourceSubscriptions": ["demo://readme"]}
    host.request("subscriptions/listen", {"notifications": everything})
    host.ask("subscriptions/listen", {"notifications": 5})


def main():
    arguments = sys.argv[1:]
    if not arguments or arguments[0].startswith("-"):
        raise SystemExit(__doc__)
    command = arguments[2:] if arguments[1:2] == ["--"] else ["target/release/taut", "serve"]
    faults, checked = [], 0
    for revision in REVISIONS:
        checker = Checker(arguments[0], revision)
        host = Host(command, checker)
        capabilities = open_session(host)
        tools(host)
        resources(host, capabilities)
        prompts(host)
        oddities(host)
        host.end()
        print(f"{revision}: {checker.checked} checks,", ", ".join(f"{n} {what}" for what, n in host.seen.items()))
        faults += checker.faults
        checked += checker.checked
    for fault in dict.fromkeys(faults):
        print("BAD", fault)
    print(f"{checked} checks, {len(faults)} faults")
    raise SystemExit(bool(faults))


main()
