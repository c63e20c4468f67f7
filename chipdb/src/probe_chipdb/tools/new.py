"""`new NAME`: a distribution of chip data to begin with, which passes the check as it is."""

import os
import re

from probe_chipdb import table
from probe_chipdb.entry.validate import distribution_name
from probe_chipdb.tools.writing import replace_text

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_PCI = re.compile(r"[0-9a-f]{4}")

_PROJECT = """\
[build-system]
requires = ["hatchling>=1.26"]
build-backend = "hatchling.build"

[project]
name = "{name}"
version = "0.1"
description = "Chips of {title} for probe-chipdb. Data only: nothing of it is imported."
requires-python = ">=3.11"
dependencies = ["probe-chipdb"]

[project.entry-points."probe_core.chipdb.v1"]
{vendor} = "{module}"

[tool.hatch.build.targets.wheel]
packages = ["src/{module}"]
"""

_CHIPS = """\
# An example to begin with: change every value, and leave out what no document states.
# What stands without `read` counts as recalled; the format's page says how words are quoted.
# All fields: `python -m probe_chipdb schema DIR` writes the schema that editors read.

[family]
title = "{title} One"
vendor = "{vendor}"
kind = "npu"
source = ["{vendor}-one-sheet"]

[source.{vendor}-one-sheet]
title = "{title} One data sheet, revision 1"
publisher = "{title}"
ref = "{vendor}.example: one.pdf, table 1"
status = "cited"

# Operations per clock and unit, dense; a fused multiply-add counts as two.
[arch.{vendor}-v1]
name = "{title} V1"
family = "{vendor}-v1"
vendor = "{vendor}"
unit = "core"
rates = {{ "fp16.matrix.fp32" = 4096, "int8.matrix.int32" = 8192 }}
source = ["{vendor}-one-sheet"]
confidence = "recalled"

[[chip]]
id = "{vendor}/one"
name = "{title} One"
arch = "{vendor}-v1"
year = 2026
units = 32
clock = {{ boost = 1500 }}
memory = {{ gib = 16, type = "LPDDR5X", bus = 128, gbs = 136 }}
power = 60
{pci}"""

_README = """\
# {name}

Chips of {title} for probe-chipdb: TOML files in `src/{module}`, found by the entry point
`probe_core.chipdb.v1`. No code of this distribution runs.

```sh
python -m probe_chipdb check .     # file, entry, field and fix of each mistake
pip install .
probe chip "{title} One"
```
"""


class Refused(ValueError):
    """What was asked for cannot be made: what, why, and what would do, in a sentence."""


def new(name: str, into: str = ".", vendor: str = "", pci: str = "") -> list[str]:
    """Write the folder of a distribution; the paths of its files.

    Raises Refused for a bad name, a vendor or PCI vendor id that is another's, and a folder that is
    there already. Raises OSError where it cannot be written.
    """
    if not _NAME.fullmatch(distribution_name(name)) or " " in name:
        raise Refused(f"{name[:64]!r} is no name of a distribution; write acme-chips, for instance")
    name = distribution_name(name)
    vendor = vendor or name.removesuffix("-chips").removeprefix("probe-chips-")
    _check_vendor(vendor, pci)
    folder = os.path.join(into, name)
    if os.path.exists(folder):
        raise Refused(f"{folder} exists already; choose another name, or remove it")
    module = name.replace("-", "_")
    facts = {
        "name": name,
        "module": module,
        "vendor": vendor,
        "title": vendor.replace("-", " ").title(),
        "pci": f'pci = ["{pci}:0001"]\n' if pci else "",
    }
    files = {
        "pyproject.toml": _PROJECT,
        "README.md": _README,
        f"src/{module}/__init__.py": "",
        f"src/{module}/chips.toml": _CHIPS,
    }
    texts = {os.path.join(folder, path): text.format(**facts) for path, text in files.items()}
    return [_write(path, text) for path, text in texts.items()]


def _check_vendor(vendor: str, pci: str) -> None:
    if not _NAME.fullmatch(vendor):
        raise Refused(f"{vendor!r} is no vendor's short name; write acme, for instance")
    if pci and not _PCI.fullmatch(pci):
        raise Refused(f"{pci!r} is no PCI vendor id; write four hexadecimal digits: 1ac0")
    built = table.built()
    if built.ids(f"v:{vendor}"):
        raise Refused(
            f"the namespace {vendor!r} belongs to the built table; choose another vendor, send the "
            "chips to the project, or ask to be listed as its publisher"
        )
    if owners := built.ids(f"pv:{pci}"):
        raise Refused(f"the PCI vendor id {pci} is that of {', '.join(owners)}; give your own")


def _write(path: str, text: str) -> str:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    replace_text(path, text)
    return path
