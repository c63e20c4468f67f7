"""How long, and how much memory, do 1,000 nodes take, and how near is a link to iperf3's figure?"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any

from measure import Figure, here
from place import ROOT, Place

NODES = 1000

sys.path.insert(0, str(ROOT / "plugins" / "cluster" / "tests"))

# A process of its own: its peak is that of the gather alone. The reports are files, so that what
# is measured is our loop and not a thousand interpreters.
PROGRAM = """
import asyncio, json, resource, sys, time
from probe_cluster import gather
from probe_cluster.gathering import Files
from probe_cluster.gathering.document import document_lines
from probe_cluster.gathering.terminal import table
from probe_cluster.network.links import link_findings
from probe_cluster.network.links import measured_link
from probe_cluster.network.links import Network
from probe_cluster.network.pairs import choose_pairs, rounds
from probe_core.commands import Context

files = [f"n{at}={sys.argv[1]}/{at}.json" for at in range(int(sys.argv[2]))]
start = time.perf_counter()
gathered = asyncio.run(gather(Files(files)))
loop = time.perf_counter()
pairs = choose_pairs(list(gathered.nodes), {})
hellos = [{"boot": str(end), "addresses": [["eth0", "10.0.0.1"]]} for end in (1, 2)]
for at, pair in enumerate(pairs):
    answers = [{"rate": 1e6 * (at + 1), "address": "10.0.0.1", "round_trip": 1e-4}] * 2
    gathered.links.append(measured_link(pair, answers, hellos, {}))
gathered.findings = link_findings(gathered.links, Network(), {})
assert rounds(pairs) < 20 and len(gathered.findings) == 12
linked = time.perf_counter()
differences = gathered.differences()
differed = time.perf_counter()
lines = table(gathered, Context())
shown = time.perf_counter()
size = sum(map(len, document_lines(gathered)))
written = time.perf_counter()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
assert gathered.complete and differences and lines
steps = (start, loop, linked, differed, shown, written)
print(json.dumps([*(end - begin for begin, end in zip(steps, steps[1:])), peak, size]))
"""


def run(place: Place) -> Iterator[Figure]:
    """Gather 1,000 nodes of eight GPUs, of which some are unlike the others; measure one link."""
    yield from _thousand(place)
    yield from _loopback(place)


def _thousand(place: Place) -> Iterator[Figure]:
    folder = Path(place.folder) / "nodes"
    folder.mkdir(exist_ok=True)
    kilobytes = write_reports(folder, NODES)
    rounds = []
    for _ in range(place.rounds(5, 2)):
        start = perf_counter()
        command = [sys.executable, "-c", PROGRAM, str(folder), str(NODES)]
        done = subprocess.run(command, env=here(), capture_output=True, text=True, check=True)
        rounds.append([*json.loads(done.stdout), perf_counter() - start])
    loop, link, differ, show, write, peak, _, whole = map(median, zip(*rounds, strict=True))
    note = f"8 GPUs, {kilobytes:.0f} kB a node"
    total = loop + link + differ + show
    yield Figure(f"gather, differences, table: {NODES} nodes", total, "s", 2.0, note)
    yield Figure("  gather loop: read, check, summarise", loop, "s")
    yield Figure("  2,000 links: pairs, rows, findings", link, "s")
    yield Figure("  differences", differ, "s")
    yield Figure("  table", show, "s")
    yield Figure("document of all nodes", write, "s")
    yield Figure("whole process", whole, "s")
    yield Figure("peak memory", peak, "MiB", 300.0)


def _loopback(place: Place) -> Iterator[Figure]:
    """Compare the bandwidth of a loopback with iperf3's, each in turn: a busy computer drifts."""
    if shutil.which("iperf3") is None:
        yield Figure("loopback, Gbit/s", _ours(), "Gbit/s", note="iperf3 is not installed")
        return
    pairs = [(_ours(), _iperf3()) for _ in range(place.rounds(7, 3))]
    ours, theirs = map(median, zip(*pairs, strict=True))
    distance = abs(median(own / other for own, other in pairs) - 1) * 100
    note = f"{ours:.1f} and {theirs:.1f} Gbit/s, one stream each, medians"
    yield Figure("loopback beside iperf3: distance", distance, "%", 20.0, note)


def _ours() -> float:
    """Return Gbit/s between two agents, the mean of both directions."""
    from probe_cluster.gathering.lines import Streams
    from probe_cluster.network.start import Start

    command = [sys.executable, *Start(("probe",), 60).words()]
    agents = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)
    ]

    def message(agent: subprocess.Popen[bytes]) -> dict[str, Any]:
        messages: list[dict[str, Any]] = []
        lines = Streams(lambda stream: messages.append(json.loads(stream.text())))
        assert agent.stdout is not None
        while not messages:
            lines.feed(agent.stdout.readline())
        return messages[0]

    def order(agent: subprocess.Popen[bytes], hello: dict[str, Any], **words: Any) -> None:
        words |= {"to": hello["agent"], "pair": 1, "token": "00" * 32, "seconds": 30}
        words |= {"each": 1.0, "bytes": 64 << 30}
        assert agent.stdin is not None
        agent.stdin.write(json.dumps(words).encode() + b"\n")
        agent.stdin.flush()

    hellos = [message(agent) for agent in agents]
    order(agents[0], hellos[0], do="listen")
    port = message(agents[0])["port"]
    order(agents[1], hellos[1], do="connect", peer=[["127.0.0.1", port]])
    rates = [message(agent)["rate"] for agent in agents]
    for agent in agents:
        agent.communicate()
    return float(sum(rates)) / 2 * 8 / 1e9


def _iperf3() -> float:
    """Return Gbit/s that iperf3's server receives in one second, less the first 0.2."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    server = subprocess.Popen(["iperf3", "-s", "-1", "-p", port], stdout=subprocess.DEVNULL)
    command = ["iperf3", "-c", "127.0.0.1", "-p", port, "-t", "1", "-O", "0.2", "-J"]
    received: dict[str, float] = {}
    until = perf_counter() + 20
    while not received and perf_counter() < until:  # it takes a while to listen
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        received = json.loads(done.stdout).get("end", {}).get("sum_received", {})
        sleep(0 if received else 0.1)
    server.kill()
    server.wait()
    return received["bits_per_second"] / 1e9


def write_reports(folder: Path, count: int) -> float:
    """Write the reports; return their mean size in kB."""
    from home_nodes import NODES as HOMES
    from home_nodes import report_of, rtx_4090

    gpus = [rtx_4090(slot) | {"ids": [f"pci:0000:{slot:02x}:00.0"]} for slot in range(1, 9)]
    HOMES["rack"] = (gpus, 512 << 30, 400 << 30)
    base = json.dumps(report_of("rack", folder))
    total = 0
    for at in range(count):
        report: dict[str, Any] = json.loads(base)
        report["node"].update(id=f"{at:08x}", host=f"n{at}", model="rack")
        if at % 100 == 7:
            del report["devices"][3]
        for device in report["devices"]:
            if at % 50 == 3 and device["kind"] == "gpu":
                device["driver"]["version"] = "570.00"
        text = json.dumps(report)
        total += len(text)
        (folder / f"{at}.json").write_text(text)
    return total / count / 1e3
