"""The official Python SDK 2.x as a server: what `taut serve` offers, on its low-level `Server`.

The low-level one, because paging and legacy subscriptions are not in reach of `MCPServer`.
"""

import json
import pathlib
import sys
import warnings

import anyio
import mcp_types as types
import uvicorn
from mcp.server import Server
from mcp.server.lowlevel import NotificationOptions
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "python_common"))
import offer  # noqa: E402

warnings.filterwarnings("ignore")
OPTIONS = offer.arguments()
BUS = InMemorySubscriptionBus()
STATE = {"touched": 0, "level": "debug", "subscribed": set(), "added": {}}
TOOLS = [
    types.Tool(
        name=name,
        description=description,
        input_schema=schema,
        output_schema=offer.SUM if name == "add" else None,
    )
    for name, (description, schema) in offer.TOOLS.items()
] + [
    types.Tool(name=name, description=description, input_schema=schema)
    for name, description, schema in offer.plain_tools(OPTIONS.tools)
]


def modern(ctx):
    return ctx.session.protocol_version in MODERN_PROTOCOL_VERSIONS


def said(text, **more):
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], **more)


async def asked(ctx, params, question):
    """The client's answer, by a request of ours or (modern) by having it call again."""
    if not modern(ctx):
        params = question.params
        if isinstance(question, types.ElicitRequest):
            return await ctx.session.elicit_form(params.message, params.requested_schema, ctx.request_id)
        if isinstance(question, types.CreateMessageRequest):
            return await ctx.session.create_message(
                params.messages, max_tokens=params.max_tokens, related_request_id=ctx.request_id
            )
        return await ctx.session.list_roots()
    if params.input_responses and "it" in params.input_responses:
        return params.input_responses["it"]
    return types.InputRequiredResult(input_requests={"it": question})


async def ask(ctx, params):
    question = types.ElicitRequest(
        params=types.ElicitRequestFormParams(message="What would you like?", requested_schema=offer.COFFEE)
    )
    answer = await asked(ctx, params, question)
    if isinstance(answer, types.InputRequiredResult):
        return answer
    return said(offer.order(answer.content) if answer.action == "accept" else "no coffee then")


async def sample(ctx, params):
    message = types.SamplingMessage(
        role="user", content=types.TextContent(type="text", text=params.arguments["prompt"])
    )
    question = types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=[message], max_tokens=200)
    )
    answer = await asked(ctx, params, question)
    if isinstance(answer, types.InputRequiredResult):
        return answer
    blocks = answer.content if isinstance(answer.content, list) else [answer.content]
    return said("\n".join(block.text for block in blocks if block.type == "text"))


async def roots(ctx, params):
    answer = await asked(ctx, params, types.ListRootsRequest())
    if isinstance(answer, types.InputRequiredResult):
        return answer
    return said("\n".join(str(root.uri) for root in answer.roots))


async def slow(ctx, args):
    steps, step_ms = args.get("steps", 10), args.get("step_ms", 100)
    for step in range(steps):
        await ctx.session.report_progress(step, steps, f"step {step + 1} of {steps}")
        try:
            await anyio.sleep(step_ms / 1000)
        except anyio.get_cancelled_exc_class():
            print("slow: cancelled", file=sys.stderr, flush=True)
            raise
    return said(f"done after {steps} steps")


async def log(ctx, args):
    level = args.get("level", "info")
    if level not in offer.LEVELS:
        return said(f"there is no level {level}", is_error=True)
    if modern(ctx) or offer.LEVELS.index(level) >= offer.LEVELS.index(STATE["level"]):
        await ctx.session.send_log_message(level, args["message"], "demo", ctx.request_id)
    return said("logged")


async def add_tool(ctx, args):
    STATE["added"][args["name"]] = args["says"]
    TOOLS.append(
        types.Tool(name=args["name"], description="Added by add_tool.", input_schema=offer.takes())
    )
    if modern(ctx):
        await BUS.publish(ToolsListChanged())
    else:
        await ctx.session.send_tool_list_changed()
    return said(f"there is a tool {args['name']!r} now")


