"""Do leases hold, and what do they cost? Never two holders, whoever is killed, and 5 ms at most.

On a faked node with as many GPUs as each question needs; every process is a real one.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

from measure import Figure, interleaved
from place import ROOT, Place

sys.path.insert(0, str(ROOT / "tests" / "lease"))

from lease_launchers import LAUNCHERS
from lease_node import Node

AT_ONCE, STARTS = 200, 250

# A worker that nobody but the keeper knows; of each device there is one folder to make.
WORKER = """
mkdir "$1" || echo "$1" >> "$2"
echo "$1" >> "$3"
sleep "$4"
rmdir "$1"
"""
ALONE = 'exec sh "$0/worker.sh" "$0/seen/$CUDA_VISIBLE_DEVICES" "$0/collisions" "$0/starts" 0.02'
LEFT = (
    'setsid sh "$0/worker.sh" "$0/seen/$CUDA_VISIBLE_DEVICES" "$0/collisions" "$0/starts" 0.15 &'
    " sleep 0.03"
)


def run(place: Place) -> Iterator[Figure]:
    """Count the holders of each device, and time the end of a lease and its start."""
    with tempfile.TemporaryDirectory(prefix="leases-", dir=place.folder) as folder:
        yield from _at_once(place, Path(folder))
    with tempfile.TemporaryDirectory(prefix="leases-", dir=place.folder) as folder:
        yield from _with_signals(place, Path(folder))
    for how in LAUNCHERS:
        with tempfile.TemporaryDirectory(prefix="leases-", dir=place.folder) as folder:
            yield from _killed_launcher(place, Path(folder), how)
    with tempfile.TemporaryDirectory(prefix="leases-", dir=place.folder) as folder:
        yield _price(place, Path(folder))


def _node(folder: Path, count: int) -> tuple[Node, Path]:
    node = Node(folder, count)
    (folder / "worker.sh").write_text(WORKER)
    (folder / "seen").mkdir()
    return node, folder


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0


def _exec(place: Place, node: Node, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*place.probe, "exec", *words],
        env={**place.environ, **node.environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def _at_once(place: Place, folder: Path) -> Iterator[Figure]:
    count = place.rounds(AT_ONCE, 40)
    node, folder = _node(folder, 8)
    begin = monotonic()
    words = ("--wait", "--", "sh", "-c", ALONE, str(folder))
    commands = [_exec(place, node, *words) for _ in range(count)]
    failed = sum(command.communicate()[0] != b"" or command.returncode != 0 for command in commands)
    taken = monotonic() - begin
    name = f"{count} at once"
    yield Figure(f"{name}: second holders", _lines(folder / "collisions"), "", 0, "on 8 devices")
    yield Figure(f"{name}: commands that failed", failed, "", 0, f"in {taken:.1f} s")
    starts = _lines(folder / "starts")
    yield Figure(f"{name}: commands that ran", starts, "", count, least=True)


def _with_signals(place: Place, folder: Path) -> Iterator[Figure]:
    count = place.rounds(STARTS, 50)
    node, folder = _node(folder, 8)
    chance = random.Random(13)
    running: dict[subprocess.Popen[bytes], float] = {}
    unit = _time_of_sixteen(place, node)
    for number in range(count):
        command = _exec(place, node, "--wait", "--", "sh", "-c", LEFT, str(folder))
        running[command] = monotonic() + unit * (0.3 + chance.random())
        while len(running) >= 16 or (number == count - 1 and running):
            _signal_some(running, chance)
            sleep(0.002)
    name = f"{count} starts with random signals"
    sleep(0.5)
    yield Figure(f"{name}: second holders", _lines(folder / "collisions"), "", 0, "on 8 devices")
    yield Figure(f"{name}: leases that stay", len(node.held()), "", 0)
    yield Figure(f"{name}: workers that ran", _lines(folder / "starts"), "", count / 5, least=True)


def _time_of_sixteen(place: Place, node: Node) -> float:
    """Return how long sixteen commands at once take: signals come before and after their start."""
    begin = monotonic()
    for command in [_exec(place, node, "--wait", "--", "true") for _ in range(16)]:
        command.communicate()
    return monotonic() - begin


def _signal_some(running: dict[subprocess.Popen[bytes], float], chance: random.Random) -> None:
    for command, when in list(running.items()):
        if command.poll() is not None:
            command.communicate()
            del running[command]
        elif monotonic() > when:
            command.send_signal(chance.choice((2, 15, 9, 9, 1)))
            running[command] = when + 1


def _killed_launcher(place: Place, folder: Path, how: str) -> Iterator[Figure]:
    node, folder = _node(folder, 1)
    script = folder / "launcher.py"
    script.write_text(LAUNCHERS[how])
    second, times = 0, []
    for _ in range(place.rounds(5, 2)):
        launcher = _exec(place, node, "--", sys.executable, str(script))
        assert launcher.stdout is not None
        worker = int(launcher.stdout.readline())
        while not (keeper := _keeper(node)):
            sleep(0.001)
        launcher.kill()
        launcher.wait()
        second += _exec(place, node, "--", "true").wait() == 0
        times.append(_freed_after(node, keeper, worker))
        launcher.stdout.close()
    yield Figure(f"launcher killed ({how}): second holders", second, "", 0)
    yield Figure(f"launcher killed ({how}): freed after", max(times), "ms", 100, "the longest")


def _keeper(node: Node) -> int:
    """Return the keeper that the record of the only lease names; 0 before it does."""
    for record in node.records():
        lines = record.read_text().splitlines()
        return int(next((line[7:] for line in lines if line.startswith("keeper ")), "0"))
    return 0


def _freed_after(node: Node, keeper: int, worker: int) -> float:
    """End what runs under the lease; return the milliseconds from the last end to the release."""
    for pid in {worker, *_below(keeper)}:
        os.kill(pid, signal.SIGKILL)
    while any(map(_lives, _below(keeper))):
        sleep(0.0005)  # not in a busy loop, which would take a core from what is measured
    begin = monotonic()
    while node.records() and monotonic() < begin + 10:
        sleep(0.0005)
    return (monotonic() - begin) * 1000


def _below(keeper: int) -> set[int]:
    try:
        text = Path(f"/proc/{keeper}/task/{keeper}/children").read_text()
    except OSError:
        return set()
    children = {int(word) for word in text.split()}
    return children.union(*map(_below, children))


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _price(place: Place, folder: Path) -> Figure:
    node, folder = _node(folder, 2)
    environ = {**place.environ, **node.environ}
    commands = {
        "probe": [*place.probe, "--json"],
        "exec": [*place.probe, "exec", "--", "true"],
    }
    taken = interleaved(commands, place.rounds(40, 10), environ)
    more = (taken["exec"] - taken["probe"]) * 1000
    note = f"{taken['exec'] * 1000:.1f} ms in all, load {os.getloadavg()[0]:.1f}"
    return Figure("exec -- true beyond probe --json", more, "ms", 5, note)
