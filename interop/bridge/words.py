"""Calls one tool that fails, with the Python SDK 2.x pinned to 2026-07-28: `words.py COMMAND…`. Prints what the tool says,
or the error that came in its place, as JSON."""

import json
import sys

import anyio
from mcp import Client, MCPError, StdioServerParameters


async def main():
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:])
    async with Client(server, mode="2026-07-28") as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        try:
            result = await client.call_tool("browser_navigate", {"url": "about:blank"})
            said = {"isError": result.is_error, "text": "\n".join(block.text for block in result.content)}
        except MCPError as error:
            said = {"error": str(error)}
        print(json.dumps({"agreed": client.protocol_version, "tools": tools, **said}))


anyio.run(main)
