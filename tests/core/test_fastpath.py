"""What is private to CPython stands in one file, and nothing fails where it is another one."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from private_names import HOW, REPOSITORY, copy, is_private

SOURCES = ["probe_core", "chipdb/src", "plugins"]
FASTPATH = REPOSITORY / "probe_core" / "fastpath.py"
RECORDED = REPOSITORY / "tests" / "machines" / "dgx-h100--8x-nvidia-h100-80gb-hbm3.json"

# The NVML client of our own is made of `_ctypes`.
OTHERS = {"c_types.py"}


def private_imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if is_private(alias.name))
        elif isinstance(node, ast.ImportFrom) and not node.level and is_private(node.module):
            yield str(node.module)


@pytest.mark.heavy
def test_no_other_file_imports_a_private_module() -> None:
    files = [file for folder in SOURCES for file in (REPOSITORY / folder).rglob("*.py")]
    found = {
        f"{file.relative_to(REPOSITORY)}: {name}"
        for file in files
        if file != FASTPATH and "tests" not in file.parts and file.name not in OTHERS
        for name in private_imports(file)
    }
    assert len(files) > 500
    assert found == set()
    assert set(private_imports(FASTPATH)) > {"_json", "_signal", "_thread"}


@pytest.fixture(scope="module", params=HOW)
def surprised(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A core whose private names are absent, or changed."""
    return copy(tmp_path_factory.mktemp("core"), request.param)


def run(core: Path, *arguments: str, **variables: str) -> str:
    environ = {
        **os.environ,
        **variables,
        "PYTHONPATH": os.pathsep.join([str(core), *filter(None, sys.path)]),
    }
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=100,
        env=environ,
        cwd=core,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


EVERYTHING = """
import json, os, signal, sys
from probe_core import fastpath
ended = []
fastpath.start_thread(ended.append, 1)
while not ended:
    pass
scan = fastpath.json_scanner(float)
with fastpath.new_lock():
    print(json.dumps([
        fastpath.__file__, fastpath.json_quoter()("a\\n\\u00e9"), fastpath.signal.SIGTERM,
        fastpath.signal.getsignal(signal.SIGINT) is signal.getsignal(signal.SIGINT),
        fastpath.native_id() > 0, fastpath.call_c("getpid") == os.getpid(),
        fastpath.call_c("no_such_function_anywhere"), fastpath.blake2s(b"a", b"b", 4),
        sorted(fastpath.extension_suffixes()), [f.__name__ for f in fastpath.plain_finders()],
        fastpath.run_exit_handlers() or True,
    ]))
"""


def test_each_has_a_twin_that_does_the_same(surprised: Path) -> None:
    place, *answers = json.loads(run(surprised, "-c", EVERYTHING))
    assert Path(place).parent == surprised / "probe_core"
    assert answers == json.loads(run(REPOSITORY, "-c", EVERYTHING))[1:]
    assert answers[:2] == [r'"a\n\u00e9"', 15]


def test_the_twins_are_in_use(surprised: Path) -> None:
    code = (
        "import sys; from probe_core.fastpath import json_scanner, signal; json_scanner(float);"
        "print(json_scanner(float), signal.__name__, 'threading' in sys.modules)"
    )
    assert run(surprised, "-c", code).split() == ["None", "signal", "True"]


def without_times(document: dict[str, Any]) -> dict[str, Any]:
    """Return a report without what two looks at one machine may differ in."""
    outcomes = [{**outcome, "elapsed_ms": 0} for outcome in document["outcomes"]]
    node = {**document["node"], "time": ""}
    return {**document, "outcomes": outcomes, "timings_ms": {}, "node": node}


@pytest.mark.heavy
def test_a_recorded_machine_gives_the_same_report(surprised: Path) -> None:
    command = ["-m", "probe_core", "--json", "--machine", str(RECORDED)]
    reports = [json.loads(run(core, *command)) for core in (surprised, REPOSITORY)]
    assert without_times(reports[0]) == without_times(reports[1])


def test_this_machine_has_a_report(surprised: Path) -> None:
    report = json.loads(run(surprised, "-m", "probe_core", "--json"))
    assert report["devices"]
    assert {o["status"] for o in report["outcomes"] if o["prober"] == "cpu"} == {"ok"}
    assert run(surprised, "-m", "probe_core").strip()


CHILDREN = """
import json
from probe_core import probe
probers = {name: {"target": "acme_" + name} for name in ("good", "ends", "hangs")}
probers["hangs"]["deadline_s"] = 0.5
report = probe(probers=probers, only=list(probers)).to_json()
outcomes = {o["prober"]: [o["status"], o["reason"]] for o in report["outcomes"]}
print(json.dumps([outcomes, report["primary"]]))
"""
HEAD = "from probe_core.api import hookimpl\n@hookimpl\ndef probe_devices(request):\n"
BODIES = {
    "good": 'yield {"ids": ["pci:0000:01:00.0"], "kind": "npu", "vendor": "acme", "name": "é"}',
    "ends": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
    "hangs": "import time; time.sleep(60)",
}


@pytest.mark.heavy
def test_probers_answer_crash_and_are_ended(surprised: Path) -> None:
    for name, body in BODIES.items():
        (surprised / f"acme_{name}.py").write_text(f"{HEAD}    {body}\n", "utf-8")
    outcomes, primary = json.loads(run(surprised, "-c", CHILDREN))
    statuses = {name: outcomes[name][0] for name in BODIES}
    assert statuses == {"good": "ok", "ends": "crashed", "hangs": "timeout"}
    assert "SIGSEGV" in outcomes["ends"][1]
    assert primary == "pci:0000:01:00.0"


@pytest.mark.heavy
@pytest.mark.skipif(sys.platform != "linux", reason="a lease needs Linux")
def test_a_leased_command_runs(surprised: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    report.write_text(run(surprised, "-m", "probe_core", "--json", "--machine", str(RECORDED)))
    report.chmod(0o600)
    leases = {"PROBE_STATIC": str(report), "PROBE_LEASES": str(tmp_path / "leases")}
    command = ["-m", "probe_core", "exec", "-n", "2", "--", sys.executable, "-c", "print(7)"]
    assert run(surprised, *command, **leases).strip() == "7"
