"""From what `run` measured to BENCHMARKS.md. Knows the bars; measures nothing."""
import json
import re
from statistics import median

MIB = 1 << 20


class Document:
    """One document of `taut bench`."""

    def __init__(self, path):
        self.all = json.loads(path.read_text()) if path.exists() and path.stat().st_size else {}

    def cell(self, name, phase, cores="two", **more):
        for entry in self.all.get("phases", []):
            if entry["phase"] == phase and entry["cores"] == cores and all(entry.get(k) == v for k, v in more.items()):
                return next((server for server in entry["servers"] if server["name"] == name), {})
        return {}

    def median(self, name, figure, phase, cores="two", **more):
        return self.cell(name, phase, cores, **more).get("median", {}).get(figure)

    def ratio(self, one, other, figure, phase, cores="two", **more):
        """Within each round, then the median."""
        def rounds(name):
            return self.cell(name, phase, cores, **more).get("rounds", [])
        both = [a[figure] / b[figure] for a, b in zip(rounds(one), rounds(other)) if a and b and b[figure]]
        return median(both) if both else None

    def names(self):
        return [server["name"] for server in self.all.get("servers", [])]


def number(value, digits=2):
    if value is None:
        return "-"
    if value >= 1e6:
        return f"{value / 1e6:.3g}M"
    if value >= 1e4:
        return f"{value / 1e3:.3g}k"
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.{digits}f}" if value < 10 else f"{value:.1f}"


def micros(value):
    if value is None:
        return "-"
    if value >= 1e6:
        return f"{value / 1e6:.3g} s"
    if value >= 1e3:
        return f"{value / 1e3:.3g} ms"
    return f"{value:.3g} µs"


def mib(value):
    return "-" if value is None else f"{value / MIB:,.0f} MiB" if value >= 100 * MIB else f"{value / MIB:.3g} MiB"


class Bar:
    """A figure, what it has to be, and what it is."""

    def __init__(self, what, value, bar, aim, least=False, unit=""):
        self.what, self.value, self.bar, self.aim, self.least, self.unit = what, value, bar, aim, least, unit

    def reaches(self, mark):
        return self.value is not None and (self.value >= mark if self.least else self.value <= mark)

    def verdict(self):
        if self.value is None:
            return "not measured"
        if not self.reaches(self.bar):
            return "**missed**"
        return "aim" if self.aim is not None and self.reaches(self.aim) else "met"

    def row(self):
        sign = "≥" if self.least else "≤"
        mark = lambda value: "" if value is None else f"{sign} {value:,}{self.unit}"  # noqa: E731
        shown = "-" if self.value is None else f"{self.value:,.0f}" if self.value >= 100 else f"{self.value:.2f}"
        return f"| {self.what} | {mark(self.bar)} | {mark(self.aim)} | {shown}{self.unit} | {self.verdict()} |"


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


