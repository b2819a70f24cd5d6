"""Faults in a fleet under load, with real processes. Every call is accounted for:

- it is answered once, and ran once; or
- it failed with an error that says that nothing ran, and did not run; or
- it failed with an error that says that it may have run, and ran once or not at all.

The tool is not annotated as one that may run twice, so no call may run twice. In the faults that end with `_of_readers`
the tool is read-only: there no call may fail, because one that was lost is repeated. Each fault names the reasons
that are true for it; another one is a failure. After the fault, calls have to be answered again.

usage: faults.py TAUT NATS_SERVER TIMES [FAULT...]
"""

import concurrent.futures
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

from fleet import LIMIT, Failed, World
from link import Link

# Most of a fault's time is waiting, so some run beside each other.
AT_ONCE = int(os.environ.get("AT_ONCE", "4"))


def kill_worker(world, turn, tool="run"):
    world.start_workers()
    world.start_edge()
    # Long enough that a call which has begun still runs when its worker dies.
    world.load(ms=500, tool=tool)
    world.some_more()
    world.begins(world.workers[0])
    world.workers.pop(0).kill()
    world.start_workers(count=1)
    return {"lost", "silent"}


kill_worker.hits = True


def kill_worker_of_readers(world, turn):
    kill_worker(world, turn, "look")
    return set()


kill_worker_of_readers.hits = True


def kill_child(world, turn, tool="run"):
    world.start_workers()
    world.start_edge()
    world.load(ms=500, tool=tool)
    world.some_more()
    world.begins(world.workers[0])
    for child in world.workers[0].children():
        os.kill(child, signal.SIGKILL)
    return {"worker"}


kill_child.hits = True


def kill_child_of_readers(world, turn):
    kill_child(world, turn, "look")
    return set()


kill_child_of_readers.hits = True


def kill_edge(world, turn):
    world.start_workers()
    first = world.start_edge()
    world.load(ms=500)
    world.some_more()
    # The load goes on through the next one.
    world.start_edge()
    first.process.kill()
    return {"gone"}


kill_edge.hits = True


def kill_node(world, turn):
    world.start_workers()
    world.start_edge()
    world.load(ms=200)
    world.some_more()
    node = world.brokers[turn % 3]
    node.kill()
    world.some_more(30)
    node.start()
    return {"lost", "silent"}


kill_node.nodes = 3


def restart_broker(world, turn):
    world.start_workers()
    world.start_edge()
    world.load(ms=200)
    world.some_more()
    world.brokers[0].kill()
    time.sleep(random.random())
    world.brokers[0].start()
    return {"lost", "silent"}


def freeze_worker(world, turn):
    world.start_workers()
    world.start_edge()
    world.load()
    world.some_more()
    os.kill(world.workers[0].process.pid, signal.SIGSTOP)
    # Longer than five heartbeats, so that its calls are given up; it finds them when it goes on.
    time.sleep(7)
    os.kill(world.workers[0].process.pid, signal.SIGCONT)
    return {"lost", "silent"}


freeze_worker.hits = True


def cut_link_of_worker(world, turn):
    link = Link(world.brokers[0].port)
    world.start_workers(count=1, url=link.url)
    world.start_workers(count=2)
    world.start_edge()
    return cut(world, link, turn)


def cut_link_of_edge(world, turn):
    link = Link(world.brokers[0].port)
    world.start_workers()
    world.start_edge(url=link.url)
    return cut(world, link, turn)


def cut(world, link, turn):
    world.load(ms=200)
    world.some_more()
    link.cut(refuses=turn % 2 == 1)
    time.sleep(10)
    link.mend()
    return {"lost", "silent"}


def slow_worker(world, turn):
    """One worker is forty times as slow as the others: it takes no more than its slots, and no call fails."""
    fast = world.start_workers("--slots", "4", count=2)
    slow, = world.start_workers("--slots", "2", count=1, times=40)
    world.start_edge()
    world.load()
    world.some_more(150)
    shown = subprocess.run(
        [world.taut, "fleet", "--nats", world.url, "--json"], capture_output=True, check=True, text=True
    )
    shown = {one["worker"]: one for one in json.loads(shown.stdout)["workers"]}
    for one in fast:
        if shown[one.id]["calls"] < 4 * shown[slow.id]["calls"]:
            raise Failed(f"the slow worker has held up the fast ones: {shown}")
    return set()


