"""FastMCP as a client: its `Client` on its stdio transport; streams of changes are the SDK's below it."""

import pathlib
import sys
import warnings

import anyio
import mcp_types as types
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport
from mcp.client.subscriptions import ResourceUpdated, ToolsListChanged, listen
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "python_common"))
import features  # noqa: E402
from features import check, gone, kill, say, servers, until  # noqa: E402

warnings.filterwarnings("ignore")
MODES = {"default": "auto", "auto": "auto", "legacy": "legacy", "modern": "2026-07-28"}
OPTIONS = features.arguments(list(MODES))
LOGS, HEARD = [], []


async def on_elicit(message, response_type, params, context):
    second = "right" in params.requested_schema["properties"]
    return ElicitResult(action="accept", content={"right": True} if second else features.COFFEE)


async def on_sample(messages, params, context):
    return features.ANSWER


async def on_log(params):
    LOGS.append(params)


async def on_message(message):
    HEARD.append(message)


def connect():
    command = StdioTransport(OPTIONS.server[0], OPTIONS.server[1:], keep_alive=False)
    return Client(
        OPTIONS.server[0] if features.is_url(OPTIONS) else command,
        mode=MODES[OPTIONS.mode],
        roots=[features.ROOT],
        sampling_handler=on_sample,
        elicitation_handler=on_elicit,
        log_handler=on_log,
        message_handler=on_message,
        cache=False,
    )


def text(result):
    return result.content[0].text


