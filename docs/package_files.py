"""Writes what wheels have and git has not: `python docs/package_files.py FOLDER OUT`.

FOLDER is a distribution's: the repository itself for the core, or a plugin's. OUT gets the manual
pages of its commands and, of the core, the JSON Schema of the report. Build hooks run it where
only hatchling is installed, so it imports what lies in the repository and the standard library.
They run it with `-I -S`: what happens to be installed has no say in what a page lists.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import tomllib
from argparse import ArgumentParser
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "chipdb" / "src"), str(ROOT / "docs")]

__all__ = ["SCHEMA", "files", "write"]

SCHEMA = "report.schema.json"


def files(folder: Path) -> dict[str, str]:
    """Return what a distribution's wheel gets: a path below OUT, and its text."""
    if folder != ROOT:
        return _manuals_of_plugin(folder)
    from report_schema import schema

    return _manuals() | {SCHEMA: json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"}


def write(folder: Path, into: Path) -> None:
    """Write them below a folder."""
    for name, text in files(folder).items():
        path = into / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8", newline="\n")


def _date() -> str:
    """Return the date of the newest entry of the changelog."""
    dated = re.search(r"^## .*?(\d{4}-\d\d-\d\d)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    return dated[1] if dated else ""


def _manuals() -> dict[str, str]:
    import manual

    from probe_core.cli import COMMANDS, DEFAULT
    from probe_core.config import FILE_VARIABLE, SETTINGS

    variables = [(setting.variable, setting.meaning) for setting in SETTINGS.values()]
    variables.append((FILE_VARIABLE, "a TOML file of settings"))
    commands = [(group, name, text) for name, (_, group, text) in COMMANDS.items()]
    pages = {}
    for name, (module, _, summary) in COMMANDS.items():
        parser = _parser(name, f"probe_core.cli.{module}")
        overview = name == DEFAULT
        pages[_path(parser)] = (
            manual.overview(parser, _date(), commands, variables)
            if overview
            else manual.page(parser, _date(), summary)
        )
    return pages


def _manuals_of_plugin(folder: Path) -> dict[str, str]:
    import manual

    (manifest,) = folder.glob("src/*/command.json")
    commands = json.loads(manifest.read_text("utf-8"))["commands"]
    pages = {}
    with tempfile.TemporaryDirectory() as installed:
        sys.path[:0] = [str(folder / "src"), installed]
        _announce(folder, Path(installed))
        for name, command in commands.items():
            module = f"{manifest.parent.name}.{name.replace('-', '_')}_command"
            parser = _parser(name, module)
            pages[_path(parser)] = manual.page(parser, _date(), command["summary"])
        sys.path.remove(installed)
    return pages


def _announce(folder: Path, site: Path) -> None:
    """Write the entry points of a distribution as an installer does: pages list what they name."""
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    lines = []
    for group, entries in project.get("entry-points", {}).items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in entries.items())]
    metadata = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    metadata.mkdir()
    head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (metadata / "METADATA").write_text(head, "utf-8")
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n", "utf-8")


def _path(parser: ArgumentParser) -> str:
    import manual

    return f"man/man1/{manual.page_name(parser)}.1"


def _parser(name: str, module: str) -> ArgumentParser:
    from probe_core.cli.parser import command_parser

    return command_parser(name, import_module(module))


if __name__ == "__main__":
    write(Path(sys.argv[1]).resolve(), Path(sys.argv[2]))
