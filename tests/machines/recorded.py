"""The recorded machines beside this file: read and unpacked by the core's own loader.

Beside what the core reads, these hold ``expect``, what a report must say, and ``with``, what it
must say when a plugin runs as well.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from probe_core import recording
from probe_core.recording.declared import Declared, check_records, own_declarations
from probe_core.recording.document import parse

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
KEYS = {"schema", "os", "arch", "environ", "origin", "files", "links", "expect", "with"}


def names() -> list[str]:
    """Return the names of all recorded machines; each says what is expected of it."""
    return sorted(path.stem for path in FOLDER.glob("*--*.json"))


def path(name: str) -> Path:
    """Return where the recorded machine of that name lies."""
    return FOLDER / f"{name}.json"


def read(name: str) -> dict[str, Any]:
    """Return a recorded machine's document, with what is expected of it."""
    data: dict[str, Any] = json.loads(path(name).read_text("utf-8"))
    unknown = set(data) - KEYS
    assert not unknown, f"{name} has unknown keys: {', '.join(sorted(unknown))}"
    return data


def declarations() -> list[Declared]:
    """Return what the core and the repository's own plugins declare, installed or not."""
    declared_all = own_declarations()
    for manifest in sorted(ROOT.glob("plugins/*/src/*/prober.json")):
        for name, fields in json.loads(manifest.read_text("utf-8"))["probers"].items():
            result, mistakes = check_records(fields["records"])
            assert not mistakes, (name, mistakes)
            declared_all.append(result)
    return declared_all


def unpack(data: dict[str, Any], folder: str | Path) -> Path:
    """Write a document's machine below `folder`; raises `BadRecording`."""
    Path(folder).parent.mkdir(parents=True, exist_ok=True)
    return Path(recording.unpack(parse(json.dumps(data).encode()), str(folder)))
