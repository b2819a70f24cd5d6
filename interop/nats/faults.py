"""Faults in a fleet under load, with real processes. Every call is accounted for:

- it is answered once, and ran once; or
- it failed with an error that says that nothing ran, and did not run; or
- it failed with an error that says that it may have run, and ran once or not at all.

The tool is not annotated as one that may run twice, so no call may run twice.

usage: faults.py TAUT NATS_SERVER TIMES [FAULT...]
"""

import collections
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

TAUT, NATS, TIMES = sys.argv[1], sys.argv[2], int(sys.argv[3])
HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 120


class Failed(Exception):
    pass


def wait(what, holds, limit=LIMIT):
    end = time.time() + limit
    while not holds():
        if time.time() > end:
            raise Failed(f"{what}: not within {limit} s")
        time.sleep(0.02)


class Broker:
    def __init__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"nats://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        command = [NATS, "-a", "127.0.0.1", "-p", str(self.port)]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        wait("the broker starts", self.is_up)

    def is_up(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self):
        self.process.kill()
        self.process.wait()


class Worker:
    def __init__(self, world, *options):
        counter = [sys.executable, os.path.join(HERE, "counter.py"), world.runs]
        command = [TAUT, "worker", "test", "--nats", world.broker.url, *options, "--", *counter]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        if " serves test at " not in line:
            raise Failed(f"a worker does not start: {line}")
        self.id = line.split()[1]
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def children(self):
        found = []
        for task in os.listdir(f"/proc/{self.process.pid}/task"):
            with open(f"/proc/{self.process.pid}/task/{task}/children") as file:
                found += [int(pid) for pid in file.read().split()]
        if not found:
            raise Failed("a worker without a child")
        return found

    def stop(self):
        self.process.terminate()
        status = self.process.wait(LIMIT)
        if status != 0:
            raise Failed(f"a worker that was told to stop exits with {status}")

    def kill(self):
        self.process.kill()
        self.process.wait()


