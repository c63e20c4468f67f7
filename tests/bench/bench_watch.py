"""What does `probe watch` cost: its first sample, and a frame of eight GPUs?

The first sample is compared with `probe --json` on the same fake node, interleaved. And how soon
are the devices at its port, where one of eight GPUs hangs?
"""

from __future__ import annotations

import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from time import perf_counter, sleep

from bench_nvidia import node, possible, under
from measure import Figure
from place import ROOT, Place

FRAMES = """
import asyncio, os, sys, time
sys.path.insert(0, sys.argv[1])
from watch_samples import address, busy, report
from probe_watch.alerts import Alerts, rules_of
from probe_watch.app import WatchApp
from probe_watch.node import Node
from probe_watch.rounds import Happening
async def main():
    node, spent, written = Node("", Alerts(rules_of({}))), [], []
    node.describe(report(*["NVIDIA H100 80GB HBM3"] * 8)["devices"])
    app = WatchApp([node], 1.0)
    async with app.run_test(size=(120, 40)):
        # As on a terminal: what is drawn becomes bytes.
        type(app._driver).is_headless = property(lambda driver: False)
        app._driver.write = written.append
        for number in range(int(sys.argv[2])):
            began = time.process_time()
            samples = [
                busy(address(at), (number * 7 + at * 11) % 100 / 100, temperature_c=number % 90)
                for at in range(1, 9)
            ]
            edges = node.alerts.update(number, number, samples)
            app.take(node, Happening(number, samples, (), edges, ()))
            written.clear()
            while not written:
                await asyncio.sleep(0.002)
            spent.append(time.process_time() - began)
    return sorted(spent)[len(spent) // 4]
os.write(1, str(asyncio.run(main())).encode())
"""


def run(place: Place) -> Iterator[Figure]:
    """Measure the first sample, and the frame."""
    if not place.has("probe_watch"):
        return
    yield from _frame(place)
    compiler = possible(place)
    if compiler is None:
        return
    eight = node(place, compiler, 8)
    commands = {
        "json": under(eight, [*place.probe, "--json"]),
        "watch": under(eight, [*place.probe, "watch", "--json", "-n", "1"]),
    }
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(place.rounds(15) + 1):
        for name, command in commands.items():
            spent = _until_first_line(command, place.environ)
            if number:
                taken[name].append(spent * 1000)
    json, watch = (median(taken[name]) for name in ("json", "watch"))
    name = "first sample of probe watch --json, beyond probe --json"
    yield Figure(name, watch - json, "ms", 50.0, f"{watch:.0f} ms against {json:.0f} ms")
    yield from _port(place, hung(eight))


def hung(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the node whose third GPU hangs when its memory is read."""
    profile = Path(variables["FAKE_NVML_PROFILE"])
    head, *gpus = profile.read_text().split("\ngpu\n")
    gpus[2] += "\non nvmlDeviceGetMemoryInfo hang\non nvmlDeviceGetMemoryInfo_v2 hang\n"
    changed = profile.with_name("hung.profile")
    changed.write_text("\ngpu\n".join([head, *gpus]))
    return {**variables, "FAKE_NVML_PROFILE": str(changed)}


def _port(place: Place, variables: Mapping[str, str]) -> Iterator[Figure]:
    """Yield the seconds until a scrape has the devices of the bus, and until seven GPUs are up."""
    if not place.has("probe_export"):
        return
    command = under(variables, [*place.probe, "watch", "--plain", "--listen", "127.0.0.1:0"])
    listed, well = [], []
    for _ in range(place.rounds(5, 2)):
        there, up = _scraped(command, place.environ)
        listed.append(there)
        well.append(up)
    note = "from the start of the process"
    name = "watch's port: all devices while a GPU hangs"
    yield Figure(name, median(listed), "s", 0.5, note, goal=0.3)
    yield Figure("watch's port: the other seven are up", median(well), "s", 5.0)


def _scraped(command: list[str], environ: Mapping[str, str]) -> tuple[float, float]:
    began = perf_counter()
    with subprocess.Popen(
        command,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        url = process.stderr.readline().split()[-1]
        there = _until(url, "probecore_device_pending", 8) - began
        up = _until(url, "probecore_device_up", 7) - began
        process.terminate()
    return there, up


def _until(url: str, name: str, count: int) -> float:
    """Return when a scrape has a series of 1 for so many GPUs; raises after half a minute."""
    end = perf_counter() + 30
    while perf_counter() < end:
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                lines = answer.read().decode().splitlines()
        except urllib.error.HTTPError as error:
            error.close()
            lines = []
        if (
            sum(line.startswith(f'{name}{{device="0000:') and line[-4:] == " 1.0" for line in lines)
            >= count
        ):
            return perf_counter()
        sleep(0.005)
    raise RuntimeError(f"no scrape had {count} of {name}")


def _until_first_line(command: list[str], environ: Mapping[str, str]) -> float:
    """Return the seconds until a command prints its first line; it then ends by itself."""
    began = perf_counter()
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        spent = perf_counter() - began
        process.stdout.read()
    return spent


def _frame(place: Place) -> Iterator[Figure]:
    samples = str(Path(ROOT) / "plugins" / "watch" / "tests")
    command = [place.python, "-c", FRAMES, samples, str(place.rounds(100, 30))]
    done = subprocess.run(
        command, env=dict(place.environ), capture_output=True, text=True, check=True
    )
    share = float(done.stdout) * 100
    note = "eight GPUs, 120 columns, a sample a second"
    yield Figure("drawing, % of a core", share, "%", 1.8, note)
