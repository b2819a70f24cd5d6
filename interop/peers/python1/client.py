"""The official Python SDK 1.x as a client: its `ClientSession` on its stdio transport."""

import pathlib
import sys
from contextlib import asynccontextmanager

import anyio
import mcp.types as types
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "python_common"))
import features  # noqa: E402
from features import check, gone, kill, say, servers, until  # noqa: E402

OPTIONS = features.arguments(["default"])
LOGS, HEARD = [], []


async def on_elicit(context, params):
    second = "right" in params.requestedSchema["properties"]
    return types.ElicitResult(action="accept", content={"right": True} if second else features.COFFEE)


async def on_sample(context, params):
    said = types.TextContent(type="text", text=features.ANSWER)
    return types.CreateMessageResult(role="assistant", content=said, model="none")


async def on_roots(context):
    return types.ListRootsResult(roots=[types.Root(uri=features.ROOT, name="here")])


async def on_log(params):
    LOGS.append(params)


async def on_message(message):
    HEARD.append(message)


@asynccontextmanager
async def connect():
    parameters = StdioServerParameters(command=OPTIONS.server[0], args=OPTIONS.server[1:])
    url = features.is_url(OPTIONS)
    transport = streamable_http_client(OPTIONS.server[0]) if url else stdio_client(parameters)
    async with transport as (read, write, *_):
        async with ClientSession(
            read,
            write,
            sampling_callback=on_sample,
            elicitation_callback=on_elicit,
            list_roots_callback=on_roots,
            logging_callback=on_log,
            message_handler=on_message,
        ) as session:
            session.agreed = (await session.initialize()).protocolVersion
            yield session


def heard(kind):
    return any(isinstance(getattr(one, "root", None), kind) for one in HEARD)


def text(result):
    return result.content[0].text


class Tries:
    def __init__(self, client):
        self.client = client

    async def list(self):
        await self.every()
        check({"echo", "add", "slow"} <= set(self.names), self.names)

    async def every(self):
        self.names, self.pages, cursor = [], 0, None
        while True:
            result = await self.client.list_tools(cursor)
            self.names += [tool.name for tool in result.tools]
            self.pages, cursor = self.pages + 1, result.nextCursor
            if cursor is None:
                return

    async def paging(self):
        await self.every()
        check(self.pages >= 2, f"{self.pages} page only")
        check(len(set(self.names)) == len(self.names), "a tool is listed twice")
        return f"{len(self.names)} tools in {self.pages} pages"

    async def call(self):
        check(text(await self.client.call_tool("echo", {"text": "hello"})) == "hello", "no echo")

    async def structured(self):
        result = await self.client.call_tool("add", {"a": 2, "b": 3})
        check(result.structuredContent == {"sum": 5}, result)

    async def error(self):
        result = await self.client.call_tool("fail", {"reason": "no beans"})
        check(result.isError and "no beans" in text(result), result)

    async def progress(self):
        seen = []

        async def on_progress(progress, total, message):
            seen.append((progress, total, message))

        arguments = {"steps": 5, "step_ms": 100}
        result = await self.client.call_tool("slow", arguments, progress_callback=on_progress)
        check("5 steps" in text(result), result)
        check(len(seen) >= 3 and seen == sorted(set(seen)), seen)
        check(all(total == 5 and message for _, total, message in seen), seen)

    async def cancel(self):
        seen = []

        async def on_progress(progress, total, message):
            seen.append(progress)

        async with anyio.create_task_group() as group:
            arguments = {"steps": 200, "step_ms": 50}
            number = self.client._request_id
            group.start_soon(lambda: self.client.call_tool("slow", arguments, progress_callback=on_progress))
            await until(lambda: seen)
            # Leaving the call tells the server nothing in this version; this notification does.
            params = types.CancelledNotificationParams(requestId=number)
            notification = types.CancelledNotification(method="notifications/cancelled", params=params)
            await self.client.send_notification(types.ClientNotification(notification))
            group.cancel_scope.cancel()
        await self.call()

    async def log(self):
        LOGS.clear()
        await self.client.set_logging_level("debug")
        await self.client.call_tool("log", {"level": "warning", "message": "careful"})
        await until(lambda: LOGS)
        check(LOGS[0].level == "warning" and LOGS[0].data == "careful", LOGS)

    async def resources(self):
        listed = (await self.client.list_resources()).resources
        check("demo://readme" in [str(one.uri) for one in listed], listed)
        contents = (await self.client.read_resource(AnyUrl("demo://readme"))).contents
        check(contents[0].text.startswith("# "), contents)

    async def template(self):
        listed = (await self.client.list_resource_templates()).resourceTemplates
        check(listed[0].uriTemplate == "weather://{city}/today", listed)
        contents = (await self.client.read_resource(AnyUrl("weather://Bern/today"))).contents
        check("Bern: sunny" in contents[0].text, contents)

    async def subscribe(self):
        HEARD.clear()
        await self.client.subscribe_resource(AnyUrl("demo://touched"))
        await self.client.call_tool("touch")
        await until(lambda: heard(types.ResourceUpdatedNotification))
        await self.client.unsubscribe_resource(AnyUrl("demo://touched"))

    async def prompts(self):
        listed = (await self.client.list_prompts()).prompts
        check({"hello", "greet"} <= {one.name for one in listed}, listed)
        result = await self.client.get_prompt("greet", {"name": "Ada", "language": "Dutch"})
        check(result.messages[0].content.text == "Greet Ada in Dutch.", result)

    async def completion(self):
        reference = types.PromptReference(type="ref/prompt", name="greet")
        result = await self.client.complete(reference, {"name": "language", "value": "d"})
        check(result.completion.values == ["Dutch"], result)
        reference = types.ResourceTemplateReference(type="ref/resource", uri="weather://{city}/today")
        result = await self.client.complete(reference, {"name": "city", "value": "be"})
        check(result.completion.values == ["Berlin", "Bern"], result)

    async def ask(self):
        result = await self.client.call_tool("ask")
        check(text(result) == features.ORDER, result)

    async def sample(self):
        result = await self.client.call_tool("sample", {"prompt": features.PROMPT})
        check(text(result) == features.ANSWER, result)

    async def roots(self):
        check(text(await self.client.call_tool("roots")) == features.ROOT, "no root")

    async def changed(self):
        arguments = {"name": "later", "says": "here I am"}
        HEARD.clear()
        await self.client.call_tool("add_tool", arguments)
        await until(lambda: heard(types.ToolListChangedNotification))
        await self.every()
        check("later" in self.names, self.names)
        check(text(await self.client.call_tool("later")) == "here I am", "it says something else")

    async def unicode(self):
        result = await self.client.call_tool("echo", {"text": features.UNICODE})
        check(text(result) == features.UNICODE, result)

    async def mib(self, count):
        payload = "x" * (count << 20)
        check(text(await self.client.call_tool("echo", {"text": payload})) == payload, "not the same")

    async def mib1(self):
        await self.mib(1)

    async def mib10(self):
        await self.mib(10)

    async def hundred(self):
        answers = {}

        async def one(number):
            answers[number] = text(await self.client.call_tool("echo", {"text": f"call {number}"}))

        async with anyio.create_task_group() as group:
            for number in range(100):
                group.start_soon(one, number)
        check(answers == {number: f"call {number}" for number in range(100)}, answers)


async def slow(client, ended):
    try:
        await client.call_tool("slow", features.SLOW)
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
            say(agreed=client.agreed, era="legacy")
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
