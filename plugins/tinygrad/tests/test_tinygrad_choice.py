"""Which backend tinygrad takes under which variables, in its three generations.

The expectations were read off the real tinygrad 0.9.2, 0.10.0, 0.10.3, 0.11.0, 0.12.0, 0.13.0 and
0.14.0, each started with ``Device.DEFAULT`` under these variables on a machine without a GPU.
"""

from __future__ import annotations

from typing import Any

import pytest

from probe_tinygrad.choice import Choice, choose, named, parse_targets, safe_targets
from probe_tinygrad.session import child_environ

NO_NUMBER = "is no number, and tinygrad reads it as one"
ORDERS = {"targets": ["NV", "CL", "CPU"], "names": ["GPU", "CPU", "LLVM"], "flags": ["CLANG"]}


def choice_of(style: str, environ: dict[str, str]) -> Choice:
    order = ORDERS[style]
    about = {"style": style, "order": order, "numbers": ["DEBUG"]}
    about["backends"] = [*order, "CUDA", "PYTHON", "DISK"]
    opened = {name: {"opens": name in ("CL", "CPU", "LLVM", "CLANG")} for name in order}
    return choose(about, opened, environ)


@pytest.mark.parametrize(
    ("style", "environ", "backend"),
    [
        ("targets", {}, "CL"),
        ("targets", {"DEV": "CPU"}, "CPU"),
        ("targets", {"DEV": "cpu:LLVM"}, "CPU"),
        ("targets", {"DEV": "KFD:0+AMD;CPU"}, "AMD"),
        ("targets", {"DEV": ":0,1+"}, "CL"),
        ("targets", {"DEV": "BOGUS"}, "BOGUS"),
        ("targets", {"DEV": "CPU", "CPU": "1"}, "CPU"),
        ("targets", {"CPU": "0"}, "CL"),
        ("targets", {"CLANG": "1", "DISK": "1"}, "CL"),
        ("names", {}, "CPU"),
        ("names", {"DEV": "llvm"}, "LLVM"),
        ("names", {"CPU": "1"}, "CPU"),
        ("names", {"DEV": "CPU", "CPU": "1"}, "CPU"),
        ("names", {"DEV": "BOGUS"}, "BOGUS"),
        ("names", {"DEV": "A+B+C"}, "A+B+C"),
        ("flags", {}, "CLANG"),
        ("flags", {"DEV": "CUDA"}, "CLANG"),
        ("flags", {"CUDA": "1"}, "CUDA"),
        ("flags", {"PYTHON": "1"}, "PYTHON"),
    ],
)
def test_the_backend(style: str, environ: dict[str, str], backend: str) -> None:
    choice = choice_of(style, environ)
    assert (choice.backend, choice.broken) == (backend, None)


@pytest.mark.parametrize(
    ("style", "environ", "variable", "reason"),
    [
        ("targets", {"CUDA": "1"}, "CUDA", "CUDA=1 is refused since tinygrad 0.13: set DEV=CUDA"),
        ("targets", {"DEV": "a+b+c"}, "DEV", "DEV: too many '+' or ':' in the target 'a+b+c'"),
        ("targets", {"DEBUG": "true"}, "DEBUG", f"DEBUG='true' {NO_NUMBER}"),
        ("targets", {"DEBUG": ""}, "DEBUG", f"DEBUG='' {NO_NUMBER}"),
        ("names", {"CPU": "1", "LLVM": "1"}, "CPU", "it refuses several devices: CPU, LLVM"),
        ("names", {"CPU": "true"}, "CPU", f"CPU='true' {NO_NUMBER}"),
    ],
)
def test_what_breaks_it(style: str, environ: dict[str, str], variable: str, reason: str) -> None:
    choice = choice_of(style, environ)
    assert choice.broken is not None
    assert (choice.broken.variable, choice.broken.reason) == (variable, reason)
    (finding,) = (item["finding"] for item in choice.findings())
    assert (finding["variable"], finding["why"]) == (variable, reason)


def test_an_index_in_the_old_variable_is_the_device_taken() -> None:
    choice = choice_of("names", {"DEV": "CUDA:1"})
    assert (choice.backend, choice.index) == ("CUDA", 1)
    assert choice.takes("CUDA", 1)
    assert not choice.takes("CUDA", 0)


def test_only_hardware_is_asked_besides() -> None:
    assert named({"DEV": "HIP"}) == ["HIP"]
    assert named({"DEV": "PYTHON"}) == []
    assert named({"DEV": "a+b+c"}) == []
    assert named({}) == []


