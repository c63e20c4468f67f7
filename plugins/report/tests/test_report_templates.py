"""The templates of a wheel are compiled, and write what the templates of a checkout write."""

from __future__ import annotations

import gc
import shutil
import subprocess
import sys
from pathlib import Path

import jinja2
import pytest

from probe_report import html

TEMPLATES = Path(html.__file__).with_name("templates")
SCRIPT = Path(__file__).parents[1] / "package_files.py"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of templates as a wheel has it."""
    made = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, str(SCRIPT), str(made)], check=True, timeout=60)
    folder = made / "probe_report" / "templates"
    return Path(shutil.copytree(TEMPLATES, folder, dirs_exist_ok=True))


@pytest.fixture
def folder(compiled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(compiled, tmp_path / "templates"))


def modules(folder: Path) -> Path:
    return folder / f"compiled-{jinja2.__version__}"


def module_of(folder: Path, template: str) -> Path:
    return modules(folder) / jinja2.ModuleLoader.get_module_filename(template)


def rendered(folder: Path) -> str:
    environment = html._environment(html._loader(folder))
    fix = environment.get_template("fix.html").module.fix("a <b>")  # type: ignore[attr-defined]
    return str(fix)


def marked(folder: Path) -> None:
    """Write a module that can be told from its template."""
    path = module_of(folder, "fix.html")
    path.write_text(path.read_text().replace("<code>", "<kbd>"))


@pytest.mark.heavy
def test_every_template_is_compiled(compiled: Path) -> None:
    names = {module_of(compiled, path.name) for path in TEMPLATES.glob("*.html")}
    assert set(modules(compiled).iterdir()) == names


def test_a_checkout_has_no_compiled_template_that_could_be_older() -> None:
    assert [path.name for path in TEMPLATES.iterdir() if path.suffix not in (".html", ".css")] == []


def test_what_is_compiled_is_what_the_template_says(compiled: Path) -> None:
    environment = html._environment(jinja2.FileSystemLoader(TEMPLATES))
    for path in TEMPLATES.glob("*.html"):
        name = path.name
        text = environment.compile(path.read_text("utf-8"), name, raw=True, defer_init=True)
        assert module_of(compiled, name).read_text("utf-8") == text


def test_what_is_compiled_is_used_and_escapes(folder: Path) -> None:
    before = rendered(TEMPLATES)
    assert "a &lt;b&gt;" in before
    assert rendered(folder) == before
    marked(folder)
    assert rendered(folder) == before.replace("<code>", "<kbd>")


def test_no_module_of_the_host_is_a_reference_that_ends(folder: Path) -> None:
    marked(folder)
    assert "<kbd>" in rendered(folder)
    entered = dict(sys.modules)  # as whoever walks through all of them takes it
    gc.collect()
    ours = [module for name, module in entered.items() if name.startswith("_jinja2_module_")]
    assert str(modules(folder)) in [module.__path__[0] for module in ours]


def test_another_jinja2_compiles_anew(folder: Path) -> None:
    marked(folder)
    modules(folder).rename(folder / f"compiled-{jinja2.__version__}.1")
    assert "<kbd>" not in rendered(folder)


@pytest.mark.parametrize("lacking", ["the folder", "a module"])
def test_what_is_not_compiled_is_read(lacking: str, folder: Path) -> None:
    marked(folder)
    if lacking == "the folder":
        shutil.rmtree(modules(folder))
    else:
        module_of(folder, "fix.html").unlink()
    assert rendered(folder) == rendered(TEMPLATES)


def test_a_template_that_was_changed_counts_in_a_checkout(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(TEMPLATES, tmp_path / "templates"))
    path = folder / "fix.html"
    path.write_text(path.read_text().replace("<code>", "<samp>"))
    assert "<samp>" in rendered(folder)
