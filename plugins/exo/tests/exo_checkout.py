"""exo's own source, unpacked with what it needs to run here: nothing of it is in this repository.

The archive is found beside the repository. exo's Rust module and stubs for basedpyright are not in
it, so the names that its Python uses of them are declared here. Its dependencies are those of its
lock file, in an environment of their own: `python plugins/exo/tests/exo_checkout.py` prints them,
and `EXO_PYTHON` names the interpreter that has them.
"""

from __future__ import annotations

import email
import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PATCHES = sorted((ROOT / "plugins" / "exo" / "patches").glob("*.patch"))
COMMIT = "b5375f8"
ARCHIVE = ROOT.parent / "shared" / "peers" / f"exo-{COMMIT}.tar.gz"

# What exo's Python imports where no Rust is built, and the tools as its lock has them.
NEEDED = """aiofiles aiohttp anyio basedpyright fastapi filelock httpx huggingface-hub hypercorn
loguru msgspec openai-harmony psutil pydantic pytest pytest-asyncio pytest-env python-daemon
python-multipart ruff rustworkx tiktoken tomlkit transformers types-aiofiles zstandard""".split()

EXO_RS = '''\
"""The names that exo imports of its Rust module; nothing of it works."""
class Pidfile: ...
class PidfileError(Exception): ...
class NetworkingHandle: ...
class FromSwarm:
    class Connection:
        __match_args__ = ("connected",)
    class Message:
        __match_args__ = ("topic", "data")
'''

PYNVML = """\
def nvmlInit() -> None: ...
def nvmlShutdown() -> None: ...
def nvmlDeviceGetCount() -> int: ...
"""


def why_not() -> str | None:
    """Return why exo cannot be run here; None where it can."""
    if not ARCHIVE.exists():
        return (
            f"exo's source is not here: {ARCHIVE.parent.name}/{ARCHIVE.name} beside the repository"
        )
    if not os.environ.get("EXO_PYTHON"):
        return "EXO_PYTHON names no Python with exo's dependencies; .ci/run makes one"
    return None


def requirements() -> list[str]:
    """Return what exo's lock file pins of the distributions that its checks need."""
    with tarfile.open(ARCHIVE) as archive:
        file = archive.extractfile("uv.lock")
        assert file is not None
        lock = tomllib.loads(file.read().decode("utf-8"))
    versions = {package["name"]: package.get("version") for package in lock["package"]}
    return [f"{name}=={versions[name]}" for name in NEEDED]


def unpack(folder: Path) -> Path:
    """Unpack exo into a folder, with what stands in for its Rust module, and return the folder."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    for path, text in (
        ("stubs/exo_rs/__init__.py", EXO_RS),
        ("stubs/exo-0.3.70.dist-info/METADATA", "Name: exo\nVersion: 0.3.70\n"),
        (".typings/pynvml/__init__.pyi", PYNVML),
        ("empty/nothing", ""),
    ):
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return folder


def apply(folder: Path, patches: Sequence[Path]) -> None:
    """Apply patches as a maintainer would: git refuses what does not fit."""
    for patch in patches:
        command = ["git", "apply", "--whitespace=error", str(patch)]
        # Where the folder lies in another repository, git would take its paths for that one's.
        environ = os.environ | {"GIT_CEILING_DIRECTORIES": str(folder.parent)}
        done = subprocess.run(
            command, cwd=folder, env=environ, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{patch.name}: {done.stderr}"


def environment(folder: Path, *paths: Path) -> dict[str, str]:
    """Return the environment in which exo's modules and tests are imported."""
    path = [folder / "src", folder / "stubs", *paths]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return kept | {
        "PYTHONPATH": os.pathsep.join(map(str, path)),
        "EXO_RESOURCES_DIR": str(folder / "empty"),
        "EXO_DASHBOARD_DIR": str(folder / "empty"),
        "EXO_TESTS": "1",
        "HOME": str(folder / "empty"),
    }


def python() -> str:
    """Return the interpreter that has exo's dependencies."""
    return os.environ["EXO_PYTHON"]


def typed() -> list[str]:
    """Return the options with which basedpyright finds exo's dependencies."""
    return ["--pythonpath", python()]


def write_workspace(folder: Path) -> None:
    """Write the projects beside exo that its lock file names, as that file describes them."""
    lock = tomllib.loads((folder / "uv.lock").read_text("utf-8"))
    own = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    members = own["tool"]["uv"]["workspace"]["members"]
    packages = {package["source"].get("editable"): package for package in lock["package"]}
    for member in members:
        package = packages[member]
        metadata = package.get("metadata", {})
        requires = [_requirement(one) for one in metadata.get("requires-dist", ())]
        groups = {
            name: [_requirement(one) for one in needed]
            for name, needed in metadata.get("requires-dev", {}).items()
        }
        lines = [
            "[build-system]",
            'requires = ["hatchling"]',
            'build-backend = "hatchling.build"',
            "[project]",
            f'name = "{package["name"]}"',
            f'version = "{package["version"]}"',
            'requires-python = ">=3.13"',
            f"dependencies = {requires}",
            "[dependency-groups]",
            *(f"{name} = {needed}" for name, needed in groups.items()),
        ]
        text = "\n".join(lines)
        (folder / member).mkdir(parents=True, exist_ok=True)
        (folder / member / "pyproject.toml").write_text(text)