class Edge:
    """A host with `taut bridge nats:test` as its server."""

    def __init__(self, world, *options):
        command = [TAUT, "bridge", "nats:test", "--nats", world.broker.url, *options]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.lock, self.waiting, self.next = threading.Lock(), {}, 0
        self.twice = []
        threading.Thread(target=self.read, daemon=True).start()
        host = {"name": "faults", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": host}
        if "result" not in self.request("initialize", params):
            raise Failed("the edge does not start")
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def write(self, message):
        line = (json.dumps(message) + "\n").encode()
        with self.lock:
            self.process.stdin.write(line)
            self.process.stdin.flush()

    def read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            if "id" in message and "method" not in message:
                slot = self.waiting.pop(message["id"], None)
                if slot is None:
                    self.twice.append(message["id"])
                else:
                    slot.append(message)
        for slot in list(self.waiting.values()):
            slot.append({"gone": True})

    def request(self, method, params):
        with self.lock:
            self.next += 1
            id = self.next
        slot = self.waiting[id] = []
        try:
            self.write({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        except (BrokenPipeError, ValueError):
            return {"gone": True}
        wait(f"an answer to {method}", lambda: slot)
        return slot[0]

    def call(self, **arguments):
        return self.request("tools/call", {"name": "run", "arguments": arguments})

    def close(self):
        self.process.stdin.close()
        self.process.wait(LIMIT)


class World:
    """A broker, workers, an edge, and a load whose calls are kept."""

    def __init__(self, folder, workers=3, options=()):
        self.runs = os.path.join(folder, "runs")
        open(self.runs, "w").close()
        self.broker = Broker()
        self.workers = [Worker(self, *options) for _ in range(workers)]
        self.edge = Edge(self)
        self.calls, self.done, self.threads = [], False, []

    def load(self, callers=8, ms=20):
        def caller(number):
            count = 0
            while not self.done:
                token = f"{number}-{count}"
                count += 1
                self.calls.append((token, self.edge.call(token=token, ms=ms)))

        self.threads = [threading.Thread(target=caller, args=(n,)) for n in range(callers)]
        for thread in self.threads:
            thread.start()

    def some_more(self, count=20):
        """Waits until further calls were made."""
        goal = len(self.calls) + count
        wait("calls are made", lambda: len(self.calls) >= goal)

    def finish(self):
        """Ends the load and accounts for every call. Returns how many were answered, and how others failed."""
        self.done = True
        for thread in self.threads:
            thread.join(LIMIT)
        # A call that was given up may still be running.
        time.sleep(0.5)
        with open(self.runs) as file:
            ran = collections.Counter(file.read().split())
        failed = collections.Counter()
        answered = 0
        for token, message in self.calls:
            if ran[token] > 1:
                raise Failed(f"{token} ran {ran[token]} times")
            if "result" in message:
                answered += 1
                if ran[token] != 1:
                    raise Failed(f"{token} was answered and ran {ran[token]} times")
                continue
            error = message.get("error", {})
            data = error.get("data") or {}
            # Without a word about it, such as a child that died: it may have run.
            if data.get("mayHaveRun", True) is False and ran[token] != 0:
                raise Failed(f"{token} ran, and its error says that it did not: {error}")
            failed[data.get("fleet", "gone" if "gone" in message else "server")] += 1
        if self.edge.twice:
            raise Failed(f"answered twice: {self.edge.twice}")
        return answered, failed

    def end(self):
        self.done = True
        for process in [self.edge, *self.workers, self.broker]:
            if process.process.poll() is None:
                process.process.kill()
                process.process.wait()


def kill_worker(world):
    world.load()
    world.some_more()
    world.workers.pop(0).kill()
    world.workers.append(Worker(world))
    world.some_more()


def kill_child(world):
    # Long enough that the child has calls when it dies.
    world.load(ms=300)
    world.some_more()
    for child in world.workers[0].children():
        os.kill(child, signal.SIGKILL)
    world.some_more()


def kill_edge(world):
    world.load()
    world.some_more()
    world.edge.process.kill()
    world.done = True
    for thread in world.threads:
        thread.join(LIMIT)
    first, world.calls, world.done = world.calls, [], False
    world.edge = Edge(world)
    world.calls = [(token, message) for token, message in first]
    token = "after"
    world.calls.append((token, world.edge.call(token=token)))
    if "result" not in world.calls[-1][1]:
        raise Failed("the next edge does not work")


def restart_broker(world):
    world.load()
    world.some_more()
    world.broker.kill()
    time.sleep(random.random())
    world.broker.start()
    world.some_more()


def freeze_worker(world):
    world.load()
    world.some_more()
    os.kill(world.workers[0].process.pid, signal.SIGSTOP)
    world.some_more(10)
    time.sleep(8)
    os.kill(world.workers[0].process.pid, signal.SIGCONT)
    world.some_more()


def rolling_restart(world):
    world.load()
    for _ in range(len(world.workers)):
        world.workers.append(Worker(world))
        world.some_more(5)
        world.workers.pop(0).stop()
    world.some_more()
    answered, failed = world.finish()
    if failed:
        raise Failed(f"{sum(failed.values())} calls failed: {dict(failed)}")


def long_messages(world):
    size = 16 << 20
    there = world.edge.call(token="there", text="x" * size)
    back = world.edge.call(token="back", size=size)
    world.calls += [("there", there), ("back", back)]
    text = lambda message: message["result"]["content"][0]["text"]
    if text(there) != str(size) or text(back) != "y" * size:
        raise Failed("16 MiB do not pass")


FAULTS = [kill_worker, kill_child, kill_edge, restart_broker, freeze_worker, rolling_restart, long_messages]


def main():
    chosen = sys.argv[4:]
    for fault in FAULTS:
        if chosen and fault.__name__ not in chosen:
            continue
        for turn in range(TIMES):
            with tempfile.TemporaryDirectory() as folder:
                world, began = World(folder), time.time()
                try:
                    fault(world)
                    answered, failed = world.finish()
                except Failed as error:
                    print(f"{fault.__name__} {turn + 1}: FAILED: {error}", flush=True)
                    sys.exit(1)
                finally:
                    world.end()
            told = ", ".join(f"{count} {reason}" for reason, count in sorted(failed.items()))
            print(
                f"{fault.__name__} {turn + 1}/{TIMES}: {answered} answered, failed: {told or 'none'}"
                f" ({time.time() - began:.1f} s)",
                flush=True,
            )


main()
