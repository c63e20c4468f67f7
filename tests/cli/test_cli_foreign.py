"""On Windows and macOS every command works, or says in one sentence that it needs another system.

Simulated: a process that lacks what Python lacks there (`foreign_os`), and so do its children.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import foreign_os
import pytest
from command import environment, probe

from probe_core.cli import COMMANDS
from probe_core.cli.plugin_commands import BROUGHT_BY

ROOT = Path(__file__).parents[2]
SYSTEMS = ("windows", "macos")
PROGRAM = """
import sys
import foreign_os
system, interpreter, code = sys.argv[1:4]
foreign_os.become(system)
sys.executable = interpreter
del sys.argv[1:4]
exec(code)
"""
COMMAND = "from probe_core.cli import main; sys.exit(main())"
JOURNAL = "what changed is told by files of Linux; there is no journal elsewhere"
LEASES = (
    "leases need Linux or macOS: this is Windows. Set CUDA_VISIBLE_DEVICES yourself, or use WSL 2."
)


def run(system: str, folder: Path, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code on the other system; an exception of ours would end it with a traceback."""
    # The registry of Windows: Python's module for it exists there alone.
    standin = ROOT / "plugins" / "windows" / "tests"
    export = str(standin / "exports" / "desktop-amd.reg")
    paths = [standin / "standin"] if system == "windows" else []
    env = environment(
        *paths, STANDIN_REG=export, HOME=str(folder), PROBE_CORE_TRACEBACK="1",
        PROBE_LEASES=str(folder / "leases"), PYTHONDONTWRITEBYTECODE="1",
    )  # fmt: skip
    interpreter = foreign_os.interpreter(folder, system)
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, system, interpreter, code, *arguments],
        cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


ALL = """
import contextlib, io, json, traceback
from probe_core.cli import candidates, main
candidates.LIMIT_S = 600.0  # what takes too long ends the process
results = {}
for line in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(line.split(" ") if line else [])
        except SystemExit as ended:
            status = ended.code or 0
        except BaseException:
            traceback.print_exc()
            status = -1
    results[line] = (status, out.getvalue(), err.getvalue())
print(json.dumps(results))
"""


@pytest.fixture(scope="module", params=SYSTEMS)
def results(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, dict[str, tuple[int, str, str]]]:
    """What each command line that does not become another program gave on a system."""
    place = furnished(tmp_path_factory.mktemp(request.param))
    lines = [line for line in LINES if not line.endswith("-- true")]
    done = run(request.param, place, ALL, json.dumps(lines))
    assert (done.returncode, done.stderr) == (0, "")
    return request.param, json.loads(done.stdout)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return furnished(tmp_path)


