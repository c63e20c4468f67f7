"""The child of `--require-working` opens each device, and says which call or framework failed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from ctypes.util import find_library
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from probe_core.cli import trial_child

LIBRARY = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int called(const char *name, long value) {
    const char *failing = getenv("FAKE_FAILS");
    printf("%s %ld\\n", name, value);
    fflush(stdout);
    return failing && !strcmp(failing, name) ? 7 : 0;
}
int cuInit(unsigned flags) { return called("cuInit", flags); }
int cuDeviceGetCount(int *count) { *count = 3; return called("cuDeviceGetCount", 0); }
int cuDeviceGet(int *device, int index) { *device = index; return called("cuDeviceGet", index); }
int cuDevicePrimaryCtxRetain(void **context, int device) {
    return called("cuDevicePrimaryCtxRetain", device);
}
int cuDevicePrimaryCtxRelease_v2(int device) {
    return called("cuDevicePrimaryCtxRelease_v2", device);
}
int hipGetDeviceCount(int *count) { *count = 3; return called("hipGetDeviceCount", 0); }
int hipSetDevice(int device) { return called("hipSetDevice", device); }
int hipMalloc(void **page, size_t size) { *page = page; return called("hipMalloc", size); }
int hipFree(void *page) { return called("hipFree", page == 0); }
int zeInit(unsigned flags) { return called("zeInit", flags); }
int zeDriverGet(unsigned *count, void **driver) {
    *driver = count;
    return called("zeDriverGet", *count);
}
int zeDeviceGet(void *driver, unsigned *count, void *devices) {
    *count = 3;
    return called("zeDeviceGet", driver == 0 || devices != 0);
}
"""
CALLS = {
    "nvidia": [
        "cuInit 0",
        "cuDeviceGetCount 0",
        *("cuDeviceGet 0", "cuDevicePrimaryCtxRetain 0", "cuDevicePrimaryCtxRelease_v2 0"),
        *("cuDeviceGet 1", "cuDevicePrimaryCtxRetain 1", "cuDevicePrimaryCtxRelease_v2 1"),
    ],
    "amd": [
        "hipGetDeviceCount 0",
        *("hipSetDevice 0", "hipMalloc 4096", "hipFree 0"),
        *("hipSetDevice 1", "hipMalloc 4096", "hipFree 0"),
    ],
    "intel": ["zeInit 0", "zeDriverGet 1", "zeDeviceGet 0"],
}
NAMES = {"nvidia": "libcuda.so.1", "amd": "libamdhip64.so.6", "intel": "libze_loader.so.1"}


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The three runtimes' libraries, each of three devices."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler to build the fake libraries with")
    folder = tmp_path_factory.mktemp("libraries")
    (folder / "fake.c").write_text(LIBRARY)
    target = folder / NAMES["nvidia"]
    command = [compiler, "-shared", "-fPIC", "-o", str(target), str(folder / "fake.c")]
    subprocess.run(command, check=True)
    for vendor in ("amd", "intel"):
        shutil.copy(target, folder / NAMES[vendor])
    return folder


def opened(folder: Path, vendors: str, count: int = 2, failing: str = "") -> tuple[int, list[str]]:
    """Run the child as the command does; return its status and its lines."""
    environ = {"LD_LIBRARY_PATH": str(folder), "FAKE_FAILS": failing}
    command = [sys.executable, "-I", "-S", str(trial_child.__file__)]
    done = subprocess.run(
        [*command, "runtime", str(count), vendors], env=environ, capture_output=True, text=True
    )
    assert done.stderr == ""
    return done.returncode, list(filter(None, done.stdout.splitlines()))


@pytest.mark.parametrize("vendor", list(CALLS))
def test_each_call_of_a_runtime_must_succeed(libraries: Path, vendor: str) -> None:
    assert opened(libraries, vendor) == (0, CALLS[vendor])
    for name in {call.split()[0] for call in CALLS[vendor]}:
        status, lines = opened(libraries, vendor, failing=name)
        assert (status, lines[-1]) == (1, f"probe-trial: RuntimeError: {name} gave 7")


def test_all_vendors_are_opened_and_counted(libraries: Path) -> None:
    assert opened(libraries, "nvidia,none,intel") == (0, CALLS["nvidia"] + CALLS["intel"])
    status, lines = opened(libraries, "intel,amd", count=4)
    assert (status, lines[-1]) == (1, "probe-trial: Level Zero: it sees 3 of 4 devices")


@pytest.mark.skipif(find_library("amdhip64") is not None, reason="HIP is installed here")
def test_the_first_name_of_a_library_is_the_missing_one(tmp_path: Path) -> None:
    status, (line,) = opened(tmp_path, "amd")
    assert status == 1
    assert line.startswith("probe-trial: RuntimeError: libamdhip64.so: cannot open ")


