"""What the prober makes of tinygrads that work, fail, hang, crash or misbehave."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from probe_core.api import Machine, NotApplicable, Request, Unavailable
from probe_tinygrad.prober import probe_devices

GPU = {"ids": ["pci:0000:01:00.0"], "kind": "gpu", "vendor": "nvidia"}
OTHER_GPU = {"ids": ["pci:0000:02:00.0"], "kind": "gpu", "vendor": "nvidia"}
BMC = {"ids": ["pci:0000:05:00.0"], "kind": "display", "vendor": "aspeed"}
TWO_NVIDIA = """
class Info: pass
def row(bus):
    row = Info(); row.valid = 1; row.pci_info = Info()
    row.pci_info.domain, row.pci_info.bus, row.pci_info.slot, row.pci_info.function = 0, bus, 0, 0
    return row
empty = Info(); empty.valid = 0
NVKIface.gpus_info = [row(2), row(1), empty]
"""


def test_it_runs_only_when_asked() -> None:
    answer = probe_devices(Request(Machine(), active=False))
    assert isinstance(answer, NotApplicable)
    assert answer.reason == "tinygrad opens devices to find them: ask with --active"


def test_a_recorded_machine_executes_nothing(tmp_path: Path) -> None:
    answer = probe_devices(Request(Machine(str(tmp_path)), active=True))
    assert isinstance(answer, NotApplicable)


def test_a_frozen_application_says_that_it_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(Unavailable) as caught:
        probe_devices(Request(Machine(), active=True))
    assert caught.value.code == "frozen"


def test_the_cpu_stays_a_cpu(fake: Any) -> None:
    answer = fake.install("NV", "CPU").write("open_NV", "raise OSError('no NV')").probe()
    assert answer.devices == [
        {
            "ids": ["cpu:0"],
            "kind": "cpu",
            "backends": ["tinygrad:cpu"],
            "node_index": {"tinygrad_cpu": 0},
            "extra": {"tinygrad": {"version": "9.9.9", "default": True, "executed": ["CPU"]}},
        }
    ]
    assert [finding["code"] for finding in answer.findings] == ["tinygrad-default"]
    assert answer.finding("tinygrad-default")["what"] == "tinygrad executes on CPU, cpu:0"


def test_backends_are_found_by_pci_address(fake: Any) -> None:
    answer = fake.install("NV", "CPU").write("open_NV", TWO_NVIDIA).probe(GPU, OTHER_GPU)
    second, first, cpu = answer.devices
    assert (second["ids"], second["node_index"]) == (["pci:0000:02:00.0"], {"tinygrad_nv": 0})
    assert (first["ids"], first["node_index"]) == (["pci:0000:01:00.0"], {"tinygrad_nv": 1})
    assert second["extra"]["tinygrad"] == {
        "version": "9.9.9", "default": True, "executed": ["NV"],
    }  # fmt: skip
    # The second device of a backend is listed by it, but nothing ran there.
    assert first["extra"]["tinygrad"] == {"version": "9.9.9", "default": False, "executed": []}
    assert cpu["kind"] == "cpu"
    assert answer.finding("tinygrad-default")["device"] == "pci:0000:02:00.0"


def test_one_device_of_the_vendor_is_enough_where_no_address_is_told(fake: Any) -> None:
    answer = fake.install("QCOM").probe({**GPU, "vendor": "qualcomm", "ids": ["dt:/soc/gpu"]})
    assert [device["ids"] for device in answer.devices] == [["dt:/soc/gpu"]]
    assert answer.devices[0]["backends"] == ["tinygrad:qcom"]


def test_two_devices_of_the_vendor_leave_it_unmatched(fake: Any) -> None:
    answer = fake.install("HSA").probe(*({**gpu, "vendor": "amd"} for gpu in (GPU, OTHER_GPU)))
    assert answer.devices == []
    reason = "HSA does not report which of 2 amd devices it uses"
    assert answer.finding("tinygrad-unmatched")["why"] == reason


def test_webgpu_may_be_anything_so_it_is_nothing(fake: Any) -> None:
    answer = fake.install("WEBGPU").probe(GPU)
    assert answer.devices == []
    reason = "WEBGPU does not report a vendor"
    assert answer.finding("tinygrad-unmatched")["why"] == reason


def test_falling_to_the_cpu_beside_a_gpu_has_the_reason(fake: Any) -> None:
    fake.install("AMD", "NV", "CPU").write("open_AMD", "raise OSError('no kfd')")
    answer = fake.write("open_NV", "raise PermissionError(13, 'denied', '/dev/nvidiactl')").probe(
        GPU
    )
    finding = answer.finding("tinygrad-on-cpu")
    assert finding["what"] == "tinygrad executes on the CPU, though the bus shows 1 accelerator"
    assert finding["why"] == "NV: PermissionError: [Errno 13] denied: '/dev/nvidiactl'"
    assert finding["evidence"] == finding["why"]
    assert finding["device"] == "pci:0000:01:00.0"


def test_a_servers_display_is_no_accelerator_left_unused(fake: Any) -> None:
    answer = fake.install("CPU").probe(BMC)
    assert [finding["code"] for finding in answer.findings] == ["tinygrad-default"]


def test_a_group_of_reasons_becomes_one_line(fake: Any) -> None:
    group = "raise ExceptionGroup('No interface', [OSError('no kfd'), ValueError('bad\\nid')])"
    fake.install("AMD", "CPU").write("open_AMD", group)
    finding = fake.probe({**GPU, "vendor": "amd"}).finding("tinygrad-on-cpu")
    assert finding["why"] == "AMD: OSError: no kfd; ValueError: bad id"


def test_opening_is_not_executing(fake: Any) -> None:
    fake.install("DSP", "CPU").write("run_DSP", "raise RuntimeError('no lld')")
    answer = fake.probe()
    assert [device["kind"] for device in answer.devices] == ["cpu"]
    finding = answer.finding("tinygrad-default-fails")
    assert finding["what"] == "tinygrad takes DSP (it opens first), which does not execute"
    assert (finding["why"], finding["fix"]) == (
        "RuntimeError: no lld",
        "set DEV to one that does: CPU",
    )


def test_a_wrong_sum_is_not_executing(fake: Any) -> None:
    answer = fake.install("CPU").write("run_CPU", "values = [2, 4, 7]").probe()
    assert answer.unavailable is not None
    assert "it computed [2, 4, 7] instead of [2, 4, 6]" in answer.unavailable.reason


def test_no_compiler_is_said_with_the_way_out(fake: Any) -> None:
    missing = "raise FileNotFoundError(2, 'No such file or directory', 'clang')"
    answer = fake.install("NV", "CPU").write("open_NV", missing).write("open_CPU", missing).probe()
    assert answer.devices == []
    assert answer.unavailable is not None
    assert answer.unavailable.code == "no-usable-backend"
    assert answer.unavailable.reason == (
        "no backend of tinygrad executes here; "
        "CPU: FileNotFoundError: [Errno 2] No such file or directory: 'clang'"
    )


def test_a_crash_costs_one_backend(fake: Any) -> None:
    fake.install("AMD", "NV", "CPU").write("open_AMD", "import os; os.kill(os.getpid(), 9)")
    answer = fake.write("open_NV", TWO_NVIDIA).probe(GPU, OTHER_GPU)
    assert [device["ids"][0] for device in answer.devices] == [
        "pci:0000:02:00.0", "pci:0000:01:00.0", "cpu:0",
    ]  # fmt: skip
    finding = answer.finding("tinygrad-backend-broke")
    assert finding["what"] == "tinygrad's backend AMD broke its process"
    assert finding["why"] == finding["evidence"] == "its process died of signal 9"


@pytest.mark.heavy
def test_a_hang_costs_one_backend(fake: Any) -> None:
    fake.install("NV", "CPU").write("open_NV", "import time; time.sleep(60)")
    answer = fake.probe(deadline_s=3.0)
    assert [device["kind"] for device in answer.devices] == ["cpu"]
    assert "did not answer within 1." in answer.finding("tinygrad-backend-broke")["why"]


def test_an_import_that_fails_is_unavailable(fake: Any) -> None:
    answer = fake.install("CPU").write("__init__", "import numpy_that_is_missing").probe()
    assert answer.unavailable is not None
    assert answer.unavailable.code == "import-failed"
    assert "No module named 'numpy_that_is_missing'" in answer.unavailable.reason


def test_what_it_prints_is_not_read_as_an_answer(fake: Any) -> None:
    noise = "import os\nprint('{\"event\": \"end\"}', flush=True)\nos.write(1, b'noise\\n')"
    answer = fake.install("CPU").write("open_CPU", noise).probe()
    assert [device["ids"] for device in answer.devices] == [["cpu:0"]]


def test_the_host_is_left_as_it_was(fake: Any) -> None:
    fake.install("CPU").write(
        "open_CPU",
        """
        import os, tempfile
        os.umask(0)
        open(os.path.join(tempfile.gettempdir(), "am_usb:0.lock"), "w").close()
        open(os.path.expanduser("~/.cache.db"), "w").close()
        open(os.environ["CACHEDB"], "w").close()
        """,
    )
    mask = os.umask(0o022)
    os.umask(mask)
    before = (dict(os.environ), os.getcwd(), list(sys.path), set(fake.root.iterdir()))
    answer = fake.probe()
    assert len(answer.devices) == 1
    assert (dict(os.environ), os.getcwd(), list(sys.path), set(fake.root.iterdir())) == before
    assert os.umask(mask) == mask
    assert "tinygrad" not in sys.modules
