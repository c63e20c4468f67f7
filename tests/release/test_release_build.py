"""A tag builds one distribution or nothing, and wheels install where no index is."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from probe_core import __version__ as VERSION

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/how-to/install-offline.md"


def build_tag(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / ".ci/build_tag.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def needs_build_tools() -> None:
    missing = [name for name in ("build", "hatchling") if not importlib.util.find_spec(name)]
    if missing:
        pytest.skip(f"{' and '.join(missing)} are not installed here")


def test_the_order_puts_each_distribution_after_what_it_needs() -> None:
    names = build_tag("--order").stdout.split()
    assert names[:2] == ["probe-chipdb", "probe-core"]
    assert names.index("probe-cluster") < names.index("probe-exo")
    assert len(names) == 2 + len(list((ROOT / "plugins").glob("*/pyproject.toml")))
    assert len(names) == len(set(names))


@pytest.mark.heavy
def test_a_tag_builds_its_distribution(tmp_path: Path) -> None:
    needs_build_tools()
    ran = build_tag(f"probe-amd-v{VERSION}", str(tmp_path))
    assert (ran.returncode, ran.stderr) == (0, "")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [f"probe_amd-{VERSION}-py3-none-any.whl", f"probe_amd-{VERSION}.tar.gz"]


@pytest.mark.heavy
def test_a_tag_of_another_version_publishes_nothing(tmp_path: Path) -> None:
    needs_build_tools()
    ran = build_tag("probe-amd-v9.9.9", str(tmp_path))
    assert ran.returncode == 1
    wrong = f"the tag says probe-amd 9.9.9, the wheel is probe-amd {VERSION}"
    assert ran.stderr == f"build_tag: {wrong}\n"


@pytest.mark.parametrize("tag", ["v1.0", "probe-nothing-v1.0", "probe-amd", "probe-amd-v1;ls"])
def test_a_tag_that_names_nothing_is_refused(tmp_path: Path, tag: str) -> None:
    ran = build_tag(tag, str(tmp_path))
    assert ran.returncode == 1
    assert "names no distribution" in ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_wrong_arguments_are_a_usage_error() -> None:
    assert build_tag().returncode == 2


def block(step: str) -> str:
    found = re.search(rf"<!-- offline: {step} -->\n```sh\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    assert found
    return found[1]


def repack(name: str, into: Path) -> None:
    """Write the wheel of an installed distribution: its files, and a RECORD of them."""
    distribution = importlib.metadata.distribution(name)
    wheel = distribution.read_text("WHEEL") or ""
    tag = re.findall(r"^Tag: (.+)$", wheel, re.M)[0]
    stem = f"{distribution.name.replace('-', '_')}-{distribution.version}"
    records = []
    with zipfile.ZipFile(into / f"{stem}-{tag}.whl", "w") as archive:
        for path in distribution.files or ():
            text = path.as_posix()
            if ".." in text or "__pycache__" in text or path.name in ("RECORD", "INSTALLER"):
                continue
            data = Path(str(path.locate())).read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            records.append(f"{text},sha256={digest},{len(data)}")
            archive.writestr(text, data)
        record = next(
            Path(line.partition(",")[0]).parent for line in records if ".dist-info" in line
        )
        records.append(f"{record}/RECORD,,")
        archive.writestr(f"{record}/RECORD", "\n".join(records) + "\n")


def requirements(names: set[str]) -> set[str]:
    """What installed distributions need here, and what that needs, without ours."""
    from packaging.requirements import Requirement

    known: set[str] = set()
    ahead = set(names)
    while ahead:
        name = ahead.pop()
        for text in importlib.metadata.distribution(name).requires or ():
            wanted = Requirement(text)
            if not wanted.marker or wanted.marker.evaluate({"extra": ""}):
                ahead |= {wanted.name} - known
                known.add(wanted.name)
    return {name for name in known if not name.startswith("probe-")}


@pytest.mark.heavy
@pytest.mark.timeout(400)
def test_wheels_install_without_an_index(tmp_path: Path) -> None:
    needs_build_tools()
    names = set(re.findall(r"probe-[a-z]+", block("install"))) | {"probe-chipdb"}
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    folders = {"probe-core": ROOT, "probe-chipdb": ROOT / "chipdb"}
    for name in sorted(names):
        folder = folders.get(name, ROOT / "plugins" / name.removeprefix("probe-"))
        command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir"]
        subprocess.run([*command, str(wheels), str(folder)], check=True, capture_output=True)
    # On the page pip collects these; here they are what this environment has.
    for name in requirements(names):
        repack(name, wheels)

    venv.create(tmp_path / "venv", with_pip=True, symlinks=True)
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    environ |= {"PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    # The environment exists already: ensurepip takes most of this test's time.
    commands = block("install").replace("python3 -m venv venv\n", "")
    ran = subprocess.run(
        ["bash", "-euc", commands],
        cwd=tmp_path, env=environ, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "cpu:0" in ran.stdout
    site = next((tmp_path / "venv/lib").glob("python*/site-packages"))
    assert {path.name for path in site.glob("probe_*") if path.suffix != ".dist-info"} == {
        name.replace("-", "_") for name in names
    }


def test_ci_runs_the_pages_own_commands() -> None:
    ci = (ROOT / ".ci/run").read_text("utf-8")
    assert 'eval "$(offline collect)"' in ci
    assert "install=$(offline install)" in ci
