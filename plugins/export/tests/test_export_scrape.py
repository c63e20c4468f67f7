"""A scrape of the live endpoint: eight H100 by NVIDIA's own library, above a fake driver.

Prometheus' promtool and the OpenMetrics parser of prometheus_client read what the port sends.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from command import argv, environment
from export_machines import FAKES, fake
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as plain
from test_export_series import OPEN, checked_by_promtool

FIGURES = """
utilization {n}0 5
temperature 4{n}
usage {n}00500
power 700000 700000 200000 700000
clocks-now 1900 1980 2619 1500
throttle 0x4
traffic 1000000000 2500000000
gpm 50.5 25.25 12.5
tally 12345678{n} 7 2 {n}
nvlink-errors 1 20 300 4
violation 1500000000 250000000
process 4194300 18446744073709551615
"""
HANGS = "on nvmlDeviceGetMemoryInfo hang\non nvmlDeviceGetMemoryInfo_v2 hang\n"
NO_IOCTL = "int fake_ioctl(const char *n, unsigned long r, void *a) { return -1; }\n"


def eight(folder: Path, hung: int | None) -> dict[str, str]:
    """Return the environment of a node with eight GPUs, one of which may hang."""
    build, root = fake("build"), folder / "root"
    try:
        library, compiler = build.build(folder), build.compiler()
    except build.NoCompiler as error:
        pytest.skip(str(error))
    tree = fake("tree").Tree(root)
    tree.add_driver()
    for address in fake("tree").H100_ADDRESSES:
        tree.add_pci(address, "2330", subsystem="10de:16c1")
    profile = (FAKES / "profiles" / "h100x8.profile").read_text()
    head, *gpus = profile.rstrip("\n").split("\ngpu\n")
    for number in range(8):
        gpus[number] += FIGURES.format(n=number) + HANGS * (number == hung)
    (folder / "eight.profile").write_text("\ngpu\n".join([head, *gpus]))
    (folder / "no_ioctl.c").write_text(NO_IOCTL)
    preloaded = folder / "fake_root.so"
    sources = [str(FAKES.parent / "drm" / "fake_root.c"), str(folder / "no_ioctl.c")]
    flags = ["-shared", "-fPIC", "-O1", "-w", "-o", str(preloaded)]
    subprocess.run([compiler, *flags, *sources, "-ldl"], check=True)
    return environment(
        LD_LIBRARY_PATH=str(library.parent),
        LD_PRELOAD=str(preloaded),
        FAKE_NVML_PROFILE=str(folder / "eight.profile"),
        FAKE_ROOT=str(root),
    )


def scraped(url: str, accept: str = "") -> str:
    request = urllib.request.Request(url, headers={"Accept": accept})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:  # 503 before the first round
        error.close()
        return ""


@pytest.mark.heavy
@pytest.mark.parametrize("hung", [None, 2])
def test_parsers_find_nothing_in_a_scrape(hung: int | None, tmp_path: Path) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed")
    command = argv("export", "prometheus", "--listen", "127.0.0.1:0")
    wanted = [f" {float(number != hung)}" for number in range(8)]
    with subprocess.Popen(
        command, env=eight(tmp_path, hung), stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            url = process.stderr.readline().split()[3].rstrip(";")
            end = time.monotonic() + 100
            while True:
                text = scraped(url)
                up = [line for line in text.splitlines() if line.startswith("probecore_device_up{")]
                # The report's own facts come beside the figures, the rates with the second round.
                is_whole = "_devices_usable " in text and "_link_sent_bytes" in text
                if is_whole and [line[line.rindex(" ") :] for line in up] == wanted:
                    break
                assert time.monotonic() < end, text
                time.sleep(0.05)
            checked_by_promtool(text)
            families = {family.name: family for family in open_metrics(scraped(url, OPEN))}
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
    assert {s.name for f in plain(text) for s in f.samples} == {
        s.name for f in families.values() for s in f.samples
    }
    addresses = fake("tree").H100_ADDRESSES
    answering = [address for number, address in enumerate(addresses) if number != hung]
    for name, values in {
        "busy_ratio": [number / 10 for number in range(8)],
        "temperature_celsius": [40.0 + number for number in range(8)],
        "power_watts": [100 * number + 0.5 for number in range(8)],
        "tensor_activity_ratio": [0.2525] * 8,
        "energy_joules": [123456.780 + number / 1000 for number in range(8)],
        "pcie_replays": list(range(8)),
    }.items():
        shown = {s.labels["device"]: s.value for s in families[f"probecore_device_{name}"].samples}
        assert shown == pytest.approx(
            {address: values[addresses.index(address)] for address in answering}
        ), name
