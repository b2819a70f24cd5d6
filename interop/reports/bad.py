"""A small server that breaks rules, with characters in its answers that XML and JSON have to escape."""
import json
import sys

ODD = "<odd> & \"quoted\" \x00\x1b[31m \ufffe ]]> \u2028"


def send(message):
    print(json.dumps(message), flush=True)


print("a banner " + ODD.encode("ascii", "backslashreplace").decode(), flush=True)
for line in sys.stdin:
    try:
        request = json.loads(line)
    except ValueError:
        continue
    if not isinstance(request, dict) or "id" not in request or "method" not in request:
        continue
    reply = {"jsonrpc": "2.0", "id": request["id"]}
    if request["method"] == "initialize":
        agreed = request.get("params", {}).get("protocolVersion")
        send({**reply, "result": {"protocolVersion": agreed, "capabilities": {"tools": {}}, "serverInfo": {"name": "bad", "version": "1"}}})
    elif request["method"] == "ping":
        send({**reply, "result": {}})
    elif request["method"] == "tools/list":
        send({**reply, "result": {"tools": [{"name": ODD, "inputSchema": {"type": "array"}}]}})
    else:
        send({**reply, "error": {"code": -32000, "message": ODD}})
