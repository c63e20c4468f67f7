"""The series themselves: names, sums, counters, and what parsers of others find in the text."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import recorded
from export_nodes import A100, GIB, LOST_NODE, MIG_NODE, MIXED, gpu, node
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as plain
from reports import report_of_recording
from weights import mostly_heavy

from probe_export import export
from probe_export.live import Metrics
from probe_export.prometheus import _DEVICE, PREFIX, facts, figures, text

OPEN = "application/openmetrics-text;version=1.0.0"


def sample(device: str, **known: Any) -> Any:
    """Return a sample of a device with every key; what is not named is unknown."""
    names = "busy activity memory temperature_c power_w power_cap_w clocks_mhz throttled processes"
    return {
        "device": device, "prober": "given", "status": "ok", "reason": None,
        **dict.fromkeys(names.split()), "counters": None, "xids": None, "pressure": None,
        "links": [], "unknown": {}, **known,
    }  # fmt: skip


def at_work(device: str) -> Any:
    """Return a sample in which everything is known, each with a value of its own."""
    counters = (
        "energy_j ecc_corrected ecc_uncorrected pcie_replays pcie_correctable nvlink_crc"
        " nvlink_replays nvlink_recoveries throttled_power_s throttled_thermal_s"
    )
    return sample(
        device,
        busy=0.5,
        activity={"sm": 0.25, "tensor": 0.125, "memory": 0.75},
        memory={"used": 20 * GIB, "total": 80 * GIB},
        temperature_c=61.0,
        power_w=333.5,
        power_cap_w=700.0,
        clocks_mhz={"sm": 1755.0, "memory": 2619.0},
        throttled=["sw-power-cap"],
        processes=[{"pid": 1, "user": None, "memory": None}],
        links=[{"kind": "pcie", "name": None, "generation": 5, "width": 16, "received": 1e9,
                "sent": 2e9}],
        counters={name: number + 1 for number, name in enumerate(counters.split())},
        xids=[{"code": 79, "count": 1}, {"code": 94, "count": 2}],
    )  # fmt: skip


def host() -> list[Any]:
    memory = {"used": 3 * GIB, "total": 62 * GIB}
    link = {"kind": "ethernet", "name": "eth0", "generation": None, "width": None,
            "received": 10.0, "sent": 20.0}  # fmt: skip
    pressure = {"cpu": 0.1, "memory": 0.2, "io": None}
    return [
        sample("cpu:0", busy=0.3, temperature_c=50.0, power_w=90.0, clocks_mhz={"sm": 3000.0,
               "memory": None}, counters={"energy_j": 5.0}),
        sample("node:self", memory=memory, links=[link], pressure=pressure),
    ]  # fmt: skip


def ready(report: Any) -> Metrics:
    """Return an endpoint's series whose report is there."""
    metrics = Metrics(lambda: report)
    metrics._report.begin()
    while metrics._report.last is None:
        time.sleep(0.001)
    return metrics


def served(report: Any, samples: list[Any], accept: str = OPEN) -> str:
    metrics = ready(report)
    metrics.publish(1_795_299_243.5, samples)
    return metrics.text(accept)[0].decode()


def values(written: str) -> dict[str, float]:
    lines = (line.rpartition(" ") for line in written.splitlines() if line[0] != "#")
    return {name: float(value) for name, _, value in lines}


