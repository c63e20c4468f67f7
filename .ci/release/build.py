"""Builds what is published: `build.py OUT` all, `build.py OUT --tag NAME-vVERSION` one of them.

It copies what git tracks of the checkout, writes the project's addresses into the copy, and builds
sdist and wheel of each distribution there, with the time of the commit. So one commit gives the
same bytes everywhere with the same build tools. `--order` prints all distributions, each after
those that it needs. Addresses of a reserved name, changed files and a tag of another version stop
it; `--rehearse` allows the first two. `checks.py` looks at each file.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path, PurePosixPath

sys.path.insert(0, str(Path(__file__).parent))
import checks

ROOT = Path(__file__).resolve().parents[2]
_TAG = re.compile(r"(probe-[a-z-]+)-v(\d[0-9a-z.]*)")
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_LINK = re.compile(r"(!?\[[^\]]*\]\()([^)#\s]*)((?:#[^)\s]*)?\))")
# Names that nobody can register (RFC 2606).
_RESERVED = re.compile(r"https?://[^/]*\.(?:example|invalid|test|localhost)\b")


class ReleaseError(Exception):
    """A release that must not be made; the text has the reason."""


def distributions(root: Path = ROOT) -> dict[str, Path]:
    """Return the folder of each distribution of the repository, by name."""
    paths = [root, root / "chipdb", *sorted(root.glob("plugins/*"))]
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


def git(*arguments: str, root: Path = ROOT) -> str:
    """Return what git prints. Raises ReleaseError where it fails."""
    command = ["git", "-c", "safe.directory=*", *arguments]
    ran = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise ReleaseError(f"git {arguments[0]}: {ran.stderr.strip()}")
    return ran.stdout


def copy_of(root: Path, into: Path) -> None:
    """Copy what git tracks of a checkout, as it is in the work tree."""
    for name in git("ls-files", "-z", root=root).split("\0"):
        source = root / name
        if not name or not source.exists():
            continue
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, into / name, follow_symlinks=False)


def address(tree: Path, commit: str, ships: bool) -> None:
    """Write the project's addresses into the READMEs and the metadata of a copy.

    Raises ReleaseError where an address is of a reserved name and the copy is to be shipped.
    """
    text = (tree / "packaging" / "addresses.toml").read_text("utf-8")
    found = tomllib.loads(text)
    if ships and (reserved := _RESERVED.search(text)):
        raise ReleaseError(f"packaging/addresses.toml has a placeholder: {reserved[0]}")
    for folder in distributions(tree).values():
        own = folder / "CHANGELOG.md"
        changelog = own if own.exists() else tree / "CHANGELOG.md"
        place = changelog.relative_to(tree).as_posix()
        lines = [f'{name} = "{url}"' for name, url in found["urls"].items()]
        table = "\n[project.urls]\n" + "\n".join(lines).format(changelog=place) + "\n"
        with (folder / "pyproject.toml").open("a", encoding="utf-8") as project:
            project.write(table)
        readme = folder / "README.md"
        at = PurePosixPath(readme.relative_to(tree).as_posix())
        readme.write_text(absolute(readme.read_text("utf-8"), at, tree, commit, found), "utf-8")


def absolute(text: str, page: PurePosixPath, tree: Path, commit: str, found: dict[str, str]) -> str:
    """Return a page of Markdown whose links and pictures lead to the code host.

    Raises ReleaseError for a link to a file that the repository has not.
    """

    def replaced(match: re.Match[str]) -> str:
        head, target, tail = match.groups()
        if not target or "://" in target or target.startswith("mailto:"):
            return match[0]
        path = os.path.normpath(page.parent / target)
        if path.startswith("..") or not (tree / path).exists():
            raise ReleaseError(f"{page} links to {target}, which is not in the repository")
        form = found["pictures" if head.startswith("!") else "pages"]
        return head + form.format(commit=commit, path=path) + tail

    blocks = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(b if b.startswith("```") else _LINK.sub(replaced, b) for b in blocks)


def prepared(tree: Path, root: Path = ROOT, ships: bool = False) -> str:
    """Copy a checkout into an empty folder, ready to be built; return the time of its commit."""
    changed = git("status", "--porcelain", "--untracked-files=no", root=root).strip()
    if ships and changed:
        raise ReleaseError(f"the checkout has changes that are in no commit:\n{changed}")
    copy_of(root, tree)
    commit, time = git("log", "-1", "--format=%H %ct", root=root).split()
    address(tree, commit, ships)
    return time


def build(names: list[str], tree: Path, into: Path, time: str) -> None:
    """Build sdists, and the wheels from them. Raises ReleaseError where one cannot be built."""
    folders = distributions(tree)
    environ = {**os.environ, "SOURCE_DATE_EPOCH": time}
    for name in names:
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(into)]
        ran = subprocess.run(
            [*command, str(folders[name])],
            env=environ, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if ran.returncode:
            end = ran.stdout[-2000:] + ran.stderr[-2000:]
            raise ReleaseError(f"{name} cannot be built:\n{end}")


def chosen(tag: str | None) -> tuple[list[str], str | None]:
    """Return the distributions to build, and the version that the tag has."""
    if tag is None:
        return order(), None
    match = _TAG.fullmatch(tag)
    if not match or match[1] not in distributions():
        example = "it is NAME-vVERSION, such as probe-core-v0.9.0b1"
        raise ReleaseError(f"the tag {tag!a} names no distribution; {example}")
    return [match[1]], match[2]


def release(into: Path, tag: str | None, ships: bool) -> None:
    """Build and check. Raises ReleaseError; what is in the folder then must not be published."""
    names, version = chosen(tag)
    if into.exists() and any(into.iterdir()):
        raise ReleaseError(f"{into} is not empty")
    with tempfile.TemporaryDirectory() as work:
        tree = Path(work) / "tree"
        time = prepared(tree, ships=ships)
        build(names, tree, into, time)
        problems = [
            problem
            for name in names
            for problem in checks.problems(name, distributions(tree)[name], into, ships)
        ]
    if version and (wrong := checks.other_version(names[0], version, into)):
        problems.append(wrong)
    if problems:
        raise ReleaseError("\n".join(problems))


def main(arguments: list[str]) -> int:
    """Build, or print the order; 1 when nothing must be published."""
    assert __doc__
    parser = argparse.ArgumentParser(prog="build.py", description=__doc__.partition("\n\n")[0])
    parser.add_argument("out", nargs="?", type=Path, help="an empty or a new folder")
    parser.add_argument("--tag", help="build the distribution of this tag alone")
    parser.add_argument("--rehearse", action="store_true", help="placeholders and changes may be")
    parser.add_argument("--order", action="store_true", help="print all distributions")
    options = parser.parse_args(arguments)
    if options.order == (options.out is not None):
        parser.error("either a folder or --order")
    if options.order:
        print("\n".join(order()))
        return 0
    try:
        release(options.out, options.tag, ships=not options.rehearse)
    except ReleaseError as error:
        print(f"build: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
