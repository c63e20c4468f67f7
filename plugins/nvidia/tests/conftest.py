"""Asks the prober above a fake NVML, by its own client and by the real nvidia-ml-py."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from probe_nvidia.client import SONAME

sys.path.insert(0, str(Path(__file__).parent))  # pytest's importlib mode puts no folder there

import nvml_asked

FAKES = Path(__file__).resolve().parents[3] / "tests" / "fakes" / "nvml"


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
        [sys.executable, nvml_asked.__file__],
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


Loaded = Callable[[Mapping[str, str]], AbstractContextManager[None]]


@pytest.fixture
def loaded(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Loaded:
    """Return what puts a library of its own into this process, where faults and lines are seen.

    It takes the variables with which a process would start. A library reads its profile once.
    """
    real, numbers = ctypes.CDLL, iter(range(1000))
    built, soname = library.read_bytes(), SONAME.encode()

    @contextmanager
    def surroundings(variables: Mapping[str, str]) -> Iterator[None]:
        # With the name of the real one, the loader would give it to all that ask for that.
        name = f"lib{next(numbers):0{len(SONAME) - 8}}.so.1"
        copy = tmp_path / name
        copy.write_bytes(built.replace(soname, name.encode()))

        def found(wanted: str, *arguments: Any, **options: Any) -> ctypes.CDLL:
            return real(str(copy) if wanted == SONAME else wanted, *arguments, **options)

        with monkeypatch.context() as changed:
            changed.setattr(ctypes, "CDLL", found)
            changed.delitem(sys.modules, "pynvml", raising=False)
            for key, value in variables.items():
                if key.startswith("FAKE_"):
                    changed.setenv(key, value)
            yield
            sys.modules.pop("pynvml", None)

    return surroundings


# What would end or stop this process, too.
_DEADLY = ("crash", "hang")


@pytest.fixture
def ask(fake: ModuleType, library: Path, loaded: Loaded, tmp_path: Path) -> Ask:
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
        modules: bool = False,
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
        # What a process has imported before, or must start with, is not so in this one.
        is_own = folder or log or without or modules or system != "linux" or not loader
        if is_own or profile is None or any(word in f"{profile}" for word in _DEADLY):
            answer = _answer(asked, surroundings, timeout)
        else:
            with loaded(surroundings):
                answer = json.loads(json.dumps(nvml_asked.answer_to(asked)))
        # A log would have the calls of both; what died or hung does so in the same library.
        if not (log or without or "died" in answer):
            other = _answer(asked | {"by": "nvidia-ml-py"}, surroundings, timeout)
            # What is announced of several at once depends on who answers first.
            own = {"modules": []} | ({"touched": []} if threads else {})
            assert {**other, **own} == {**answer, **own}
        return answer

    return run
