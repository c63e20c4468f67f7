"""Coverage-guided fuzzing by hand, with atheris (libFuzzer) where it installs.

    python tests/fuzz/guided.py frames -max_total_time=600

Parsers: those of `PARSERS` below and in guided_data.py; `all` feeds each in turn, `-runs=100000`
inputs for instance, in a process of its own. Stops at the first exception that a parser does not
document. Hypothesis does the bounded part in every test run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import guided_data

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "0123456789abcdef"
PLUGINS = [path.name for path in ROOT.glob("plugins/*/src/probe_*")]


def frames(data: bytes) -> None:
    run = import_module("probe_core.isolation.run")
    prober = import_module("probe_core.registry.prober")
    one = run.Run(prober.Prober("x", "x"), TOKEN, "mark", 0.0)
    one.feed(data, 1.0)
    one.feed(f"{TOKEN} ".encode() + data + b"\n", 1.0)
    collected = import_module("probe_core.pipeline.validate").Collected()
    collected.add_run(one)
    json.dumps(collected.outcomes, allow_nan=False)


def manifest(data: bytes) -> None:
    module = import_module("probe_core.registry.prober")
    prober = import_module("probe_core.registry.prober").Prober("x", "x")
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        return
    for key, value in (fields if isinstance(fields, dict) else {"when": fields}).items():
        module.take_field(prober, key, value)
    import_module("probe_core.recording.declared").check_records(prober.records)


def entry_points(data: bytes) -> None:
    module = import_module("probe_core.registry")
    discover = import_module("probe_core.registry.prober")
    text = "[probe_core.probers.v1]\n" + data.decode("utf-8", "surrogateescape")
    try:
        lines = list(module._parse(text, module.GROUP_STEM))
    except ValueError:
        return
    for line in lines:
        discover._from_entry(
            module.EntryPoint(*line, "/nowhere/x-1.dist-info", "x", "1"),
            discover.Trust(),
            discover.Budget(),
        )


def ids(data: bytes) -> None:
    module = import_module("probe_core.model.ids")
    try:
        one = module.normalise_id(data.decode("utf-8", "replace"))
    except ValueError:
        return
    assert module.normalise_id(one) == one


def sightings(data: bytes) -> None:
    module = import_module("probe_core.pipeline.validate")
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
    **guided_data.PARSERS,
}


def _alone(parser: str, options: list[str]) -> int:
    """Fuzz one parser in a process of its own: libFuzzer ends the one that it runs in."""
    print(f"== {parser}", flush=True)
    with TemporaryDirectory() as folder:
        corpus = Path(folder, "corpus")
        corpus.mkdir()
        for number, seed in enumerate(guided_data.seeds(parser)):
            (corpus / str(number)).write_bytes(seed)
        command = [sys.executable, __file__, "--child", parser, str(corpus), *options]
        surroundings = {**os.environ, "TMPDIR": folder}
        return subprocess.run(command, check=False, env=surroundings).returncode


def _fuzz(parser: str, options: list[str]) -> None:
    atheris: Any = import_module("atheris")
    # The parsers import what they try when they are called: instrumenting ends with the fuzzing.
    with atheris.instrument_imports(include=["probe_core", "probe_chipdb", "tomllib", *PLUGINS]):
        atheris.Setup([sys.argv[0], *options], PARSERS[parser])
        atheris.Fuzz()


def main(arguments: list[str]) -> None:
    """Fuzz the parser that the first argument names, or all; the rest is libFuzzer's."""
    name, *options = arguments or [""]
    if name == "--child":
        _fuzz(options[0], options[1:])
    elif name == "all":
        sys.exit(max(_alone(parser, options) for parser in PARSERS))
    elif name in PARSERS:
        sys.exit(_alone(name, options))
    sys.exit(f"name a parser: all, {', '.join(PARSERS)}")


if __name__ == "__main__":
    sys.path[:0] = map(str, [ROOT, ROOT / "chipdb/src", *ROOT.glob("plugins/*/src")])
    main(sys.argv[1:])
