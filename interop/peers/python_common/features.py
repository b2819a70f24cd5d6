"""How every Python peer's client tells what it tried, free of any SDK."""

import argparse
import json
import os
import signal

import anyio

# Generous: it only guards against hangs, and a test machine can be busy.
DEADLINE = 45


class Missing(Exception):
    """The SDK does not have it."""


def arguments(modes):
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=modes, default="default")
    parser.add_argument("--hold", action="store_true", help="start one call and wait to be killed")
    parser.add_argument("--only", help="run these features only, comma separated")
    parser.add_argument("server", nargs="+")
    return parser.parse_args()


def is_url(options):
    """Whether the server is one that runs already: then its process is not ours to end."""
    return options.server[0].startswith("http://")


def names(options):
    """The features to try. Over HTTP a request may have 4 MiB, so 10 are not tried."""
    return [name for name in NAMES if name != "mib10" or not is_url(options)]


def say(**line):
    print(json.dumps(line), flush=True)


def check(true, what):
    if not true:
        raise AssertionError(what)


class Features:
    def __init__(self, only):
        self.only = only and only.split(",")

    async def run(self, name, feature):
        """Try one feature; it may return a note."""
        if self.only and name not in self.only:
            return
        try:
            with anyio.fail_after(DEADLINE):
                note = await feature()
            say(feature=name, ok=True, note=note or "")
        except Missing as missing:
            say(feature=name, ok=None, note=str(missing))
        except Exception as error:  # noqa: BLE001, whatever it is, it is what the table tells
            say(feature=name, ok=False, note=f"{type(error).__name__}: {error}"[:400])


def servers():
    """The children of this process."""
    me, found = str(os.getpid()), []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as stat:
                fields = stat.read().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[1] == me and fields[0] != "Z":
            found.append(int(pid))
    return found


def kill(pids):
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


async def gone(pids, seconds=20):
    """None of `pids` is left (a child that nobody has reaped yet counts as gone)."""
    with anyio.fail_after(seconds):
        while set(pids) & set(servers()):
            await anyio.sleep(0.02)


async def until(condition, seconds=30):
    with anyio.fail_after(seconds):
        while not condition():
            await anyio.sleep(0.01)


SLOW = {"steps": 600, "step_ms": 100}
COFFEE = {"size": "large", "milk": True, "name": "Ada"}
ORDER = "one large coffee, with milk, for Ada"
PROMPT, ANSWER = "Capital of Portugal?", "Lisbon"
ROOT = "file:///interop/project"
NAMES = (
    "list paging call structured error progress cancel log resources template subscribe prompts "
    "completion ask sample roots changed unicode mib1 mib10 hundred"
).split()
UNICODE = 'π ☕ 日本語 👩\u200d👩\u200d👧 e\u0301 \u2028 \u2029 \u0085 \u0000 "\\ \t\r\n end'
