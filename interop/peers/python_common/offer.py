"""What every Python peer's server offers, free of any SDK: names, schemas, answers."""

import argparse

CITIES = ["Amsterdam", "Athens", "Berlin", "Bern", "Lisbon", "Tokyo"]
LANGUAGES = ["Dutch", "English", "German", "Japanese"]
LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
README = "# interop peer\n\nOne of each thing that an MCP server can do.\n"
COFFEE = {
    "type": "object",
    "properties": {
        "size": {"type": "string", "enum": ["small", "large"]},
        "milk": {"type": "boolean", "default": True},
        "name": {"type": "string"},
    },
    "required": ["size"],
}
SUM = {"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]}


def takes(required=(), **properties):
    """An input schema: `takes(["text"], text="string")`."""
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": list(required),
    }


TOOLS = {
    "echo": ("Say it again.", takes(["text"], text="string")),
    "add": ("Add two numbers.", takes(["a", "b"], a="number", b="number")),
    "slow": ("Take a while, with progress.", takes(steps="integer", step_ms="integer")),
    "fail": ("Fail.", takes(reason="string")),
    "big": ("Return so many bytes of text.", takes(["bytes"], bytes="integer")),
    "log": ("Write a line to the client's log.", takes(["message"], level="string", message="string")),
    "ask": ("Order a coffee.", takes()),
    "sample": ("Ask the client's model.", takes(["prompt"], prompt="string")),
    "roots": ("Tell which folders the client works in.", takes()),
    "add_tool": ("Add a tool.", takes(["name", "says"], name="string", says="string")),
    "touch": ("Change the resource demo://touched.", takes()),
}


def plain_tools(count):
    """The extra tools that make a list long."""
    for number in range(count):
        yield f"tool_{number:03}", f"Plain tool number {number}.", takes(["text"], text="string")


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tools", type=int, default=0, help="so many extra plain tools")
    parser.add_argument("--page", type=int, default=0, help="items per page of a list; 0 = all")
    parser.add_argument("--http", type=int, metavar="PORT", help="serve Streamable HTTP there, not stdio")
    return parser.parse_args()


def page(items, cursor, size):
    """One page of `items`, and the cursor of the next one."""
    start = int(cursor or 0)
    if not size or start + size >= len(items):
        return items[start:], None
    return items[start : start + size], str(start + size)


def big(count):
    return ("0123456789abcdef" * (count // 16 + 1))[:count]


def order(content):
    milk = "with milk" if content.get("milk", True) else "black"
    return f"one {content['size']} coffee, {milk}, for {content.get('name') or 'you'}"


def weather(city):
    known = next((known for known in CITIES if known.lower() == city.lower()), None)
    return known and f"{known}: sunny, as always in a demo"


def greeting(name, language):
    """(role, text) of each message of the prompt `greet`."""
    return [
        ("user", f"Greet {name} in {language or 'English'}."),
        ("assistant", "With pleasure. In one sentence or in two?"),
        ("user", "In one."),
    ]


def starting_with(words, start):
    return [word for word in words if word.lower().startswith(start.lower())]