class Results:
    def __init__(self, folder):
        self.folder = folder
        self.all, self.list, self.fire, self.fire_peers, self.one, self.any = (
            Document(folder / f"{name}.json") for name in ("all", "list", "fire", "fire-peers", "one", "any"))
        self.about = json.loads((folder / "about.json").read_text())
        self.calls = json.loads((folder / "system-calls.json").read_text())
        self.variants = {}
        for path in sorted(folder.glob("variant-*.json")):
            _, _, era, over = path.stem.split("-")
            self.variants.setdefault((era, over), []).append(Document(path))
        text = (folder / "instructions.txt").read_text()
        self.instructions = {name.strip(): int(count.replace(",", "")) for name, count in
                             re.findall(r"^([a-z][a-z0-9, ]*?)\s{2,}([\d,]+)(?:\s|$)", text, re.M)}
        text = (folder / "client.txt").read_text().split("1048576 bytes")[0]
        self.client = {name: float(cpu) for name, cpu in re.findall(r"^\s+(ideal|taut)\s+cpu per call\s+([\d.]+)", text, re.M)}

    def variant(self, pair, base, name, figure, phase, cores, **more):
        """How many times as much as in the base, round by round."""
        both = []
        for own, other in zip(self.variants.get(pair, []), self.variants.get(base, [])):
            a, b = (document.median(name, figure, phase, cores, **more) for document in (own, other))
            if a and b:
                both.append(a / b)
        return median(both) if both else None

    def within(self, pair, one, other, figure, phase, cores, **more):
        """One server against another in such a variant."""
        found = [document.ratio(one, other, figure, phase, cores, **more) for document in self.variants.get(pair, [])]
        found = [ratio for ratio in found if ratio]
        return median(found) if found else None

    def above_ideal(self):
        if {"taut", "ideal"} <= self.client.keys():
            return self.client["taut"] - self.client["ideal"]
        return None

    def bars(self):
        floor, best, default = "floor in C", "rmcp, best", "rmcp, default"
        flight, large = {"in_flight": 64}, {"bytes": MIB}
        ratio, one, free = self.all.ratio, self.one.ratio, self.any.ratio
        huge = self.all.median("taut", "peak_bytes", "payload", bytes=16 * MIB)
        fire = self.fire.median("taut", "peak_bytes", "fire-hose")
        rounds = [r for d in (self.fire, self.fire_peers, self.all) for r in d.cell("taut", "fire-hose").get("rounds", []) if r]
        worst = max((r["peak_bytes"] for r in rounds), default=None)
        legacy, modern, sockets = ("legacy", "pipes"), ("modern", "pipes"), ("legacy", "sockets")
        return [
            Bar("p50 of a call, 64 B, one core, × floor", ratio("taut", floor, "p50_us", "sequential", "one"), 1.35, 1.10),
            Bar("CPU of a call, 64 in flight, × floor", ratio("taut", floor, "cpu_us", "in-flight", **flight), 3.0, 1.6),
            Bar("instructions of a call", self.instructions.get("legacy"), 12_000, 4_000),
            Bar("calls in a second, 64 in flight, not pinned, × rmcp's best mode", free("taut", best, "per_second", "in-flight", "any", **flight), 5, 12, True),
            Bar("… each on its own core", ratio("taut", best, "per_second", "in-flight", **flight), 5, 12, True),
            Bar("… both on one core", ratio("taut", best, "per_second", "in-flight", "one", **flight), 5, 12, True),
            Bar("calls in a second, 64 in flight, not pinned, × rmcp's default", free("taut", default, "per_second", "in-flight", "any", **flight), 30, 70, True),
            Bar("… each on its own core", ratio("taut", default, "per_second", "in-flight", **flight), 30, 70, True),
            Bar("… both on one core", ratio("taut", default, "per_second", "in-flight", "one", **flight), 30, 70, True),
            Bar("fire-hose, calls in a second, × rmcp's best mode", ratio("taut", best, "per_second", "fire-hose"), 10, 25, True),
            Bar("most memory in a fire-hose of 400,000 calls", fire and fire / MIB, 8, 4, unit=" MiB"),
            Bar("… in the worst round", worst and worst / MIB, 8, 4, unit=" MiB"),
            Bar("1 MiB there and back, one core, × floor", one("taut", floor, "p50_us", "payload", "one", **large), 5, 2),
            Bar("… two cores", ratio("taut", floor, "p50_us", "payload", **large), 5, 2),
            Bar("1 MiB there and back, one core, times faster than rmcp's best mode", one(best, "taut", "p50_us", "payload", "one", **large), 2, None, True),
            Bar("… two cores", ratio(best, "taut", "p50_us", "payload", **large), 2, None, True),
            Bar("16 MiB there and back, most memory, × the text", huge and huge / (16 * MIB), 4, 2.2),
            Bar("list of 200 tools, one core, times faster than rmcp's best mode", self.list.ratio(best, "taut", "p50_us", "list", "one"), 8, None, True),
            Bar("start to first answer, × floor", ratio("taut", floor, "p50_us", "start"), 2.0, 1.4),
            Bar("system calls, one call after the other", sum(self.calls["taut"].values()) if self.calls.get("taut") else None, 4, 2),
            Bar("client: CPU of a call above the ideal client", self.above_ideal(), 3, 1, unit=" µs"),
            Bar("modern era, p50 of a call, one core, × legacy", self.variant(modern, legacy, "taut", "p50_us", "sequential", "one"), 1.5, None),
            Bar("modern era, CPU of a call, 64 in flight, × legacy", self.variant(modern, legacy, "taut", "cpu_us", "in-flight", "two", **flight), 1.5, None),
            Bar("sockets, p50 of a call, one core, × floor", self.within(sockets, "taut", floor, "p50_us", "sequential", "one"), 1.35, 1.10),
            Bar("sockets, CPU of a call, 64 in flight, × floor", self.within(sockets, "taut", floor, "cpu_us", "in-flight", "two", **flight), 3.0, 1.6),
            Bar("sockets, calls in a second, 64 in flight, × rmcp's default", self.within(sockets, "taut", default, "per_second", "in-flight", "two", **flight), 30, 70, True),
        ]

    def overview(self):
        rows = []
        for name in self.all.names():
            m = lambda figure, *where, **more: self.all.median(name, figure, *where, **more)  # noqa: E731
            rows.append([
                name, micros(m("p50_us", "start")), micros(m("p50_us", "sequential", "one")),
                micros(m("p50_us", "sequential", "two")), number(m("per_second", "in-flight", in_flight=64)),
                micros(m("cpu_us", "in-flight", in_flight=64)), number(m("per_second", "fire-hose")),
                micros(m("p50_us", "payload", bytes=MIB)), micros(self.list.median(name, "p50_us", "list", "one")),
                mib(m("peak_bytes", "sequential", "two"))])
        return table(["server", "start", "p50, one core", "p50, two cores", "calls/s, 64 in flight", "CPU of a call there",
                      "calls/s, fire-hose", "1 MiB", "list of 200, one core", "memory"], rows)

    def latencies(self):
        rows = []
        for cores in ("one", "two"):
            for name in self.all.names():
                found = self.all.cell(name, "sequential", cores).get("median")
                if found:
                    ratio = self.all.ratio(name, "floor in C", "p50_us", "sequential", cores)
                    rows.append([name, cores, *(micros(found[f]) for f in ("p50_us", "p90_us", "p99_us", "p999_us")),
                                 micros(found["cpu_us"]), number(found["switches"]), number(ratio)])
        return table(["server", "cores", "p50", "p90", "p99", "p99.9", "CPU", "switches", "× floor"], rows)

    def throughput(self):
        rows = []
        for phase, more, cores in (("in-flight", {"in_flight": 64}, "one"), ("in-flight", {"in_flight": 64}, "two"), ("fire-hose", {}, "two")):
            for name in self.all.names():
                found = self.all.cell(name, phase, cores, **more).get("median")
                if found:
                    what = "64 in flight" if phase == "in-flight" else "fire-hose"
                    ratio = self.all.ratio("taut", name, "per_second", phase, cores, **more)
                    rows.append([name, what, cores, number(found["per_second"]), micros(found["p50_us"]), micros(found["p99_us"]),
                                 micros(found["cpu_us"]), number(found["switches"], 3), mib(found["peak_bytes"]), number(ratio)])
        return table(["server", "load", "cores", "calls/s", "p50", "p99", "CPU of a call", "switches", "memory", "taut, times as many"], rows)

    def sizes(self):
        found = sorted({entry["bytes"] for entry in self.all.all["phases"] if entry["phase"] == "payload"})
        label = lambda size: f"{size} B" if size < 1024 else f"{size >> 10} KiB" if size < MIB else f"{size >> 20} MiB"  # noqa: E731
        rows = []
        for name in self.all.names():
            row = [name]
            for size in found:
                cell = self.all.cell(name, "payload", bytes=size)
                row.append(micros(cell["median"]["p50_us"]) if "median" in cell else "✗" if cell.get("fault") else "-")
            row.append(mib(self.all.median(name, "peak_bytes", "payload", bytes=found[-1])))
            rows.append(row)
        return table(["server", *map(label, found), f"memory at {label(found[-1])}"], rows)

    def free(self):
        rows = []
        for name in self.any.names():
            m = lambda figure, phase, **more: self.any.median(name, figure, phase, "any", **more)  # noqa: E731
            rows.append([name, micros(m("p50_us", "start")), micros(m("p50_us", "sequential")), number(m("per_second", "in-flight", in_flight=64)),
                         micros(m("cpu_us", "in-flight", in_flight=64)), micros(m("p50_us", "payload", bytes=MIB)),
                         micros(self.one.median(name, "p50_us", "payload", "one", bytes=MIB))])
        return table(["server", "start", "p50", "calls/s, 64 in flight", "CPU of a call there", "1 MiB", "1 MiB, one core"], rows)

    def fires(self):
        rows = []
        for document, names in ((self.fire, ["taut", "floor in C"]), (self.fire_peers, ["rmcp, best", "rmcp, default"])):
            for name in names:
                cell = document.cell(name, "fire-hose")
                found = cell.get("median")
                shown = [number(found["per_second"]), mib(found["peak_bytes"])] if found else [cell.get("fault", "-"), "-"]
                rows.append([name, *shown])
        return table(["server", "calls/s", "most memory"], rows)

    def eras(self):
        rows = []
        for pair in (("legacy", "pipes"), ("modern", "pipes"), ("legacy", "sockets"), ("modern", "sockets")):
            v = lambda figure, phase, cores, **more: self.variant(pair, ("legacy", "pipes"), "taut", figure, phase, cores, **more)  # noqa: E731
            w = lambda figure, phase, cores, **more: self.within(pair, "taut", "floor in C", figure, phase, cores, **more)  # noqa: E731
            rows.append([*pair, number(v("p50_us", "sequential", "one")), number(w("p50_us", "sequential", "one")),
                         number(v("cpu_us", "in-flight", "two", in_flight=64)), number(w("cpu_us", "in-flight", "two", in_flight=64)),
                         number(v("per_second", "in-flight", "two", in_flight=64))])
        return table(["era", "over", "p50, × legacy in pipes", "p50, × floor", "CPU at 64, × legacy in pipes", "CPU at 64, × floor",
                      "calls/s at 64, × legacy in pipes"], rows)

    def counted(self):
        rows = [[name, number(sum(calls.values())), ", ".join(f"{call} {count:g}" for call, count in sorted(calls.items(), key=lambda c: -c[1]))]
                for name, calls in self.calls.items()]
        text = table(["server", "system calls of a call", "which"], rows)
        rows = [[name, f"{count:,}"] for name, count in self.instructions.items()]
        return text + "\n" + table(["instructions in user space (callgrind)", "of a call"], rows)

    def faults(self):
        lines = []
        for document in (self.all, self.list, self.fire, self.fire_peers):
            for entry in document.all.get("phases", []):
                for server in entry["servers"]:
                    if server.get("fault"):
                        size = f" of {entry['bytes'] >> 20} MiB" if entry.get("bytes", 0) >= MIB else ""
                        lines.append(f"- {server['name']}, {entry['phase']}{size}: {server['fault']}")
        lines = list(dict.fromkeys(lines))
        return "\n".join(lines) + "\n" if lines else "None.\n"


