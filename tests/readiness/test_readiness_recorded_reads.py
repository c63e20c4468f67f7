"""What the core reads of a machine, a recording of it has: nothing is read that nobody declares."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import recorded
from reports import report_of
from test_readiness_causes import BROKEN, HEALTHY
from weights import mostly_heavy

from probe_core.api import NotApplicable, Request, not_applicable
from probe_core.machine import Machine
from probe_core.probers import builtin_probers
from probe_core.probers.records import IN_PART, LEFT_OUT
from probe_core.recording.declared import own_declarations
from probe_core.recording.opening import open_machine
from probe_core.testing.reading import Coverage
from probe_core.testing.stage import Watched

MACHINES = {name: make for name, (_, make) in BROKEN.items()} | HEALTHY

DISGUISED = {
    "a_copy_of_nvml_alone": ("/home/user/lib",),
    "rocm_of_a_wheel": ("/srv/env/lib",),
    "libraries_in_a_configured_folder": ("/etc/ld.so.conf.d/nvidia.conf",),
    "libraries_of_a_configuration_that_is_named": ("/etc/ld.so.conf.d/nvidia.conf",),
    "desktop_with_libraries_for_games": ("/etc/ld.so.conf.d/", "/usr/lib/i386-linux-gnu/"),
    "dead_mps_daemon": ("/tmp/mps", "/proc/4242"),
    "mps_folder_without_daemon": ("/tmp/mps",),
    "mps_daemon": ("/tmp/mps",),
    "fell_off": ("/sys/bus/pci/devices/0000:01:00.0/config",),
    "never_woke": ("/sys/bus/pci/devices/0000:01:00.0/config",),
    "recording_without_libraries": ("/usr/lib/x86_64-linux-gnu",),
}
"""Machine to what a recording has under another name, or keeps by leaving it out: a person's
folders, what the loader passes over, and a device that does not answer."""


def unrecorded(machine: Machine, read: Callable[[Machine], object]) -> list[str]:
    """Return the paths that `read` asks for, of which the core's own declarations know nothing."""
    watched = Watched(machine)
    read(watched)
    coverage = Coverage(machine, own_declarations())
    return [path for path in watched.noted if not coverage.holds(path) and not is_left_out(path)]


def is_left_out(path: str) -> bool:
    """Return whether it is known, and said with a reason, that no recording has a path."""
    return any(path == entry or path.startswith(entry) for entry in LEFT_OUT if "*" not in entry)


@pytest.mark.parametrize("name", mostly_heavy(recorded.names(), 8))
def test_a_whole_probe_of_a_recorded_machine_reads_what_is_declared(name: str) -> None:
    """That is what the built-in probers read, the node's facts, readiness and visibility."""
    with open_machine(str(recorded.path(name))) as machine:
        assert unrecorded(machine, report_of) == []


@pytest.mark.parametrize("name", [prober.name for prober in builtin_probers()])
def test_a_built_in_prober_reads_what_is_declared(name: str) -> None:
    prober = next(prober for prober in builtin_probers() if prober.name == name)

    def answer(machine: Machine) -> None:
        result = prober.builtin(Request(machine)) if prober.builtin else not_applicable("")
        if not isinstance(result, NotApplicable):
            list(result)

    for recording in ("rock-5b--mali-g610-and-rk3588-npu", "server--8x-intel-gaudi-2"):
        with open_machine(str(recorded.path(recording))) as machine:
            assert unrecorded(machine, answer) == []


@pytest.mark.parametrize("name", mostly_heavy(MACHINES, 20))
def test_readiness_reads_what_is_declared(name: str, tmp_path: Path) -> None:
    machine = MACHINES[name](tmp_path / "root").machine()
    paths, disguised = unrecorded(machine, report_of), DISGUISED.get(name, ())
    assert [path for path in paths if not path.startswith(disguised)] == []
    assert bool(paths) == bool(disguised)


def test_what_is_disguised_or_left_out_is_of_a_machine_and_has_a_reason() -> None:
    assert DISGUISED.keys() <= MACHINES.keys()
    assert all({**IN_PART, **LEFT_OUT}.values())
    assert not IN_PART.keys() & LEFT_OUT.keys()


def test_a_file_that_the_core_reads_and_nobody_declares_is_noticed(tmp_path: Path) -> None:
    machine = MACHINES["fell_off"](tmp_path / "root").machine()

    def read(watched: Machine) -> None:
        report_of(watched)
        watched.read("/sys/class/drm/card0/device/pp_dpm_sclk")
        watched.read("/sys/module/amdgpu/parameters/lockup_timeout")

    assert unrecorded(machine, read)[-2:] == [
        "/sys/class/drm/card0/device/pp_dpm_sclk",
        "/sys/module/amdgpu/parameters/lockup_timeout",
    ]
