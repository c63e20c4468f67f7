"""The translated templates write what the templates write, whatever is out of date."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jinja2
import pytest

from probe_report import html
from probe_report.templates_loader import COMPILED, TemplatesLoader

TEMPLATES = Path(html.__file__).with_name("templates")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TEMPLATES, tmp_path / "templates"))


def rendered(folder: Path) -> str:
    environment = html._environment()
    environment.loader = TemplatesLoader(folder)
    fix = environment.get_template("fix.html").module.fix("a <b>")  # type: ignore[attr-defined]
    return str(fix)


def marked(folder: Path, **changes: object) -> None:
    """Write translations that can be told from the templates themselves."""
    document = json.loads((folder / COMPILED).read_text())
    check, source = document["templates"]["fix.html"]
    document["templates"]["fix.html"] = [check, source.replace("<code>", "<kbd>")]
    (folder / COMPILED).write_text(json.dumps(document | changes))


def test_the_translations_are_those_of_the_templates() -> None:
    for path, text in html.translations().items():
        assert path.read_text("utf-8") == text
        assert set(json.loads(text)["templates"]) == {p.name for p in TEMPLATES.glob("*.html")}


def test_a_translation_is_used_and_escapes(folder: Path) -> None:
    before = rendered(folder)
    assert "a &lt;b&gt;" in before
    marked(folder)
    assert rendered(folder) == before.replace("<code>", "<kbd>")


def test_another_jinja2_translates_anew(folder: Path) -> None:
    marked(folder, jinja2=f"{jinja2.__version__}.1")
    assert "<kbd>" not in rendered(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", None])
def test_without_translations_the_templates_are_enough(text: str | None, folder: Path) -> None:
    if text is None:
        (folder / COMPILED).unlink()
    else:
        (folder / COMPILED).write_text(text)
    assert "a &lt;b&gt;" in rendered(folder)


def test_a_template_that_was_changed_counts(folder: Path) -> None:
    path = folder / "fix.html"
    path.write_text(path.read_text().replace("<code>", "<samp>"))
    assert "<samp>" in rendered(folder)
