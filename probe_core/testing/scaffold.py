"""Write a complete distribution with a prober: `probe plugins new NAME`.

Every file is meant to be read and changed; together they pass their own tests at once.
"""

from __future__ import annotations

import json
import keyword
import os
from pathlib import Path
from string import Template

from probe_core.registry.discover import RESERVED
from probe_core.testing.templates import TEMPLATES
from probe_core.wording import joined

__all__ = ["write"]


def write(name: str, folder: str | os.PathLike[str] = ".") -> list[Path]:
    """Write ``probe-NAME`` below `folder`; returns the files, in the order to read them.

    `name` is the prober's: small letters, digits and hyphens, and a letter first. Raises
    `ValueError` for a name that cannot be used, `OSError` when the folder exists or cannot be made.
    """
    if problem := _problem(name):
        raise ValueError(problem)
    root = Path(folder) / f"probe-{name}"
    package = f"probe_{name.replace('-', '_')}"
    names = {"name": name, "package": package, "class_name": name.title().replace("-", "")}
    if root.exists():
        raise FileExistsError(f"{root} exists already")
    written = []
    for path, text in TEMPLATES.items():
        target = root / Template(path).substitute(names)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(Template(text).substitute(names), encoding="utf-8")
        written.append(target)
    written.append(_manifest(root / "src" / package / "prober.json", name))
    return written


def _problem(name: str) -> str | None:
    """Return why a name cannot be used."""
    letters = name.replace("-", "")
    plain = name.isascii() and letters.isalnum() and name == name.lower() and name[0].isalpha()
    if not 0 < len(name) <= 40 or not plain or name.endswith("-"):
        return "a name is 1 to 40 small letters, digits and hyphens, and starts with a letter"
    if name in RESERVED or keyword.iskeyword(name):
        return f"the name is reserved: the core keeps {joined(sorted(RESERVED), 'and')} for itself"
    return None


def _manifest(path: Path, name: str) -> Path:
    fields = {
        "summary": f"{name} devices through sysfs",
        "api": "1.0",
        "priority": 400,
        "deadline_s": 3.0,
        "active": False,
        "when": {"os": ["linux"], "any_path": [f"/sys/class/{name}"]},
        "records": {
            "files": [
                f"/sys/class/{name}/failed",
                *(f"/sys/class/{name}/*/{file}" for file in ("address", "name", "memory_bytes")),
            ]
        },
    }
    text = json.dumps({"schema": 1, "probers": {name: fields}}, indent=2)
    path.write_text(text + "\n", encoding="utf-8")
    return path
