"""Links between two network namespaces whose rate and delay are known: the figures are theirs.

The rate is that of the kernel's token bucket filter (tc-tbf(8)) on a pair of virtual Ethernet
cards. The delay is made by a process between two TUN devices, which holds each packet back: not
each kernel has netem. No frame leaves this computer.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_engines import Engines

from probe_cluster import Gathered, Limits, gather
from probe_cluster.gathering import Ssh
from probe_cluster.network import Network, measure_links

Home = dict[str, dict[str, Any]]

SSH = """#!/bin/sh
while [ $# -gt 2 ]; do shift; done
export FAKE_HOST=$1
exec ip netns exec {prefix}$1 sh -c "$2"
"""

# Argument 1 is the delay in seconds, the others are names of TUN devices of this process: it makes
# them, says so, and passes packets on once its input has a line.
WIRE = """
import collections, fcntl, os, select, struct, sys, time

delay, files, waiting = float(sys.argv[1]), [], collections.deque()
for name in sys.argv[2:]:
    file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    # TUNSETIFF, IFF_TUN | IFF_NO_PI: if_tun.h
    fcntl.ioctl(file, 0x400454CA, struct.pack("16sH14x", name.encode(), 0x1001))
    files.append(file)
print("made", flush=True)
sys.stdin.readline()
other = dict(zip(files, files[::-1]))
while True:
    due = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
    ready, _, _ = select.select([*files, 0], [], [], due)
    if 0 in ready and not os.read(0, 1):
        break
    for file in set(ready) - {0}:
        try:
            waiting.append((time.monotonic() + delay, other[file], os.read(file, 1 << 16)))
        except OSError:  # not up yet
            time.sleep(0.001)
    while waiting and waiting[0][0] <= time.monotonic():
        _, file, packet = waiting.popleft()
        try:
            os.write(file, packet)
        except OSError:
            pass
"""


TC = shutil.which("tc", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def can_make_namespaces() -> bool:
    if os.geteuid() != 0 or not (shutil.which("ip") and TC):
        return False
    return subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode == 0


pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(
        not can_make_namespaces(), reason="needs root, network namespaces, and iproute2"
    ),
]


def do(*lines: str) -> None:
    for line in lines:
        subprocess.run(line.split(), check=True, capture_output=True)


@pytest.fixture
def prefix() -> Iterator[str]:
    """The beginning of the names of two namespaces, which are deleted afterwards."""
    prefix = f"p{os.getpid()}-"
    for end in "ab":
        do(f"ip netns add {prefix}{end}", f"ip -n {prefix}{end} link set lo up")
    yield prefix
    for end in "ab":
        do(f"ip netns del {prefix}{end}")


@pytest.fixture
def nodes(engines: Engines, home: Home, prefix: str) -> None:
    engines.command("ssh", SSH.replace("{prefix}", prefix))
    engines.command("python3", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    for end in "ab":
        engines.report(end, home["desk"])


def measured(**network: Any) -> Gathered:
    async def work() -> Gathered:
        gathered = await gather(Ssh(["a", "b"]), limits=limits)
        await measure_links(gathered, Ssh(["a", "b"]), Network(**network), limits=limits)
        return gathered

    limits = Limits(node=60.0)
    return asyncio.run(work())


@pytest.mark.usefixtures("nodes")
def test_a_bandwidth_is_that_of_the_link_in_each_direction(prefix: str) -> None:
    do(f"ip link add eth0 netns {prefix}a type veth peer name eth0 netns {prefix}b")
    for end, address, rate in (("a", "10.77.0.1", "80mbit"), ("b", "10.77.0.2", "40mbit")):
        name = f"{prefix}{end}"
        do(
            f"ip -n {name} address add {address}/24 dev eth0",
            f"ip -n {name} link set eth0 up",
            f"ip netns exec {name} {TC} qdisc add dev eth0 root tbf"
            f" rate {rate} burst 32kb latency 50ms",
        )
    # Of a frame of 1,514 bytes 1,448 are TCP's: 95.6 %.
    there, back = 80e6 / 8 * 1448 / 1514, 40e6 / 8 * 1448 / 1514
    best = [0.0, 0.0]
    for _ in range(5):
        gathered = measured(seconds=1.0)
        (link,) = gathered.links
        assert (link["ends"], link["reason"]) == (["a", "b"], None)
        assert link["interfaces"] == ["eth0", "eth0"]
        rates = [rate or 0.0 for rate in link["bandwidths"]]
        # Never more than the link carries, but for the bucket of 32 kB.
        assert rates[0] < there * 1.06
        assert rates[1] < back * 1.06
        assert link["bandwidth"] == min(rates)
        assert [finding["code"] for finding in gathered.findings] == ["link-slow"]
        best = [max(pair) for pair in zip(best, rates, strict=True)]
        if best[0] > there * 0.94 and best[1] > back * 0.94:
            return
    # A computer that is busy with other work may be slower than the link, not each time.
    pytest.fail(f"{best} B/s of {there:.0f} and {back:.0f}")


@pytest.mark.usefixtures("nodes")
@pytest.mark.skipif(not Path("/dev/net/tun").exists(), reason="needs /dev/net/tun")
def test_a_round_trip_is_that_of_the_link(prefix: str) -> None:
    delay = 0.02
    names = [f"t{os.getpid()}{end}" for end in "ab"]
    wire = subprocess.Popen(
        [sys.executable, "-c", WIRE, str(delay), *names],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert wire.stdin is not None
    assert wire.stdout is not None
    try:
        assert wire.stdout.readline() == "made\n"
        for name, end, address, peer in zip(
            names, "ab", ("10.78.0.1", "10.78.0.2"), ("10.78.0.2", "10.78.0.1"), strict=True
        ):
            do(
                f"ip link set {name} netns {prefix}{end}",
                f"ip -n {prefix}{end} address add {address} peer {peer} dev {name}",
                f"ip -n {prefix}{end} link set {name} up",
            )
        wire.stdin.write("\n")
        wire.stdin.flush()
        trips = []
        for _ in range(5):
            gathered = measured(seconds=0.3, size=1 << 20, most_round_trip=0.03)
            (link,) = gathered.links
            trips.append(link["round_trip"] or 0.0)
            # Never less than both ways, to the accuracy of the clock.
            assert trips[-1] >= 2 * delay - 0.0002
            assert link["latency"] == pytest.approx(trips[-1] / 2, abs=1e-8)
            assert "link-latency" in [finding["code"] for finding in gathered.findings]
            if min(trips) < 2 * delay * 1.15:
                return
        pytest.fail(f"round trips of {trips} s over a link of {2 * delay} s")
    finally:
        wire.communicate("", timeout=20)
