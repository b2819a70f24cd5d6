#!/usr/bin/env python3
"""Runs test binaries under Wine, counts what ran, and holds the counts against docs/platforms.md.

Called by scripts/windows, with the messages of `cargo test --no-run --message-format=json` for Windows in one
file and for Linux in another. The table in docs/platforms.md is a floor. A suite that runs fewer tests under Wine
than it says, or leaves more of Linux's tests out than it says, is a failure; the new table is printed then.
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

PAGE = Path("docs/platforms.md")

# Nothing takes so long; a suite that hangs is ended, and named.
LIMIT = 900


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
    print(f"\n$ {name}", flush=True)
    began = time.monotonic()
    env = {**os.environ, "CARGO_MANIFEST_DIR": str(folder)}
    process = subprocess.Popen([wine, program], cwd=folder, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        text, _ = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        text, _ = process.communicate()
        text += f"\ntest {name} ... FAILED\nit did not end within {LIMIT} s\n"
    results = re.findall(r"^test result: .*? (\d+) passed; (\d+) failed", text, re.M)
    passed = sum(int(result[0]) for result in results)
    # Roles print between the name of a test and its result, so the list at the end is what counts.
    failed = sorted(set(re.findall(r"^    (\S+)$", text.rpartition("\nfailures:\n")[2], re.M)) if "\nfailures:\n" in text else set())
    if process.returncode != 0:
        print(text, flush=True)
        failed = failed or [f"{name} (exit {process.returncode})"]
    print(f"{passed} passed, {len(failed)} failed, {time.monotonic() - began:.0f} s", flush=True)
    return passed, failed


def table(rows):
    lines = ["| suite | Linux | Windows | apart |", "|---|---|---|---|"]
    lines += [f"| {name} | {linux} | {windows} | {linux - windows if linux > windows else ''} |" for name, linux, windows in rows]
    return "\n".join(lines).replace("|  |", "| |")


def main(wine, windows_messages, linux_messages):
    linux = {}
    for name, program, folder in suites(linux_messages):
        linux[name] = linux.get(name, 0) + count(program, folder)
    windows, failures = {}, []
    for name, program, folder in suites(windows_messages):
        passed, failed = run(wine, name, program, folder)
        windows[name] = windows.get(name, 0) + passed + len(failed)
        failures += [f"{name}: {test}" for test in failed]
    rows = [(name, linux.get(name, 0), windows[name]) for name in sorted(windows)]
    rows.append(("all of these", sum(row[1] for row in rows), sum(row[2] for row in rows)))
    print(f"\nwindows: tests run\n\n{table(rows)}\n")

    known = re.findall(r"^\| (.+?) \| (\d+) \| (\d+) \|", PAGE.read_text(), re.M)
    known = {name: (int(of_linux), int(of_windows)) for name, of_linux, of_windows in known}
    for name, of_linux, of_windows in rows:
        there, here = known.get(name, (0, 0))
        if name not in known:
            failures.append(f"{name} is not in {PAGE}")
        elif of_windows < here:
            failures.append(f"{name}: {of_windows} tests ran, and {PAGE} says {here}")
        elif of_linux - of_windows > max(there - here, 0):
            failures.append(f"{name}: {of_linux - of_windows} of Linux's tests are left out, and {PAGE} says {there - here}")
    for failure in failures:
        print(f"windows: failed: {failure}", file=sys.stderr)
    if failures:
        print(f"windows: where the table is what is wrong, put the one above into {PAGE}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
