"""What a command does while plugins run: they do not wait for what only it needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from command import environment, install
from fake_probers import Probers, gpu

from probe_core.pipeline.settings import load_settings
from probe_core.probing import document

PROBER = f"""
    from probe_core.api import hookimpl
    @hookimpl
    def probe_devices(request):
        return [{gpu()!r}]
"""
SCRIPT = """
import sys
from probe_core.cli import main
def hear(event, arguments):
    if event == "os.posix_spawn":
        names = sorted(name for name in sys.modules if name.startswith("probe_core.leasing"))
        print("started with", *names, file=sys.stderr)
sys.addaudithook(hear)
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.heavy
def test_leasing_is_imported_after_plugins_were_started(tmp_path: Path) -> None:
    install(tmp_path, "card", PROBER)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, "exec", "--only", "bus,card", "--dry-run"],
        env=environment(tmp_path, PROBE_LEASES=str(tmp_path / "leases")),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    started = [line for line in done.stderr.splitlines() if line.startswith("started with")]
    small = "probe_core.leasing", "probe_core.leasing.execute"
    assert (started, done.returncode) == ([" ".join(("started with", *small))], 0), done.stderr
    assert "CUDA_VISIBLE_DEVICES" in done.stdout


WAITS = """
    import os, time
    from probe_core.api import hookimpl
    @hookimpl
    def probe_devices(request):
        ends = time.monotonic() + 4
        while not os.path.exists({path!r}) and time.monotonic() < ends:
            time.sleep(0.01)
        return [{{**{gpu!r}, "name": "seen" if os.path.exists({path!r}) else "missed"}}]
"""
NOTED = """
import sys
from probe_core.cli import main
def hear(event, arguments):
    if event == "import" and arguments[0] == "probe_core.cli.table":
        open(sys.argv[1], "x").close()
sys.addaudithook(hear)
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.heavy
def test_the_table_is_imported_while_plugins_run(tmp_path: Path) -> None:
    path = str(tmp_path / "imported")
    install(tmp_path, "card", WAITS.format(path=path, gpu=gpu()))
    done = subprocess.run(
        [sys.executable, "-c", NOTED, path, "--only", "bus,card"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "seen" in done.stdout


def called(probers: Probers, *names: str) -> int:
    config, ignored = load_settings({"only": list(names)}, {})
    calls: list[int] = []
    document(config, ignored, probers=probers.targets, meanwhile=lambda: calls.append(1))
    return len(calls)


def test_it_is_called_once_and_not_without_plugins(probers: Probers) -> None:
    probers.reports("near", gpu(1))
    probers.reports("far", gpu(2))
    assert called(probers, "near", "far") == 1
    assert called(probers, "cpu") == 0


def test_what_it_raises_comes_out(probers: Probers) -> None:
    probers.reports("near", gpu(1))
    config, ignored = load_settings({"only": ["near"]}, {})

    def fail() -> None:
        raise ImportError("half installed")

    with pytest.raises(ImportError, match="half installed"):
        document(config, ignored, probers=probers.targets, meanwhile=fail)
