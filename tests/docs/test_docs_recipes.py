"""The recipes for hosts with the frameworks themselves, where a Python has them.

`test_docs_run` runs the same page with stand-ins for Ray and Celery, which are large, and with a
running loop for Jupyter. Here Ray starts a cluster, Celery a worker, and Jupyter a kernel. exo's
own types are checked in its own checkout (plugins/exo/tests); FastAPI and pytest are real in both.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import docpages
import pytest
from docplace import Place

PAGE = docpages.DOCS / "how-to" / "host-recipes.md"
PYTHON = os.environ.get("PROBE_RAY_PYTHON", sys.executable)
NEEDED = {"Ray": ("ray",), "Celery": ("celery",), "Jupyter": ("nbclient", "ipykernel")}

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]


@cache
def packages() -> tuple[Path, frozenset[str]]:
    """Return the folder of that Python's packages, and those of the frameworks that it has."""
    wanted = [name for names in NEEDED.values() for name in names]
    code = (
        "import importlib.util as u, json, sysconfig\n"
        f"names = [name for name in {wanted} if u.find_spec(name)]\n"
        "print(json.dumps([sysconfig.get_path('purelib'), sysconfig.get_python_version(), names]))"
    )
    done = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    folder, version, names = json.loads(done.stdout)
    own = ".".join(map(str, sys.version_info[:2]))
    return Path(folder), frozenset(names) if version == own else frozenset()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, packages()[0])


def section(title: str) -> list[docpages.Block]:
    """Return the blocks of a section of the page that stands in `NEEDED`, or skip."""
    missing = set(NEEDED[title]) - packages()[1]
    if missing:
        pytest.skip(f"no {' and no '.join(sorted(missing))}: name a Python in PROBE_RAY_PYTHON")
    lines = docpages.text(PAGE).splitlines()
    heads = [number for number, line in enumerate(lines, 1) if line.startswith("## ")]
    begin = lines.index(f"## {title}") + 1
    end = next((number for number in heads if number > begin), len(lines) + 1)
    return [block for block in docpages.blocks(PAGE) if begin < block.line < end]


def walk(place: Place, title: str) -> None:
    printed = ""
    for block in section(title):
        if block.directive == "file":
            place.write(block.detail, block.text)
        elif block.directive == "run":
            ran = place.run(block.language, block.text)
            assert ran.returncode == 0, ran.stdout
            printed = ran.stdout
        elif block.directive == "output":
            # Frameworks log beside what the recipe prints.
            assert docpages.matches(f"…\n{block.text}…", printed), printed


def test_ray_runs_the_task_on_a_node_of_its_own(place: Place) -> None:
    walk(place, "Ray")


TEST = """
import os

def test_every_variable_of_the_lease_is_set(gpu):
    assert os.environ["GPU_DEVICE_ORDINAL"] == os.environ["HIP_VISIBLE_DEVICES"] == "0"
    assert os.environ["DEV"] == ":0+AMD" and os.environ["PROBE_LEASE"]
"""


def test_the_fixture_of_pytest_confines_every_runtime(place: Place) -> None:
    """A test of OpenCL, Level Zero or tinygrad would else share the first GPU with the others."""
    (block,) = (block for block in docpages.blocks(PAGE) if block.detail == "conftest.py")
    place.write("conftest.py", block.text)
    place.write("test_variables.py", TEST)
    machine = "$REPOSITORY/tests/machines/desktop--amd-radeon-rx-7900-xtx.json"
    ran = place.run(
        "sh",
        f'probe --machine "{machine}" --json > desktop.json\nmkdir -p leases\n'
        "export PROBE_STATIC=desktop.json PROBE_LEASES=$PWD/leases\n"
        "python -m pytest -q test_variables.py",
    )
    assert (ran.returncode, "1 passed" in ran.stdout) == (0, True), ran.stdout


WORKER = """
import json, sys
from celery.contrib.testing.worker import start_worker
from worker import app, queues, train

app.conf.update(broker_url="memory://", result_backend="cache+memory://",
                task_default_queue="gpu")
with start_worker(app, pool="solo", perform_ping_check=False, loglevel="ERROR"):
    print("status", train.delay("one.toml").get(timeout=120))
"""
TRAIN = """
import os, sys
print("trains", sys.argv[1], *sorted(name for name in os.environ if name.endswith("_DEVICES")))
"""


def test_celery_runs_the_task_with_a_lease(place: Place) -> None:
    """The queues as the page has them, then a worker that takes the task from a broker."""
    walk(place, "Celery")
    place.write("train.py", TRAIN)
    place.write("run_worker.py", WORKER)
    machine = "$REPOSITORY/tests/machines/desktop--amd-radeon-rx-7900-xtx.json"
    ran = place.run(
        "sh",
        f'probe --machine "{machine}" --json > desktop.json\nmkdir -p leases\n'
        "export PROBE_STATIC=desktop.json PROBE_LEASES=$PWD/leases\n"
        "python worker.py\npython run_worker.py",
    )
    assert ran.returncode == 0, ran.stdout
    lines = ran.stdout.splitlines()
    assert "default,gpu" in lines
    (trains,) = (line for line in lines if line.startswith("trains"))
    assert trains.split()[:2] == ["trains", "one.toml"]
    assert "ROCR_VISIBLE_DEVICES" in trains
    assert "status 0" in lines


NOTEBOOK = """
import sys
import nbformat
from nbclient import NotebookClient

cells = [nbformat.v4.new_code_cell(sys.argv[1])]
book = NotebookClient(nbformat.v4.new_notebook(cells=cells), timeout=120, kernel_name="python3")
for output in book.execute()["cells"][0]["outputs"]:
    print(output["output_type"], output.get("data", output))
"""


def test_a_kernel_of_jupyter_runs_the_cell(place: Place) -> None:
    (cell,) = (block for block in section("Jupyter") if block.directive == "run")
    place.write("book.py", NOTEBOOK)
    place.write("cell.txt", cell.text)
    ran = place.run("sh", 'python book.py "$(cat cell.txt)"')
    assert ran.returncode == 0, ran.stdout
    assert ran.stdout.splitlines()[-1].startswith("execute_result {'text/plain':"), ran.stdout
