"""Collects the Python of pages into one folder, as modules that a type checker reads."""

from __future__ import annotations

from pathlib import Path

import docpages

# The pages for hosts: their Python passes mypy --strict and pyright.
HOSTS = (
    "README.md",
    "how-to/compute-mfu.md",
    "how-to/embed-in-a-host.md",
    "how-to/freeze-an-app.md",
    "how-to/gather-a-cluster.md",
    "how-to/home-cluster.md",
    "how-to/host-recipes.md",
    "how-to/plan-a-model.md",
    "how-to/ray.md",
    "how-to/use-in-a-script.md",
    "plugins/cluster/README.md",
    "plugins/exo/README.md",
    "plugins/wheels/README.md",
    "reference/hooks.md",
    "reference/machine.md",
    "reference/python.md",
    "reference/visibility.md",
)
# Pages for authors of plugins show hooks without annotations, which are optional there: mypy checks
# what is inside them without --strict.
AUTHORS = (
    "how-to/add-live-figures.md",
    "how-to/debug-a-timeout.md",
    "how-to/package-a-prober.md",
    "how-to/read-device-files.md",
    "how-to/record-a-machine.md",
    "how-to/test-a-prober.md",
    "how-to/write-a-check.md",
    "how-to/write-a-command.md",
    "how-to/write-an-exporter.md",
    "reference/sighting.md",
)
# Page: why no type checker reads its Python.
UNCHECKED = {
    "chipdb/README.md": "a sketch of a training loop; chipdb's own tests run the session above it",
    "tutorial/first-prober.md": "its steps end with the scaffold's own mypy and tests",
}
# A notebook's cell awaits at the top level, and a sketch calls functions that it does not define.
UNTYPED = {("how-to/host-recipes.md", "notebook"), ("reference/hooks.md", "sketch")}


def write(folder: Path, *names: str) -> dict[str, str]:
    """Write the modules of these pages; return each one's page and line, by file name."""
    origins: dict[str, str] = {}
    for page in docpages.everywhere():
        if docpages.name(page) in names:
            for block in docpages.blocks(page):
                if block.language == "python" and not _untyped(page, block):
                    _write(folder, page, block, origins)
    return origins


def with_python() -> set[str]:
    """Return the pages that show Python."""
    pages = docpages.everywhere()
    return {
        docpages.name(page)
        for page in pages
        if any(block.language == "python" for block in docpages.blocks(page))
    }


def _untyped(page: Path, block: docpages.Block) -> bool:
    kind = "sketch" if block.directive == "not run" else block.detail
    return (docpages.name(page), kind) in UNTYPED


def _write(folder: Path, page: Path, block: docpages.Block, origins: dict[str, str]) -> None:
    place = f"{docpages.name(page)}:{block.line}"
    plain = "".join(c if c.isalnum() else "_" for c in place)
    name = block.detail if block.directive == "file" else f"block_{plain}.py"
    assert name not in origins, f"{place} and {origins[name]} both write {name}"
    origins[name] = place
    (folder / name).write_text(block.text, "utf-8")
