"""AutoGen as a client: `mcp_server_tools()`, which makes a tool of AutoGen from each tool of a server.

It reads every schema into a Pydantic model and fails as a whole if one of them has a format or a list of types
that it does not know, so that this row is about schemas more than about messages.
"""

import pathlib
import sys
from contextlib import asynccontextmanager

import anyio
from autogen_core import CancellationToken
from autogen_ext.tools.mcp import StdioServerParams, create_mcp_server_session, mcp_server_tools

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "python_common"))
import features  # noqa: E402
from features import Missing, check, gone, kill, say, servers, until  # noqa: E402

OPTIONS = features.arguments(["default"])
COMMAND = OPTIONS.server[0]
ONLY_TOOLS = "mcp_server_tools() gives tools and nothing else"


def parameters(args):
    return StdioServerParams(command=COMMAND, args=args, read_timeout_seconds=features.DEADLINE)


class Tools:
    """The tools of one session, called as an agent calls them."""

    def __init__(self, tools):
        self.tools = {tool.name: tool for tool in tools}

    async def call(self, name, arguments):
        return await self.tools[name].run_json(arguments, CancellationToken())


@asynccontextmanager
async def connect():
    params = parameters(OPTIONS.server[1:])
    async with create_mcp_server_session(params) as session:
        agreed = (await session.initialize()).protocolVersion
        tools = Tools(await mcp_server_tools(params, session=session))
        tools.agreed = agreed
        yield tools


class Tries:
    def __init__(self, client):
        self.client = client

    async def list(self):
        # It reads the first page only, and our server is told to use pages here.
        words = OPTIONS.server[: OPTIONS.server.index("serve") + 1]
        whole = await mcp_server_tools(parameters(words[1:]))
        check(len(whole) == 14, [tool.name for tool in whole])
        required = {tool.name: tool.schema["parameters"].get("required", []) for tool in whole}
        check(required["echo"] == ["text"] and required["slow"] == [], required)
        return f"{len(whole)} tools"

    async def paging(self):
        raise Missing("it reads the first page only")

    async def call(self):
        await self.echo("hello")

    async def echo(self, text):
        said = await self.client.call("echo", {"text": text})
        check(said[0].text == text, "not the same")

    async def structured(self):
        raise Missing("a tool returns the content, not the data beside it")

    async def error(self):
        try:
            said = await self.client.call("fail", {"reason": "no beans"})
        except Exception as error:  # noqa: BLE001
            return check("no beans" in str(error), error)
        check("no beans" in str(said), said)

    async def unicode(self):
        await self.echo(features.UNICODE)

    async def mib1(self):
        await self.echo("x" * (1 << 20))

    async def mib10(self):
        await self.echo("x" * (10 << 20))

    async def hundred(self):
        answers = {}

        async def one(number):
            said = await self.client.call("echo", {"text": f"call {number}"})
            answers[number] = said[0].text

        async with anyio.create_task_group() as group:
            for number in range(100):
                group.start_soon(one, number)
        check(answers == {number: f"call {number}" for number in range(100)}, answers)

    def __getattr__(self, name):
        async def missing():
            raise Missing(ONLY_TOOLS)

        return missing


async def slow(client, ended):
    try:
        await client.call("slow", features.SLOW)
    except Exception as error:  # noqa: BLE001
        ended.append(error)


async def in_flight():
    """Close while three calls run: nothing hangs, no server is left."""
    before, ended = set(servers()), []
    async with anyio.create_task_group() as group:
        async with connect() as client:
            for _ in range(3):
                group.start_soon(slow, client, ended)
            await anyio.sleep(0.2)
            ours = set(servers()) - before
        with anyio.move_on_after(3):
            await until(lambda: len(ended) == 3)
        group.cancel_scope.cancel()
    check(len(ended) == 3, f"{len(ended)} of 3 calls ended with an error")
    await gone(ours)


async def killed():
    """Kill the server while a call runs: the call fails at once."""
    before, ended = set(servers()), []
    async with connect() as client, anyio.create_task_group() as group:
        group.start_soon(slow, client, ended)
        await anyio.sleep(0.2)
        kill(set(servers()) - before)
        with anyio.move_on_after(10):
            await until(lambda: ended)
        group.cancel_scope.cancel()
    check(ended, "the call in flight did not fail")


async def hold():
    async with connect() as client, anyio.create_task_group() as group:
        group.start_soon(slow, client, [])
        await anyio.sleep(0.2)
        say(hold=True)
        await anyio.sleep_forever()


async def main():
    if OPTIONS.hold:
        return await hold()
    run = features.Features(OPTIONS.only).run
    try:
        async with connect() as client:
            tries = Tries(client)
            say(agreed=client.agreed, era="legacy")
            say(feature="connect", ok=True, note="")
            for name in features.NAMES:
                await run(name, getattr(tries, name))
    except Exception as error:  # noqa: BLE001
        return say(feature="connect", ok=False, note=f"{type(error).__name__}: {error}")
    await run("in-flight", in_flight)
    await run("kill", killed)


anyio.run(main)
