"""A legacy stdio server whose two tools count their runs: each adds a line to a file before it answers. `look` says of
itself that it only reads.

usage: counter.py FILE [TIMES]; it waits TIMES times as long as it is told to. FILE.PID has a + for each run that has
begun, and a - for each that has ended.
"""

import json
import os
import sys
import threading
import time

runs = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
own = os.open(f"{sys.argv[1]}.{os.getpid()}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
times = int(sys.argv[2]) if len(sys.argv) > 2 else 1
lock = threading.Lock()


def answer(id, result):
    line = json.dumps({"jsonrpc": "2.0", "id": id, "result": result}) + "\n"
    with lock:
        sys.stdout.write(line)
        sys.stdout.flush()


def run(id, arguments):
    os.write(runs, (arguments["token"] + "\n").encode())
    os.write(own, b"+")
    time.sleep(arguments.get("ms", 0) * times / 1000)
    text = "y" * arguments["size"] if "size" in arguments else str(len(arguments.get("text", "")))
    os.write(own, b"-")
    answer(id, {"content": [{"type": "text", "text": text}]})


TOOLS = [
    {"name": "run", "description": "Counts its runs.", "inputSchema": {"type": "object"}},
    {"name": "look", "description": "Counts its runs.", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
]

for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        info = {"name": "counter", "version": "1"}
        revision = message["params"]["protocolVersion"]
        answer(id, {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": info})
    elif method == "tools/list":
        answer(id, {"tools": TOOLS})
    elif method == "tools/call":
        threading.Thread(target=run, args=(id, message["params"]["arguments"])).start()
    elif id is not None and method == "ping":
        answer(id, {})
    elif id is not None:
        error = {"code": -32601, "message": "no such method"}
        with lock:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": id, "error": error}) + "\n")
            sys.stdout.flush()
