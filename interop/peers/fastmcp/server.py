"""FastMCP as a server: what `taut serve` offers, with its decorators. It has no subscriptions."""

import pathlib
import sys
import warnings

import anyio
import mcp_types as types
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ResourceError, ToolError
from fastmcp.prompts import Message
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "python_common"))
import offer  # noqa: E402

warnings.filterwarnings("ignore")
OPTIONS = offer.arguments()
MCP = FastMCP("fastmcp", version="1.0.0", list_page_size=OPTIONS.page or None)
STATE = {"touched": 0}


class Sum(BaseModel):
    sum: float


def plain(text: str) -> str:
    return text


MCP.tool(plain, name="echo", description="Say it again.", output_schema=None)
for name, description, _schema in offer.plain_tools(OPTIONS.tools):
    MCP.tool(plain, name=name, description=description, output_schema=None)


@MCP.tool
def add(a: float, b: float) -> Sum:
    """Add two numbers."""
    return Sum(sum=a + b)


@MCP.tool(output_schema=None)
async def slow(ctx: Context, steps: int = 10, step_ms: int = 100) -> str:
    """Take a while, with progress."""
    for step in range(steps):
        await ctx.report_progress(step, steps, f"step {step + 1} of {steps}")
        try:
            await anyio.sleep(step_ms / 1000)
        except anyio.get_cancelled_exc_class():
            print("slow: cancelled", file=sys.stderr, flush=True)
            raise
    return f"done after {steps} steps"


@MCP.tool(output_schema=None)
def fail(reason: str = "it was asked to fail") -> str:
    """Fail."""
    raise ToolError(reason)


@MCP.tool(output_schema=None)
def big(bytes: int) -> str:
    """Return so many bytes of text."""
    return offer.big(bytes)


@MCP.tool(output_schema=None)
async def log(ctx: Context, message: str, level: str = "info") -> str:
    """Write a line to the client's log."""
    await ctx.log(message, level=level, logger_name="demo")
    return "logged"


def modern(ctx):
    return ctx.request_context.protocol_version in MODERN_PROTOCOL_VERSIONS


def answered(ctx):
    return (ctx.input_responses or {}).get("it")


def need(question):
    return types.InputRequiredResult(input_requests={"it": question})


@MCP.tool(output_schema=None)
async def ask(ctx: Context) -> str | types.InputRequiredResult:
    """Order a coffee."""
    message = "What would you like?"
    if modern(ctx):
        params = types.ElicitRequestFormParams(message=message, requested_schema=offer.COFFEE)
        if (answer := answered(ctx)) is None:
            return need(types.ElicitRequest(params=params))
    else:
        answer = await ctx.session.elicit_form(message, offer.COFFEE, ctx.request_id)
    return offer.order(answer.content) if answer.action == "accept" else "no coffee then"


@MCP.tool(output_schema=None)
async def sample(ctx: Context, prompt: str) -> str | types.InputRequiredResult:
    """Ask the client's model."""
    content = types.TextContent(type="text", text=prompt)
    messages = [types.SamplingMessage(role="user", content=content)]
    if modern(ctx):
        params = types.CreateMessageRequestParams(messages=messages, max_tokens=200)
        if (answer := answered(ctx)) is None:
            return need(types.CreateMessageRequest(params=params))
    else:
        answer = await ctx.session.create_message(
            messages, max_tokens=200, related_request_id=ctx.request_id
        )
    blocks = answer.content if isinstance(answer.content, list) else [answer.content]
    return "\n".join(block.text for block in blocks)


@MCP.tool(output_schema=None)
async def roots(ctx: Context) -> str | types.InputRequiredResult:
    """Tell which folders the client works in."""
    if modern(ctx):
        if (answer := answered(ctx)) is None:
            return need(types.ListRootsRequest())
    else:
        answer = await ctx.session.list_roots()
    return "\n".join(str(root.uri) for root in answer.roots)


@MCP.tool(output_schema=None)
async def add_tool(ctx: Context, name: str, says: str) -> str:
    """Add a tool."""

    def later() -> str:
        return says

    MCP.tool(later, name=name, description="Added by add_tool.", output_schema=None)
    await ctx.send_notification(types.ToolListChangedNotification())
    return f"there is a tool {name!r} now"


@MCP.tool(output_schema=None)
async def touch(ctx: Context) -> str:
    """Change the resource demo://touched."""
    STATE["touched"] += 1
    params = types.ResourceUpdatedNotificationParams(uri="demo://touched")
    await ctx.send_notification(types.ResourceUpdatedNotification(params=params))
    return str(STATE["touched"])


@MCP.resource("demo://readme", name="readme", mime_type="text/markdown")
def readme() -> str:
    return offer.README


@MCP.resource("demo://touched", name="touched", mime_type="text/plain")
def touched() -> str:
    return str(STATE["touched"])


@MCP.resource("weather://{city}/today", name="weather", mime_type="text/plain")
def weather(city: str) -> str:
    text = offer.weather(city)
    if text is None:
        raise ResourceError(f"no weather for {city!r}")
    return text


@MCP.prompt
def hello() -> str:
    """Say hello."""
    return "Say hello."


@MCP.prompt
def greet(name: str, language: str = "English") -> list[Message]:
    """Greet somebody."""
    return [Message(text, role=role) for role, text in offer.greeting(name, language)]


@MCP.completion
def complete(reference, argument, context):
    words = {"language": offer.LANGUAGES, "city": offer.CITIES}.get(argument.name, [])
    return offer.starting_with(words, argument.value)


if OPTIONS.http:
    MCP.run("http", port=OPTIONS.http, show_banner=False, uvicorn_config={"log_level": "warning"})
else:
    MCP.run("stdio", show_banner=False)