def _requirement(one: dict[str, str]) -> str:
    extra = f"[{','.join(one['extras'])}]" if "extras" in one else ""
    marker = f"; {one['marker']}" if "marker" in one else ""
    return f"{one['name']}{extra}{one.get('specifier', '')}{marker}"


OWN = ("chipdb", ".", "plugins/cluster", "plugins/exo", "plugins/apple")
"""Folders of the distributions that probe-exo brings on the systems that exo supports."""

DEPENDENCY = 'probe = ["probe-exo>=0.9.0b1"]'
"""What exo's optional dependencies get in pyproject.toml once there is a release."""


def build_wheels(folder: Path) -> list[Path]:
    """Build the wheels that a release would have."""
    for own in OWN:
        command = [sys.executable, "-m", "uv", "build", "-q", "--wheel", "--offline"]
        options = ["--no-build-isolation", "--python", sys.executable, "-o", str(folder)]
        subprocess.run([*command, *options, str(ROOT / own)], check=True, capture_output=True)
    return sorted(folder.glob("*.whl"))


def add_dependency(folder: Path, wheels: Sequence[Path]) -> None:
    """Write what `uv add --optional probe 'probe-exo>=0.9.0b1'` writes into both files on that day.

    uv cannot do it here: it reads mlx from its release on GitHub first. The index is exo's own, as
    the lock file names it for what probe-core needs.
    """
    project, lock = folder / "pyproject.toml", folder / "uv.lock"
    text = project.read_text("utf-8")
    project.write_text(_after(text, "[project.optional-dependencies]\n", f"{DEPENDENCY}\n"))
    text = lock.read_text("utf-8")
    [index] = re.findall(r'name = "attrs"\nversion = .*\nsource = (.*)\n', text)
    needs = "\n[package.optional-dependencies]\n"
    [marker] = re.findall(r'\nbuild = \[\n    \{ name = "nanobind", marker = (".*") \},\n', text)
    text = _after(text, needs, f'probe = [\n    {{ name = "probe-exo", marker = {marker} }},\n]\n')
    requires = '{ name = "probe-exo", marker = "extra == \'probe\'", specifier = ">=0.9.0b1" }'
    text = _after(text, '    { name = "psutil", specifier = ">=7.0.0" },\n', f"    {requires},\n")
    text = _after(text, "provides-extras = [", '"probe", ')
    lock.write_text(text + "".join(_locked(wheel, index) for wheel in wheels))


def _after(text: str, place: str, more: str) -> str:
    assert place in text, place
    return text.replace(place, place + more, 1)


def _locked(wheel: Path, index: str) -> str:
    """Return a wheel's lines of a lock file."""
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = email.message_from_bytes(archive.read(name))
    lines = ["", "[[package]]", f'name = "{metadata["Name"]}"']
    lines += [f'version = "{metadata["Version"]}"', f"source = {index}", "dependencies = ["]
    for need in metadata.get_all("Requires-Dist", []):
        found = re.fullmatch(r"([\w.-]+)[^;]*?(?:; (.*))?", need)
        assert found is not None, need
        condition = (found[2] or "").replace('"', "'")
        if "extra" not in condition and "win32" not in condition:
            marker = f', marker = "{condition}"' if condition else ""
            lines.append(f'    {{ name = "{found[1]}"{marker} }},')
    digest, size = hashlib.sha256(wheel.read_bytes()).hexdigest(), wheel.stat().st_size
    url = f"https://files.example/{wheel.name}"
    lines += ["]", "wheels = ["]
    lines.append(f'    {{ url = "{url}", hash = "sha256:{digest}", size = {size} }},')
    return "\n".join([*lines, "]", ""])


def run(folder: Path, *arguments: str, paths: Sequence[Path] = (), given: str = "") -> str:
    """Run `EXO_PYTHON` in exo's folder and return what it prints; fails where it does."""
    command = [python(), *arguments]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(folder, *paths),
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (
        f"{' '.join(arguments)}\n{done.stdout[-6000:]}{done.stderr[-3000:]}"
    )
    return done.stdout


@cache
def sources() -> list[Path]:
    """Return where this repository's packages are that exo imports: they are pure Python."""
    plugins = ROOT / "plugins"
    return [ROOT, ROOT / "chipdb" / "src", *(plugins / name / "src" for name in ("cluster", "exo"))]


if __name__ == "__main__":
    print("\n".join(requirements()))
