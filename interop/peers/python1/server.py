"""The official Python SDK 1.x as a server: what `taut serve` offers, on its low-level `Server`.

The low-level one, because paging and subscriptions are not in reach of `FastMCP`.
"""

import json
import pathlib
import sys

import anyio
import mcp.types as types
import uvicorn
from mcp.server import Server
from mcp.server.lowlevel import NotificationOptions
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import McpError
from starlette.applications import Starlette
from starlette.routing import Mount

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "python_common"))
import offer  # noqa: E402

OPTIONS = offer.arguments()
SERVER = Server("python1", "1.0.0")
STATE = {"touched": 0, "level": "debug", "subscribed": set(), "added": {}}
TOOLS = [
    types.Tool(
        name=name,
        description=description,
        inputSchema=schema,
        outputSchema=offer.SUM if name == "add" else None,
    )
    for name, (description, schema) in offer.TOOLS.items()
] + [
    types.Tool(name=name, description=description, inputSchema=schema)
    for name, description, schema in offer.plain_tools(OPTIONS.tools)
]


def said(text, **more):
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], **more)


def no_such(what):
    return McpError(types.ErrorData(code=types.INVALID_PARAMS, message=f"there is no {what}"))


async def ask(ctx, args):
    answer = await ctx.session.elicit_form("What would you like?", offer.COFFEE, ctx.request_id)
    return said(offer.order(answer.content) if answer.action == "accept" else "no coffee then")


async def sample(ctx, args):
    content = types.TextContent(type="text", text=args["prompt"])
    messages = [types.SamplingMessage(role="user", content=content)]
    answer = await ctx.session.create_message(messages, max_tokens=200, related_request_id=ctx.request_id)
    return said(answer.content.text)


async def roots(ctx, args):
    return said("\n".join(str(root.uri) for root in (await ctx.session.list_roots()).roots))


async def slow(ctx, args):
    steps, step_ms = args.get("steps", 10), args.get("step_ms", 100)
    for step in range(steps):
        if ctx.meta and ctx.meta.progressToken is not None:
            message = f"step {step + 1} of {steps}"
            await ctx.session.send_progress_notification(ctx.meta.progressToken, step, steps, message)
        try:
            await anyio.sleep(step_ms / 1000)
        except anyio.get_cancelled_exc_class():
            print("slow: cancelled", file=sys.stderr, flush=True)
            raise
    return said(f"done after {steps} steps")


async def log(ctx, args):
    level = args.get("level", "info")
    if level not in offer.LEVELS:
        return said(f"there is no level {level}", isError=True)
    if offer.LEVELS.index(level) >= offer.LEVELS.index(STATE["level"]):
        await ctx.session.send_log_message(level, args["message"], "demo", ctx.request_id)
    return said("logged")


async def add_tool(ctx, args):
    STATE["added"][args["name"]] = args["says"]
    TOOLS.append(
        types.Tool(name=args["name"], description="Added by add_tool.", inputSchema=offer.takes())
    )
    await ctx.session.send_tool_list_changed()
    return said(f"there is a tool {args['name']!r} now")


async def touch(ctx, args):
    STATE["touched"] += 1
    if "demo://touched" in STATE["subscribed"]:
        await ctx.session.send_resource_updated("demo://touched")
    return said(str(STATE["touched"]))


async def call_tool(params):
    name, args = params.name, params.arguments or {}
    if name == "echo" or name.startswith("tool_"):
        return said(args["text"])
    if name == "add":
        result = {"sum": args["a"] + args["b"]}
        return said(json.dumps(result), structuredContent=result)
    if name == "fail":
        return said(args.get("reason") or "it was asked to fail", isError=True)
    if name == "big":
        return said(offer.big(args["bytes"]))
    if name in STATE["added"]:
        return said(STATE["added"][name])
    talking = (ask, sample, roots, slow, log, add_tool, touch)
    for tool in talking:
        if tool.__name__ == name:
            return await tool(SERVER.request_context, args)
    raise no_such(f"tool {name!r}")


