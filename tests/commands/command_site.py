"""Installs commands as wheels would: a module, a manifest beside it, and an entry point."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

GROUP = "probe_core.commands.v1"
SOUND = """
    HELP = "Print what it is given."
    def add_arguments(parser):
        parser.add_argument("words", nargs="*")
        parser.add_argument("--times", type=int, default=1)
    def run(args, context):
        for _ in range(args.times):
            context.out(" ".join(args.words))
        return 0
"""


class Site:
    """A folder on the path, with the distributions that a test installs there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def install(
        self,
        name: str,
        body: str = SOUND,
        *,
        manifest: Any = None,
        distribution: str | None = None,
        version: str = "1.2",
        target: str | None = None,
        group: str = GROUP,
    ) -> Path:
        """Write a distribution with one command; returns its module's file.

        `manifest` is what its table says of the command, or a text to write as it is.
        """
        module = f"x_{self.folder.name}_{''.join(c if c.isalnum() else '_' for c in name)}"
        file = self.folder / f"{module}.py"
        file.write_text(dedent(body), "utf-8")
        if manifest is not None:
            document = {"schema": 1, "commands": {name: manifest}}
            raw = manifest if isinstance(manifest, str) else json.dumps(document)
            (self.folder / f"{module}.command.json").write_text(raw, "utf-8")
        self.register(distribution or f"probe-{name}", version, {name: target or module}, group)
        return file

    def register(
        self, distribution: str, version: str, commands: dict[str, str], group: str = GROUP
    ) -> None:
        """Write the metadata of a distribution with these entry points."""
        info = self.folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {distribution}\nVersion: {version}\n")
        lines = [f"{name} = {target}" for name, target in commands.items()]
        (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))