async def touch(ctx):
    STATE["touched"] += 1
    if modern(ctx):
        await BUS.publish(ResourceUpdated(uri="demo://touched"))
    elif "demo://touched" in STATE["subscribed"]:
        await ctx.session.send_resource_updated("demo://touched")
    return said(str(STATE["touched"]))


async def call_tool(ctx, params):
    name, args = params.name, params.arguments or {}
    if name == "echo" or name.startswith("tool_"):
        return said(args["text"])
    if name == "add":
        result = {"sum": args["a"] + args["b"]}
        return said(json.dumps(result), structured_content=result)
    if name == "fail":
        return said(args.get("reason") or "it was asked to fail", is_error=True)
    if name == "big":
        return said(offer.big(args["bytes"]))
    if name in STATE["added"]:
        return said(STATE["added"][name])
    if name in (whole := {"ask": ask, "sample": sample, "roots": roots}):
        return await whole[name](ctx, params)
    if name in (argued := {"slow": slow, "log": log, "add_tool": add_tool}):
        return await argued[name](ctx, args)
    if name == "touch":
        return await touch(ctx)
    raise MCPError(types.INVALID_PARAMS, f"there is no tool {name!r}")


async def list_tools(ctx, params):
    tools, cursor = offer.page(TOOLS, params and params.cursor, OPTIONS.page)
    return types.ListToolsResult(tools=tools, next_cursor=cursor)


async def list_resources(ctx, params):
    return types.ListResourcesResult(
        resources=[
            types.Resource(uri="demo://readme", name="readme", mime_type="text/markdown"),
            types.Resource(uri="demo://touched", name="touched", mime_type="text/plain"),
        ]
    )


async def list_templates(ctx, params):
    return types.ListResourceTemplatesResult(
        resource_templates=[
            types.ResourceTemplate(
                uri_template="weather://{city}/today", name="weather", mime_type="text/plain"
            )
        ]
    )


async def read_resource(ctx, params):
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
        raise MCPError(types.INVALID_PARAMS, f"there is no resource {uri}")
    contents = types.TextResourceContents(uri=uri, mime_type="text/plain", text=text)
    return types.ReadResourceResult(contents=[contents])


async def subscribe(ctx, params):
    STATE["subscribed"].add(str(params.uri))
    return types.EmptyResult()


async def unsubscribe(ctx, params):
    STATE["subscribed"].discard(str(params.uri))
    return types.EmptyResult()


async def set_level(ctx, params):
    STATE["level"] = params.level
    return types.EmptyResult()


async def list_prompts(ctx, params):
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


async def get_prompt(ctx, params):
    args = params.arguments or {}
    if params.name == "hello":
        messages = [("user", "Say hello.")]
    elif params.name == "greet":
        messages = offer.greeting(args["name"], args.get("language"))
    else:
        raise MCPError(types.INVALID_PARAMS, f"there is no prompt {params.name!r}")
    return types.GetPromptResult(
        messages=[
            types.PromptMessage(role=role, content=types.TextContent(type="text", text=text))
            for role, text in messages
        ]
    )


async def complete(ctx, params):
    words = {"language": offer.LANGUAGES, "city": offer.CITIES}.get(params.argument.name, [])
    values = offer.starting_with(words, params.argument.value)
    return types.CompleteResult(completion=types.Completion(values=values, total=len(values)))


async def main():
    server = Server(
        "python2",
        version="1.0.0",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=subscribe,
        on_unsubscribe_resource=unsubscribe,
        on_subscriptions_listen=ListenHandler(BUS),
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_set_logging_level=set_level,
    )
    options = server.create_initialization_options(NotificationOptions(tools_changed=True))
    if OPTIONS.http:
        app = server.streamable_http_app()
        return await uvicorn.Server(uvicorn.Config(app, port=OPTIONS.http, log_level="warning")).serve()
    async with stdio_server() as (read, write):
        await server.run(read, write, options)


anyio.run(main)
