"""Start-up costs nothing that is not used: which modules a start may load is written here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import recorded

import probe_core

pytestmark = pytest.mark.skipif(
    "PRIVATE_NAMES" in os.environ, reason="public twins of private names load more"
)

DEAR = {
    "asyncio",
    "attr",
    "attrs",
    "concurrent.futures",
    "ctypes",
    "dataclasses",
    "email",
    "hypothesis",
    "importlib.metadata",
    "inspect",
    "logging",
    "multiprocessing",
    "pathlib",
    "pluggy",
    "psutil",
    "pynvml",
    "pyudev",
    "shutil",
    "subprocess",
    "tempfile",
    "threading",
    "tinygrad",
    "tomllib",
    "typing",
    "unittest",
}
# Each brings the others: one user of `re` in the plain path costs a script 5 of its 15 ms.
TEXT = {
    "argparse", "collections", "enum", "functools", "gettext", "itertools", "json", "locale", "re",
}  # fmt: skip
IMPORT_MAY_LOAD = {"probe_core", "__future__"}


def loaded_by(code: str, *arguments: str) -> set[str]:
    """Run `code` in a fresh interpreter; return the modules that it loaded."""
    script = (
        "import sys\nbefore = set(sys.modules)\n"
        f"{code}\n"
        "fresh = sorted(set(sys.modules) - before)\n"
        "sys.stderr.write('MODULES ' + ' '.join(fresh) + '\\n')\n"
    )
    path = [p for p in sys.path if p]
    done = subprocess.run(
        [
            sys.executable,
            "-S",
            "-E",
            "-c",
            f"import sys; sys.path[:] = {path!r}\n{script}",
            *arguments,
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    line = next(one for one in done.stderr.splitlines() if one.startswith("MODULES "))
    return set(line.split()[1:])


def test_import_loads_nothing_but_itself() -> None:
    assert loaded_by("import probe_core") <= IMPORT_MAY_LOAD


@pytest.mark.parametrize("name", sorted(set(probe_core.__all__) - {"__version__"}))
def test_each_public_name_is_found_and_listed(name: str) -> None:
    assert getattr(probe_core, name) is not None
    assert name in dir(probe_core)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'probe_core' has no attribute 'prob'"):
        probe_core.prob  # noqa: B018


def test_authors_api_is_cheap() -> None:
    loaded = loaded_by("import probe_core.api")
    assert loaded & DEAR == set()
    assert {one for one in loaded if one.startswith("probe_")} == {
        "probe_core",
        "probe_core.api",
        "probe_core.machine",
    }


@pytest.fixture
def bare(tmp_path: Path) -> str:
    """Return the root of a machine without accelerators."""
    return str(recorded.unpack(recorded.read("vm-without-accelerator--cpu"), tmp_path))


COMMAND = "from probe_core.cli import main\nstatus = main(sys.argv[1:])\nassert status == 0, status"


@pytest.mark.parametrize("options", [["--json"], [], ["--strict", "--json"]])
def test_report_without_accelerators_loads_no_dear_module(options: list[str], bare: str) -> None:
    loaded = loaded_by(COMMAND, "--machine", bare, *options)
    assert loaded & DEAR == set()
    assert not any(one.startswith("probe_core.isolation.launch") for one in loaded)
    typed_views = {"probe_core.model.report"}
    assert loaded & (typed_views | {"probe_core.registry.host"}) == set()


def test_live_report_loads_no_dear_module_either() -> None:
    """Of this very machine; with no plugin that could apply, whatever is installed."""
    loaded = loaded_by(COMMAND, "--json", "--only", "cpu")
    assert loaded & DEAR == set()
    assert not any(one.startswith("probe_core.recording") for one in loaded)


def test_a_first_report_brings_nothing_that_only_some_reports_need(bare: str) -> None:
    """Of a foreign report, a broken device, and a processor whose number chipdb does not know."""
    code = f"from probe_core import Machine, probe\nprobe(machine=Machine({bare!r}))"
    rare = {
        "probe_core.model.complete",
        "probe_core.model.verdict",
        "probe_chipdb.decoration",
        "probe_chipdb.spelling",
    }
    assert loaded_by(code) & rare == set()


def test_children_start_before_what_only_their_answers_need() -> None:
    loaded = loaded_by(
        "import probe_core.cli.devices, probe_core.commands.context, probe_core.pipeline.run\n"
        "from probe_core.probers import builtin_probers\n"
        "builtin_probers()\n"
        "import probe_core.isolation.launch, probe_core.isolation.posix"
    )
    later = {
        "probe_core.isolation.processes",
        "probe_core.model.field",
        "probe_core.model.parts",
        "probe_core.probers.cpu",
        "probe_core.proc",
        "probe_core.resolve",
    }
    assert loaded & later == set()


WARMING = """
from probe_core import Machine
from probe_core.pipeline import accelerators, conclude
from probe_core.pipeline.node import describe, memory
from probe_core.pipeline.probers import Builtins
from probe_core.pipeline.settings import load_settings, open_chips
machine, (config, _) = Machine(sys.argv[1]), load_settings({}, {})
collected, (chips, _) = Builtins(machine, config).collect(), open_chips(config, False, -1)
accelerators.warm_up(collected, chips, machine.os, bool)
"""
WARMED = f"""{WARMING}
node = describe(machine)
before = set(sys.modules)
node["memory"] = memory(machine)
devices, _ = conclude.merge_devices(collected, node, machine, bool)
conclude.resolve(devices, chips)
accelerators.judge(devices, machine, (), (), bool)
accelerators.see(devices, machine, bool)
"""


@pytest.mark.heavy
def test_the_last_steps_find_what_they_need_imported_while_children_ran(tmp_path: Path) -> None:
    root = recorded.unpack(recorded.read("dgx-h100--8x-nvidia-h100-80gb-hbm3"), tmp_path)
    # No prober answers here: why not is looked for then, and in no healthy machine.
    why = {"unbound", "device_rules", "nvidia"}
    assert loaded_by(WARMED, str(root)) == {f"probe_core.readiness.{name}" for name in why}


def test_a_servers_display_needs_no_rules_of_names(tmp_path: Path) -> None:
    """Its id is in no table, and nothing looks it up: the rules take a thirtieth of the probe."""
    machine = recorded.read("server--8x-amd-instinct-mi300x")
    assert "0x102b" in machine["files"]["/sys/devices/pci0000:62/0000:62:00.0/vendor"]
    loaded = loaded_by(WARMING, str(recorded.unpack(machine, tmp_path)))
    assert "probe_chipdb.matching" in loaded
    assert loaded & {"probe_chipdb.rules", "probe_chipdb.exclusions"} == set()


def test_chipdb_is_read_without_parsers(bare: str) -> None:
    loaded = loaded_by(COMMAND, "--machine", bare, "--json")
    assert "probe_chipdb.database" in loaded
    assert not any(one.startswith("probe_chipdb.entry") for one in loaded)


def test_a_typed_report_needs_attrs_only_where_its_reader_does(bare: str) -> None:
    code = (
        "import probe_core\n"
        "report = probe_core.probe(machine=probe_core.Machine(sys.argv[1]), only='cpu')\n"
        "assert report == report and hash(report) and repr(report) and report.to_json()\n"
    )
    dear = {"attr", "dataclasses", "inspect", "typing", "re", "pluggy", "asyncio", "subprocess"}
    assert loaded_by(code, bare) & (dear | {"psutil", "ctypes"}) == set()
    assert "attr" in loaded_by(f"{code}import attrs\nattrs.asdict(report)", bare)


def test_json_is_one_document_on_stdout(bare: str) -> None:
    code = "import sys; from probe_core.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "--json", "--machine", bare],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(),
    )
    document: dict[str, Any] = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert document["devices"][0]["id"] == "cpu:0"


def environment() -> dict[str, str]:
    return {"PYTHONPATH": ":".join(p for p in sys.path if p), "PATH": "/usr/bin:/bin"}


OS = {
    "_abc",
    "_collections_abc",
    "_stat",
    "abc",
    "genericpath",
    "os",
    "os.path",
    "posixpath",
    "stat",
}
"""What the module site, which these interpreters start without, has loaded in all others."""
PLAIN_MAY_LOAD = {"__future__", "_json", "errno", "io", "itertools"}
"""Of the standard library, beyond what a bare interpreter has."""


@pytest.mark.parametrize("options", [["--json"], ["--json", "--only", "cpu", "--timeout=9"]])
def test_the_plain_path_loads_no_module_that_is_not_listed(options: list[str], bare: str) -> None:
    """One user of `re` brings most of `TEXT`: 5 of the 14 ms that `probe --json` takes."""
    code = f"import os\nos.environ['PROBE_ONLY'] = 'cpu'\n{COMMAND}"
    loaded = {name for name in loaded_by(code, *options) if not name.startswith("probe_")}
    assert loaded & (DEAR | TEXT) == set()
    assert loaded - OS <= PLAIN_MAY_LOAD
