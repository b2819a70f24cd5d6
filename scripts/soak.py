#!/usr/bin/env python3
"""A long run under a rude load: does anything grow, get lost, hang, or stay behind?

usage: scripts/soak.py TAUT [--seconds N] [--seed N]      default: 1800 seconds, a seed that is printed

One `taut serve` lives for the whole run. A client of our own sends it a mixed load at random: calls of every
kind, floods, cancellations, garbage, broken framing, messages that are too long, logs without end, panics, and
prints to a stderr that is not read for seconds at a time. Beside it, one after the other, short lives: hosts that
vanish, servers under a limit on memory, blocked outputs, signals, rude servers for the command. Everything is
bounded and stays on this machine.

Checked all the time: each request is answered once and in time, and each short life ends in time, as it should,
and leaves no process behind. Checked at the end, for the server that lived: resident memory does not rise from
the second quarter of the run to the last, and descriptors and threads are as many as after the first minute.
The exit status says whether all of that held. Needs Python 3.10 on Linux, and nothing else.
"""

import argparse
import json
import math
import os
import pty
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

PATIENCE = 180  # seconds; far above what any answer takes, also on a machine that is busy with other things
MEMORY_SLACK = 3 << 10  # KiB between two medians: what an allocator keeps or gives back
SETTLED = 900  # seconds
MARK = f"taut-soak-{os.getpid()}"
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/logLevel": "debug"}


class Fault(Exception):
    """Something that must not happen."""


def environment():
    # HOME is one of the few variables that taut passes on to a server, so the mark reaches all that is started.
    return {**os.environ, "HOME": f"/nonexistent/{MARK}", "RUST_BACKTRACE": "0"}


def spawn(words, **more):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(words, env=environment(), **{**pipes, **more})


def ends(child, what, seconds=PATIENCE):
    """The exit status of what has to end by itself."""
    try:
        return child.wait(seconds)
    except subprocess.TimeoutExpired:
        child.kill()
        raise Fault(f"{what}: it was still there after {seconds} s") from None


