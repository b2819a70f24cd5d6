"""A fleet of real processes: brokers, workers, edges, and a load whose calls are all accounted for."""

import collections
import itertools
import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 120

# So many calls have to be answered after a fault, and as many again.
RECOVERED = 24


class Failed(Exception):
    pass


def wait(what, holds, limit=LIMIT):
    end = time.time() + limit
    while not holds():
        if time.time() > end:
            raise Failed(f"{what}: not within {limit} s")
        time.sleep(0.02)


def says(taut, words, status, *expected, within=None):
    """Runs the command, which has to end with this status and to say all of this."""
    began = time.time()
    done = subprocess.run([taut, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    took = time.time() - began
    text = done.stdout + done.stderr
    missing = [part for part in expected if part not in text]
    if done.returncode != status or missing or "secret" in text:
        raise Failed(f"taut {' '.join(words)}: exit {done.returncode}, expected {expected}: {text}")
    if within and took > within:
        raise Failed(f"taut {' '.join(words)} took {took:.1f} s")
    return text


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Broker:
    def __init__(self, program, *options):
        self.program, self.options = program, options
        # Another process may take a free port before the broker does.
        wait("the broker starts", lambda: self.launch(free_port()))

    def start(self):
        """Starts it again after it was killed."""
        wait("the broker starts", lambda: self.launch(self.port))

    def launch(self, port):
        self.port, self.url = port, f"nats://127.0.0.1:{port}"
        command = [self.program, "-a", "127.0.0.1", "-p", str(port), *self.options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if line.rstrip().endswith("Server is ready"):
                threading.Thread(target=self.process.stderr.read, daemon=True).start()
                return True
        self.process.wait()
        return False

    def kill(self):
        self.process.kill()
        self.process.wait()


def cluster(program):
    """Three brokers that are one cluster."""
    routes = [f"nats://127.0.0.1:{free_port()}" for _ in range(3)]
    every = ",".join(routes)
    return [Broker(program, "--cluster_name", "test", "--cluster", one, "--routes", every) for one in routes]


class Worker:
    """`taut worker test`; ready once it has said so."""

    def __init__(self, taut, url, server, *options):
        command = [taut, "worker", "test", "--nats", url, *options, "--", *server]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    def ready(self):
        line = self.process.stderr.readline()
        if " serves test at " not in line:
            raise Failed(f"a worker does not start: {line}")
        self.id = line.split()[1]
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        return self

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

    def __init__(self, taut, url, *options):
        command = [taut, "bridge", "nats:test", "--nats", url, *options]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.lock, self.waiting, self.next = threading.Lock(), {}, itertools.count(1)
        self.twice, self.ended = [], False
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        host = {"name": "faults", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": host}
        answer = self.request("initialize", params)
        if "result" not in answer:
            raise Failed(f"the edge does not start: {answer}")
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
                    slot.put(message)
        self.ended = True
        for slot in list(self.waiting.values()):
            slot.put({"gone": True})

    def request(self, method, params):
        id = next(self.next)
        slot = self.waiting[id] = queue.SimpleQueue()
        try:
            self.write({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        except (BrokenPipeError, ValueError):
            return {"gone": True}
        if self.ended:
            slot.put({"gone": True})
        try:
            return slot.get(timeout=LIMIT)
        except queue.Empty:
            raise Failed(f"no answer to {method} within {LIMIT} s") from None

    def call(self, tool, **arguments):
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.wait(LIMIT)
        # Everything that it has written counts, also what comes last.
        self.reader.join(LIMIT)
        if self.reader.is_alive():
            raise Failed("the output of an edge does not end")


class World:
    """Brokers, workers, an edge, and a load whose calls are kept."""

    def __init__(self, taut, nats, folder, nodes=1):
        self.taut, self.nats = taut, nats
        self.runs = os.path.join(folder, "runs")
        open(self.runs, "w").close()
        self.brokers = cluster(nats) if nodes == 3 else [Broker(nats)]
        self.url = ",".join(broker.url for broker in self.brokers)
        self.workers, self.edges, self.threads, self.calls = [], [], [], []
        self.repeated = 0
        self.done, self.broken = False, None

    def start_workers(self, *options, count=3, url=None, times=1):
        """Starts workers. `times` makes their tool so many times slower."""
        server = [sys.executable, os.path.join(HERE, "counter.py"), self.runs, str(times)]
        begun = [Worker(self.taut, url or self.url, server, *options) for _ in range(count)]
        self.workers += begun
        for worker in begun:
            worker.ready()
        return begun

    def start_edge(self, *options, url=None):
        edge = Edge(self.taut, url or self.url, *options)
        self.edges.append(edge)
        return edge

    def call(self, edge, token, tool="run", **arguments):
        began, token = time.monotonic(), f"{tool}-{token}"
        message = edge.call(tool, token=token, **arguments)
        self.calls.append((token, message, began))
        return message

    def begins(self, worker):
        """Waits until a server of this worker has begun a further call."""
        files = [f"{self.runs}.{child}" for child in worker.children()]

        def begun():
            return sum(open(file).read().count("+") for file in files if os.path.exists(file))

        before = begun()
        wait("a worker begins a call", lambda: self.broken or begun() > before)

    def load(self, callers=6, ms=50, tool="run"):
        """Calls without end, through the edge that is the newest at the time."""

        def caller(number):
            try:
                for count in itertools.count():
                    if self.done:
                        return
                    self.call(self.edges[-1], f"{number}-{count}", tool, ms=ms)
            except Failed as error:
                self.broken = error

        self.threads = [threading.Thread(target=caller, args=(n,)) for n in range(callers)]
        for thread in self.threads:
            thread.start()

    def some_more(self, count=12):
        """Waits until further calls have ended."""
        goal = len(self.calls) + count
        wait("calls are made", lambda: self.broken or len(self.calls) >= goal)

    def recovered(self):
        """Whether the calls that began last were answered, of those that have ended."""
        newest = sorted(self.calls[:], key=lambda call: call[2])[-RECOVERED:]
        return len(newest) == RECOVERED and all("result" in message for _, message, _ in newest)

    def finish(self):
        """Ends the load, the edges and the workers, so that nothing runs any more, and accounts for every call: only one
        of `look` may have run twice. After the fault, calls have to be answered again, and from then on no call may fail.
        Returns how many were answered, and the reasons of the others."""
        recovered = None
        if self.threads:
            wait("calls are answered again", lambda: self.broken or self.recovered(), 60)
            recovered = time.monotonic()
            self.some_more(RECOVERED)
        self.done = True
        for thread in self.threads:
            thread.join(LIMIT)
        if self.broken:
            raise self.broken
        for edge in self.edges:
            edge.close()
            if edge.twice:
                raise Failed(f"answered twice: {edge.twice}")
        for worker in self.workers:
            worker.stop()
        with open(self.runs) as file:
            ran = collections.Counter(file.read().split())
        failed, answered = collections.Counter(), 0
        for token, message, began in self.calls:
            if ran[token] > 1:
                self.repeated += 1
                if not token.startswith("look-"):
                    raise Failed(f"{token} ran {ran[token]} times")
            if "result" in message:
                answered += 1
                if ran[token] == 0:
                    raise Failed(f"{token} was answered and did not run")
                continue
            error = message.get("error", {})
            if recovered and began > recovered:
                raise Failed(f"{token} failed after the fleet had recovered: {message}")
            if "gone" in message:
                failed["gone"] += 1
                continue
            data = error.get("data") or {}
            if "fleet" not in data or not isinstance(data.get("mayHaveRun"), bool):
                raise Failed(f"the error of {token} does not say whether it may have run: {error}")
            if not data["mayHaveRun"] and ran[token] != 0:
                raise Failed(f"{token} ran, and its error says that it did not: {error}")
            failed[data["fleet"]] += 1
        return answered, failed

    def end(self):
        self.done = True
        for one in [*self.edges, *self.workers, *self.brokers]:
            if one.process.poll() is None:
                one.process.kill()
                one.process.wait()