async def list_tools(params):
    tools, cursor = offer.page(TOOLS, params and params.cursor, OPTIONS.page)
    return types.ListToolsResult(tools=tools, nextCursor=cursor)


async def list_resources(params):
    return types.ListResourcesResult(
        resources=[
            types.Resource(uri="demo://readme", name="readme", mimeType="text/markdown"),
            types.Resource(uri="demo://touched", name="touched", mimeType="text/plain"),
        ]
    )


async def list_templates(params):
    return types.ListResourceTemplatesResult(
        resourceTemplates=[
            types.ResourceTemplate(
                uriTemplate="weather://{city}/today", name="weather", mimeType="text/plain"
            )
        ]
    )


async def read_resource(params):
    uri = str(params.uri)
    if uri == "demo://readme":
        text = offer.README
    elif uri == "demo://touched":
        text = str(STATE["touched"])
    elif uri.startswith("weather://") and uri.endswith("/today"):
        text = offer.weather(uri[len("weather://") : -len("/today")])
    else:
        text = None
    if text is None:
        raise no_such(f"resource {uri}")
    contents = types.TextResourceContents(uri=uri, mimeType="text/plain", text=text)
    return types.ReadResourceResult(contents=[contents])


async def subscribe(params):
    STATE["subscribed"].add(str(params.uri))
    return types.EmptyResult()


async def unsubscribe(params):
    STATE["subscribed"].discard(str(params.uri))
    return types.EmptyResult()


async def set_level(params):
    STATE["level"] = params.level
    return types.EmptyResult()


async def list_prompts(params):
    arguments = [
        types.PromptArgument(name="name", required=True),
        types.PromptArgument(name="language", required=False),
    ]
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(name="hello", description="Say hello."),
            types.Prompt(name="greet", description="Greet somebody.", arguments=arguments),
        ]
    )


async def get_prompt(params):
    args = params.arguments or {}
    if params.name == "hello":
        messages = [("user", "Say hello.")]
    elif params.name == "greet":
        messages = offer.greeting(args["name"], args.get("language"))
    else:
        raise no_such(f"prompt {params.name!r}")
    return types.GetPromptResult(
        messages=[
            types.PromptMessage(role=role, content=types.TextContent(type="text", text=text))
            for role, text in messages
        ]
    )


async def complete(params):
    words = {"language": offer.LANGUAGES, "city": offer.CITIES}.get(params.argument.name, [])
    values = offer.starting_with(words, params.argument.value)
    return types.CompleteResult(completion=types.Completion(values=values, total=len(values)))


HANDLERS = {
    types.ListToolsRequest: list_tools,
    types.CallToolRequest: call_tool,
    types.ListResourcesRequest: list_resources,
    types.ListResourceTemplatesRequest: list_templates,
    types.ReadResourceRequest: read_resource,
    types.SubscribeRequest: subscribe,
    types.UnsubscribeRequest: unsubscribe,
    types.ListPromptsRequest: list_prompts,
    types.GetPromptRequest: get_prompt,
    types.CompleteRequest: complete,
    types.SetLevelRequest: set_level,
}


def wrapped(handler):
    async def handle(request):
        return types.ServerResult(await handler(request.params))

    return handle


async def main():
    for request, handler in HANDLERS.items():
        SERVER.request_handlers[request] = wrapped(handler)
    options = SERVER.create_initialization_options(NotificationOptions(tools_changed=True))
    # The capability does not follow from the handler in this version.
    options.capabilities.resources.subscribe = True
    if OPTIONS.http:
        SERVER.create_initialization_options = lambda *_: options
        sessions = StreamableHTTPSessionManager(SERVER)
        routes = [Mount("/mcp", sessions.handle_request)]
        app = Starlette(routes=routes, lifespan=lambda _: sessions.run())
        return await uvicorn.Server(uvicorn.Config(app, port=OPTIONS.http, log_level="warning")).serve()
    async with stdio_server() as (read, write):
        await SERVER.run(read, write, options)


anyio.run(main)
