"""A frozen application, built by PyInstaller, starts itself as its probers' processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("PyInstaller", reason="PyInstaller is not installed: no frozen build to test")

ROOT = Path(__file__).resolve().parents[2]
APP = """
import json, sys
import probe_core

if __name__ == "__main__":
    if "--undeclared" not in sys.argv:
        probe_core.child_entry()
    from probe_core.setting_values import load_config
    from probe_core.probing import document

    if "--bundled" in sys.argv:
        from importlib.util import find_spec

        found = probe_core.probe(disable=["good"]).to_json()
        names = [o["prober"] for o in found["outcomes"]]
        print(json.dumps([names, find_spec("pynvml") is not None]))
        sys.exit()
    for name in ("good", "hang", "dies"):
        probe_core.register(name, {"target": f"x_{name}", "deadline_s": 3.0})
    config, _ = load_config({"only": ["good", "hang", "dies"]}, {})
    found = document(config, [])
    print(json.dumps({o["prober"]: [o["status"], o["reason"]] for o in found["outcomes"]}))
"""
HOOK = "from probe_core.api import hookimpl\n@hookimpl\ndef probe_devices(request):\n"
PLUGINS = {
    "good": "    return [{'ids': ['x:1'], 'kind': 'npu'}]\n",
    "hang": "    import time\n    time.sleep(60)\n",
    "dies": "    import os\n    os.abort()\n",
}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the application, once; a folder with an executable and its libraries."""
    folder = tmp_path_factory.mktemp("frozen")
    (folder / "app.py").write_text(APP)
    for name, body in PLUGINS.items():
        (folder / f"x_{name}.py").write_text(HOOK + body)
    hidden = [word for name in PLUGINS for word in ("--hidden-import", f"x_{name}")]
    command = [sys.executable, "-m", "PyInstaller", "--log-level", "ERROR", "-y", *hidden]
    # A prober is silent without the first two, and the kit for authors brings pytest and its own:
    # each half of a build.
    for heavy in ("numpy", "tinygrad", "pytest", "_pytest", "pygments", "setuptools"):
        command += ["--exclude-module", heavy]
    paths = [str(folder), str(ROOT), str(ROOT / "chipdb/src")]
    command += [word for path in paths for word in ("--paths", path)]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [*command, "app.py"], cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return folder / "dist/app/app"


def outcomes(app: Path, *arguments: str) -> Any:
    done = subprocess.run(
        [str(app), *arguments], env={}, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.heavy
@pytest.mark.timeout(600)
def test_probers_run_in_processes_of_the_application(
    app: Path, untouched: Callable[[], Any]
) -> None:
    found = outcomes(app)
    assert found["good"] == ["ok", None]
    assert found["hang"][0] == "timeout"
    assert found["hang"][1].startswith("its call took longer than 3 s (at File")
    assert found["dies"][1].startswith("it was killed by SIGABRT before it had answered")


@pytest.mark.heavy
@pytest.mark.timeout(600)
def test_an_application_that_did_not_prepare_starts_nothing(app: Path) -> None:
    found = outcomes(app, "--undeclared")
    assert found["good"][0] == "skipped"
    assert "must call probe_core.child_entry() first" in found["good"][1]
    assert found["cpu"] == ["ok", None]


@pytest.mark.heavy
@pytest.mark.timeout(600)
def test_installed_probers_and_the_library_of_nvidias_are_bundled(app: Path) -> None:
    names, has_library = outcomes(app, "--bundled")
    assert {"bus", "cpu", "nvidia", "amd", "mali"} <= set(names)
    assert has_library
