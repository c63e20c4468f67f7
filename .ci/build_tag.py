"""Builds the distribution that a release's tag names: `build_tag.py probe-core-v0.9.0 OUT`.

`--order` prints all distributions, each after those that it needs: the order of a release. The tag
must have the version that the built wheel has, so a tag on the wrong commit publishes nothing.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_string
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_TAG = re.compile(r"(probe-[a-z]+)-v(\d[0-9a-z.]*)")
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def distributions() -> dict[str, Path]:
    """Return the folder of each distribution of the repository, by name."""
    paths = [ROOT, ROOT / "chipdb", *sorted((ROOT / "plugins").iterdir())]
    folders = [path for path in paths if (path / "pyproject.toml").exists()]
    return {str(_project(path)["name"]): path for path in folders}


def _project(folder: Path) -> dict[str, object]:
    document = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    table: dict[str, object] = document["project"]
    return table


def order() -> list[str]:
    """Return all distributions, each after those that it needs, plugins in alphabetical order."""
    known = distributions()
    needs = {name: _needs(path) & set(known) for name, path in known.items()}
    sorter = TopologicalSorter(needs)
    sorter.prepare()
    names: list[str] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        names += ready
        sorter.done(*ready)
    return names


def _needs(folder: Path) -> set[str]:
    wanted = _project(folder).get("dependencies", [])
    assert isinstance(wanted, list)
    return {match[0] for text in wanted if (match := _NAME.match(text))}


def problem(wheel: Path, name: str, version: str) -> str | None:
    """Return what keeps a wheel from being published under that name and version."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = next(path for path in names if path.endswith(".dist-info/METADATA"))
        fields = message_from_string(archive.read(metadata).decode("utf-8"))
    if (fields["Name"], fields["Version"]) != (name, version):
        return f"the tag says {name} {version}, the wheel is {fields['Name']} {fields['Version']}"
    if not any("/licenses/LICENSE" in path for path in names):
        return f"{wheel.name} has no LICENSE; list it in license-files"
    if any(path.startswith(("tests/", "docs/")) for path in names):
        return f"{wheel.name} would install tests or docs beside other packages"
    return None


def build(tag: str, into: Path) -> str | None:
    """Build sdist and wheel of the tag's distribution, and return what is wrong."""
    match = _TAG.fullmatch(tag)
    folder = distributions().get(match[1]) if match else None
    if not match or not folder:
        return (
            f"the tag {tag!a} names no distribution; it is NAME-vVERSION, such as probe-core-v0.9.0"
        )
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(into), str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        return f"{match[1]} cannot be built:\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}"
    (wheel,) = into.glob(f"{match[1].replace('-', '_')}-*.whl")
    return problem(wheel, match[1], match[2])


def main(arguments: list[str]) -> int:
    """Build, or print the order; 1 when the tag must not be published."""
    if arguments == ["--order"]:
        print("\n".join(order()))
        return 0
    if len(arguments) != 2:
        print("usage: build_tag.py TAG OUT, or build_tag.py --order", file=sys.stderr)
        return 2
    wrong = build(arguments[0], Path(arguments[1]))
    if wrong:
        print(f"build_tag: {wrong}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
