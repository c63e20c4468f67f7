"""A measured memory bandwidth counts before the usual share of the theoretical one, and says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from probe_cluster import member, plan
from probe_cluster.planning.efficiency import Efficiency, efficiency_of, with_measured
from probe_cluster.planning.members import Measured, capacity
from probe_cluster.planning.model_spec import parse_model
from probe_cluster.planning.predict import token_seconds
from probe_core.cli import main

GIB = 1 << 30
BASIS = (
    "measured: 34 GB/s read by memchr of glibc 2.36 on 2026-11-22, and 113 us a layer"
)  # fmt: skip


def figure(**changes: Any) -> dict[str, Any]:
    entry = {
        "figure": "read", "kind": "memory", "dtype": None, "unit": "B/s", "best": 40e9,
        "median": 34e9, "runs": 20, "by": "memchr of glibc 2.36", "driver": None,
        "date": "2026-11-22T10:00:00Z", "disturbed": [], "stale": None,
    }  # fmt: skip
    return {**entry, **changes}


def cpu(*figures: Any, **changes: Any) -> dict[str, Any]:
    device = {
        "id": "cpu:0", "ids": ["cpu:0"], "kind": "cpu", "vendor": "amd", "name": "AMD EPYC",
        "fp32": 1.0, "memory": {"kind": "shared", "total": 64 * GIB}, "bandwidth": None,
        "unknown": {"bandwidth": "the memory channels in use cannot be read"},
        "measured": list(figures), "visibility": {},
    }  # fmt: skip
    return {**device, **changes}


def report(*devices: dict[str, Any]) -> dict[str, Any]:
    memory = {"total": 64 * GIB, "available": 60 * GIB, "limit": None}
    return {"schema": 1, "node": {"os": "linux", "memory": memory}, "devices": list(devices)}


def test_middle_run_of_reading_is_the_bandwidth() -> None:
    write = figure(figure="write", median=80e9)
    own = member("n", report(cpu(write, figure())))
    assert own.bandwidth == 34e9
    assert own.efficiency is not None
    assert (own.efficiency.share, own.efficiency.basis) == (1.0, BASIS)
    assert "bandwidth" not in own.reasons
    model = parse_model({"model": "7b", "layers": 32})
    seconds = token_seconds(own, model)
    assert seconds == pytest.approx(model.layer_read_bytes / 34e9 + 113.16e-6)


@pytest.mark.parametrize(
    "entry",
    [
        figure(disturbed=["median"]),
        figure(stale="measured with another driver"),
        figure(median=None),
        figure(median=-5),
        figure(median="34"),
        figure(figure="copy"),
        figure(disturbed=None),
        "34 GB/s",
    ],
    ids=range(8),
)
def test_figure_that_does_not_count_changes_nothing(entry: Any) -> None:
    own = member("n", report(cpu(entry)))
    assert own.bandwidth is None
    assert own.efficiency == efficiency_of("cpu")
    assert own.reasons["bandwidth"].endswith("the memory channels in use cannot be read")


def test_all_devices_must_be_measured() -> None:
    def gpu(slot: int, *figures: Any) -> dict[str, Any]:
        id_ = f"pci:0000:0{slot}:00.0"
        memory = {"kind": "dedicated", "total": 24 * GIB, "free": 24 * GIB}
        return cpu(*figures, id=id_, ids=[id_], kind="gpu", vendor="nvidia", arch="ada",
                   name="NVIDIA GeForce RTX 4090", memory=memory, bandwidth=1008e9)  # fmt: skip

    first, second = figure(median=800e9), figure(median=400e9)
    both = capacity(report(gpu(1, first), gpu(2, second)))
    # Layers lie on one card each, and are read one after another: the harmonic mean.
    assert both.measured is not None
    assert both.measured.bandwidth == pytest.approx(533.333e9, rel=1e-5)
    half = member("n", report(gpu(1, first), gpu(2)))
    assert half.bandwidth == 1008e9
    assert half.efficiency == efficiency_of("gddr-new", arch="ada")
    fast = member("n", report(gpu(1, figure(median=970e9))))
    assert (fast.bandwidth, fast.efficiency and fast.efficiency.share) == (970e9, 1.0)
    # Published engines read such cards at 968 GB/s, so a slower library says little of them.
    slow = member("n", report(gpu(1, first)))
    usual = efficiency_of("gddr-new")
    assert usual is not None
    assert slow.efficiency is not None
    assert (slow.bandwidth, slow.efficiency.share) == (1008e9, usual.share)
    assert slow.efficiency.basis == (
        f"{usual.basis}; 800 GB/s read by memchr of glibc 2.36 on 2026-11-22 are less"
    )


def test_what_a_person_gives_counts_before_a_measurement() -> None:
    own = member("n", report(cpu(figure())), bandwidth=50e9)
    assert (own.bandwidth, own.efficiency) == (50e9, efficiency_of("cpu"))


def test_without_an_engine_times_stay_those_of_peaks() -> None:
    own = member("n", report(cpu(figure(), bandwidth=100e9)), engine="none")
    assert (own.bandwidth, own.efficiency) == (100e9, None)


def test_plan_says_what_it_rests_on_and_claims_no_range() -> None:
    model = parse_model({"model": "7b", "layers": 32})
    own = plan("fastest", [member("n", report(cpu(figure())))], model)
    assert (own.basis, own.like, own.bound) == ((BASIS,), None, True)
    assert capacity(report(cpu(figure()))).measured == Measured(
        34e9, "memchr of glibc 2.36 on 2026-11-22"
    )


def test_partition_prints_the_basis(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "node.json"
    path.write_text(json.dumps(report(cpu(figure()))))
    assert main(["partition", str(path), "--model", "7b", "--layers", "32"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert f"times are lower bounds · {BASIS}" in printed


def test_bandwidth_of_a_gpu_is_written_in_full() -> None:
    default = Efficiency(0.7, 75e-6, "", measured=False)
    basis = with_measured(default, 1.7009e12, "tinygrad 0.14.0 (CUDA)").basis
    assert basis == "measured: 1701 GB/s read by tinygrad 0.14.0 (CUDA), and 75 us a layer"
