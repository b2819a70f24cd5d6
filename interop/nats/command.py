"""What the command says when a fleet cannot be reached, and how its two ends stop: with real processes.

usage: command.py TAUT NATS_SERVER
"""

import concurrent.futures
import contextlib
import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import types

from fleet import HERE, Broker, Failed, Worker, World, says, wait

TAUT, NATS = sys.argv[1], sys.argv[2]
SERVE = [TAUT, "serve"]


def nobody_is_said_at_once():
    broker = Broker(NATS)
    try:
        here = ["--nats", broker.url]
        says(TAUT, ["call", "add", "a=1", "b=2", "nats:search", *here], 4,
             f"error: nobody serves search at {broker.url}", "try: start a worker: taut worker search", within=10)
        says(TAUT, ["fleet", "search", *here], 4, f"nobody serves search at {broker.url}")
        says(TAUT, ["fleet", *here, "--json"], 4, '"workers": []')
    finally:
        broker.kill()


def a_broker_that_cannot_be_used_is_named():
    broker = Broker(NATS, "--user", "u", "--pass", "p")
    try:
        everything = [["call", "add", "a=1", "nats:test"], ["fleet"], ["worker", "test"]]
        for words in everything:
            tail = ["--", *SERVE] if words[0] == "worker" else []
            for url, expected, hint in [
                (broker.url, "refuses these credentials", "--creds FILE"),
                (broker.url.replace("//", "//u:secret@"), "refuses these credentials", "--creds FILE"),
                ("nats://127.0.0.1:1", "no NATS broker answers at nats://127.0.0.1:1", "nats-server"),
                ("nats://no.such.host.invalid", "leads nowhere", "--nats URL"),
                ("http://127.0.0.1", "is no address of a NATS broker", "nats://HOST:4222"),
            ]:
                says(TAUT, [*words, "--nats", url, *tail], 4, expected, "try: ", hint)
        says(TAUT, ["fleet", "--nats", broker.url, "--creds", "/no/such/file"], 4, "/no/such/file", "nsc generate creds")
    finally:
        broker.kill()


def a_worker_is_listed_and_leaves_when_told():
    broker = Broker(NATS)
    folder = tempfile.TemporaryDirectory()
    file = os.path.join(folder.name, "ready")
    worker = Worker(TAUT, broker.url, SERVE, "--slots", "3", "--children", "2", "--ready-file", file)
    try:
        worker.ready()
        if not os.path.exists(file):
            raise Failed("a worker that serves has made no file")
        listed = json.loads(says(TAUT, ["fleet", "--nats", broker.url, "--json"], 0))["workers"]
        if [(one["worker"], one["service"], one["slots"]) for one in listed] != [(worker.id, "test", 3)]:
            raise Failed(f"not listed as it is: {listed}")
        says(TAUT, ["fleet", "--nats", broker.url], 0, worker.id, "0/3", "1 workers, 0 of 3 slots busy")
        says(TAUT, ["call", "add", "a=2", "b=3", "nats:test", "--nats", broker.url], 0, "5")
        worker.stop()
        if os.path.exists(file):
            raise Failed("a worker that was told to stop has left its file")
        says(TAUT, ["call", "add", "a=2", "b=3", "nats:test", "--nats", broker.url], 4, "nobody serves test")
    finally:
        folder.cleanup()
        if worker.process.poll() is None:
            worker.kill()
        broker.kill()


def both_ends_finish_what_they_have_when_told_to_stop():
    """SIGTERM to the edge and to the only worker while calls run: all of them are answered."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(TAUT, NATS, folder)
        try:
            (worker,) = world.start_workers(count=1)
            edge = world.start_edge()
            calls = [
                threading.Thread(target=world.call, args=(edge, f"call-{n}"), kwargs={"ms": 1500}) for n in range(4)
            ]
            for call in calls:
                call.start()
            wait("the calls run", lambda: len(open(world.runs).read().split()) == 4)
            worker.process.send_signal(signal.SIGTERM)
            edge.process.send_signal(signal.SIGTERM)
            for call in calls:
                call.join()
            answered = sum("result" in message for _, message, _ in world.calls)
            if answered != 4:
                raise Failed(f"{answered} of 4 calls were answered: {world.calls}")
            for one in (edge, worker):
                if one.process.wait(60) != 0:
                    raise Failed(f"exit {one.process.returncode}")
        finally:
            world.end()


def an_edge_that_listens_serves_and_finishes_what_it_has():
    """Lines and HTTP on one port; SIGTERM while a call runs."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(TAUT, NATS, folder)
        listens = [TAUT, "bridge", "nats:test", "--nats", world.url, "--listen", "127.0.0.1:0"]
        try:
            world.start_workers(count=1)
            edge = subprocess.Popen(listens, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            world.edges.append(types.SimpleNamespace(process=edge))
            address = edge.stdout.readline().strip()
            for way in (address, address.replace("tcp:", "http://") + "/mcp"):
                says(TAUT, ["call", "run", f"token={way[:4]}", "size=3", way], 0, "yyy")
            last = ["call", "run", "token=last", "ms=1500", "size=3", address]
            running = subprocess.Popen([TAUT, *last], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            wait("the call runs", lambda: "last" in open(world.runs).read())
            edge.send_signal(signal.SIGTERM)
            text, _ = running.communicate(timeout=60)
            if running.returncode != 0 or "yyy" not in text:
                raise Failed(f"a call at an edge that was told to stop: exit {running.returncode}: {text}")
            if edge.wait(60) != 0:
                raise Failed(f"exit {edge.returncode}")
            says(TAUT, ["call", "run", "token=late", address], 4)
        finally:
            world.end()


def a_deadline_ends_a_call_and_says_whether_it_may_have_run():
    with tempfile.TemporaryDirectory() as folder:
        world = World(TAUT, NATS, folder)
        try:
            world.start_workers("--slots", "1", count=1)
            here = ["nats:test", "--nats", world.url]
            says(TAUT, ["call", "run", "token=a", "ms=60000", *here, "--deadline", "2s"], 3,
                 "deadline has passed", "may have run", "try: look whether it ran", within=30)
            # The worker has cancelled it, so its slot is free.
            says(TAUT, ["call", "run", "token=b", "size=3", *here], 0, "yyy")
            # The edge is opened before the only slot is taken.
            edge, busy = world.start_edge("--deadline", "1s"), world.start_edge()
            held = threading.Thread(target=world.call, args=(busy, "held"), kwargs={"ms": 4000})
            held.start()
            wait("the call runs", lambda: "held" in open(world.runs).read())
            error = world.call(edge, "full")["error"]
            if error["data"] != {"fleet": "busy", "mayHaveRun": False, "worker": None}:
                raise Failed(f"at its deadline a call that was never taken says: {error}")
            held.join()
        finally:
            world.end()


class Screen:
    """The command on a terminal of so many lines."""

    def __init__(self, rows, *words):
        near, far = pty.openpty()
        fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 120, 0, 0))
        self.process = subprocess.Popen([TAUT, *words], stdin=far, stdout=far, stderr=far)
        os.close(far)
        self.text, self.near = "", near
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        # On Linux the end of a terminal is an error.
        with contextlib.suppress(OSError):
            while data := os.read(self.near, 65536):
                self.text += data.decode()

    def shows(self, *parts):
        wait(f"{parts} on the screen", lambda: all(part in self.text for part in parts), 30)


