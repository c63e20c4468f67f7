"""Tests of the tests: a good prober passes each check, and a bad one fails each once."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from weights import mostly_heavy

from probe_core.testing import ProberContract
from probe_core.testing.checks_sampling import Sampling

CHECKS = sorted(name for name in dir(ProberContract) if name.startswith("test_"))
Plugin = Callable[..., ProberContract]


def run(contract: ProberContract, check: str, tmp_path: Path) -> None:
    function = getattr(contract, check)
    folder = tmp_path / "machine"
    folder.mkdir()
    if "tmp_path" in inspect.signature(function).parameters:
        function(folder)
    else:
        function()


@pytest.mark.parametrize("check", mostly_heavy(CHECKS, 8))
def test_a_good_prober_passes(plugin: Plugin, tmp_path: Path, check: str) -> None:
    run(plugin(), check, tmp_path)


TOP = "def probe_devices(request):\n"
UNITS = '        device["units"] = units\n'
EMPTY = 'return not_applicable("no /sys/class/acme")'
LOAD = '        sample["busy"] = load / 100\n'
IDS = '"ids": [f"acme:{name}"]'


def top(line: str) -> tuple[str, str]:
    return TOP, f"{TOP}    {line}\n"


def module(line: str) -> tuple[str, str]:
    return '"""Acme accelerators."""', f"{line}\n"


BAD: dict[str, dict[str, Any] | tuple[str, str]] = {
    "test_its_name_can_be_used": {"name": "cpu"},
    "test_its_module_is_found_without_importing": {"target": "x_acme.missing"},
    "test_it_has_a_manifest": {"manifest": False},
    "test_its_manifest_has_no_mistake": {"manifest": {"priorty": 5}},
    "test_its_manifest_says_what_it_is": {"manifest": {"summary": " "}},
    "test_its_manifest_names_an_api_there_is": {"manifest": {"api": "9.0"}},
    "test_its_deadline_is_bearable": {"manifest": {"deadline_s": 100}},
    "test_its_manifest_says_whether_it_opens_devices": {"may": frozenset({"device"})},
    "test_its_project_declares_the_entry_point": {
        "project": ("acme = ", "acne = "),
    },
    "test_its_wheel_holds_all_it_needs": {
        "project": ("packages", 'exclude = ["*.json"]\npackages'),
    },
    "test_it_can_be_imported_and_called": module("import no_such_module"),
    "test_importing_is_cheap": module("import time; time.sleep(0.08)"),
    "test_importing_prints_nothing": module("print('hello')"),
    "test_it_leaves_the_process_as_it_is": top("import os; os.umask(0o077)"),
    "test_it_has_no_effects_without_hardware": top("import subprocess; subprocess.run(['true'])"),
    "test_without_hardware_it_is_not_applicable": (EMPTY, 'raise Unavailable("none", code="a-b")'),
    "test_it_says_why_not": (EMPTY, "return []"),
    "test_without_hardware_it_prints_nothing": (EMPTY, "print('none'); " + EMPTY),
    "test_without_hardware_it_takes_little_time": {
        "changes": (top("import time; time.sleep(0.35)"),),
        "manifest": {"deadline_s": 0.6},
    },
    "test_it_bears_every_system": top("if request.machine.arch == 'riscv64': raise OSError"),
    "test_it_reads_the_machine_and_not_this_one": (
        'machine.listdir("/sys/class/acme")',
        '__import__("os").listdir("/")',
    ),
    "test_what_it_looks_for_is_declared": top("request.machine.exists('/dev/acme0')"),
    "test_it_bears_an_empty_environment": top("request.machine.environ['HOME']"),
    "test_it_bears_files_where_folders_should_be": (
        'machine.listdir("/sys/class/acme")',
        '__import__("os").listdir(machine.path("/sys")) if machine.exists("/sys") else []',
    ),
    "test_where_there_is_none_it_is_not_applicable": (
        EMPTY,
        'raise Unavailable("none", code="no-device")',
    ),
    "test_where_there_is_none_it_does_no_more_than_it_may": (
        EMPTY,
        "open('/dev/full'); " + EMPTY,
    ),
    "test_what_it_reads_where_there_is_none_is_declared": (
        EMPTY,
        "machine.read('/sys/module/acme/version'); " + EMPTY,
    ),
    "test_its_hardware_is_found": ("/sys/class/acme", "/sys/class/acne"),
    "test_its_preconditions_let_it_run": {"manifest": {"when": {"any_path": ["/dev/acme9"]}}},
    "test_every_value_can_be_believed": (UNITS, '        device["units"] = -units\n'),
    "test_every_device_has_a_strong_id": (IDS, '"ids": [f"index:{name}"]'),
    "test_no_two_devices_share_an_id": (IDS, '"ids": ["acme:0"]'),
    "test_ids_are_the_same_at_every_look": (
        IDS,
        '"ids": [f"acme:{__import__(\'os\').getpid()}-{name}"]',
    ),
    "test_the_place_of_the_machine_does_not_show": (
        IDS,
        IDS + ', "extra": {"path": machine.path("/sys")}',
    ),
    "test_answers_are_plain_data": (UNITS, '        device["units"] = {units}\n'),
    "test_what_is_unknown_is_left_out_with_a_reason": (UNITS, '        device["vendor"] = ""\n'),
    "test_with_hardware_it_takes_half_its_deadline": {
        "changes": ((UNITS, UNITS + "    import time; time.sleep(0.2)\n"),),
        "manifest": {"deadline_s": 0.6},
    },
    "test_with_hardware_it_prints_nothing": (
        UNITS,
        UNITS + "    import sys; sys.stderr.write('x')\n",
    ),
    "test_it_changes_nothing_on_the_machine": (
        UNITS,
        UNITS + "    open(machine.path('/log'), 'a').write('x')\n",
    ),
    "test_it_only_reads": (UNITS, UNITS + "    open('/dev/full')\n"),
    "test_what_it_reads_is_declared": {
        "manifest": {"records": {"files": ["/sys/class/acme/*/name", "/sys/class/acme/locked"]}}
    },
    "test_what_it_announces_is_an_id": ("request.touching(identity)", "request.touching(name)"),
    "test_it_goes_around_a_device_to_avoid": (
        "        if identity in request.avoid",
        "        if 0",
    ),
    "test_it_bears_an_empty_bus": top("request.bus[0]"),
    "test_it_bears_garbage_in_every_file": (
        "    if text:\n",
        "    if not text.isascii(): 1 / 0\n    if text:\n",
    ),
    "test_it_bears_empty_files": ("    if text:\n", "    if text[0]:\n"),
    "test_it_bears_absurd_numbers": ("units < 1000:", "len(range(units)) < 1000:"),
    "test_it_bears_missing_files": ("    if text:\n", "    if text.strip():\n"),
    "test_it_samples_its_hardware": (LOAD, "        pass\n"),
    "test_every_figure_can_be_believed": (LOAD, '        sample["busy"] = load\n'),
    "test_figures_are_plain_data": (LOAD, '        sample["busy"] = {load}\n'),
    "test_one_process_answers_all_rounds": (
        '{"device": device}',
        '{"device": f"{device}-{__import__(\'time\').monotonic_ns()}"}',
    ),
    "test_every_device_is_announced_before_it_is_asked": ("request.touching(device)", "pass"),
    "test_it_goes_around_devices": ("if request.skip(device)", "if 0"),
    "test_a_round_is_quick": (LOAD, LOAD + "    import time; time.sleep(0.55)\n"),
    "test_sampling_prints_nothing": (LOAD, LOAD + "    import sys; sys.stderr.write('x')\n"),
    "test_it_closes_what_it_opened": (
        "@hookimpl\ndef sample_devices",
        "@hookimpl\ndef sample_close():\n    raise KeyError\n\n@hookimpl\ndef sample_devices",
    ),
    "test_sampling_changes_nothing": (
        LOAD,
        LOAD + "    open(machine.path('/log'), 'a').write('x')\n",
    ),
    "test_sampling_bears_what_files_hold": ("0 <= load <=", "0 <= len(range(load)) <="),
    "test_what_cannot_be_asked_is_unavailable": (
        "raise Unavailable",
        "return not_applicable('x') or ",
    ),
    "test_what_it_reads_of_broken_hardware_is_declared": (
        "raise Unavailable",
        "machine.read('/sys/module/acme/version'); raise Unavailable",
    ),
    "test_what_is_unavailable_has_a_code_and_a_reason": (
        'code="driver-locked"',
        'code="unavailable"',
    ),
}


OPENED = (
    """@hookimpl