def line(**message):
    return (json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")) + "\n").encode()


def call(ident, tool, arguments, token=None):
    meta = {**META, "progressToken": token} if token is not None else META
    return line(id=ident, method="tools/call", params={"name": tool, "arguments": arguments, "_meta": meta})


class Server:
    """The server that lives for the whole run, and what it owes."""

    def __init__(self, taut):
        self.child = spawn([taut, "serve"])
        self.lock, self.changed = threading.Lock(), threading.Condition()
        self.owed, self.maybe, self.next, self.answers, self.told = {}, set(), 0, 0, 0
        self.fault = None
        self.reading = threading.Event()
        self.reading.set()
        for work in (self.read, self.read_stderr):
            threading.Thread(target=work, daemon=True).start()

    def read(self):
        for raw in self.child.stdout:
            try:
                message = json.loads(raw)
            except ValueError:
                self.fail(f"no JSON on the wire: {raw[:200]!r}")
                continue
            for one in message if isinstance(message, list) else [message]:
                self.take(one)

    def take(self, message):
        with self.changed:
            if "method" in message:
                self.told += 1
                return
            ident = message.get("id")
            self.answers += 1
            if ident in self.owed:
                del self.owed[ident]
            elif ident in self.maybe:
                self.maybe.discard(ident)
            elif ident is not None:
                self.fail(f"an answer that nobody is owed: {str(message)[:200]}")
            self.changed.notify_all()

    def read_stderr(self):
        while True:
            self.reading.wait()
            if not os.read(self.child.stderr.fileno(), 4096):
                return

    def fail(self, words):
        self.fault = self.fault or words

    def send(self, data):
        try:
            self.child.stdin.write(data)
            self.child.stdin.flush()
        except BrokenPipeError:
            raise Fault(f"the server has gone: {self.child.poll()}") from None

    def fresh(self, owed=True):
        with self.changed:
            self.next += 1
            if owed:
                self.owed[self.next] = time.monotonic()
            return self.next

    def settle(self):
        """Waits until all that is owed was answered."""
        deadline = time.monotonic() + PATIENCE
        with self.changed:
            while self.owed and not self.fault:
                if not self.changed.wait(max(0, deadline - time.monotonic())):
                    raise Fault(f"{len(self.owed)} requests were not answered in {PATIENCE} s: {sorted(self.owed)[:5]}; "
                                f"the server's threads: {self.threads()}")
            # What was cancelled may be answered or not, but not later than this.
            self.maybe.clear()
        if self.fault:
            raise Fault(self.fault)

    def threads(self):
        """What each thread does, for finding out whether it hangs or is slow: name, state, ticks, where it waits."""
        base, told = f"/proc/{self.child.pid}/task", []
        for task in os.listdir(base):
            stat = open(f"{base}/{task}/stat").read()
            fields = stat.rpartition(")")[2].split()
            told.append((stat.split("(")[1].split(")")[0], fields[0], int(fields[11]) + int(fields[12]),
                         open(f"{base}/{task}/wchan").read()))
        return told

    def figures(self):
        base = f"/proc/{self.child.pid}"
        status = dict(row.split(":", 1) for row in open(f"{base}/status") if ":" in row)
        return {"rss": int(status["VmRSS"].split()[0]), "threads": int(status["Threads"]),
                "fds": len(os.listdir(f"{base}/fd"))}


class Load:
    """What the rude client does, one thing at a time. Each leaves nothing owed for long."""

    def __init__(self, server, rng):
        self.server, self.rng = server, rng

    def call(self, tool, arguments, token=None):
        self.server.send(call(self.server.fresh(), tool, arguments, token))

    def echo(self):
        self.call("echo", {"text": "x" * self.rng.choice([0, 1, 100, 5000, 70_000])})

    def long_echo(self):
        self.call("echo", {"text": "é\\\"" * self.rng.randrange(300_000)})

    def add(self):
        self.call("add", {"a": self.rng.choice([1, 1.0, -0.0, 1e300, "one", None, []]), "b": 2})

    def lists(self):
        for method in ("tools/list", "resources/list", "prompts/list", "resources/templates/list"):
            self.server.send(line(id=self.server.fresh(), method=method, params={"_meta": META}))

    def fail(self):
        self.call("fail", {"reason": "rain"})

    def panic(self):
        for _ in range(self.rng.randrange(1, 30)):
            self.call("panic", {})

    def prints(self):
        for _ in range(self.rng.randrange(1, 30)):
            self.call("print", {"text": "p" * self.rng.randrange(3000)})

    def unread_stderr(self):
        """Nobody reads stderr while more is printed than a pipe holds."""
        self.server.reading.clear()
        try:
            for _ in range(100):
                self.call("print", {"text": "u" * 1000})
            for _ in range(100):
                self.call("panic", {})
            self.server.settle()
        finally:
            self.server.reading.set()

    def big(self):
        self.call("big", {"bytes": self.rng.randrange(4 << 20)})

    def slow(self):
        self.call("slow", {"steps": self.rng.randrange(1, 5), "step_ms": self.rng.randrange(30)}, token="t")

    def cancelled(self):
        ids = [self.server.fresh(owed=False) for _ in range(self.rng.randrange(1, 50))]
        with self.server.changed:
            self.server.maybe.update(ids)
        for ident in ids:
            self.server.send(call(ident, "slow", {"steps": 1000, "step_ms": 100}))
        self.rng.shuffle(ids)
        for ident in ids:
            self.server.send(line(method="notifications/cancelled", params={"requestId": ident}))

    def flood(self):
        self.server.send(b"".join(call(self.server.fresh(), "echo", {"text": str(n)}) for n in range(2000)))

    def logs(self):
        for _ in range(200):
            self.call("log", {"level": self.rng.choice(["debug", "emergency", "nonsense"]), "message": "l" * 500})

    def touch(self):
        self.call("touch", {})

    def garbage(self):
        self.server.send(self.rng.choice([
            b"\n", b"not json\n", b"{\n", b"[]\n", b"null\n", b"{}\n", b'"text"\n', b"\xff\xfe\xfd\n", b"\x00\n", b"[" * 5000 + b"\n",
            b'{"jsonrpc":"2.0","id":{},"method":"ping"}\n', b'{"jsonrpc":"2.0","method":5}\n', b'{"jsonrpc":"1.0","id":null}\n',
            b'{"jsonrpc":"2.0","id":null,"result":{}}\n', b"Content-Length: x\r\n\r\n", b"Content-Length: 99999999999\r\n\r\n{}\n",
            bytes(self.rng.randrange(1, 256) for _ in range(300)).replace(b"\n", b"") + b"\n",
        ]))

    def unknown(self):
        self.server.send(line(id=self.server.fresh(), method=self.rng.choice(["nope", "tools/nope", "initialize "]), params={"_meta": META}))
        self.call("nope", {})
        self.server.send(line(method="notifications/nope", params={"deep": "x" * 1000}))

    def pieces(self):
        data = call(self.server.fresh(), "echo", {"text": "in pieces"})
        while data:
            cut = self.rng.randrange(1, 60)
            self.server.send(data[:cut])
            data = data[cut:]

    def reads(self):
        for uri in ("demo://readme", "demo://nope", "weather://Lisbon/today", "weather://Nowhere/today"):
            self.server.send(line(id=self.server.fresh(), method="resources/read", params={"uri": uri, "_meta": META}))

    def too_long(self):
        # Skipped without being kept; the answer has the id, or none.
        ident = self.server.fresh(owed=False)
        with self.server.changed:
            self.server.maybe.add(ident)
        start = call(ident, "echo", {"text": ""})[:-6]
        self.server.send(start)
        for _ in range(65):
            self.server.send(b"y" * (1 << 20))
        self.server.send(b'"}}}\n')
        # Read after it, so that this is not answered before it.
        self.echo()

    ALL = [(echo, 30), (long_echo, 2), (add, 10), (lists, 5), (fail, 5), (panic, 2), (prints, 2), (unread_stderr, 0.3),
           (big, 2), (slow, 5), (cancelled, 5), (flood, 2), (logs, 2), (touch, 3), (garbage, 10), (unknown, 5),
           (pieces, 3), (reads, 5), (too_long, 0.2)]

    def once(self):
        work, weights = zip(*self.ALL)
        self.rng.choices(work, weights)[0](self)


RUDE = r"""
import json,sys
habit = sys.argv[1]
def out(**m): print(json.dumps({"jsonrpc":"2.0",**m}), flush=True)
evil = "\x1b[2J\x1b]0;x\x07\u009b2J\u202e\u3164"
n = 0
for row in sys.stdin:
    m = json.loads(row); i = m.get("id"); k = m.get("method")
    if k == "resources/subscribe":
        out(id=i, result={})
        while True: out(method="notifications/resources/updated", params={"uri": "x:" + evil + "u" * 3000000})
    if i is None: continue
    if k == "initialize": out(id=i, result={"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{"subscribe":True}},"serverInfo":{"name":evil,"version":"1"}})
    elif k == "tools/list":
        n += 1
        count = {"pages": 2000, "schema": 100000}.get(habit, 1)
        tool = {"name":"t%d" % n,"description":evil + "d" * 100000,"inputSchema":{"type":"object","properties":{"p%d" % p:{"type":"string"} for p in range(count)}}}
        out(id=i, result={"tools":[tool], **({"nextCursor":str(n)} if habit == "pages" else {})})
    elif k == "tools/call":
        called = i
        many = ["c%d" % c for c in range(20000)]
        field = {"type":"array","items":{"type":"string","enum":many},"default":many}
        out(id=77, method="elicitation/create", params={"message":evil,"requestedSchema":{"type":"object","properties":{"f":field}}})
    elif k: out(id=i, error={"code":-32601,"message":evil})
    elif i == 77: out(id=called, result={"content":[{"type":"text","text":evil}]})
"""

# What no terminal may get from a server.
EVIL = [b"\x1b[2J", b"\x1b]0;", b"\x07", "\u009b".encode(), "\u202e".encode(), "\u3164".encode()]


class Lives:
    """Short lives beside the long one."""

    def __init__(self, taut, rng):
        self.taut, self.rng = taut, rng

    def command(self, line, habit, codes, mebibytes=400, terminal=False, **more):
        """Runs the command on a rude server: its exit status, its memory, and on a terminal what it shows."""
        words = [self.taut, *line.split(), "--", sys.executable, "-c", RUDE, habit]
        shown = b""
        if terminal:
            ours, theirs = pty.openpty()
            child = spawn(words, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, **more)
            os.close(theirs)
            while True:
                try:
                    shown += os.read(ours, 1 << 16)
                except OSError:
                    break
            os.close(ours)
        else:
            child = spawn(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode not in codes:
            raise Fault(f"taut {line} on a server that is rude with {habit} exited with {child.returncode}")
        if used.ru_maxrss > mebibytes << 10:
            raise Fault(f"taut {line} on a server that is rude with {habit} took {used.ru_maxrss >> 10} MiB")
        found = [each for each in EVIL if each in shown]
        if found:
            raise Fault(f"taut {line}: {found} of a server reached the terminal")

    def vanished_host(self):
        child = spawn([self.taut, "serve"], stderr=subprocess.DEVNULL)
        for n in range(20):
            child.stdin.write(call(n, "slow", {"steps": 1000, "step_ms": 100}))
        child.stdin.flush()
        # Both ends at once, as when a host is killed: nobody reads, so nothing is finished.
        child.stdout.close()
        child.stdin.close()
        self.ended(child, "a server whose host has vanished", [0])

    def ended(self, child, what, codes):
        code = ends(child, what)
        if code not in codes:
            raise Fault(f"{what} exited with {code}, not {codes}")

    def unread_until_the_end(self):
        child = spawn([self.taut, "serve", "--debug"])
        for n in range(300):
            child.stdin.write(call(n, self.rng.choice(["print", "panic"]), {}))
        child.stdin.close()
        answers = len(child.stdout.read().splitlines())
        if answers != 300:
            raise Fault(f"with an unread stderr {answers} of 300 calls were answered")
        ends(child, "a server with an unread stderr")

    def little_memory(self):
        child = spawn(["sh", "-c", 'ulimit -v 250000; exec "$0" serve', self.taut], stderr=subprocess.DEVNULL)
        data = call(1, "echo", {"text": "m" * (63 << 20)}) + call(2, "echo", {"text": "small"})

        def feed():
            child.stdin.write(data)
            child.stdin.close()

        threading.Thread(target=feed, daemon=True).start()
        rows = child.stdout.read().splitlines()
        if len(rows) != 2 or b"small" not in rows[1]:
            raise Fault(f"under a limit on memory: {[row[:200] for row in rows]}")
        ends(child, "a server under a limit on memory")

    def signalled(self):
        child = spawn([self.taut, "serve"], stderr=subprocess.DEVNULL)
        child.stdin.write(call(1, "slow", {"steps": 1000, "step_ms": 100}) + call(2, "echo", {"text": "x"}))
        child.stdin.flush()
        child.stdout.readline()
        sent = self.rng.choice([signal.SIGINT, signal.SIGTERM])
        child.send_signal(sent)
        self.ended(child, "a server that was told to end", [0, 128 + sent])

    def full_stdout(self):
        child = spawn([self.taut, "call", "big", "bytes=3000000", "--", self.taut, "serve"], stdin=subprocess.DEVNULL)
        time.sleep(self.rng.random())
        child.send_signal(signal.SIGINT)
        # In its first moments nobody has asked for the signal yet.
        self.ended(child, "the command with a full stdout", [130, -signal.SIGINT])

    def legacy_session(self):
        child = spawn([self.taut, "serve"], stderr=subprocess.DEVNULL)
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "soak", "version": "1"}}
        rows = [line(id=1, method="initialize", params=hello), line(method="notifications/initialized"),
                line(id=2, method="resources/subscribe", params={"uri": "demo://clock"}),
                line(id=3, method="tools/list"), line(id=4, method="tools/call", params={"name": "touch", "arguments": {}}),
                line(id=5, method="resources/unsubscribe", params={"uri": "demo://clock"})]
        child.stdin.write(b"".join(rows))
        child.stdin.close()
        answers = [json.loads(row) for row in child.stdout.read().splitlines()]
        if sorted(a["id"] for a in answers if "id" in a) != [1, 2, 3, 4, 5]:
            raise Fault(f"a legacy session was answered {answers}")
        self.ended(child, "a legacy session", [0])

    def endless_lists(self):
        self.command("list --max-time 5s", "pages", [3, 5, 6], terminal=self.rng.random() < 0.5)

    def endless_changes(self):
        self.command("watch --for 2s --resource x:1", "changes", [0, 5], terminal=self.rng.random() < 0.5)

    def large_schema(self):
        self.command("list tools", "schema", [0], terminal=self.rng.random() < 0.5)

    def large_form(self):
        self.command("call t1 --max-time 60s", "form", [0, 3], terminal=self.rng.random() < 0.5)

    def device_for_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "opencode.json"), "w") as file:
                file.write('{"mcp":{"x":{"type":"local","command":["{file:/dev/zero}"]}}}')
            child = spawn([self.taut, "servers"], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            ends(child, "taut servers with a device for a file")

    def inherited_descriptor(self):
        with tempfile.NamedTemporaryFile(prefix="secret") as secret:
            os.set_inheritable(secret.fileno(), True)
            words = [self.taut, self.rng.choice(["list", "smoke", "check --only rpc"]), "--", "sh", "-c",
                     'ls -l /proc/$$/fd >&2; exec "$0" serve', self.taut]
            words[1:2] = words[1].split()
            child = spawn(words + [], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, close_fds=False)
            out, err = child.communicate(timeout=PATIENCE)
            if secret.name.encode() in out + err:
                raise Fault("a descriptor that taut inherited reached a server")

    def orphans(self):
        words = [self.taut, "doctor", "--", "sh", "-c", "sleep 100 & sleep 0.1; exit 1"]
        child = spawn(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.ended(child, "the doctor", range(1, 8))

    def smoke(self):
        child = spawn([self.taut, "smoke", "--", self.taut, "serve"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if ends(child, "taut smoke") != 0:
            raise Fault("taut smoke failed")

    ALL = [vanished_host, unread_until_the_end, little_memory, signalled, full_stdout, legacy_session, endless_lists,
           endless_changes, large_schema, large_form, device_for_a_file, inherited_descriptor, orphans, smoke]

    def once(self):
        life = self.rng.choice(self.ALL)
        life(self)
        return life.__name__


def left_behind(kept):
    """Processes with our mark, but for these."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if int(name) not in kept and MARK.encode() in open(f"/proc/{name}/environ", "rb").read():
                found.append(int(name))
        except OSError:
            pass
    return found


def slope_of(points):
    """The slope of the line through the points, and its standard error from the means of ten blocks, since neighbours are alike."""
    size = max(1, len(points) // 10)
    blocks = [[statistics.fmean(axis) for axis in zip(*points[at:at + size])] for at in range(0, len(points) - size + 1, size)]
    if len(blocks) < 3:
        return 0, math.inf
    x, y = zip(*blocks)
    slope, start = statistics.linear_regression(x, y)
    spread = sum((each - statistics.fmean(x)) ** 2 for each in x)
    left = sum((b - start - slope * a) ** 2 for a, b in blocks) / (len(blocks) - 2)
    return slope, math.sqrt(left / spread)


def judge(samples):
    """What grew."""
    quarter = len(samples) // 4
    faults = []
    if quarter < 2:
        return ["too few samples to judge: let it run longer"]
    early, late = samples[quarter:2 * quarter], samples[-quarter:]
    before, after = (statistics.median(s["rss"] for s in part) for part in (early, late))
    # At first everything grows to its size: buffers, the allocator's own.
    if samples[-1]["at"] < SETTLED:
        print(f"memory is not judged in less than {SETTLED} s")
    elif after > before + MEMORY_SLACK:
        faults.append(f"resident memory rose from {before:.0f} to {after:.0f} KiB")
    for name in ("fds", "threads"):
        # When nothing runs there are no others than at rest.
        before, after = (min(s[name] for s in part) for part in (early, late))
        if after != before:
            faults.append(f"{name} went from {before} to {after}")
    # Texts of megabytes come and go, so single samples say little; what leaks also lifts the lowest of a quarter.
    parts = [samples[n * quarter:(n + 1) * quarter] for n in range(3)] + [late]
    lowest, middle = ([f(s["rss"] for s in part) for part in parts] for f in (min, statistics.median))
    slope, error = slope_of([(s["at"] / 3600, s["rss"]) for s in samples[quarter:]])
    print(f"memory by quarters, KiB: lowest {' '.join(f'{n:.0f}' for n in lowest)}, median {' '.join(f'{n:.0f}' for n in middle)}; "
          f"slope after the first {slope:+.0f} KiB per hour, standard error {error:.0f}; "
          f"{min(s['fds'] for s in late)} descriptors, {min(s['threads'] for s in late)} threads at rest")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("taut")
    parser.add_argument("--seconds", type=float, default=1800)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    args = parser.parse_args()
    taut, rng = os.path.abspath(args.taut), random.Random(args.seed)
    # Started in the background, SIGINT is ignored, and so it would be in all that is started here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print(f"seed {args.seed}, {args.seconds:.0f} s", flush=True)
    server = Server(taut)
    load, lives = Load(server, random.Random(rng.random())), Lives(taut, random.Random(rng.random()))
    began, samples, lived, faults, stop = time.monotonic(), [], {}, [], threading.Event()

    def live():
        while not stop.is_set() and not faults:
            try:
                name = lives.once()
                lived[name] = lived.get(name, 0) + 1
            except Fault as fault:
                faults.append(str(fault))
            except Exception as error:  # a fault of this script, or a pipe that broke
                faults.append(f"{type(error).__name__}: {error}")

    beside = threading.Thread(target=live)
    beside.start()
    told = began
    try:
        while time.monotonic() - began < args.seconds and not faults:
            for _ in range(load.rng.randrange(1, 20)):
                load.once()
            server.settle()
            samples.append({"at": time.monotonic() - began, **server.figures()})
            if time.monotonic() - told > 60:
                told = time.monotonic()
                print(f"{told - began:6.0f} s: {server.answers} answers, {sum(lived.values())} lives, {samples[-1]}", flush=True)
    except Fault as fault:
        faults.append(str(fault))
    stop.set()
    beside.join()
    server.reading.set()
    server.child.stdin.close()
    if not faults and ends(server.child, "the long life") != 0:
        faults.append(f"the long life ended with {server.child.returncode}")
    deadline = time.monotonic() + 10
    while left_behind({os.getpid()}) and time.monotonic() < deadline:
        time.sleep(0.1)
    faults += [f"left behind: process {pid}" for pid in left_behind({os.getpid()})]
    print(f"{server.answers} answers and {server.told} notifications in {time.monotonic() - began:.0f} s; "
          f"lives: {', '.join(f'{name} {count}' for name, count in sorted(lived.items()))}")
    faults += judge(samples)
    for fault in faults:
        print(f"FAULT: {fault}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