TEXT = """# Benchmarks

Written by `bench/run` on {date} at {revision}; do not edit. {machine}.

![Latency, throughput, time and cost against size](bench/plots/all.svg)

## What was to be shown

For `taut serve`'s `echo`, beside a loop in C that parses nothing ([floor.c](bench/floor.c)) and beside other people's
servers, each a program of ours on their package ([interop/peers](interop/peers)). Ratios are taken within a round;
shown is the median of {rounds}.

{bars}
{missed}
## All servers

{overview}
A time is the median of the rounds' medians. `cat` gives back what it gets: the pipe alone. *rmcp, best*: one thread,
non-blocking pipes; *rmcp, default*: `stdio()` on the multi-threaded runtime. Memory: the most during the calls on two cores.

### One call after the other, 64 bytes

{latencies}
### Not pinned

As a user runs it. Load and server then mostly share a core, because the system puts whoever is woken beside the waker.

{free}
### Many calls

Fire-hose: everything is sent as fast as the server takes it, about 0.7 s of calls for each.

{throughput}
A fire-hose of 400,000 calls: who reads without end keeps what it has not answered yet.

{fires}
### Time against size

Sent and sent back, one after the other, two cores.

{sizes}
### Eras and sockets

`taut serve`, round by round beside the legacy era in pipes, and beside the floor under the same conditions.
In the modern era each request carries `_meta`, and each answer too. Sockets are what hosts written in Node give a server.

{eras}
### Counted

One call of 64 bytes after the other. System calls: strace, a server that was asleep.

{counted}
The client: a call costs taut's {taut} µs of CPU and a blocking loop that can do nothing else {ideal} µs ([bench/client](bench/client/README.md)).

### Who failed

Told by `taut bench` as it happened; a size or a load that failed once was not tried again.

{faults}
{beyond}{trace}## Method

- `taut bench` is the load: one thread that writes prepared requests, reads whole buffers, and compares each byte of
  each answer with what it has to be. Every request is answered exactly once, or the line says what happened instead.
  With `cat` at the other end it makes {cat} calls in a second, 64 in flight on one core: it does not measure itself.
- Servers take turns; the order is rotated from round to round; what else the machine does falls on all of them.
- One core: load and server share it (`sched_setaffinity`), so that a round trip is two switches. Two cores: each has
  its own, so that a round trip is two wake-ups, which cost more than most servers do. All that is not said to be on one
  core is on two.
- CPU, switches and memory are the server's, with all processes it started, from `/proc` (`schedstat`, `status`; the
  peak is reset before each phase).
- Each server is warmed up with up to 20,000 calls or 0.4 s. The demo and the peers all offer the same dozen tools.
- Rust is built with optimisation: taut with its own profile (fat LTO), peers with cargo's default one.

Again: `bench/run`, ten minutes on a machine that does nothing else.

## Versions

{versions}
{missing}"""


