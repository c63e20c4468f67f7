"""What a child sends: no bytes raise in the parent, and no device breaks what comes after it."""

from __future__ import annotations

import json
import re

import pytest
from foreign import CHANCES, Chance
from hypothesis import given
from hypothesis import strategies as st

from probe_core.isolation.run import Run
from probe_core.isolation.wire import encode
from probe_core.model import Report
from probe_core.model.ids import STATUSES, normalise_id
from probe_core.pipeline.failures import check_finding
from probe_core.pipeline.merge import Observation, merge
from probe_core.pipeline.validate import Collected, check_sighting
from probe_core.registry.prober import Prober
from probe_core.resolve import open_chipdb, resolve
from probe_core.visibility import annotate, findings, see

CHIPS, _ = open_chipdb(())
TOKEN = "0123456789abcdef"
END = b'{"kind": "end", "status": "ok", "reason": "none"}'


def run_of(*data: bytes) -> Run:
    run = Run(Prober("acme", "x"), TOKEN, "mark", 0.0)
    for piece in data:
        run.feed(piece, 1.0)
    return run


@given(CHANCES)
def test_frames(chance: Chance) -> None:
    good = [encode(chance.value()).encode() for _ in range(chance.randrange(6))]
    pieces = [chance.mutate(END, *good) for _ in range(chance.randrange(6))]
    run = run_of(*(TOKEN.encode() + b" " + piece + b"\n" for piece in pieces))
    assert run.status in (None, *STATUSES)
    assert run.status in (None, "ok") or run.reason


@given(st.lists(st.binary(max_size=300), max_size=6))
def test_standard_error(pieces: list[bytes]) -> None:
    run = run_of()
    for piece in pieces:
        run.feed_stderr(piece)
    run.exited(-11, 2.9)
    assert run.status in ("crashed", "timeout")
    assert all(line.isprintable() for line in [*run.stderr_tail(), run.reason or ""])


@pytest.mark.heavy
@given(CHANCES)
def test_whatever_is_in_a_frame_is_collected(chance: Chance) -> None:
    devices = [chance.device() for _ in range(chance.randrange(5))]
    findings = [chance.value() for _ in range(chance.randrange(3))]
    frames = [{"kind": "device", "device": one} for one in devices]
    frames += [{"kind": "finding", "finding": one} for one in findings]
    lines = [f"{TOKEN} {encode(frame)}\n".encode() for frame in frames]
    run = run_of(*lines, f'{TOKEN} {{"kind":"end","status":"ok"}}\n'.encode())
    assert run.status == "ok"
    collected = Collected()
    collected.add_run(run)
    json.dumps(collected.outcomes, allow_nan=False)
    json.dumps([one.sighting for one in collected.observations], allow_nan=False)
    assert len(collected.observations) <= len(devices)


@given(CHANCES)
def test_ids(chance: Chance) -> None:
    words = ["pci", "uuid", "GPU-", "dt", "/", ":", ".", "0000", "01", "1f", "7", "A", "-1"]
    try:
        identity = normalise_id(chance.words(words, ""))
    except ValueError:
        return
    assert normalise_id(identity) == identity
    if identity.startswith("pci:"):
        assert re.fullmatch(r"pci:[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]", identity)


@given(CHANCES)
def test_findings(chance: Chance) -> None:
    raw = chance.value()
    for one in (raw, {"code": raw, "what": "x", "why": "y", "fix": "z", "severity": raw}):
        found = check_finding(json.loads(encode(one)))
        assert found is None or found["severity"] in ("info", "warning", "error")


@pytest.mark.heavy
@given(CHANCES)
def test_devices_through_merge_resolve_and_report(chance: Chance) -> None:
    """From decoded frames to the document and its view, the way that a probe goes."""
    raw = (json.loads(encode(chance.device())) for _ in range(chance.randrange(1, 4)))
    checked = (check_sighting(device)[0] for device in raw)
    said = [Observation(f"acme{n}", 100 + n, one) for n, one in enumerate(checked) if one]
    devices, _ = merge(said)
    resolve(devices, CHIPS)
    views = see(devices, {"CUDA_VISIBLE_DEVICES": "0"})
    annotate(devices, views)
    document = {"schema": 1, "devices": devices, "findings": findings(views)}
    json.dumps(document, allow_nan=False)
    if devices:
        assert len(Report.from_json(document).devices) == len(devices)
