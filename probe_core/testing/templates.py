"""The texts of a new distribution; `$$name` and the like are filled in by `scaffold`."""

from __future__ import annotations

__all__ = ["TEMPLATES"]

PYPROJECT = """\
[build-system]
requires = ["hatchling>=1.26"]
build-backend = "hatchling.build"

[project]
name = "probe-$name"
version = "0.1.0"
description = "$class_name devices for probe-core."
readme = "README.md"
requires-python = ">=3.11"
classifiers = ["Typing :: Typed"]
dependencies = ["probe-core>=1.0"]

[project.entry-points."probe_core.probers.v1"]
$name = "$package.prober"

[dependency-groups]
test = ["hatchling", "mypy", "pytest"]

[tool.hatch.build.targets.wheel]
packages = ["src/$package"]

[tool.mypy]
strict = true
files = ["src"]

[tool.pytest.ini_options]
addopts = "--import-mode=importlib"
pythonpath = ["src"]
testpaths = ["tests"]
"""

README = """\
# probe-$name

$class_name devices for probe-core, from the files of their
driver below `/sys/class/$name`. No device node is opened.

    pip install probe-core probe-$name
    probe

## Development

    pip install -e . pytest hatchling mypy
    python -m pytest
    mypy
    probe plugins check $name
"""

PROBER = '''\
"""Reports $class_name devices, from the files of their driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from probe_core.api import (
    Machine,
    NotApplicable,
    Request,
    Unavailable,
    hookimpl,
    not_applicable,
)

FOLDER = "/sys/class/$name"


@hookimpl
def probe_devices(request: Request) -> NotApplicable | Iterator[dict[str, Any]]:
    """Answer with one mapping per device; see "sighting" in probe-core's reference."""
    names = request.machine.listdir(FOLDER)
    if not names:
        return not_applicable(f"no {FOLDER}")
    if request.machine.exists(f"{FOLDER}/failed"):
        raise Unavailable(
            "the driver reports that it failed",
            code="driver-failed",
            fix="read the kernel's log: dmesg | grep $name",
        )
    return (describe(request.machine, name) for name in names)


def describe(machine: Machine, name: str) -> dict[str, Any]:
    """Return one device. What the driver does not say is left out, with the reason."""
    address = machine.read(f"{FOLDER}/{name}/address")
    device: dict[str, Any] = {
        # A strong id joins this with what others saw; an ordinal or a name would not.
        "ids": [f"pci:{address}" if is_address(address) else f"$name:{name}"],
        "kind": "npu",
        "vendor": "$name",
        "unknown": {},
    }
    text = machine.read(f"{FOLDER}/{name}/name")
    if text:
        device["name"] = text
    else:
        device["unknown"]["name"] = f"{name}/name is not there, or empty"
    total = machine.read_int(f"{FOLDER}/{name}/memory_bytes")
    if total and 1 << 20 <= total <= 1 << 46:
        device["memory"] = {"kind": "dedicated", "total": total}
    else:
        device["unknown"]["memory.total"] = f"{name}/memory_bytes is not there, or no size"
    return device


def is_address(text: str | None) -> bool:
    """Return whether `text` is a PCI address such as 0000:01:00.0."""
    digits = (text or "").replace(":", "").replace(".", "")
    return len(text or "") == 12 and all(one in "0123456789abcdef" for one in digits)
'''

TESTS = '''\
"""The contract that every prober keeps, and what is this one's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from probe_core.api import Request
from probe_core.testing import Case, Machine, ProberContract

from $package.prober import probe_devices


def make(root: Path) -> Machine:
    """Make a machine with one device."""
    folder = root / "sys/class/$name/${name}0"
    folder.mkdir(parents=True)
    (folder / "address").write_text("0000:01:00.0\\n")
    (folder / "name").write_text("$class_name One\\n")
    (folder / "memory_bytes").write_text("17179869184\\n")
    return Machine(str(root))


class Test$class_name(ProberContract):
    """Some forty checks come with this class."""

    name = "$name"
    target = "$package.prober"
    project = Path(__file__).parents[1]

    def hardware(self, root: Path) -> Case:
        """A machine with the hardware."""
        return Case(make(root))

    def broken(self, root: Path) -> Mapping[str, Case]:
        """Machines on which it is there but cannot be asked."""
        (root / "sys/class/$name/failed").mkdir(parents=True)
        return {"the driver failed": Case(Machine(str(root)))}


def test_exactly_what_is_reported(tmp_path: Path) -> None:
    assert list(probe_devices(Request(make(tmp_path)))) == [  # type: ignore[arg-type]
        {
            "ids": ["pci:0000:01:00.0"],
            "kind": "npu",
            "vendor": "$name",
            "name": "$class_name One",
            "memory": {"kind": "dedicated", "total": 17179869184},
            "unknown": {},
        }
    ]
'''

CI = """\
name: tests
on: [push, pull_request]
jobs:
  tests:
    runs-on: ubuntu-latest
    strategy:
      matrix:
        python: ["3.11", "3.12", "3.13"]
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: $${{ matrix.python }}
      - run: pip install -e . pytest hatchling mypy
      - run: python -m pytest
      - run: mypy
      - run: probe plugins check $name
"""

TEMPLATES: dict[str, str] = {
    "README.md": README,
    "pyproject.toml": PYPROJECT,
    "src/$package/prober.py": PROBER,
    "src/$package/__init__.py": '"""A prober of $class_name devices."""\n',
    "src/$package/py.typed": "",
    "tests/test_$package.py": TESTS,
    ".github/workflows/tests.yml": CI,
    ".gitignore": "__pycache__/\n*.egg-info/\n/build/\n/dist/\n.venv/\n",
}
"""Path to text, in the order to read them."""
