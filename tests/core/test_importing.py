"""Our own finder: the same specs and code as importlib's, in processes of our own alone."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import py_compile
import subprocess
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

import pytest

import probe_chipdb
import probe_core
from probe_core import importing
from probe_core.importing import OwnModules

PLACES = {"probe_core": probe_core.__path__, "probe_chipdb": probe_chipdb.__path__}


def modules(package: str) -> Iterator[str]:
    (root,) = PLACES[package]
    for file in Path(root).rglob("*.py"):
        parts = [package, *file.relative_to(root).with_suffix("").parts]
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name != package:
            yield name


@pytest.mark.parametrize("package", PLACES)
def test_each_spec_is_that_of_importlib(package: str) -> None:
    names = sorted(modules(package))
    assert len(names) > 30
    for name in names:
        folders = [str(Path(PLACES[package][0], *name.split(".")[1:-1]))]
        own, theirs = OwnModules.find_spec(name, folders), PathFinder.find_spec(name, folders)
        assert own is not None, name
        assert theirs is not None, name
        for attribute in ("name", "origin", "cached", "has_location", "parent"):
            assert getattr(own, attribute) == getattr(theirs, attribute), name
        assert own.submodule_search_locations == theirs.submodule_search_locations, name
        assert (own.loader.name, own.loader.path) == (theirs.loader.name, theirs.loader.path)  # type: ignore[union-attr]
        assert own.loader.get_code(name) == theirs.loader.get_code(name)  # type: ignore[union-attr]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that the finder serves, with bytecode."""
    folder = tmp_path / "served"
    (folder / "inner").mkdir(parents=True)
    (folder / "plain.py").write_text("VALUE = 1\n")
    (folder / "inner" / "__init__.py").write_text("VALUE = 2\n")
    monkeypatch.setattr(importing, "PACKAGES", ("served.",))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return folder


def load(package: Path, name: str) -> ModuleType:
    spec = OwnModules.find_spec(f"served.{name}", [str(package)])
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    assert spec.loader is not None
    spec.loader.exec_module(module)
    return module


def test_module_and_package_are_loaded_with_importlibs_attributes(package: Path) -> None:
    plain, inner = load(package, "plain"), load(package, "inner")
    assert (plain.VALUE, inner.VALUE) == (1, 2)
    assert plain.__file__ == f"{package}/plain.py"
    assert plain.__cached__ == importlib.util.cache_from_source(plain.__file__)
    assert inner.__path__ == [f"{package}/inner"]
    assert (plain.__package__, inner.__package__) == ("served", "served.inner")


def test_bytecode_older_than_its_source_is_not_used(package: Path) -> None:
    assert load(package, "plain").VALUE == 1
    source = package / "plain.py"
    status = source.stat()
    source.write_text("VALUE = 3\n")
    os.utime(source, (status.st_atime, status.st_mtime + 10))
    assert load(package, "plain").VALUE == 3


def test_bytecode_of_another_size_of_source_is_not_used(package: Path) -> None:
    assert load(package, "plain").VALUE == 1
    source = package / "plain.py"
    status = source.stat()
    source.write_text("VALUE = 44\n")
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert load(package, "plain").VALUE == 44


@pytest.mark.parametrize("data", [b"", b"\0" * 16, b"no bytecode of any Python", None])
def test_bytecode_that_is_none_is_made_anew(package: Path, data: bytes | None) -> None:
    cached = Path(importlib.util.cache_from_source(str(package / "plain.py")))
    cached.parent.mkdir()
    if data is not None:
        cached.write_bytes(data)
    assert load(package, "plain").VALUE == 1
    assert cached.read_bytes()[:4] == importlib.util.MAGIC_NUMBER


def test_bytecode_checked_by_hash_is_importlibs_matter(package: Path) -> None:
    mode = py_compile.PycInvalidationMode.CHECKED_HASH
    source = package / "plain.py"
    py_compile.compile(str(source), invalidation_mode=mode)
    assert load(package, "plain").VALUE == 1
    source.write_text("VALUE = 5\n")
    assert load(package, "plain").VALUE == 5


def test_larger_bytecode_than_ours_is_importlibs_matter(package: Path) -> None:
    long = "".join(f"name_{number} = 'text number {number}'\n" for number in range(4000))
    (package / "plain.py").write_text(f"{long}VALUE = 6\n")
    assert [load(package, "plain").VALUE for _ in range(2)] == [6, 6]
    cached = importlib.util.cache_from_source(str(package / "plain.py"))
    assert os.path.getsize(cached) > importing._READ_BYTES


def test_what_it_does_not_serve_is_left_to_importlib(package: Path) -> None:
    assert OwnModules.find_spec("served.absent", [str(package)]) is None
    assert OwnModules.find_spec("served", None) is None
    assert OwnModules.find_spec("other.plain", [str(package)]) is None
    assert OwnModules.find_spec("served.plain", [str(package), "/elsewhere"]) is None
    assert OwnModules.find_spec("served.plain", [f"{package}/archive.zip/served"]) is None


SHOW = (
    "import json, sys; from probe_core.importing import OwnModules, install; {};"
    "print(json.dumps(sys.meta_path.count(OwnModules)))"
)


@pytest.mark.parametrize(
    ("options", "code", "times"),
    [
        ((), "install(); install()", 1),
        (("-O",), "install()", 0),
        (("-X", "pycache_prefix={tmp_path}"), "install()", 0),
        ((), "import probe_core; probe_core.probe(only=['cpu'])", 0),
    ],
)
def test_it_is_installed_once_and_in_no_host(
    options: tuple[str, ...], code: str, times: int, tmp_path: Path
) -> None:
    options = tuple(option.format(tmp_path=tmp_path) for option in options)
    command = [sys.executable, *options, "-c", SHOW.format(code)]
    done = subprocess.run(command, capture_output=True, check=True, timeout=60)
    assert json.loads(done.stdout) == times
