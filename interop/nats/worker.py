"""A worker by docs/fleet-wire.md alone, on a plain socket: one slot, a tool that gives a text back after a while.

usage: worker.py PORT SERVICE; it takes requests in parts, and gives answers of up to four parts, so that it need not wait
for an ack.
"""

import json
import os
import socket
import sys
import threading
import time

SERVICE, ID, PART, lock = sys.argv[2], "python-" + os.urandom(8).hex(), 256 << 10, threading.Lock()
broker = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
calls, gathered = {}, {}  # Each by the reply subject: whether a call was cancelled; [method's JSON so far, length, parts].
TOOL = {"name": "echo", "description": "Says it again.", "inputSchema": {"type": "object"}}


def send(subject, payload=b"", reply="", **headers):
    lines = "".join(f"Mcp-{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"NATS/1.0\r\n{lines}\r\n".encode() if headers else b""
    sizes = f"{len(head)} {len(head) + len(payload)}" if headers else len(payload)
    with lock:
        broker.sendall(f"{'H' if headers else ''}PUB {subject} {reply} {sizes}\r\n".encode() + head + payload + b"\r\n")


def run(call, request):
    method, params = request["method"], request.get("params", {})
    result = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    if method == "server/discover":
        result |= {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    elif method == "tools/list":
        result["tools"] = [TOOL]
    elif method == "tools/call":
        end = time.time() + float(params["arguments"].get("seconds", 0))
        if call not in gathered:
            send(call, Fleet="accepted", Worker=ID, Heartbeat=200)
        while time.time() < end and not calls[call]:
            time.sleep(min(0.2, max(0, end - time.time())))
            send(call, reply=f"mcp.{SERVICE}.worker.{ID}.gone.1", Fleet="heartbeat")
        result = {"resultType": "complete", "content": [{"type": "text", "text": params["arguments"]["text"]}]}
    answer = {"result": result} if method in ("server/discover", "tools/list", "tools/call") else {
        "error": {"code": -32601, "message": "no such method"}}
    if not calls.pop(call):
        json_ = json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}).encode()
        parts = [json_[at:at + PART] for at in range(0, len(json_), PART)]
        for sequence, part in enumerate(parts):
            first = {"Fleet": "answer", "Length": len(json_), "Worker": ID, "Heartbeat": 200}
            send(call, part, **({} if len(parts) == 1 else {"Fleet": "part", "Sequence": sequence} if sequence else first))
    gathered.pop(call, None)


def take(call, headers, payload):
    kind = headers.get("mcp-fleet", "call")
    if kind == "call" and calls:
        send(call, Fleet="bounce")
    elif kind == "call":
        calls[call] = False
        if "mcp-length" in headers:
            gathered[call] = [payload, int(headers["mcp-length"]), 1]
            send(call, Fleet="accepted", Worker=ID, Heartbeat=200)
        else:
            threading.Thread(target=run, args=(call, json.loads(payload))).start()
    elif kind == "part" and call in gathered:
        parts = gathered[call]
        parts[0], parts[2] = parts[0] + payload, parts[2] + 1
        send(call, Fleet="ack", Sequence=parts[2])
        if len(parts[0]) == parts[1]:
            threading.Thread(target=run, args=(call, json.loads(parts[0]))).start()
    elif kind == "cancel" and call in calls:
        calls[call] = True


options = {"verbose": False, "pedantic": False, "headers": True, "no_responders": True, "protocol": 1}
topics = [f"mcp.{SERVICE}.call mcp 1", f"mcp.{SERVICE}.worker.{ID} 2", f"$SRV.PING.{SERVICE} 3"]
broker.sendall("".join([f"CONNECT {json.dumps(options)}\r\n", *(f"SUB {topic}\r\n" for topic in topics), "PING\r\n"]).encode())
stream = broker.makefile("rb")
for line in stream:
    words = line.decode().split()
    if words[0] == "PING":
        with lock:
            broker.sendall(b"PONG\r\n")
    elif words[0] == "PONG":
        print(f"worker {ID} serves {SERVICE}", flush=True)
    elif words[0] in ("MSG", "HMSG"):
        data = stream.read(int(words[-1]) + 2)[:-2]
        size = int(words[-2]) if words[0] == "HMSG" else 0
        fields = [field.split(": ", 1) for field in data[:size].decode().split("\r\n")[1:] if field]
        headers = {name.lower(): value for name, value in fields}
        reply = words[3] if len(words) == (6 if size else 5) else None
        if words[2] == "3":
            pong = {"type": "io.nats.micro.v1.ping_response", "name": SERVICE, "id": ID, "version": "1.0.0", "metadata": {}}
            send(reply, json.dumps(pong).encode())
        elif reply:
            take(reply, headers, data[size:])
