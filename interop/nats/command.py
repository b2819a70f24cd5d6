"""What the command says when a fleet cannot be reached, and how its two ends stop: with real processes.

usage: command.py TAUT NATS_SERVER
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

from fleet import Broker, Edge, Failed, Worker, World, wait

TAUT, NATS = sys.argv[1], sys.argv[2]
SERVE = [TAUT, "serve"]


def says(words, status, *expected, within=None):
    """Runs the command, which has to end with this status and to say all of this."""
    began = time.time()
    done = subprocess.run([TAUT, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    took = time.time() - began
    text = done.stdout + done.stderr
    missing = [part for part in expected if part not in text]
    if done.returncode != status or missing or "secret" in text:
        raise Failed(f"taut {' '.join(words)}: exit {done.returncode}, expected {expected}: {text}")
    if within and took > within:
        raise Failed(f"taut {' '.join(words)} took {took:.1f} s")
    return text


def nobody_is_said_at_once():
    broker = Broker(NATS)
    try:
        here = ["--nats", broker.url]
        says(["call", "add", "a=1", "b=2", "nats:search", *here], 4,
             f"error: nobody serves search at {broker.url}", "try: start a worker: taut worker search", within=10)
        says(["fleet", "search", *here], 4, f"nobody serves search at {broker.url}")
        says(["fleet", *here, "--json"], 4, '"workers": []')
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
                says([*words, "--nats", url, *tail], 4, expected, "try: ", hint)
        says(["fleet", "--nats", broker.url, "--creds", "/no/such/file"], 4, "/no/such/file", "nsc generate creds")
    finally:
        broker.kill()


def a_worker_is_listed_and_leaves_when_told():
    broker = Broker(NATS)
    worker = Worker(TAUT, broker.url, SERVE, "--slots", "3", "--children", "2")
    try:
        worker.ready()
        listed = json.loads(says(["fleet", "--nats", broker.url, "--json"], 0))["workers"]
        if [(one["worker"], one["service"], one["slots"]) for one in listed] != [(worker.id, "test", 3)]:
            raise Failed(f"not listed as it is: {listed}")
        says(["fleet", "--nats", broker.url], 0, worker.id, "0/3", "1 workers, 0 of 3 slots busy")
        says(["call", "add", "a=2", "b=3", "nats:test", "--nats", broker.url], 0, "5")
        worker.stop()
        says(["call", "add", "a=2", "b=3", "nats:test", "--nats", broker.url], 4, "nobody serves test")
    finally:
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
            answered = sum("result" in message for _, message in world.calls)
            if answered != 4:
                raise Failed(f"{answered} of 4 calls were answered: {world.calls}")
            for one in (edge, worker):
                if one.process.wait(60) != 0:
                    raise Failed(f"exit {one.process.returncode}")
        finally:
            world.end()


def main():
    for check in [
        nobody_is_said_at_once,
        a_broker_that_cannot_be_used_is_named,
        a_worker_is_listed_and_leaves_when_told,
        both_ends_finish_what_they_have_when_told_to_stop,
    ]:
        check()
        print(f"{check.__name__}: ok", flush=True)


main()
