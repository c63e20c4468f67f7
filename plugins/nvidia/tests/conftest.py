"""Runs the prober in a process of its own, against the fake NVML under the real nvidia-ml-py."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FAKES = Path(__file__).resolve().parents[3] / "tests" / "fakes" / "nvml"

# Reads the machine's files below a root, but counts as live: the library may be asked.
RUNNER = """
import json, sys
from probe_core.api import Machine, NotApplicable, Request, Unavailable
from probe_core.probers import bus

class Rooted(Machine):
    def path(self, path):
        return self.root + path

asked = json.load(sys.stdin)
machine = Rooted(asked["root"], asked["environ"], asked["os"], asked["arch"])
seen = bus.probe_devices(Request(machine))
seen = [] if isinstance(seen, NotApplicable) else seen
machine.live = True
if asked["by"] == "nvidia-ml-py":  # a client that is there already is the one that is used
    import pynvml
    for name in asked["without"]:
        delattr(pynvml, name)
loaded = set(sys.modules)
said = {"devices": [], "findings": []}
try:
    from probe_nvidia.prober import probe_devices
    touched = said["touched"] = []
    request = Request(
        machine,
        seen,
        active=asked["active"],
        avoid=asked["avoid"],
        serial=not asked["threads"],
        announce=lambda kind, device: touched.append(device),
    )
    answer = probe_devices(request)
    if isinstance(answer, NotApplicable):
        said["not_applicable"] = answer.reason
    else:
        for item in answer:
            key = "findings" if "finding" in item else "devices"
            said[key].append(item.get("finding", item))
            if asked["flush"]:
                print(json.dumps(item), file=sys.stderr, flush=True)
except Unavailable as error:
    said["error"] = {"reason": error.reason, "code": error.code, "fix": error.fix}
said["modules"] = [name for name in ("pynvml", "_ctypes") if name in set(sys.modules) - loaded]
json.dump(said, sys.stdout)
"""


def load(name: str) -> ModuleType:
    """Import a module of the fakes' folder by its path."""
    spec = importlib.util.spec_from_file_location(f"fake_nvml_{name}", FAKES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def fake() -> ModuleType:
    """The builder of the fake library."""
    return load("build")


@pytest.fixture(scope="session")
def trees() -> ModuleType:
    """The builder of the machine's file side."""
    return load("tree")


@pytest.fixture(scope="session")
def library(fake: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built fake; workers that test in parallel share it."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if base.name.startswith("popen-") else base
    try:
        path: Path = fake.build(shared)
    except fake.NoCompiler as error:
        pytest.skip(str(error))
    return path


Ask = Callable[..., dict[str, Any]]


Steps = Callable[[dict[str, Any]], dict[str, tuple[str, str | None]]]


@pytest.fixture
def steps() -> Steps:
    """Return a function that gives a sighting's step facts: step to status and code."""

    def told(device: dict[str, Any]) -> dict[str, tuple[str, str | None]]:
        facts = device.get("step_facts", ())
        return {fact["step"]: (fact["status"], fact.get("code")) for fact in facts}

    return told


def _real_library() -> bool:
    script = "import ctypes; ctypes.CDLL('libnvidia-ml.so.1')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    return done.returncode == 0


def _answer(asked: dict[str, Any], surroundings: dict[str, str], timeout: float) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", RUNNER],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        env=surroundings,
        timeout=timeout,
        check=False,
    )
    if done.returncode:
        return {"died": done.returncode, "stderr": done.stderr}
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.fixture
def ask(fake: ModuleType, library: Path, tmp_path: Path) -> Ask:
    """Return a function that probes with a profile (a name, or text) and returns what was said.

    Each driver is asked through our client and through nvidia-ml-py, and both must say the same.
    """

    def run(
        profile: str | None,
        root: Path | None = None,
        *,
        active: bool = False,
        environ: dict[str, str] | None = None,
        system: str = "linux",
        timeout: float = 20.0,
        flush: bool = False,
        log: Path | None = None,
        without: list[str] | None = None,
        avoid: list[str] | None = None,
        folder: Path | None = None,
        arch: str = "x86_64",
        loader: bool = True,
        threads: bool = False,
    ) -> dict[str, Any]:
        if root is None:
            root = tmp_path / "empty"
            (root / "dev").mkdir(parents=True, exist_ok=True)
            (root / "dev/nvidiactl").touch()
        chosen = profile or ""
        if "\n" in chosen:
            text, chosen = chosen, str(tmp_path / "own.profile")
            Path(chosen).write_text(text)
        asked = {"root": str(root), "environ": environ or {}, "active": active, "os": system}
        surroundings = fake.environment(library, chosen, log)
        if folder:
            surroundings["LD_LIBRARY_PATH"] = str(folder)
        if profile is None or not loader:  # the loader finds no library
            if _real_library():
                pytest.skip("NVIDIA's own library is installed here and cannot be hidden")
            del surroundings["LD_LIBRARY_PATH"]
        more = {
            "threads": threads,
            "flush": flush,
            "without": without or [],
            "avoid": avoid or [],
            "arch": arch,
        }
        asked |= more | {"by": "nvidia-ml-py" if without else "ctypes"}
        answer = _answer(asked, surroundings, timeout)
        # A log would have the calls of both; what died or hung does so in the same library.
        if not (log or without or "died" in answer):
            other = _answer(asked | {"by": "nvidia-ml-py"}, surroundings, timeout)
            # What is announced of several at once depends on who answers first.
            own = {"modules": []} | ({"touched": []} if threads else {})
            assert {**other, **own} == {**answer, **own}
        return answer

    return run
