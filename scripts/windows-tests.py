#!/usr/bin/env python3
"""Runs test binaries under Wine, counts what ran, and holds the counts against docs/platforms.md.

Called by scripts/windows, with the messages of `cargo test --no-run --message-format=json` for Windows in one
file and for Linux in another. Two binaries run at a time, and what one prints is shown when it has ended.

The table in docs/platforms.md is a floor. A suite that runs fewer tests under Wine than it says is a failure. So is a
process of a test that still runs when all have ended. A suite that leaves out more of Linux's tests than the table
says is named. The new table is printed in any case; with TAUT_BLESS=1 it is written into the page.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PAGE = Path("docs/platforms.md")

# Nothing takes so long; a suite that hangs is ended, and named.
LIMIT = 900

# Most tests wait for processes, so more of them run at once than there are cores: so many binaries, and so many
# tests in each.
BINARIES = 2
TESTS = 4

# So many tests of a suite that failed are tried again, alone, for so many seconds each.
RETRIES = 3
RETRY_LIMIT = 120

# The suites that take longest, so that none of them is the last to start.
FIRST = ("taut: `client`", "taut-cli: `command`")


def suites(messages):
    """The test binaries that cargo has built: name of the suite, program, folder to run it in."""
    for line in Path(messages).read_text().splitlines():
        message = json.loads(line) if line.startswith("{") else {}
        program = message.get("executable")
        if message.get("reason") != "compiler-artifact" or not program or not message["profile"]["test"]:
            continue
        folder = Path(message["manifest_path"]).parent
        inside = message["target"]["kind"][0] in ("lib", "bin")
        part = "inside the crate" if inside else f"`{message['target']['name']}`"
        yield f"{folder.name}: {part}", program, folder


def count(program, folder):
    """How many tests a binary of this system would run."""
    listed = [
        subprocess.run([program, "--list", *more], cwd=folder, text=True, capture_output=True, check=True).stdout
        for more in ([], ["--ignored"])
    ]
    every, ignored = (len(re.findall(r": test$", text, re.M)) for text in listed)
    return every - ignored


def run(wine, name, program, folder):
    """Runs one suite under Wine: how many passed, and the names of those that did not."""
    began = time.monotonic()
    env = {**os.environ, "CARGO_MANIFEST_DIR": str(folder), "RUST_TEST_THREADS": str(TESTS)}
    # A file, not a pipe: Wine's own processes, which live longer, would hold the other end.
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen([wine, program], cwd=folder, env=env, stdout=output, stderr=subprocess.STDOUT)
        late = ""
        try:
            process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            late = f"\ntest {name} ... FAILED\nit did not end within {LIMIT} s\n"
        output.seek(0)
        text = output.read() + late
    results = re.findall(r"^test result: .*? (\d+) passed; (\d+) failed", text, re.M)
    passed = sum(int(result[0]) for result in results)
    # Roles print between the name of a test and its result, so the list at the end is what counts.
    failed = sorted(set(re.findall(r"^    (\S+)$", text.rpartition("\nfailures:\n")[2], re.M)) if "\nfailures:\n" in text else set())
    if failed and not late:
        again = [test for test in failed[:RETRIES] if works_alone(wine, program, folder, env, test)]
        for test in again:
            print(f"{text}\n{name}: {test} failed beside others and passed alone", flush=True)
        passed, failed = passed + len(again), [test for test in failed if test not in again]
        if not failed:
            process.returncode = 0
    shown = ""
    if process.returncode != 0:
        shown = f"{text}\n"
        failed = failed or [f"{name} (exit {process.returncode})"]
    counts = f"{passed} passed, {len(failed)} failed, {time.monotonic() - began:.0f} s"
    print(f"{shown}{name}: {counts}", flush=True)
    return passed, failed


def works_alone(wine, program, folder, env, test):
    """Whether a test that failed passes by itself. Wine has faults of its own, which show about once in a thousand
    starts of a process (docs/platforms.md); a fault of ours shows again."""
    command = [wine, program, "--exact", test]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=output, stderr=subprocess.STDOUT)
        try:
            return process.wait(RETRY_LIMIT) == 0
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return False


def left_running(wine, folder, patience=10.0):
    """The processes of programs in this folder that still run, by number. They are ended.

    One that never began is not among them. Wine 8 starts a Unix process and then has its server make a Windows
    process of it. If that is ended in between, as when a host is killed while it starts a server, the server
    closes the connection, and the Unix process waits for ever for the answer to its first message: it has the
    write end of that pipe too, so the pipe does not end. It is known by its command line, which begins with
    Wine's loader until the answer has come. No line of the program has run in it, and Windows does not know it.
    """
    deadline = time.monotonic() + patience
    while True:
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                line = (entry / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ").strip()
            except OSError:
                continue
            if str(folder) in line.replace("\\", "/"):
                found[int(entry.name)] = line
        if not found or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    for pid in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)
    unborn = [pid for pid, line in found.items() if line.startswith(f"{wine} ")]
    if unborn:
        print(f"windows: ended processes that Wine never finished to start: {len(unborn)}", flush=True)
    return {pid: line for pid, line in found.items() if pid not in unborn}


def table(rows):
    lines = ["| suite | Linux | Windows |", "|---|---|---|"]
    return "\n".join(lines + [f"| {name} | {linux} | {windows or 'none'} |" for name, linux, windows in rows])


def bless(rows):
    """Puts the table into the page, in the place of the one that is there."""
    page = PAGE.read_text()
    PAGE.write_text(re.sub(r"^\| suite \|.*?\n(?=\n)", lambda _: table(rows) + "\n", page, count=1, flags=re.M | re.S))


def main(wine, windows_messages, linux_messages):
    linux = {}
    for name, program, folder in suites(linux_messages):
        linux[name] = linux.get(name, 0) + count(program, folder)
    windows, failures = {}, []
    built = sorted(suites(windows_messages), key=lambda suite: suite[0] not in FIRST)
    with ThreadPoolExecutor(BINARIES) as pool:
        runs = list(pool.map(lambda suite: (suite[0], *run(wine, *suite)), built))
    for name, passed, failed in runs:
        windows[name] = windows.get(name, 0) + passed + len(failed)
        failures += [f"{name}: {test}" for test in failed]
    # Tests are in `deps`, the command beside it.
    for pid, line in left_running(wine, Path(built[0][1]).parent.parent).items():
        failures.append(f"a process of the tests still runs: {pid} {line}")
    rows = [(name, linux.get(name, 0), windows.get(name, 0)) for name in sorted({*linux, *windows})]
    rows = [row for row in rows if row[1] or row[2]]
    rows.append(("all", sum(row[1] for row in rows), sum(row[2] for row in rows)))
    print(f"\nwindows: tests run\n\n{table(rows)}\n")
    if os.environ.get("TAUT_BLESS"):
        bless(rows)

    known = re.findall(r"^\| (.+?) \| (\d+) \| (\d+) \|", PAGE.read_text(), re.M)
    known = {name: (int(of_linux), int(of_windows)) for name, of_linux, of_windows in known}
    # A suite that does not run under Wine at all is in the table only for people to see.
    for name, of_linux, of_windows in (row for row in rows[:-1] if row[2]):
        there, here = known.get(name, (0, 0))
        if name not in known:
            failures.append(f"{name} is not in {PAGE}")
        elif of_windows < here:
            failures.append(f"{name}: {of_windows} tests ran, and {PAGE} says {here}")
        elif of_linux - of_windows > max(there - here, 0):
            left_out = f"{of_linux - of_windows} of Linux's tests are left out, and {PAGE} says {max(there - here, 0)}"
            print(f"windows: {name}: {left_out}; TAUT_BLESS=1 writes it anew")
    for failure in failures:
        print(f"windows: failed: {failure}", file=sys.stderr)
    if failures:
        print(f"windows: where the table in {PAGE} is what is wrong, TAUT_BLESS=1 writes it anew", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
