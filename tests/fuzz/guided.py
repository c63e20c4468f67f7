"""Coverage-guided fuzzing by hand, with atheris (libFuzzer) where it installs.

    python tests/fuzz/guided.py frames -max_total_time=600

Parsers: frames, manifest, entry-points, ids, sightings, recordings, archives. Stops at the first
exception that a parser does not document. Hypothesis does the bounded part in every test run.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "0123456789abcdef"


def frames(data: bytes) -> None:
    run = import_module("probe_core.isolation.run")
    prober = import_module("probe_core.registry.prober")
    one = run.Run(prober.Prober("x", "x"), TOKEN, "mark", 0.0)
    one.feed(data, 1.0)
    one.feed(f"{TOKEN} ".encode() + data + b"\n", 1.0)
    collected = import_module("probe_core.outcomes").Collected()
    collected.take_run(one)
    json.dumps(collected.outcomes, allow_nan=False)


def manifest(data: bytes) -> None:
    module = import_module("probe_core.registry.manifest")
    prober = import_module("probe_core.registry.prober").Prober("x", "x")
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        return
    for key, value in (fields if isinstance(fields, dict) else {"when": fields}).items():
        module.take_field(prober, key, value)


def entry_points(data: bytes) -> None:
    module = import_module("probe_core.registry.entrypoints")
    discover = import_module("probe_core.registry.discover")
    text = "[probe_core.probers.v1]\n" + data.decode("utf-8", "surrogateescape")
    try:
        lines = list(module._parse(text, module.GROUP_STEM))
    except ValueError:
        return
    for line in lines:
        discover._from_entry(module.EntryPoint(*line, "/nowhere/x-1.dist-info", "x", "1"))


def ids(data: bytes) -> None:
    module = import_module("probe_core.ids")
    try:
        one = module.normalise_id(data.decode("utf-8", "replace"))
    except ValueError:
        return
    assert module.normalise_id(one) == one


def sightings(data: bytes) -> None:
    module = import_module("probe_core.sightings")
    try:
        raw = json.loads(data)
    except (ValueError, RecursionError):
        return
    for one in (raw, {"ids": ["x:1"], "kind": "gpu", "extra": raw, "links": raw, "memory": raw}):
        sighting, _ = module.check_sighting(one)
        json.dumps(sighting, allow_nan=False)


def recordings(data: bytes) -> None:
    recording = import_module("probe_core.recording")
    try:
        import_module("probe_core.recording.document").parse(data)
    except recording.BadRecording:
        return


def archives(data: bytes) -> None:
    """Read members from bytes; sums are set right, or hardly a member would be read."""
    recording = import_module("probe_core.recording")
    blocks = [data[at : at + 512] for at in range(0, len(data), 512)]
    with TemporaryDirectory() as folder:
        path = Path(folder, "archive")
        path.write_bytes(b"".join(map(_summed, blocks)))
        try:
            recording.unpack(recording.read(str(path)), f"{folder}/root")
        except recording.BadRecording:
            return


def _summed(block: bytes) -> bytes:
    if block[257:262] != b"ustar":
        return block
    total = sum(block) - sum(block[148:156]) + 8 * ord(" ")
    return block[:148] + b"%06o\0 " % total + block[156:]


PARSERS: dict[str, Callable[[bytes], None]] = {
    "frames": frames,
    "manifest": manifest,
    "entry-points": entry_points,
    "ids": ids,
    "sightings": sightings,
    "recordings": recordings,
    "archives": archives,
}


def main(arguments: list[str]) -> None:
    """Fuzz the parser that the first argument names; the rest is libFuzzer's."""
    if not arguments or arguments[0] not in PARSERS:
        sys.exit(f"name a parser: {', '.join(PARSERS)}")
    sys.path[:0] = [str(ROOT), str(ROOT / "chipdb/src")]
    atheris: Any = import_module("atheris")
    # The parsers import what they try when they are called: instrumenting ends with the fuzzing.
    with atheris.instrument_imports(include=["probe_core"]):
        atheris.Setup([sys.argv[0], *arguments[1:]], PARSERS[arguments[0]])
        atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