def a_fleet_on_a_terminal_is_drawn_again_until_it_is_interrupted():
    broker = Broker(NATS)
    workers, screens = [], []

    def start():
        workers.append(Worker(TAUT, broker.url, SERVE, "--slots", "3").ready())

    def screen(*words):
        screens.append(Screen(*words))
        return screens[-1]

    try:
        # Four lines: the heads, one worker, the sum, and the cursor.
        live = screen(4, "fleet", "--nats", broker.url)
        live.shows("nobody serves anything at")
        start()
        # Over the one line before.
        live.shows("\x1b[1A\x1b[J", workers[0].id, "1 workers, 0 of 3 slots busy")
        start()
        live.shows("\x1b[3A\x1b[J", "2 workers, 0 of 6 slots busy; 1 are not shown")
        broker.kill()
        live.shows(f"no connection to {broker.url}; it is opened again by itself")
        broker.start()
        wait("the workers are back", lambda: live.text.rstrip().endswith("1 are not shown\x1b[0m"), 30)
        live.process.send_signal(signal.SIGINT)
        if live.process.wait(30) != 0:
            raise Failed(f"interrupted, it exits with {live.process.returncode}")
        once = screen(24, "fleet", "--nats", broker.url, "--once")
        if once.process.wait(30) != 0:
            raise Failed(f"once, it exits with {once.process.returncode}")
        once.shows(workers[0].id, workers[1].id)
        if "\x1b[J" in once.text:
            raise Failed(f"once, it is drawn more than once: {once.text!r}")
    finally:
        for one in screens:
            if one.process.poll() is None:
                one.process.kill()
                one.process.wait()
        for worker in workers:
            worker.kill()
        broker.kill()


def a_worker_in_another_language_needs_only_the_page_about_the_wire():
    """worker.py has one slot. Calls that wait, that are long there and back, that are withdrawn, that find it full."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(TAUT, NATS, folder)
        command = [sys.executable, os.path.join(HERE, "worker.py"), str(world.brokers[0].port), "test"]
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        world.edges.append(types.SimpleNamespace(process=worker))
        try:
            if " serves test" not in worker.stdout.readline():
                raise Failed("worker.py does not start")
            here = ["nats:test", "--nats", world.url]
            says(TAUT, ["call", "echo", "text=hello", *here], 0, "hello")
            # Longer than five heartbeats.
            says(TAUT, ["call", "echo", "text=late", "seconds=2", *here], 0, "late")
            edge = world.start_edge()

            def echo(**arguments):
                return edge.request("tools/call", {"name": "echo", "arguments": arguments})

            long = "x" * 900_000
            if (text := echo(text=long)["result"]["content"][0]["text"]) != long:
                raise Failed(f"{len(text)} characters of {len(long)} came back")
            # Two at once: one is bounced until the other has ended.
            with concurrent.futures.ThreadPoolExecutor() as pool:
                both = [pool.submit(echo, text=text, seconds=1) for text in ("one", "two")]
                texts = [one.result()["result"]["content"][0]["text"] for one in both]
            if texts != ["one", "two"]:
                raise Failed(f"two at once: {texts}")
            # Withdrawn, so its slot is free long before it would have ended.
            late = ["call", "echo", "text=never", "seconds=600", *here, "--deadline", "1s"]
            says(TAUT, late, 3, "deadline has passed", within=30)
            says(TAUT, ["call", "echo", "text=next", *here], 0, "next", within=30)
        finally:
            world.end()


def main():
    for check in [
        nobody_is_said_at_once,
        a_broker_that_cannot_be_used_is_named,
        a_worker_is_listed_and_leaves_when_told,
        both_ends_finish_what_they_have_when_told_to_stop,
        an_edge_that_listens_serves_and_finishes_what_it_has,
        a_deadline_ends_a_call_and_says_whether_it_may_have_run,
        a_fleet_on_a_terminal_is_drawn_again_until_it_is_interrupted,
        a_worker_in_another_language_needs_only_the_page_about_the_wire,
    ]:
        check()
        print(f"{check.__name__}: ok", flush=True)


main()
