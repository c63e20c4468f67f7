"""`probe plugins run`: an author's prober in this process, judged as a report judges it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from command import argv, environment, install, probe, probe_here

from probe_core import Machine
from probe_core import probe as reported
from probe_core.cli import main
from probe_core.cli.plugins_run import _prints_to_stderr
from probe_core.testing import Tree

GOOD = """
    from probe_core.api import hookimpl, not_applicable
    @hookimpl
    def probe_devices(request):
        cards = [card for card in request.bus if card.get("pci", {}).get("id") == "1ac0:0001"]
        if not cards:
            return not_applicable("no Acme One on the bus")
        print("cards:", len(cards))
        return [{"ids": card["ids"], "kind": "npu", "vendor": "acme", "name": "Acme One",
                 "memory_bytes": 16 << 30} for card in cards]
"""
ODD = """
    from probe_core.api import finding, hookimpl
    @hookimpl
    def probe_devices(request):
        request.touching("pci:0000:01:00.0")
        yield {"ids": ["pci:0000:01:00.0"], "kind": "npu", "memory_bytes": 5, "colour": "red",
               "unknown": {"units": "no file"}}
        yield {"ids": ["pci:0000:01:00.0"], "kind": "npu"}
        yield {"kind": "npu"}
        yield "a text"
        yield {"ids": ["odd:1"], "kind": "npu", "extra": {"when": object()}}
        yield finding("acme-hot", what="it is hot", why="90 C", fix="cool it")
        yield {"finding": {"code": "acme-cold"}}
"""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def forget(folder: Path) -> None:
    """Unload the modules of a folder, so that the next prober can have their names."""
    for loaded in [*sys.modules.values()]:
        if (getattr(loaded, "__file__", None) or "").startswith(f"{folder}/"):
            del sys.modules[loaded.__name__]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a machine that has one Acme card."""
    Tree(tmp_path / "machine").pci("0000:01:00.0", "1ac0:0001", pci_class="120000", driver="acme")
    return tmp_path


@pytest.fixture
def run(folder: Path) -> Run:
    """Write a prober, and run it on the machine."""

    def run_it(body: str, *options: str, name: str = "acme_prober.py", **kwargs: Any) -> Any:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(body))
        machine = ("--machine", str(folder / "machine"))
        words = ("plugins", "run", str(path), *machine, *options)
        if not kwargs:
            try:
                return probe_here(*words, env=environment(COLUMNS="200"))
            finally:
                forget(folder)
        return subprocess.run(
            argv(*words),
            env=environment(COLUMNS="200"),
            capture_output=True,
            text=True,
            timeout=60,
            **({"stdin": subprocess.DEVNULL} if "input" not in kwargs else {}),
            **kwargs,
        )

    return run_it


def test_each_device_is_shown_and_then_merged(run: Run) -> None:
    done = run(GOOD)
    assert (done.returncode, done.stderr) == (0, "")
    assert "prober 'acme' (acme_prober), in this process" in done.stdout
    assert "\ncards: 1\ndevice 1: accepted\n" in done.stdout
    assert "  memory.total     17179869184 (16.0 GiB)\n" in done.stdout
    assert "  pci:0000:01:00.0  Acme One, the primary device\n" in done.stdout
    assert "    from acme      ids, kind, vendor, name, memory.total\n" in done.stdout
    assert "    from bus       pci.id, pci.class, driver.name, power_state\n" in done.stdout
    assert "\nok\n1 device, 0 values refused, " in done.stdout


def test_every_refusal_has_the_reason_that_a_report_gives(run: Run, folder: Path) -> None:
    done = run(ODD, "--json")
    assert done.returncode == 1
    document = json.loads(done.stdout)
    refused = [reason for item in document["items"] for reason in item["refused"]]
    assert [item["accepted"] for item in document["items"]] == [
        *(True, False, False, False, True),
        *(True, False),
    ]
    (folder / "odd_in_a_child.py").write_text((folder / "acme_prober.py").read_text())
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        machine = Machine(str(folder / "machine"))
        report = reported(machine=machine, probers={"acme": "odd_in_a_child"}, only=["acme"])
    rejected = next(f for f in report.findings if f.code == "value-rejected")
    # A report lists the first four, in this order; the last is of a finding, dropped in silence.
    assert rejected.why.partition("; and ")[0] == "; ".join(refused[:4])
    assert refused[-1].startswith("a finding needs texts for code, what, why and fix")
    assert [d["id"] for d in document["merged"]] == ["pci:0000:01:00.0", "odd:1"]
    assert {d["id"] for d in document["merged"]} < {d.id for d in report.devices}


