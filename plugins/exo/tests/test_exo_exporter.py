"""`probe export exo`: the contract of formats, and what both exos read."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from reports import report_of_recording

from probe_core.testing import ExporterContract
from probe_exo.device_capabilities import DeviceCapabilities, DeviceFlops
from probe_exo.exporter import export


class TestExo(ExporterContract):
    name = "exo"
    target = "probe_exo.exporter:export"
    identities = True
    volatile = ("inBytes",)
    # Exo is one process, which CUDA shows one instance; a GPU of unknown memory cannot be planned.
    usable: ClassVar = {**ExporterContract.usable, "partitioned": 1, "nameless": 0}

    def count(self, text: str) -> int:
        return sum(not device["id"].startswith("cpu:") for device in json.loads(text)["devices"])


def exported(name: str, *plugins: str) -> Any:
    return json.loads(export(report_of_recording(name, *plugins)))


def test_a_node_has_the_sum_and_each_device_its_own() -> None:
    document = exported("server--8x-amd-instinct-mi300x", "amd")
    devices = document["devices"]
    assert [device["id"] for device in devices] == sorted(device["id"] for device in devices)
    assert len(devices) == 8
    assert document["memory"] == sum(device["memory"] for device in devices) == 8 * 196592
    assert document["chip"] == devices[0]["chip"]
    assert document["flops"]["fp16"] == 8 * devices[0]["flops"]["fp16"]
    assert document["system"]["flopsFp16"] == document["flops"]["fp16"]
    assert document["backends"] == ["MlxCpu"]


def test_old_exo_reads_the_document() -> None:
    document = exported("vm-without-accelerator--cpu")
    read = DeviceCapabilities.model_validate(document)
    assert (read.model, read.memory) == ("Linux Box (Device: CPU)", document["memory"])
    assert read.flops == DeviceFlops(**document["flops"])
    assert set(document["reasons"]) >= {n for n, v in document["flops"].items() if not v}


def test_unknown_figures_are_zero_in_old_exo_and_have_a_reason() -> None:
    document = exported("empty-root--unknown-cpu")
    assert document["flops"] == {"fp32": 0, "fp16": 0, "int8": 0}
    assert document["reasons"].keys() >= {"fp32", "fp16", "int8"}


def test_memory_is_in_the_names_of_current_exo() -> None:
    usage = exported("container-cgroup-v2--limit-8-gib")["memoryUsage"]
    assert usage["ramTotal"] == {"inBytes": 8 << 30}
    assert 0 < usage["ramAvailable"]["inBytes"] <= 8 << 30