def checked_by_promtool(written: str) -> None:
    """Prometheus' own tool parses the text, and its lint finds nothing."""
    if promtool := shutil.which("promtool"):
        command = [promtool, "check", "metrics"]
        done = subprocess.run(command, input=written, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def same_series(written: str) -> set[tuple[str, tuple[tuple[str, str], ...], float]]:
    return {
        (s.name, tuple(sorted(s.labels.items())), s.value)
        for family in plain(written)
        for s in family.samples
    }


@pytest.mark.parametrize("name", mostly_heavy(recorded.names(), 4))
def test_parsers_find_nothing_on_a_recorded_machine(name: str) -> None:
    report: Any = report_of_recording(name)
    devices = [d["id"] for d in report["devices"] if d["kind"] not in ("cpu", "display")]
    samples = [*map(at_work, devices), *host()]
    file, endpoint = export("prometheus", report), served(report, samples, "")
    checked_by_promtool(file)
    checked_by_promtool(endpoint)
    families = list(open_metrics(served(report, samples)))
    assert all(family.name.startswith(f"{PREFIX}_") for family in families)
    # The file's own writer and prometheus_client write the same series.
    assert same_series(text(facts(report))) <= same_series(endpoint)
    assert len(same_series(file)) == sum(line[0] != "#" for line in file.splitlines())


def test_every_figure_of_a_sample_has_one_series(tmp_path: Path) -> None:
    report = node(MIXED, tmp_path)
    identity = "pci:0000:01:00.0"
    mine = {
        name: value
        for name, value in values(served(report, [at_work(identity), *host()])).items()
        if 'device="0000:01:00.0"' in name and "info{" not in name
    }
    own = '{device="0000:01:00.0"'
    assert {name: mine.pop(name) for name in list(mine) if name.split("{")[0][17:] in LIVE} == {
        f"probecore_device_{name}{own}{labels}}}": value
        for name, labels, value in (
            ("up", "", 1), ("pending", "", 0), ("asleep", "", 0), ("busy_ratio", "", 0.5),
            ("sm_activity_ratio", "", 0.25), ("tensor_activity_ratio", "", 0.125),
            ("memory_activity_ratio", "", 0.75), ("memory_size_bytes", "", 80 * GIB),
            ("memory_used_bytes", "", 20 * GIB), ("temperature_celsius", "", 61),
            ("power_watts", "", 333.5), ("power_limit_watts", "", 700),
            ("clock_hertz", "", 1755e6), ("memory_clock_hertz", "", 2619e6),
            ("throttled", ',reason="sw-power-cap"', 1), ("processes", "", 1),
            ("link_received_bytes_per_second", ',link="pcie0"', 1e9),
            ("link_sent_bytes_per_second", ',link="pcie0"', 2e9),
            ("energy_joules_total", "", 1), ("ecc_errors_total", ',kind="corrected"', 2),
            ("ecc_errors_total", ',kind="uncorrected"', 3), ("pcie_replays_total", "", 4),
            ("pcie_correctable_errors_total", "", 5), ("nvlink_errors_total", ',kind="crc"', 6),
            ("nvlink_errors_total", ',kind="replay"', 7),
            ("nvlink_errors_total", ',kind="recovery"', 8),
            ("throttled_seconds_total", ',reason="power"', 9),
            ("throttled_seconds_total", ',reason="thermal"', 10),
            ("xid_errors_total", ',xid="79"', 1), ("xid_errors_total", ',xid="94"', 2),
        )
    }  # fmt: skip


LIVE = {name + ("_total" if kind == "counter" else "") for name, kind, _, _ in _DEVICE}


def test_what_is_not_known_has_no_series(tmp_path: Path) -> None:
    report = node(LOST_NODE, tmp_path)
    samples = [
        sample("pci:0000:01:00.0", status="unresponsive", reason="it hangs"),
        sample("pci:0000:02:00.0", status="asleep", reason="it sleeps"),
        sample("pci:0000:03:00.0", status="pending", reason="it was not asked yet"),
    ]
    found = values(served(report, samples))
    ups = {name: value for name, value in found.items() if name.startswith("probecore_device_up")}
    assert ups == {'probecore_device_up{device="0000:01:00.0"}': 0}
    assert found['probecore_device_asleep{device="0000:02:00.0"}'] == 1
    assert found['probecore_device_pending{device="0000:03:00.0"}'] == 1
    assert not any("busy" in name or "used" in name for name in found if "device=" in name)


def test_a_sum_over_devices_is_the_memory_of_the_devices(tmp_path: Path) -> None:
    """Neither the node's memory nor that of instances is in it, nor what a GPU shares."""
    shared = gpu(9, "NVIDIA GB10", memory=128)
    shared["memory"]["kind"] = "unified"
    report: Any = node([*MIG_NODE, shared], tmp_path)
    samples = [at_work(d["id"]) for d in report["devices"] if d["kind"] == "gpu"]
    found = values(served(report, [*samples, *host()]))

    def total(name: str) -> float:
        return sum(value for key, value in found.items() if key.split("{")[0] == name)

    assert total("probecore_device_memory_size_bytes") == 2 * 80 * GIB
    assert total("probecore_device_memory_used_bytes") == 2 * 20 * GIB
    assert total("probecore_device_shared_memory_size_bytes") == 80 * GIB
    assert total("probecore_partition_memory_size_bytes") == 2 * 80 * GIB
    assert total("probecore_node_memory_size_bytes") == 62 * GIB
    assert total("probecore_node_memory_used_bytes") == 3 * GIB
    assert found['probecore_node_cpu_energy_joules_total{package="0"}'] == 5
    assert 'probecore_partition_up{device="0000:02:00.0",partition="3g.40gb.1"}' in found


def test_identities_stand_in_one_series_and_uuids_on_loopback_alone(tmp_path: Path) -> None:
    report: Any = node(MIG_NODE, tmp_path)
    for device, index in zip(report["devices"], (1, 0), strict=False):
        device["node_index"] = {"nvml": index}
    with_uuids = text(facts(report, with_uuids=True))
    (card,) = re.findall(r'^probecore_device_info{device="0000:01:00.0",.*$', with_uuids, re.M)
    assert 'pci="0000:01:00.0",index="1",uuid="GPU-00000000-0000-0000-0000-000000000001"' in card
    lines = [line for line in with_uuids.splitlines() if "GPU-" in line or "MIG-0" in line]
    assert {line.partition("{")[0] for line in lines} == {
        "probecore_device_info",
        "probecore_partition_info",
    }
    without = text([*facts(report), *figures(report, [at_work("pci:0000:01:00.0")])])
    assert "GPU-0" not in without
    assert "MIG-0" not in without


def test_hostile_names_stay_one_label(tmp_path: Path) -> None:
    name = 'a "quoted" \\ name}\\" 1'
    report: Any = node([gpu(1, name)], tmp_path)
    # What the core cleans, a report from elsewhere may have.
    report["node"]["model"] = 'line\nprobecore_up 1\r\n"\\\udcff'
    odd = 'x\n# EOF\n"} 1'
    work = at_work("pci:0000:01:00.0")
    work["throttled"], work["links"][0]["name"] = [odd], odd
    for written, parse in (
        (served(report, [work]), open_metrics),
        (export("prometheus", report), plain),
    ):
        found = {s.name: s.labels for family in parse(written) for s in family.samples}
        assert found["probecore_device_info"]["name"] == report["devices"][0]["name"] == name
        assert found["probecore_node_info"]["model"] == 'line\nprobecore_up 1 \n"\\?'
        assert "probecore_up" not in found
    throttled = {
        s.labels.get("reason") for f in open_metrics(served(report, [work])) for s in f.samples
    }
    assert odd in throttled
    checked_by_promtool(served(report, [work], ""))


def test_sixty_four_gpus_are_sixty_four_series_each(tmp_path: Path) -> None:
    report: Any = node([gpu(number, A100) for number in range(1, 65)], tmp_path)
    samples = [at_work(device["id"]) for device in report["devices"] if device["kind"] == "gpu"]
    written = served(report, samples, "")
    checked_by_promtool(written)
    found = values(written)
    assert sum(name.startswith("probecore_device_power_watts{") for name in found) == 64
    assert len(found) == sum(line[0] != "#" for line in written.splitlines())


def test_devices_that_vanish_leave_no_series(tmp_path: Path) -> None:
    metrics = ready(node(MIXED, tmp_path))
    metrics.publish(1.0, [at_work("pci:0000:01:00.0"), at_work("pci:0000:02:00.0")])
    assert 'probecore_device_power_watts{device="0000:02:00.0"}' in metrics.text("")[0].decode()
    metrics.publish(2.0, [at_work("pci:0000:01:00.0")])
    after = values(metrics.text("")[0].decode())
    assert 'probecore_device_power_watts{device="0000:01:00.0"}' in after
    assert 'probecore_device_power_watts{device="0000:02:00.0"}' not in after


def test_a_text_is_written_once_a_round_however_many_scrapes_come(tmp_path: Path) -> None:
    metrics = ready(node(MIXED, tmp_path))
    for accept in ("", OPEN):
        metrics.publish(1.0, [at_work("pci:0000:01:00.0")])
        first, kind = metrics.text(accept)
        kept = metrics._written[kind]
        assert metrics.text(accept)[0] == first
        assert metrics._written[kind] is kept
        work = at_work("pci:0000:01:00.0") | {"power_w": 1.0}
        metrics.publish(2.0, [work])
        second, _ = metrics.text(accept)
        assert (first == second, b" 333.5" in first, b" 333.5" in second) == (False, True, False)


def test_a_client_cannot_have_a_text_kept_for_each_version_that_it_names(tmp_path: Path) -> None:
    metrics = ready(node(MIXED, tmp_path))
    metrics.publish(1.0, [])
    for number in range(100):
        body, kind = metrics.text(f"application/openmetrics-text;version={number + 1}.0.0")
    assert kind == "text/plain; version=0.0.4; charset=utf-8"
    assert b"probecore_build_info" in body
    assert len(metrics._written) <= 9


def test_the_import_of_prometheus_client_costs_no_one_shot() -> None:
    code = (
        "import sys, json; from probe_export import export;"
        " export('prometheus', json.load(sys.stdin)); print('prometheus_client' in sys.modules)"
    )
    report = report_of_recording("vm-without-accelerator--cpu")
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(report), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr
