"""The fake NVML behaves as its profiles say: what the tests built on it rely on."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent / "fakes" / "nvml"

SCRIPT = """
import ctypes, json, sys
import pynvml as n

def tried(function, *arguments):
    try:
        return function(*arguments)
    except n.NVMLError as error:
        return {"code": error.value}

def h(index):
    return n.nvmlDeviceGetHandleByIndex(index)

def mig(index):
    return n.nvmlDeviceGetMigDeviceHandleByIndex(h(0), index)

def fields(thing, *names):
    return [getattr(thing, name) for name in names]

answers = tried(n.nvmlInit)
if answers is None:
    answers = eval(sys.argv[1])
json.dump(answers, sys.stdout)
"""


@pytest.fixture(scope="module")
def fake() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fake_nvml_build_alone", HERE / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def library(fake: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    try:
        path: Path = fake.build(tmp_path_factory.mktemp("nvml"))
    except fake.NoCompiler as error:
        pytest.skip(str(error))
    return path


def run(fake: ModuleType, library: Path, profile: str, expression: str, **more: Any) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, expression],
        env=fake.environment(library, profile, **more),
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    return json.loads(done.stdout) if done.returncode == 0 else (done.returncode, done.stderr)


@pytest.mark.heavy
def test_every_profile_can_be_read(fake: ModuleType, library: Path) -> None:
    counts = {}
    for path in sorted(fake.PROFILES.glob("*.profile")):
        if path.stem not in ("init-hang", "init-crash"):
            counts[path.stem] = run(fake, library, path.stem, "n.nvmlDeviceGetCount()")
    assert counts.pop("version-mismatch") == {"code": 18}
    assert {name for name, count in counts.items() if count == 0} == {"no-devices"}
    assert (counts["h100x8"], counts["4090-3090"], counts["lost-handle"]) == (8, 2, 4)
    assert all(isinstance(count, int) for count in counts.values())


@pytest.mark.heavy
def test_without_a_profile_there_is_no_driver(fake: ModuleType, library: Path) -> None:
    surroundings = fake.environment(library, "t4")
    del surroundings["FAKE_NVML_PROFILE"]
    command = [sys.executable, "-c", SCRIPT, "0"]
    done = subprocess.run(command, env=surroundings, capture_output=True, check=True, timeout=20)
    assert json.loads(done.stdout) == {"code": 9}


def test_line_that_cannot_be_read_is_named(fake: ModuleType, library: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.profile"
    bad.write_text("gpu\nname T4\nmemory many\n")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, "0"],
        env=fake.environment(library, bad),
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
    )
    assert json.loads(done.stdout) == {"code": 2}
    assert f"{bad}:3: cannot read memory many" in done.stderr


@pytest.mark.heavy
def test_structures_have_the_layout_of_nvidia_ml_py(fake: ModuleType, library: Path) -> None:
    info = "n.nvmlDeviceGetMemoryInfo(h(0), n.nvmlMemory_v2)"
    asked = f"fields({info}, 'total', 'reserved', 'free', 'used')"
    assert run(fake, library, "t4", asked) == [16106127360, 470810624, 15632171008, 3145728]
    old = "fields(n.nvmlDeviceGetMemoryInfo(h(0)), 'total', 'free', 'used')"
    assert run(fake, library, "t4", old) == [16106127360, 15632171008, 3145728 + 470810624]
    pci = "fields(n.nvmlDeviceGetPciInfo(h(0)), 'domain', 'bus', 'busId', 'pciDeviceId')"
    assert run(fake, library, "gb10", pci) == [15, 1, "0000000F:01:00.0", 0x2E1210DE]
    values = "n.nvmlDeviceGetFieldValues(h(0), [90, 91, 1])"
    asked = f"[(v.nvmlReturn, v.value.uiVal) for v in {values}]"
    assert run(fake, library, "h100x8", asked) == [[0, 26562], [0, 18], [0, 1]]
    attributes = "n.nvmlDeviceGetAttributes(mig(2))"
    asked = f"fields({attributes}, 'multiprocessorCount', 'gpuInstanceSliceCount', 'memorySizeMB')"
    assert run(fake, library, "a100-mig", asked) == [28, 2, 9856]
    used = "[p.pid for p in n.nvmlDeviceGetComputeRunningProcesses(h(1))]"
    assert run(fake, library, "h100x8", used) == [1000, 1001, 1002]


def test_mig_indexes_are_sparse(fake: ModuleType, library: Path) -> None:
    tries = "[isinstance(tried(mig, index), dict) for index in range(7)]"
    assert run(fake, library, "a100-mig", tries) == [False, True, False, True, True, False, True]


def test_rules_decide_in_their_order(fake: ModuleType, library: Path) -> None:
    assert run(fake, library, "lost-handle", "tried(h, 2)") == {"code": 15}
    name = "tried(n.nvmlDeviceGetName, h(2))"
    assert run(fake, library, "lost-call", name) == {"code": 15}
    assert run(fake, library, "init-crash", "0")[0] == -11


def test_log_names_each_call(fake: ModuleType, library: Path, tmp_path: Path) -> None:
    log = tmp_path / "calls"
    run(fake, library, "t4", "n.nvmlDeviceGetName(h(0))", log=log)
    calls = ["nvmlInit", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetName"]
    assert log.read_text().split() == calls


@pytest.mark.heavy
def test_command_line(fake: ModuleType, tmp_path: Path) -> None:
    try:
        fake.compiler()
    except fake.NoCompiler as error:
        pytest.skip(str(error))
    command = [sys.executable, str(HERE / "build.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert Path(done.stdout.strip()).name == "libnvidia-ml.so.1"
    assert fake.build(tmp_path) == Path(done.stdout.strip())


def test_many_gpus_for_measuring(fake: ModuleType, library: Path, tmp_path: Path) -> None:
    profile = tmp_path / "many.profile"
    profile.write_text(fake.many(64))
    uuids = "[n.nvmlDeviceGetUUID(h(i)) for i in range(n.nvmlDeviceGetCount())]"
    found = run(fake, library, str(profile), uuids)
    assert len(set(found)) == 64


def test_no_compiler_is_said(fake: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(fake.NoCompiler, match="no C compiler"):
        fake.compiler()