def rolling_restart(world, turn):
    """With more callers than slots, so that calls are on their way to a worker at any time when it leaves."""
    world.start_workers("--slots", "32")
    world.start_edge()
    world.load(callers=150)
    for _ in range(len(world.workers)):
        world.start_workers("--slots", "32", count=1)
        world.some_more(300)
        world.workers.pop(0).stop()
    return set()


SIZE = 16 << 20

# A build that is not optimised computes for seconds on such messages, and is not heard meanwhile.
PATIENT = ("--heartbeat", "5s")


def long_calls(world, name):
    """16 MiB there and 16 MiB back, by two edges at once."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        there = [pool.submit(world.call, edge, f"{name}-there-{n}", text="x" * SIZE) for n, edge in enumerate(world.edges)]
        back = [pool.submit(world.call, edge, f"{name}-back-{n}", size=SIZE) for n, edge in enumerate(world.edges)]
        yield
        pairs = [(one.result(LIMIT), str(SIZE)) for one in there] + [(one.result(LIMIT), "y" * SIZE) for one in back]
    for message, expected in pairs:
        if "result" in message and message["result"]["content"][0]["text"] != expected:
            raise Failed("16 MiB do not pass unchanged")


def long_messages(world, turn):
    world.start_workers(*PATIENT)
    world.start_edge()
    world.start_edge()
    for _ in long_calls(world, "long"):
        pass
    return set()


def long_messages_over_a_restart(world, turn):
    world.start_workers(*PATIENT)
    world.start_edge()
    world.start_edge()
    for _ in long_calls(world, "long"):
        time.sleep(random.random())
        world.brokers[0].kill()
        world.brokers[0].start()
    return {"lost", "silent", "worker"}


FAULTS = [
    cut_link_of_worker,
    cut_link_of_edge,
    freeze_worker,
    kill_worker,
    kill_worker_of_readers,
    kill_child,
    kill_child_of_readers,
    kill_edge,
    kill_node,
    restart_broker,
    slow_worker,
    rolling_restart,
]

# Only if they are named, and not beside each other: with a build that is not optimised they compute for minutes on a
# busy machine. That 16 MiB pass is tested in crates/taut-nats/tests/broker.
EXTRA = [long_messages, long_messages_over_a_restart]


def once(taut, nats, fault, turn):
    """One fault, once. Returns a line about it."""
    began = time.time()
    with tempfile.TemporaryDirectory() as folder:
        world = World(taut, nats, folder, getattr(fault, "nodes", 1))
        try:
            allowed = fault(world, turn)
            answered, failed = world.finish()
        finally:
            world.end()
    if not set(failed) <= allowed:
        raise Failed(f"calls failed for reasons that are not true: {dict(failed)}")
    if getattr(fault, "hits", False) and not failed and not world.repeated:
        raise Failed("no call was hit, so nothing was tested")
    told = ", ".join(f"{count} {reason}" for reason, count in sorted(failed.items()))
    told = f"{answered} answered, failed: {told or 'none'}, ran twice: {world.repeated or 'none'}"
    return f"{told} ({time.time() - began:.1f} s)"


def main():
    taut, nats, times, chosen = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
    if os.environ.get("TURN"):
        fault = next(fault for fault in FAULTS + EXTRA if fault.__name__ == chosen[0])
        try:
            print(once(taut, nats, fault, int(os.environ["TURN"])))
        except Failed as error:
            sys.exit(f"FAILED: {error}")
        return
    names = [fault.__name__ for fault in FAULTS]
    extra = [fault.__name__ for fault in EXTRA]
    if unknown := set(chosen) - set(names) - set(extra):
        sys.exit(f"no such fault: {', '.join(sorted(unknown))}; there are: {', '.join(names + extra)}")
    turns = [(name, turn) for turn in range(times) for name in chosen or names]

    def run(job):
        name, turn = job
        environment = {**os.environ, "TURN": str(turn)}
        command = [sys.executable, __file__, taut, nats, str(times), name]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        words = done.stdout.strip() if done.returncode == 0 else done.stderr.strip() or f"exit {done.returncode}"
        print(f"{name} {turn + 1}/{times}: {words}", flush=True)
        return done.returncode == 0

    began = time.time()
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        fine = list(pool.map(run, (turn for turn in turns if turn[0] not in extra)))
    fine += [run(turn) for turn in turns if turn[0] in extra]
    print(f"{fine.count(True)} of {len(fine)} passed in {time.time() - began:.0f} s")
    sys.exit(0 if all(fine) else 1)


main()