def furnished(tmp_path: Path) -> Path:
    """Return a folder with a report of a computer with two GPUs, and a recorded machine."""
    (tmp_path / "machine" / "proc").mkdir(parents=True)
    (tmp_path / "venv" / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    gpus = [
        {
            "id": f"pci:0000:0{number}:00.0",
            "ids": [
                f"pci:0000:0{number}:00.0",
                f"uuid:GPU-0000000{number}-0000-0000-0000-000000000000",
            ],
            "kind": "gpu",
            "vendor": "nvidia",
            "name": "NVIDIA GeForce RTX 4090",
            "backends": ["cuda"],
            "memory": {"kind": "dedicated", "total": 24 << 30, "free": 24 << 30},
        }
        for number in (1, 2)
    ]
    report = {"schema": 1, "node": {"os": "windows"}, "devices": gpus}
    (tmp_path / "report.json").write_text(json.dumps(report))
    return tmp_path


# Status and, where the command cannot work, its sentence; None: it prints an answer.
LINES: dict[str, tuple[int, str | None, int, str | None]] = {
    "": (0, None, 0, None),
    "--json": (0, None, 0, None),
    "--json --active --only cpu,nvidia": (0, None, 0, None),
    "--static report.json": (0, None, 0, None),
    "--machine machine": (0, None, 0, None),
    "--help": (0, None, 0, None),
    "help exec": (0, None, 0, None),
    "--version": (0, None, 0, None),
    "devices --strict --static report.json": (0, None, 0, None),
    "report --text --static report.json": (0, None, 0, None),
    "explain --only cpu": (0, None, 0, None),
    "explain 4090 --static report.json": (0, None, 0, None),
    "visible --static report.json": (0, None, 0, None),
    "visible --static report.json --active --for cuda": (0, None, 0, None),
    "chip 10de:2684": (0, None, 0, None),
    "plugins --only cpu": (0, None, 0, None),
    "plugins why-not amd --only cpu": (0, None, 0, None),
    "plugins check cpu --only cpu": (0, None, 0, None),
    "plugins new acme-x --folder made": (0, None, 0, None),
    "record out.json": (
        2, "probe record: on windows plugins read no files that could be recorded",
        2, "probe record: on darwin plugins read no files that could be recorded",
    ),
    "exec --static report.json -- true": (2, f"probe exec: {LEASES}", 0, ""),
    "exec --static report.json --dry-run": (2, f"probe exec: {LEASES}", 0, None),
    "exec --static report.json --layout 2x1 --all -- true": (
        2, f"probe exec: {LEASES}", 2, "probe exec: --all needs Linux",
    ),
    "exec --static report.json --require-working --shared -- true": (
        2, f"probe exec: {LEASES}", 3, None,
    ),
    "leases": (2, f"probe leases: {LEASES}", 0, ""),
    "leases --json": (2, f"probe leases: {LEASES}", 0, None),
    "leases --kill all": (2, f"probe leases: {LEASES}", 0, ""),
    "layout 2x1 --static report.json": (0, None, 0, None),
    "completion bash": (0, None, 0, None),
    "completion fish --complete probe explain --static report.json ": (0, None, 0, None),
    "doctor --static report.json --only no-driver": (0, None, 0, None),
    "doctor --list": (0, None, 0, None),
    "export nfd --static report.json": (0, None, 0, None),
    "bench --list --only cpu": (0, None, 0, None),
    "check --only cpu": (1, None, 1, None),
    "mcp --list": (0, None, 0, None),
    "env --for pip --static report.json": (0, None, 0, None),
    "watch --json -n 1 --only cpu": (0, None, 0, None),
    "will-run venv --on report.json": (0, None, 0, None),
    "journal": (2, f"probe journal: {JOURNAL}", 2, f"probe journal: {JOURNAL}"),
    "since 3d": (2, f"probe since: {JOURNAL}", 2, f"probe since: {JOURNAL}"),
    "doctor --next-boot --static report.json": (0, None, 0, None),
    "cluster report.json": (0, None, 0, None),
    "topology report.json": (0, None, 0, None),
    "partition report.json --model 7b --layers 32": (0, None, 0, None),
    "fit llama-3.2-1b report.json": (0, None, 0, None),
}  # fmt: skip


def test_every_command_is_run() -> None:
    names = {line.split()[0] for line in LINES if line and not line.startswith("-")} - {"help"}
    assert names == {*COMMANDS, *BROUGHT_BY}


def judge(line: str, system: str, status: int, out: str, err: str) -> None:
    expected, sentence = LINES[line][:2] if system == "windows" else LINES[line][2:]
    assert "Traceback" not in err, err
    assert (status, err if status != expected else "") == (expected, "")
    if sentence is None:
        assert out or status
    elif sentence:
        assert (out, err.splitlines()[-1]) == ("", sentence)


@pytest.mark.heavy
@pytest.mark.parametrize("line", [line for line in LINES if not line.endswith("-- true")])
def test_a_command_works_or_tells_why_not(
    line: str, results: tuple[str, dict[str, tuple[int, str, str]]]
) -> None:
    system, answers = results
    judge(line, system, *answers[line])


@pytest.mark.heavy
@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("line", [line for line in LINES if line.endswith("-- true")])
def test_a_program_is_run_or_not(line: str, system: str, place: Path) -> None:
    done = run(system, place, COMMAND, *line.split(" "))
    judge(line, system, done.returncode, done.stdout, done.stderr)


@pytest.mark.heavy
@pytest.mark.parametrize("system", SYSTEMS)
def test_probe_answers(system: str, place: Path) -> None:
    """With the plugins that run there, each in a process on that system."""
    code = """
import json, threading
import probe_core
report = probe_core.probe().to_json()
outcomes = {o["prober"]: (o["status"], o["reason"]) for o in report["outcomes"]}
import asyncio
again = asyncio.run(probe_core.probe_async(only="cpu"))
kinds = [device.kind for device in again.devices if "bus" not in device.seen_by]
print(json.dumps([report["node"]["os"], report["primary"], outcomes, kinds]))
"""
    done = run(system, place, code)
    assert (done.returncode, done.stderr) == (0, "")
    name, primary, outcomes, kinds = json.loads(done.stdout)
    assert name == ("darwin" if system == "macos" else "windows")
    assert primary is not None
    assert kinds == ["cpu"]
    faults = ("load_error", "call_error", "crashed", "protocol", "invalid", "resource", "timeout")
    assert {p: o for p, o in outcomes.items() if o[0] in faults} == {}
    if system == "windows":
        assert outcomes["windows"] == ["ok", None]


@pytest.mark.heavy
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_lease_is_had_or_refused_in_one_sentence(system: str, place: Path) -> None:
    code = """
import json, os
import probe_core
from probe_core.leasing import LeaseError, lease
report = probe_core.probe(static="report.json")
try:
    with lease(1, report=report, environ={"PROBE_LEASES": os.getcwd() + "/leases"}) as held:
        print(held.ids, sorted(held.changes))
except LeaseError as error:
    print(error)
"""
    done = run(system, place, code)
    assert (done.returncode, done.stderr) == (0, "")
    if system == "windows":
        assert done.stdout == LEASES + "\n"
    else:
        assert done.stdout.startswith("['pci:0000:01:00.0'] [")
        assert "'CUDA_VISIBLE_DEVICES'" in done.stdout


WITHOUT_FCNTL = """
import sys
sys.modules["fcntl"] = None  # as on Windows and in WebAssembly
import probe_core
from probe_core.cli import main
try:
    probe_core.lease(report={})
except probe_core.LeaseError as error:
    print(error)
sys.exit(main())
"""


@pytest.mark.parametrize("words", [("leases",), ("leases", "--kill"), ("exec", "--", "true")])
def test_without_locks_leases_end_with_a_sentence(words: tuple[str, ...], place: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_FCNTL, *words], env=environment(PROBE_LEASES=str(place)),
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    sentence = LEASES.replace("this is Windows", f"this is {sys.platform} without fcntl")
    assert (done.returncode, done.stdout) == (2, f"{sentence}\n")
    assert done.stderr == f"probe {words[0]}: {sentence}\n"


@pytest.mark.heavy
@pytest.mark.timeout(300)
@pytest.mark.parametrize("system", SYSTEMS)
def test_every_module_can_be_imported_or_needs_the_locks(system: str, place: Path) -> None:
    """Those that do not need fcntl, which `require_locks` keeps from being imported."""
    code = """
import importlib, pkgutil
import probe_core, probe_chipdb, probe_cluster, probe_exo
failed = []
for package in (probe_core, probe_chipdb, probe_cluster, probe_exo):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if module.name.endswith("__main__") or "__pyinstaller" in module.name:
            continue
        try:
            importlib.import_module(module.name)
        except ImportError as error:
            failed.append((module.name, error.name))
print(failed)
"""
    done = run(system, place, code)
    assert (done.returncode, done.stderr) == (0, "")
    failed = ast.literal_eval(done.stdout)
    assert {missing for _, missing in failed} <= ({"fcntl"} if system == "windows" else set())
    # Of the isolation, what starts children where there is posix_spawn; another driver elsewhere.
    rooms = ("probe_core.leasing.", "probe_core.isolation.posix", "probe_core.isolation.posix")
    assert all(name.startswith(rooms) for name, _ in failed)


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_lists_name_what_exists_here(system: str) -> None:
    """A typing error in a list would remove nothing."""
    _, _, absent, _ = foreign_os.SYSTEMS[system]
    known = {
        f"{module}.{name}" for module in absent for name in absent[module]
        if hasattr(__import__(module), name)
    }  # fmt: skip
    listed = sum(len(names) for names in absent.values())
    # Versions of Python and builds differ: most, and those that we use, are there.
    assert len(known) > 0.75 * listed
    assert {"os.getuid", "os.fork", "select.poll", "signal.SIGKILL"} <= known or system == "macos"
    assert hasattr(os, "pipe2")


@pytest.mark.heavy
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_recording_of_linux_has_the_same_first_cause(system: str, place: Path) -> None:
    """Names with colons, links and files of another system are read there as on Linux."""
    name = "desktop--nvidia-geforce-rtx-3060-without-driver.json"
    arguments = ["doctor", "--json", "--machine", str(ROOT / "tests" / "machines" / name)]
    own = probe(*arguments)
    other = run(system, place, COMMAND, *arguments)
    assert (own.returncode, other.returncode, other.stderr) == (1, 1, "")
    firsts = [json.loads(done.stdout)["findings"][0] for done in (own, other)]
    assert firsts[0]["code"] == "no-driver"
    assert firsts[1] == firsts[0]
