"""What a stranger reads first is true: extras, addresses, READMEs of the distributions."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLUGINS = sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))
FOR_DEVELOPERS = {"docs", "test"}


def project(folder: Path) -> dict[str, object]:
    table: dict[str, object] = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    return table


def test_the_page_of_installation_has_every_extra() -> None:
    page = (ROOT / "docs/how-to/install.md").read_text("utf-8")
    table = page.partition("| extra |")[2].partition("\n\n")[0]
    first = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    named = [name for cell in first for name in re.findall(r"`([a-z]+)`", cell)]
    extras = project(ROOT)["optional-dependencies"]
    assert isinstance(extras, dict)
    assert sorted(named) == sorted(set(extras) - FOR_DEVELOPERS)


def test_the_page_of_installation_names_every_distribution() -> None:
    page = (ROOT / "docs/how-to/install.md").read_text("utf-8")
    extras = project(ROOT)["optional-dependencies"]
    assert isinstance(extras, dict)
    reached = set(
        re.findall(r"probe-[a-z-]+", str({k: v for k, v in extras.items() if k != "all"}))
    )
    rest = {str(project(folder)["name"]) for folder in PLUGINS} - reached
    line = next(line for line in page.splitlines() if line.startswith("Distributions without"))
    assert set(re.findall(r"`(probe-[a-z-]+)`", line)) == rest


@pytest.mark.parametrize("folder", [*PLUGINS, ROOT / "chipdb"], ids=lambda path: path.name)
def test_a_readme_shows_the_use_and_says_why_the_distribution_is_separate(folder: Path) -> None:
    text = (folder / "README.md").read_text("utf-8")
    name = project(folder)["name"]
    assert text.startswith(f"# {name}\n")
    assert "A distribution of its own" in text
    lines = text.splitlines()
    install = next(at for at, line in enumerate(lines) if "pip install" in line)
    assert install <= 14
    # What it does for the reader follows within ten lines: a command or a call.
    assert any(
        re.search(r"\bprobe( |$)|probe_\w+", line) for line in lines[install + 1 : install + 12]
    )


def test_the_page_of_architecture_has_the_reason_of_each_distribution() -> None:
    page = (ROOT / "docs/explanation/architecture.md").read_text("utf-8")
    table = page.partition("## Why each distribution is separate")[2].partition("\nTwo things")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    # The first of a row's cells names what has the reason; "beside" names what it is compared with.
    named = [n for cell in rows for n in re.findall(r"`(probe-[a-z-]+)`", cell.split("beside")[0])]
    folders = [*PLUGINS, ROOT / "chipdb"]
    assert sorted(named) == sorted(str(project(folder)["name"]) for folder in folders)


def test_before_the_release_the_front_says_so() -> None:
    for page in ("README.md", "docs/how-to/install.md", "docs/index.md"):
        text = " ".join((ROOT / page).read_text("utf-8").split())
        assert re.search(r"[Nn]o package index has .{0,60}before the release of 0\.9\.0b1", text), (
            page
        )


def test_the_addresses_stand_in_one_file() -> None:
    addresses = (ROOT / "packaging/addresses.toml").read_text("utf-8")
    hosts = set(re.findall(r"https://([^/\"]+)", addresses))
    assert len(hosts) == 1
    tracked = [
        path
        for pattern in ("*.md", "*.toml", ".github/**/*.yml", "packaging/**/*", "docs/**/*.md",
                        "chipdb/*.*", "plugins/*/*.*", "plugins/exo/patches/*")
        for path in ROOT.glob(pattern)
        if path.is_file() and path.name != "addresses.toml"
    ]  # fmt: skip
    (host,) = hosts
    assert [str(path) for path in tracked if host in path.read_text("utf-8", "replace")] == []