def write(folder, path):
    """Writes the report; gives the bars that are missed."""
    results = Results(folder)
    about, machine = results.about, results.all.all["machine"]
    bars = results.bars()
    missed = [f"{bar.what}: {bar.value}" for bar in bars if bar.verdict() not in ("met", "aim")]
    why = path.parent / "bench" / "why.md"
    # What `bench/trace` and `bench/beyond` measured last.
    trace, beyond = (path.parent / "bench" / name for name in ("trace.md", "beyond.md"))
    text = TEXT.format(
        date=about["date"], revision=about["revision"], rounds=results.all.all["rounds"],
        machine=f"{machine['cpu']}, {machine['cores']} cores, {machine['system']} {machine['kernel']}",
        bars=table(["figure", "bar", "aim", "measured", ""], []) + "\n".join(bar.row() for bar in bars) + "\n",
        missed=why.read_text() + "\n" if why.exists() else "",
        trace=trace.read_text() if trace.exists() else "", beyond=beyond.read_text() if beyond.exists() else "",
        overview=results.overview(), latencies=results.latencies(), throughput=results.throughput(), fires=results.fires(), free=results.free(),
        sizes=results.sizes(), eras=results.eras(), counted=results.counted(), faults=results.faults(),
        taut=results.client.get("taut", "-"), ideal=results.client.get("ideal", "-"),
        cat=number(results.all.median("cat", "per_second", "in-flight", "one", in_flight=64)),
        versions=table(["", ""], [[peer["title"], f"{peer['package']} {peer['version']}"] for peer in about["peers"]]
                       + [[name, says] for name, says in about["tools"].items()]),
        missing=f"Not there when this was measured: {', '.join(about['missing'])}.\n" if about["missing"] else "")
    path.write_text(text)
    return [f"missed: {what}" for what in missed]
