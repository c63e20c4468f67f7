"""The library or the driver is missing: the machine's other files tell which cause it is."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from probe_core.api import Machine, NotApplicable, Request, Unavailable
from probe_core.probers import bus
from probe_nvidia.nvml import start
from probe_nvidia.scene import Scene
from probe_nvidia.wrong import Failure, library_failure, no_client

NO_FILE = "libnvidia-ml.so.1: cannot open shared object file: No such file or directory"


@pytest.fixture
def tree(trees: ModuleType, tmp_path: Path) -> Any:
    return trees.Tree(tmp_path)


def reason(tree: Any, code: int, detail: str | None = None, **environ: str) -> Unavailable:
    machine = Machine(str(tree.root), environ)
    seen = bus.probe_devices(Request(machine))
    seen = [] if isinstance(seen, NotApplicable) else seen
    return library_failure(code, Scene(Request(machine, seen)), detail)


def test_nothing_installed(tree: Any) -> None:
    tree.add_pci("0000:01:00.0", "2684", driver=None)
    error = reason(tree, 12, NO_FILE)
    assert (error.code, error.fix) == (
        "driver-not-installed",
        "install NVIDIA's driver for this system",
    )


def test_nouveau_holds_the_card(tree: Any) -> None:
    tree.add_pci("0000:01:00.0", "2684", driver="nouveau")
    for code in (9, 12):
        error = reason(tree, code, NO_FILE if code == 12 else None)
        assert error.code == "other-driver"
        assert "nouveau" in error.reason


def test_card_reserved_for_a_virtual_machine(tree: Any) -> None:
    tree.add_pci("0000:01:00.0", "2684", driver="vfio-pci")
    assert reason(tree, 9).code == "reserved-for-vm"


def test_library_that_is_not_one(tree: Any) -> None:
    tree.add_pci("0000:01:00.0", "2684")
    error = reason(tree, 12, "/usr/lib/libnvidia-ml.so.1: file too short")
    assert error.code == "library-broken"
    assert error.reason.endswith("/usr/lib/libnvidia-ml.so.1: file too short")


def test_container_started_without_gpus(tree: Any) -> None:
    tree.add_pci("0000:01:00.0", "2684")
    tree.add_driver()
    tree.file("/.dockerenv", "")
    error = reason(tree, 12, NO_FILE)
    assert error.code == "library-missing"
    assert error.reason.endswith("in the container, though the kernel driver is loaded")
    assert "--gpus all" in (error.fix or "")


@pytest.mark.parametrize(
    ("sign", "option"),
    [
        ("/run/.containerenv", "`podman run --device nvidia.com/gpu=all` (CDI)"),
        ("/.singularity.d", "`apptainer exec --nv`"),
    ],
)
def test_a_container_of_another_engine_by_its_own_option(sign: str, option: str, tree: Any) -> None:
    tree.add_pci("0000:01:00.0", "2684")
    tree.add_driver()
    tree.file(sign, "")
    assert reason(tree, 12, NO_FILE).fix == f"start the container with {option}"


@pytest.mark.parametrize("value", ["void", "none", ""])
def test_container_told_to_have_none(tree: Any, value: str) -> None:
    tree.add_pci("0000:01:00.0", "2684")
    error = reason(tree, 12, NO_FILE, NVIDIA_VISIBLE_DEVICES=value, container="podman")
    assert error.code == "hidden-by-container"
    assert f"({'NVIDIA_VISIBLE_DEVICES=' + (value or '(empty)')})" in error.reason


def test_void_says_nothing_outside_a_container(tree: Any) -> None:
    tree.add_pci("0000:01:00.0", "2684")
    assert reason(tree, 12, NO_FILE, NVIDIA_VISIBLE_DEVICES="void").code == "library-missing"


def test_library_without_device_nodes(tree: Any) -> None:
    tree.add_pci("0000:01:00.0", "2684")
    tree.add_driver()
    error = reason(tree, 9)
    assert (error.code, error.fix) == (
        "device-nodes-missing",
        "as root: nvidia-modprobe -c 0 -u, or run nvidia-smi",
    )
    tree.file("/run/.containerenv", "")
    assert "CDI" in (reason(tree, 9).fix or "")


def test_driver_not_loaded(tree: Any) -> None:
    tree.add_pci("0000:01:00.0", "2684", driver=None)
    error = reason(tree, 9)
    assert error.code == "driver-not-loaded"
    assert (error.fix or "").startswith("modprobe nvidia")


@pytest.mark.parametrize(
    ("code", "expected", "fix"),
    [
        (9, "driver-not-loaded", "on the host: modprobe nvidia"),
        (12, "driver-not-installed", "on the host: install NVIDIA's driver"),
    ],
)
def test_card_without_a_driver_is_no_containers_fault(
    tree: Any, code: int, expected: str, fix: str
) -> None:
    """/sys is the host's: no option of the container binds a driver."""
    tree.add_pci("0000:01:00.0", "2684", driver=None)
    tree.file("/.dockerenv", "")
    error = reason(tree, code, NO_FILE, NVIDIA_VISIBLE_DEVICES="void")
    assert error.code == expected
    assert (error.fix or "").startswith(fix)


def test_void_with_nodes_is_not_the_cause(tree: Any) -> None:
    tree.add_pci("0000:01:00.0", "2684")
    tree.file("/dev/nvidiactl", "")
    error = reason(tree, 12, NO_FILE, NVIDIA_VISIBLE_DEVICES="void", container="podman")
    assert error.code == "library-missing"


def test_jetson_without_its_driver(tree: Any) -> None:
    tree.file("/sys/firmware/devicetree/base/compatible", "nvidia,tegra194\0")
    assert reason(tree, 9).reason.endswith("the nvgpu driver is not loaded")


def test_mismatch_names_both_versions(tree: Any) -> None:
    tree.add_driver("580.95.05")
    tree.file("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.105.08", "")
    link = tree.root / "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"
    link.symlink_to("libnvidia-ml.so.580.105.08")
    error = reason(tree, 18)
    assert error.reason.endswith("(kernel driver 580.95.05, library 580.105.08)")
    assert (error.fix or "").startswith("reboot")
    tree.file("/.dockerenv", "")
    assert "image" in (reason(tree, 18).fix or "")


def test_unknown_error_in_a_container(tree: Any) -> None:
    assert "dmesg" in (reason(tree, 999).fix or "")
    error = reason(tree, 999, KUBERNETES_SERVICE_HOST="10.0.0.1")
    assert "daemon-reload" in error.reason


def test_a_client_that_cannot_be_imported_is_a_reason(
    tree: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    machine = Machine(str(tree.root), {})
    with pytest.raises(Failure) as raised:
        start(Scene(Request(machine)), live=True)
    assert raised.value.code == "client-missing"


def test_client_missing() -> None:
    error = no_client(ModuleNotFoundError("No module named 'pynvml'"))
    assert error.code == "client-missing"
    assert "nvidia-ml-py" in (error.fix or "")