def sample_devices(request):
    names = request.machine.listdir("/sys/class/acme")
    return samples(request, names) if names else not_applicable("no Acme here")
""",
    """@hookimpl
def open_sampler(request):
    names = request.machine.listdir("/sys/class/acme")
    return Sampler(names) if names else not_applicable("no Acme here")

class Sampler:
    def __init__(self, names):
        self.names = names
    def sample(self, request):
        return samples(request, self.names)
    def close(self):
        CLOSE
""",
)


@pytest.mark.heavy
@pytest.mark.parametrize(
    "check", [check for check in CHECKS if check in vars(Sampling)], ids=lambda check: check[5:]
)
def test_a_good_sampler_object_passes(plugin: Plugin, tmp_path: Path, check: str) -> None:
    run(plugin(OPENED, ("CLOSE", "pass")), check, tmp_path)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("close", "sentence"),
    [
        ("raise KeyError", "closing prints"),
        ("print('closed')", r"closing prints \['closed'\]"),
        ("import time; time.sleep(2)", "it is timeout: close within 0.2 s"),
        ("import os; os._exit(3)", "it is crashed: close within 0.2 s"),
    ],
)
def test_a_sampler_that_does_not_close_well_fails(
    plugin: Plugin, tmp_path: Path, close: str, sentence: str
) -> None:
    contract = plugin(OPENED, ("CLOSE", close))
    with pytest.raises(AssertionError, match=sentence):
        run(contract, "test_it_closes_what_it_opened", tmp_path)


def test_there_is_a_bad_prober_for_each_check() -> None:
    assert sorted(BAD) == CHECKS
    assert len(CHECKS) >= 30


@pytest.mark.parametrize("check", mostly_heavy(CHECKS[::-1], 15))
def test_a_bad_prober_fails(plugin: Plugin, tmp_path: Path, check: str) -> None:
    bad = BAD[check]
    options = {"changes": (bad,)} if isinstance(bad, tuple) else dict(bad)
    contract = plugin(*options.pop("changes", ()), **options)
    with pytest.raises((AssertionError, ValueError)) as caught:
        run(contract, check, tmp_path)
    assert not str(caught.value).startswith("assert"), "the check does not say what is wrong"


@pytest.mark.parametrize(
    ("ids", "sentence"),
    [
        (
            '[f"acme:{name}", f"uuid:GPU {name}"]',
            r"of \['acme:acme0', 'uuid:GPU acme0'\]: \[\"ids: the id 'uuid:GPU acme0' holds char",
        ),
        (
            '["pci:01:00.0", "pci:02:00.0", f"acme:{name}"]',
            "one device has one PCI address, found pci:0000:01:00.0, pci:0000:02:00.0",
        ),
        ('[f"acme:{name}", 5]', "ids: an id must be text, found int 5"),
        ("5", r"the core would leave out of 5: \['ids: expected a list of ids, found int 5'"),
    ],
)
def test_an_id_that_cannot_be_used_is_named_to_its_author(
    plugin: Plugin, tmp_path: Path, ids: str, sentence: str
) -> None:
    """In a report the device stays by its other id: the author is told all the same."""
    contract = plugin((IDS, f'"ids": {ids}'))
    with pytest.raises(AssertionError, match=sentence):
        run(contract, "test_every_value_can_be_believed", tmp_path)


@pytest.mark.parametrize("ids", ["5", "[5]"])
def test_ids_that_are_no_texts_are_no_strong_ids(plugin: Plugin, tmp_path: Path, ids: str) -> None:
    contract = plugin((IDS, f'"ids": {ids}'))
    sentence = re.escape(f"{ids} lacks a strong id: begin one with pci:, uuid:, dt:, acme:")
    with pytest.raises(AssertionError, match=sentence):
        run(contract, "test_every_device_has_a_strong_id", tmp_path)


def test_a_mistake_in_what_is_recorded_is_one_of_the_manifest(
    plugin: Plugin, tmp_path: Path
) -> None:
    contract = plugin(manifest={"records": {"files": ["/sys/class/acme/*/name", "sys/class"]}})
    with pytest.raises(AssertionError, match="'sys/class' is not absolute"):
        run(contract, "test_its_manifest_has_no_mistake", tmp_path)


def test_what_is_not_declared_is_not_collected() -> None:
    bare = type("TestBare", (ProberContract,), {"name": "bare", "target": "x_bare"})
    left = [name for name in dir(bare) if name.startswith("test_") and getattr(bare, name)]
    assert "test_its_hardware_is_found" not in left
    assert "test_what_cannot_be_asked_is_unavailable" not in left
    assert "test_where_there_is_none_it_is_not_applicable" not in left
    assert "test_without_hardware_it_is_not_applicable" in left


def test_it_is_no_plugin_of_pytest() -> None:
    """Who installed probe-core for something else pays nothing in their own test runs."""
    import tomllib

    root = Path(__file__).resolve().parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert "pytest11" not in project.get("entry-points", {})