class Tries:
    def __init__(self, client):
        self.client = client
        self.modern = client.protocol_version in MODERN_PROTOCOL_VERSIONS

    async def list(self):
        await self.every()
        check({"echo", "add", "slow"} <= set(self.names), self.names)

    async def every(self):
        self.names, self.pages, cursor = [], 0, None
        while True:
            result = await self.client.list_tools_mcp(cursor=cursor)
            self.names += [tool.name for tool in result.tools]
            self.pages, cursor = self.pages + 1, result.next_cursor
            if cursor is None:
                return

    async def paging(self):
        await self.every()
        check(self.pages >= 2, f"{self.pages} page only")
        check(len(set(self.names)) == len(self.names), "a tool is listed twice")
        return f"{len(self.names)} tools in {self.pages} pages"

    async def call(self):
        check(text(await self.client.call_tool_mcp("echo", {"text": "hello"})) == "hello", "no echo")

    async def structured(self):
        result = await self.client.call_tool_mcp("add", {"a": 2, "b": 3})
        check(result.structured_content == {"sum": 5}, result)

    async def error(self):
        result = await self.client.call_tool_mcp("fail", {"reason": "no beans"})
        check(result.is_error and "no beans" in text(result), result)

    async def progress(self):
        seen = []

        async def on_progress(progress, total, message):
            seen.append((progress, total, message))

        arguments = {"steps": 5, "step_ms": 100}
        result = await self.client.call_tool_mcp("slow", arguments, progress_handler=on_progress)
        check("5 steps" in text(result), result)
        check(len(seen) >= 3 and seen == sorted(set(seen)), seen)
        check(all(total == 5 and message for _, total, message in seen), seen)

    async def cancel(self):
        seen = []

        async def on_progress(progress, total, message):
            seen.append(progress)

        async with anyio.create_task_group() as group:
            arguments = {"steps": 200, "step_ms": 50}
            group.start_soon(lambda: self.client.call_tool_mcp("slow", arguments, progress_handler=on_progress))
            await until(lambda: seen)
            group.cancel_scope.cancel()
        await self.call()

    async def log(self):
        LOGS.clear()
        if not self.modern:
            await self.client.set_logging_level("debug")
        # The modern era has the level in each request; this client leaves that to its caller.
        meta = {"io.modelcontextprotocol/logLevel": "debug"} if self.modern else None
        await self.client.call_tool_mcp("log", {"level": "warning", "message": "careful"}, meta=meta)
        await until(lambda: LOGS)
        check(LOGS[0].level == "warning" and LOGS[0].data == "careful", LOGS)

    async def resources(self):
        listed = (await self.client.list_resources_mcp()).resources
        check("demo://readme" in [str(one.uri) for one in listed], listed)
        contents = (await self.client.read_resource_mcp("demo://readme")).contents
        check(contents[0].text.startswith("# "), contents)

    async def template(self):
        listed = (await self.client.list_resource_templates_mcp()).resource_templates
        check(listed[0].uri_template == "weather://{city}/today", listed)
        contents = (await self.client.read_resource_mcp("weather://Bern/today")).contents
        check("Bern: sunny" in contents[0].text, contents)

    async def subscribe(self):
        if self.modern:
            async with listen(self.client.session, resource_subscriptions=["demo://touched"]) as changes:
                await self.client.call_tool_mcp("touch", {})
                async for change in changes:
                    check(change == ResourceUpdated(uri="demo://touched"), change)
                    return
        HEARD.clear()
        await self.client.session.subscribe_resource("demo://touched")
        await self.client.call_tool_mcp("touch", {})
        await until(lambda: any(isinstance(one, types.ResourceUpdatedNotification) for one in HEARD))
        await self.client.session.unsubscribe_resource("demo://touched")

    async def prompts(self):
        listed = (await self.client.list_prompts_mcp()).prompts
        check({"hello", "greet"} <= {one.name for one in listed}, listed)
        result = await self.client.get_prompt_mcp("greet", {"name": "Ada", "language": "Dutch"})
        check(result.messages[0].content.text == "Greet Ada in Dutch.", result)

    async def completion(self):
        reference = types.PromptReference(type="ref/prompt", name="greet")
        result = await self.client.complete_mcp(reference, {"name": "language", "value": "d"})
        check(result.completion.values == ["Dutch"], result)
        reference = types.ResourceTemplateReference(type="ref/resource", uri="weather://{city}/today")
        result = await self.client.complete_mcp(reference, {"name": "city", "value": "be"})
        check(result.completion.values == ["Berlin", "Bern"], result)

    async def ask(self):
        result = await self.client.call_tool_mcp("ask", {})
        check(text(result) == features.ORDER, result)

    async def sample(self):
        result = await self.client.call_tool_mcp("sample", {"prompt": features.PROMPT})
        check(text(result) == features.ANSWER, result)

    async def roots(self):
        check(text(await self.client.call_tool_mcp("roots", {})) == features.ROOT, "no root")

    async def changed(self):
        arguments = {"name": "later", "says": "here I am"}
        if self.modern:
            async with listen(self.client.session, tools_list_changed=True) as changes:
                await self.client.call_tool_mcp("add_tool", arguments)
                async for change in changes:
                    check(change == ToolsListChanged(), change)
                    break
        else:
            HEARD.clear()
            await self.client.call_tool_mcp("add_tool", arguments)
            await until(lambda: any(isinstance(one, types.ToolListChangedNotification) for one in HEARD))
        await self.every()
        check("later" in self.names, self.names)
        check(text(await self.client.call_tool_mcp("later", {})) == "here I am", "it says something else")

    async def unicode(self):
        result = await self.client.call_tool_mcp("echo", {"text": features.UNICODE})
        check(text(result) == features.UNICODE, result)

    async def mib(self, count):
        payload = "x" * (count << 20)
        check(text(await self.client.call_tool_mcp("echo", {"text": payload})) == payload, "not the same")

    async def mib1(self):
        await self.mib(1)

    async def mib10(self):
        await self.mib(10)

    async def hundred(self):
        answers = {}

        async def one(number):
            answers[number] = text(await self.client.call_tool_mcp("echo", {"text": f"call {number}"}))

        async with anyio.create_task_group() as group:
            for number in range(100):
                group.start_soon(one, number)
        check(answers == {number: f"call {number}" for number in range(100)}, answers)


async def slow(client, ended):
    try:
        await client.call_tool_mcp("slow", features.SLOW)
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
        with anyio.move_on_after(10):
            await until(lambda: len(ended) == 3)
        group.cancel_scope.cancel()
    check(len(ended) == 3, f"{len(ended)} of 3 calls ended with an error")
    await gone(ours)
    return f"{type(ended[0]).__name__}: {ended[0]}"


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
    return f"{type(ended[0]).__name__}: {ended[0]}"


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
            say(agreed=client.protocol_version, era="modern" if tries.modern else "legacy")
            say(feature="connect", ok=True, note="")
            for name in features.names(OPTIONS):
                await run(name, getattr(tries, name))
    except Exception as error:  # noqa: BLE001
        return say(feature="connect", ok=False, note=f"{type(error).__name__}: {error}")
    if features.is_url(OPTIONS):
        return
    await run("in-flight", in_flight)
    await run("kill", killed)


anyio.run(main)
