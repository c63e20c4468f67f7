"""Our own formats pass the contract that those of other distributions are held to."""

from __future__ import annotations

import json
import re

from probe_core.testing import ExporterContract


def counted(pattern: str, text: str) -> int:
    return sum(int(number) for number in re.findall(pattern, text, re.MULTILINE))


class TestAnsible(ExporterContract):
    name = "ansible"
    target = "probe_export.ansible:export"

    def count(self, text: str) -> int:
        return int(json.loads(text)["accelerators"])


class TestDra(ExporterContract):
    name = "dra"
    target = "probe_export.dra:export"

    def count(self, text: str) -> int:
        return len(json.loads(text)["devices"])


class TestEnv(ExporterContract):
    name = "env"
    target = "probe_export.env:export"

    def count(self, text: str) -> int:
        return counted("^NODE_ACCELERATORS='([0-9]+)'$", text)


class TestNfd(ExporterContract):
    name = "nfd"
    target = "probe_export.nfd:export"

    def count(self, text: str) -> int:
        return counted("/probe-gpu.count=([0-9]+)$", text)


class TestOtel(ExporterContract):
    name = "otel"
    target = "probe_export.otel:export"

    def count(self, text: str) -> int:
        return counted("probe.accelerator.count=([0-9]+)", text)


class TestPrometheus(ExporterContract):
    name = "prometheus"
    target = "probe_export.prometheus:export"
    volatile = ("duration", "report_time")

    def count(self, text: str) -> int:
        return counted("^probecore_devices_usable ([0-9]+)$", text)


class TestRay(ExporterContract):
    """One MIG instance a process is what CUDA shows, and Ray must not be told more."""

    name = "ray"
    target = "probe_export.ray:export"

    def count(self, text: str) -> int:
        return counted("^--num-gpus=([0-9]+)", text) + counted("probe/hidden=([0-9]+)", text)


class TestSlurm(ExporterContract):
    """A GPU without a name has no type, and a line without one would end slurmd."""

    name = "slurm"
    target = "probe_export.slurm:export"

    def count(self, text: str) -> int:
        lines = re.findall("^Name=gpu|^# left out, its name is not known", text, re.MULTILINE)
        return len(lines)