def framework(monkeypatch: pytest.MonkeyPatch, name: str, **content: Any) -> None:
    module = ModuleType(name)
    module.__dict__.update(content)
    monkeypatch.setitem(sys.modules, name, module)


class Backend(SimpleNamespace):
    """A device type of torch: `devices` is None where it counts none."""

    def __init__(self, devices: int | None) -> None:
        super().__init__(is_available=lambda: devices != 0)
        if devices is not None:
            self.device_count = lambda: devices


WRONG = "torch 2.9: {} computes wrong results"


@pytest.mark.parametrize(
    ("cuda", "xpu", "wrong", "count", "fault"),
    [
        (2, 0, "", 2, ""),
        (2, 0, "cuda:1", 1, ""),  # nobody asked for the second one
        (2, 0, "cuda:0", 1, WRONG.format("cuda")),
        (2, 0, "cuda:1", 2, WRONG.format("cuda")),
        (0, 2, "xpu:1", 2, WRONG.format("xpu")),
        (1, 2, "", 2, "torch: it sees 1 of 2 devices"),
        (0, 0, "", 1, ""),
        (0, 0, "mps:0", 1, WRONG.format("mps")),
        (0, 0, "", 2, "torch: it sees 1 of 2 devices"),
    ],
)
def test_torch_computes_on_each_device(
    monkeypatch: pytest.MonkeyPatch, cuda: int, xpu: int, wrong: str, count: int, fault: str
) -> None:
    def ones(size: int, device: str) -> Any:
        return SimpleNamespace(sum=lambda: size + (device == wrong))

    backends = SimpleNamespace(mps=Backend(None))
    torch = {"ones": ones, "cuda": Backend(cuda), "xpu": Backend(xpu), "backends": backends}
    framework(monkeypatch, "torch", __version__="2.9", **torch)
    assert trial_child.main("torch", count, []) == fault


@pytest.mark.parametrize(
    ("cuda", "hip", "reason"),
    [
        ("12.8", None, "no device is available to it"),
        (None, "6.4", "no device is available to it"),
        (None, None, "it is built for the CPU alone"),
    ],
)
def test_a_torch_without_a_device_says_what_it_is_built_for(
    monkeypatch: pytest.MonkeyPatch, cuda: str | None, hip: str | None, reason: str
) -> None:
    version = SimpleNamespace(cuda=cuda, hip=hip)
    torch = {"cuda": Backend(0), "backends": SimpleNamespace(), "version": version}
    framework(monkeypatch, "torch", __version__="2.9", **torch)
    assert trial_child.main("torch", 1, []) == f"torch 2.9: {reason}"


@pytest.mark.parametrize(
    ("platforms", "fault", "used"),
    [
        ("cpu", "jax 0.9: it sees the CPU alone", ""),
        ("cpu gpu", "jax: it sees 1 of 2 devices", "1"),
        ("gpu gpu gpu", "", "01"),
    ],
)
def test_jax_puts_a_number_on_each_device(
    monkeypatch: pytest.MonkeyPatch, platforms: str, fault: str, used: str
) -> None:
    ready: list[int] = []
    devices = [SimpleNamespace(platform=p, at=at) for at, p in enumerate(platforms.split())]

    def device_put(_: float, device: Any) -> Any:
        return SimpleNamespace(block_until_ready=lambda: ready.append(device.at))

    jax = {"devices": lambda: devices, "device_put": device_put}
    framework(monkeypatch, "jax", __version__="0.9", **jax)
    assert trial_child.main("jax", 2, []) == fault
    assert "".join(map(str, ready)) == used


@pytest.mark.parametrize(
    ("name", "wrong", "fault"),
    [
        ("AMD", "", ""),
        ("AMD", "AMD:1", "tinygrad: AMD computes wrong results"),
        ("CPU:0", "", "tinygrad: it would compute on CPU:0"),
    ],
)
def test_tinygrad_computes_on_each_device(
    monkeypatch: pytest.MonkeyPatch, name: str, wrong: str, fault: str
) -> None:
    class Tensor:
        def __init__(self, values: list[float], device: str) -> None:
            self.values = [value + (device == wrong) for value in values]

        def __add__(self, one: int) -> Any:
            return SimpleNamespace(tolist=lambda: [value + one for value in self.values])

    framework(monkeypatch, "tinygrad", Device=SimpleNamespace(DEFAULT=name), Tensor=Tensor)
    assert trial_child.main("tinygrad", 2, []) == fault
