"""What a program pays: nothing on import, few and small modules on the first question."""

import ast
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"


def run(code: str, path: str = str(SRC)) -> str:
    line = [sys.executable, "-S", "-E", "-c", f"import sys; sys.path.insert(0, {path!r}); {code}"]
    return subprocess.run(line, capture_output=True, text=True, check=True, timeout=30).stdout


NEW = "print(*sorted(m for m in set(sys.modules) - before))"


@pytest.mark.heavy
def test_only_the_standard_library_is_imported() -> None:
    """A host that vendors the reader takes nothing else along."""
    for path in SRC.rglob("*.py"):
        if path.name.startswith("hook-"):  # PyInstaller runs it, and nobody imports it
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, path
                names = [str(node.module)]
            for name in names:
                top = name.partition(".")[0]
                assert top == "probe_chipdb" or top in sys.stdlib_module_names, (path, name)


def test_import_loads_nothing_else() -> None:
    assert run(f"before = set(sys.modules); import probe_chipdb; {NEW}") == "probe_chipdb\n"


def test_first_question_loads_no_heavy_module() -> None:
    question = (
        "probe_chipdb.load().match(pci='10de:2684', name='NVIDIA GeForce RTX 4090').chip.peaks()"
    )
    # os is loaded by every interpreter that runs site; nothing else may come along.
    out = run(
        f"import os; before = set(sys.modules); import probe_chipdb; {question}; {NEW}"
    ).split()
    assert {name.partition(".")[0] for name in out} == {"probe_chipdb"}
    assert not [
        name for name in out if name.startswith(("probe_chipdb.entry", "probe_chipdb.tools"))
    ]


def test_the_own_name_of_the_chip_of_an_id_loads_no_rules_of_names() -> None:
    facts = "pci='1002:74a1', vendor='amd', name='AMD Instinct MI300X', name_kind='amdgpu'"
    rules = "'probe_chipdb.rules' in sys.modules"
    found = run(f"import probe_chipdb; m = probe_chipdb.load().match({facts}); print(m, {rules})")
    assert found == "<Match 'amd/instinct-mi300x' by pci> False\n"


def test_the_function_is_published_under_its_name() -> None:
    call = "probe_chipdb.normalise('NVIDIA A100 80 GB')"
    assert run(f"import probe_chipdb; probe_chipdb.load(); print({call})") == "a100 80gb\n"


def test_every_name_resolves() -> None:
    names = "[getattr(c, n) is not None for n in c.__all__]"
    code = f"import probe_chipdb as c; print(all({names}), dir(c) == sorted(c.__all__))"
    assert run(code) == "True True\n"


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert run("import probe_chipdb; print(hasattr(probe_chipdb, 'nonsense'))") == "False\n"


@pytest.fixture
def unbuilt(tmp_path: Path) -> Path:
    """A checkout in which nothing was installed or built."""
    shutil.copytree(SRC, tmp_path / "src", ignore=shutil.ignore_patterns("table", "__pycache__"))
    return tmp_path / "src"


COMMAND = "`python -m probe_chipdb build`"


def test_without_its_table_it_says_which_command_makes_it(unbuilt: Path) -> None:
    code = """
import probe_chipdb
for load in probe_chipdb.load, probe_chipdb.database.load_by_position:
    try:
        load()
    except OSError as error:
        print(error)
print(probe_chipdb.peak("NVIDIA L40S"), probe_chipdb.memory("NVIDIA L40S", pci="10de:26b9"))
print(probe_chipdb.why("NVIDIA L40S"))
"""
    one, two, figures, why = run(f"exec({code!r})", str(unbuilt)).splitlines()
    assert one.startswith("probe_chipdb has no table (")
    assert one.endswith(f" is missing); in a checkout {COMMAND} makes it")
    assert (two, figures, why) == (one, "None None", one)


def test_a_command_without_the_table_prints_no_traceback(unbuilt: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": str(unbuilt)}
    line = [sys.executable, "-m", "probe_chipdb", "missing"]
    ran = subprocess.run(
        line, capture_output=True, text=True, check=False, timeout=30, env=environ, cwd=unbuilt
    )
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert COMMAND in ran.stderr


def test_works_from_a_zip(tmp_path: Path) -> None:
    archive = tmp_path / "app.zip"
    with zipfile.ZipFile(archive, "w") as out:
        for path in (SRC / "probe_chipdb").rglob("*"):
            if path.suffix in (".py", ".txt"):
                out.write(path, path.relative_to(SRC))
    code = "import probe_chipdb; print(probe_chipdb.load().match(pci='10de:2684').chip.id)"
    assert run(code, str(archive)) == "nvidia/geforce-rtx-4090\n"
