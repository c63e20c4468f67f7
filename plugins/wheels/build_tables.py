"""Write src/probe_wheels/tables.py from data/*.toml: to import tables is faster than to read TOML.

tomllib costs 15 ms of each start, a compiled module a tenth of one. `--check` only compares.
"""

from __future__ import annotations

import pprint
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
TARGET = HERE / "src" / "probe_wheels" / "tables.py"
HEAD = '''"""The tables of plugins/wheels/data: made by build_tables.py there, not to be edited."""

# fmt: off
# ruff: noqa: E501
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_wheels.documents import DriversDoc, FrameworkDoc, TorchDoc

__all__ = ["DRIVERS", "FRAMEWORKS", "TORCH"]
'''

KINDS = {"drivers": "DriversDoc", "frameworks": "dict[str, FrameworkDoc]", "torch": "TorchDoc"}


def built() -> str:
    """Return the text of the module."""
    parts = [HEAD]
    for name, kind in KINDS.items():
        table = tomllib.loads((HERE / "data" / f"{name}.toml").read_text(encoding="utf-8"))
        text = pprint.pformat(table, width=300, sort_dicts=False)
        parts.append(f"{name.upper()}: {kind} = {text}\n")
    return "\n".join(parts)


def main() -> int:
    """Write the module, or say that it is out of date."""
    text = built()
    if "--check" in sys.argv:
        if TARGET.read_text(encoding="utf-8") == text:
            return 0
        print(f"{TARGET} is out of date: run python plugins/wheels/build_tables.py")
        return 1
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