@pytest.mark.parametrize(
    ("value", "dev", "refused"),
    [
        ("", "KFD+AMD;NVK+NV", {}),
        ("CPU", "KFD+AMD;NVK+NV;CPU", {}),
        ("CPU:LLVM:x", "KFD+AMD;NVK+NV;CPU:LLVM:x", {}),
        (":0,1+NV", "KFD+AMD;NVK:0,1+NV", {}),
        ("kfd:2+amd:LLVM", "KFD:2+AMD:LLVM;NVK+NV", {}),
        (":1+", "KFD:1+AMD;NVK:1+NV", {}),
        ("PCI+AMD", "KFD+AMD;NVK+NV", {"AMD": "PCI"}),
        ("MOCKKFD+AMD;PCI+NV", "KFD+AMD;NVK+NV", {"AMD": "MOCKKFD", "NV": "PCI"}),
    ],
)
def test_targets_are_bound_to_kernel_drivers(value: str, dev: str, refused: dict[str, str]) -> None:
    bound, reasons = safe_targets(parse_targets(value))
    assert bound == dev
    assert {n: r.split("interface ")[1].split(",")[0] for n, r in reasons.items()} == refused


def test_the_environment_keeps_choices_and_drops_dangers() -> None:
    environ = {
        "PATH": "/bin", "CUDA_VISIBLE_DEVICES": "1", "CPU_LLVM": "1", "DEBUG": "true",
        "CUDA": "1", "DEV": "PCI+NV", "AMD_IFACE": "PCI", "HOME": "/home/me",
        "CACHEDB": "/home/me/c", "VIZ": "1", "LD_PRELOAD": "x.so", "PYTHONPATH": "/x",
    }  # fmt: skip
    safe_environ = child_environ(environ, "/t", "KFD+AMD")
    private = dict.fromkeys(
        ("HOME", "TMPDIR", "TEMP", "TMP", "XDG_CACHE_HOME", "CUDA_CACHE_PATH", "POCL_CACHE_DIR"),
        "/t",
    )
    assert safe_environ == private | {
        "PATH": "/bin", "CUDA_VISIBLE_DEVICES": "1", "CPU_LLVM": "1", "DEV": "KFD+AMD",
        "CACHEDB": "/t/cache.db", "CACHELEVEL": "0",
    }  # fmt: skip
    old = child_environ({}, "/t", None)
    assert (old["AMD_IFACE"], old["NV_IFACE"], "DEV" in old) == ("KFD", "NVK", False)


def test_the_interface_a_user_demands_is_not_opened(fake: Any) -> None:
    fake.install("NV", "CPU").write("open_NV", "raise SystemError('opened')")
    answer = fake.probe(DEV="PCI+NV")
    finding = answer.finding("tinygrad-default-fails")
    assert finding["why"] == "DEV asks for its interface PCI, and a probe opens NVK alone"


@pytest.mark.parametrize(
    ("style", "seen"),
    [("targets", {"DEV": "KFD+AMD;NVK+NV"}), ("names", {"AMD_IFACE": "KFD", "NV_IFACE": "NVK"})],
)
def test_each_generation_gets_its_own_variables(
    fake: Any, style: str, seen: dict[str, str]
) -> None:
    names = ("DEV", "AMD_IFACE", "NV_IFACE", "CUDA", "DEBUG")
    show = f"import os; raise OSError({{k: os.environ[k] for k in {names} if k in os.environ}})"
    fake.install("CPU", style=style).write("open_CPU", show)
    answer = fake.probe(CUDA="1", DEBUG="true")
    assert answer.unavailable is not None
    assert str(seen) in answer.unavailable.reason


def test_the_oldest_order_is_read_from_its_code(fake: Any) -> None:
    fake.install("CLANG", "GPU", style="0.9").write("open_GPU", "raise OSError('no ICD')")
    answer = fake.probe()
    assert answer.devices[0]["extra"]["tinygrad"]["executed"] == ["CLANG"]
    assert answer.devices[0]["backends"] == ["tinygrad:cpu"]


@pytest.mark.parametrize(
    ("name", "backend", "index"),
    [
        ("CUDA", "CUDA", 0),
        ("CUDA:1", "CUDA", 1),
        ("CUDA:", "CUDA", 0),
        ("CUDA:x", "CUDA:x", 0),
        ("CUDA:²", "CUDA:²", 0),
        (f"CUDA:{'1' * 20}", "CUDA", int("1" * 20)),
        (f"CUDA:{'1' * 21}", f"CUDA:{'1' * 21}", 0),
        ("", None, 0),
        (None, None, 0),
    ],
)
def test_an_index_behind_a_backend(name: str | None, backend: str | None, index: int) -> None:
    made = Choice(name, None, None)
    assert (made.backend, made.index) == (backend, index)