def test_refusals_stand_below_the_device(run: Run) -> None:
    out = run(ODD).stdout
    assert out.count("touching pci:0000:01:00.0\n") == 1
    assert "device 1: accepted, 2 values refused\n" in out
    assert "  units            unknown: no file\n" in out
    assert "  refused          memory.total: 5 is not between 1,048,576 and" in out
    assert "device 3: refused\n" in out
    assert "finding 1: accepted\n  code             acme-hot\n" in out
    assert "finding 2: refused\n" in out


def test_json_is_one_document_whatever_the_prober_prints(run: Run) -> None:
    printed = 'import os; os.write(1, b"raw "); print(request.serial, request.active, "cards:"'
    done = run(GOOD.replace('print("cards:"', printed), "--json", input="")
    document = json.loads(done.stdout)
    assert "raw " in done.stderr
    # An author's debugger follows one thread.
    assert "True False cards: 1" in done.stderr
    assert (document["status"], document["prober"]) == ("ok", "acme")
    assert document["merged"][0]["name"] == "Acme One"
    assert document["primary"] == "pci:0000:01:00.0"


def test_standard_output_is_the_commands_again_after_the_prober(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with _prints_to_stderr():
        print("a prober's", flush=True)
        os.write(1, b"its library's\n")
    print("the command's", flush=True)
    os.write(1, b"and its library's\n")
    assert capfd.readouterr() == (
        "the command's\nand its library's\n",
        "a prober's\nits library's\n",
    )


def test_standard_input_is_the_probers_own(run: Run) -> None:
    body = """
        from probe_core.api import hookimpl, not_applicable
        @hookimpl
        def probe_devices(request):
            return not_applicable(f"read {input()!r}")
    """
    done = run(body, input="a line\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert "not_applicable: read 'a line'\n" in done.stdout


@pytest.mark.heavy
def test_a_breakpoint_stops_in_the_prober(run: Run) -> None:
    body = """
        from probe_core.api import hookimpl, not_applicable
        @hookimpl
        def probe_devices(request):
            answer = 6 * 7
            breakpoint()
            return not_applicable("it went on")
    """
    done = run(body, input="p answer\nc\n")
    assert done.returncode == 0, done.stderr
    assert "(Pdb) 42\n" in done.stdout
    assert "not_applicable: it went on\n" in done.stdout
    quitted = run(body, input="q\n")
    assert quitted.returncode == 1
    assert "call_error: it was ended in the debugger\n" in quitted.stdout
    assert "Traceback" not in quitted.stderr


RAISES = """
    from probe_core.api import hookimpl
    @hookimpl
    def probe_devices(request):
        yield {"ids": ["acme:1"], "kind": "npu"}
        ask(request)
    def ask(request):
        request.buss
"""


def test_an_exception_shows_the_authors_frames_alone(run: Run) -> None:
    done = run(RAISES)
    assert done.returncode == 1
    frames = [line.strip() for line in done.stderr.splitlines() if line.startswith("  File")]
    assert [frame.rpartition(" in ")[2] for frame in frames] == ["probe_devices", "ask"]
    assert "AttributeError: 'Request' object has no attribute 'buss'" in done.stderr
    assert "`--debug` opens pdb at that line." in done.stderr
    assert "device 1: accepted\n" in done.stdout
    assert "\ncall_error: AttributeError: " in done.stdout


def test_debug_opens_the_debugger_where_it_raised(run: Run) -> None:
    done = run(RAISES, "--debug", input="p type(request).__name__\nq\n")
    assert done.returncode == 1
    assert "-> request.buss\n" in done.stdout
    assert "(Pdb) 'Request'\n" in done.stdout
    assert "`--debug`" not in done.stderr


@pytest.mark.parametrize(
    ("body", "status", "stderr"),
    [
        ("import no_such_module", "load_error", "ModuleNotFoundError: No module named"),
        ("def probe_devices(:", "load_error", "SyntaxError: "),
        ("x = 1", "load_error", ""),
        (
            "from probe_core.api import hookimpl\n@hookimpl\ndef probe_devices(): return None",
            "invalid",
            "",
        ),
        (
            "from probe_core.api import hookimpl\n@hookimpl\ndef probe_devices(): exit(3)",
            "call_error",
            "SystemExit: 3",
        ),
        (
            "from probe_core.api import hookimpl\n@hookimpl\ndef probe_devices(): raise OSError",
            "call_error",
            "OSError",
        ),
        (
            "raise KeyboardInterrupt",
            "",
            "KeyboardInterrupt",
        ),
    ],
)
def test_what_is_wrong_is_named(run: Run, body: str, status: str, stderr: str) -> None:
    done = run(body)
    assert done.returncode == (1 if status else 130)
    assert f"{status}: " in done.stdout if status else "call_error" not in done.stdout
    assert stderr in done.stderr
    assert "rehearsal.py" not in done.stderr
    assert "importlib" not in done.stderr
    assert bool(done.stderr) is bool(stderr)


def test_ctrl_c_shows_where_it_hangs(folder: Path) -> None:
    body = """
        import time
        from probe_core.api import hookimpl
        @hookimpl
        def probe_devices(request):
            print("hanging", flush=True)
            time.sleep(60)
    """
    (folder / "acme_prober.py").write_text(dedent(body))
    command = argv("plugins", "run", str(folder / "acme_prober.py"))
    with subprocess.Popen(
        command,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert any(line == "hanging\n" for line in process.stdout)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert 'acme_prober.py", line ' in stderr
    assert "KeyboardInterrupt" in stderr
    assert "rehearsal.py" not in stderr


def test_isolated_runs_it_as_a_report_does(run: Run) -> None:
    done = run(GOOD, "--isolated")
    assert (done.returncode, done.stderr) == (0, "")
    assert "prober 'acme' (acme_prober), in a child, as in a report\n" in done.stdout
    assert "device 1: accepted\n" in done.stdout
    assert "  | cards: 1\n" in done.stdout
    body = GOOD.replace('print("cards:", len(cards))', "import os; os.abort()")
    crashed = run(body, "--isolated", "--json")
    assert crashed.returncode == 1
    document = json.loads(crashed.stdout)
    assert (document["status"], document["items"]) == ("crashed", [])
    assert document["reason"].startswith("it was killed by SIGABRT")
    hanging = GOOD.replace('print("cards:", len(cards))', "import time; time.sleep(60)")
    assert run(hanging, "--isolated", "--timeout", "1").returncode == 1


def test_unavailable_is_an_answer(run: Run) -> None:
    body = """
        from probe_core.api import Unavailable, hookimpl
        @hookimpl
        def probe_devices(request):
            raise Unavailable("the driver is not loaded", code="driver-not-loaded", fix="modprobe")
    """
    done = run(body, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    named = ("unavailable", "the driver is not loaded", "driver-not-loaded", "modprobe")
    assert tuple(document[key] for key in ("status", "reason", "code", "fix")) == named


def test_a_file_of_a_package_imports_its_neighbours(run: Run, folder: Path) -> None:
    package = folder / "src/probe_acme/inner"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package.parent / "__init__.py").write_text("")
    (package / "reasons.py").write_text('REASON = "by a relative import"\n')
    (package / "prober.json").write_text('{"schema": 1, "probers": {"acme-x": {"deadline_s": 0}}}')
    body = """
        from probe_core.api import hookimpl, not_applicable
        from .reasons import REASON
        @hookimpl
        def probe_devices(request):
            return not_applicable(REASON)
    """
    done = run(body, name="src/probe_acme/inner/prober.py")
    assert "prober 'acme-x' (probe_acme.inner.prober)" in done.stdout
    assert "not_applicable: by a relative import\n" in done.stdout
    # A manifest that a report would complain of is no success.
    assert "manifest refused: deadline_s: expected seconds above 0" in done.stdout
    assert done.returncode == 1


def test_a_report_that_would_skip_it_is_told_of(run: Run, folder: Path) -> None:
    manifest = {"schema": 1, "probers": {"acme": {"when": {"pci_vendor": ["1ac9"]}}}}
    (folder / "acme_prober.prober.json").write_text(json.dumps(manifest))
    done = run(GOOD)
    assert done.returncode == 0
    assert "note: a report would not run it here: no PCI device of vendor 1ac9" in done.stdout
    assert "\nok\n1 device, " in done.stdout


def test_what_opens_devices_runs_only_when_asked(run: Run, folder: Path) -> None:
    manifest = {"schema": 1, "probers": {"acme": {"active": True}}}
    (folder / "acme_prober.prober.json").write_text(json.dumps(manifest))
    done = run(GOOD)
    assert (done.returncode, done.stdout) == (2, "")
    assert "acme_prober is not run: it opens devices, which needs --active" in done.stderr
    assert run(GOOD, "--active").returncode == 0


@pytest.mark.heavy
def test_an_installed_prober_and_a_module_run_by_name(folder: Path) -> None:
    install(folder, "acme", GOOD)
    env = environment(folder, COLUMNS="200")
    for name in ("acme", "installed_acme"):
        done = probe("plugins", "run", name, "--machine", str(folder / "machine"), env=env)
        assert (done.returncode, done.stderr) == (0, "")
        assert "\nok\n1 device, " in done.stdout


MISTAKES = [
    ("no/such.py", "no/such.py: no such file"),
    ("nvidai", "'nvidai' is no file, no module and no installed prober: "),
    ("a-b.py", "a-b.py: a prober is a module: name the file like acme_prober.py"),
    ("a/json.py", "a/json.py: the module 'json' is Python's or loaded already; rename it"),
    ("a/folder", "a/folder: it is a folder; name a file in it"),
    ("setup.cfg/", "setup.cfg/: no such file"),
    ("a/cpu_prober.py", "cpu_prober: the core keeps the name 'cpu' for itself; rename the prober"),
]


@pytest.mark.heavy
@pytest.mark.parametrize(("target", "sentence"), MISTAKES)
def test_mistakes(
    target: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a/folder").mkdir(parents=True)
    for name in ("a-b.py", "a/json.py", "a/cpu_prober.py"):
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    done = probe("plugins", "run", target, env=environment(Path(__file__).parents[2]))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"probe plugins: {sentence}")
    assert done.stderr.count("\n") == 1


@pytest.mark.heavy
@pytest.mark.parametrize("command", [(), ("plugins",), ("plugins", "check", "acme")])
def test_verbose_shows_what_a_prober_that_succeeds_prints(
    folder: Path, command: tuple[str, ...]
) -> None:
    install(folder, "acme", GOOD + "\n")
    env = environment(folder, COLUMNS="200", PROBE_ONLY="acme")
    options = ("--machine", str(folder / "machine"))
    silent, spoken = (
        probe(*command, *options, *verbose, env=env) for verbose in ((), ("--verbose",))
    )
    assert (silent.returncode, spoken.returncode) == (0, 0)
    assert "cards: 1" not in silent.stdout
    assert " | cards: 1\n" in spoken.stdout
    assert silent.stderr + spoken.stderr == ""


def test_verbose_keeps_output_in_the_report(folder: Path) -> None:
    install(folder, "acme", GOOD)
    env = environment(folder, PROBE_ONLY="acme")
    options = ("--json", "--machine", str(folder / "machine"))
    kept, dropped = (
        next(
            outcome.get("stderr")
            for outcome in json.loads(probe(*options, env=env | extra).stdout)["outcomes"]
            if outcome["prober"] == "acme"
        )
        for extra in ({"PROBE_VERBOSE": "1"}, {})
    )
    assert (kept, dropped) == (["cards: 1"], None)


def test_the_list_ends_with_what_plugins_print(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(folder, "acme", GOOD)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PROBE_ONLY", "acme")
    for options, printed in (["--verbose"], True), (["list", "--long"], False):
        assert main(["plugins", *options, "--machine", str(folder / "machine")]) == 0
        output = capsys.readouterr().out
        assert output.endswith("\nacme printed:\n  | cards: 1\n") == printed, output
        assert output.startswith("PLUGIN ") == ("--long" in options)


# What another system's Python lacks; `probe plugins run` and `new` must work without.
WITHOUT = """
    import builtins, os, sys
    for name in ("fork", "forkpty", "posix_spawn", "posix_spawnp", "uname", "getuid", "geteuid",
                 "setsid", "killpg", "getpgid", "waitid", "WNOHANG", "O_NONBLOCK", "O_CLOEXEC",
                 "sched_getaffinity", "statvfs", "register_at_fork"):
        if hasattr(os, name):
            delattr(os, name)
    absent = {"fcntl", "pwd", "grp", "termios", "tty", "pty", "resource", "_posixsubprocess"}
    for name in absent:
        sys.modules[name] = None
    from probe_core.cli import main
    sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.heavy
def test_without_the_posix_calls(folder: Path) -> None:
    (folder / "acme_prober.py").write_text(dedent(GOOD))
    machine = ["--machine", str(folder / "machine")]
    calls = (
        ["plugins", "run", str(folder / "acme_prober.py"), *machine],
        ["plugins", "new", "acme", "--folder", str(folder), "--template", "ctypes"],
        ["plugins", "run", str(folder / "probe-acme/src/probe_acme/prober.py"), *machine],
    )
    printed = ["\nok\n1 device, ", "prober.json", "a recorded machine has no libacme.so.1 to ask"]
    for arguments, expected in zip(calls, printed, strict=True):
        done = subprocess.run(
            [*argv()[:1], "-c", dedent(WITHOUT), *arguments],
            env=environment(COLUMNS="200"),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
        assert expected in done.stdout
