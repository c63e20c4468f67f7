"""No input of any parser raises anything but what the parser documents."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from probe_core.config import load_config
from probe_core.isolation.run import STATUSES, Run
from probe_core.isolation.wire import encode
from probe_core.outcomes import Collected
from probe_core.registry.discover import discover
from probe_core.registry.manifest import read_manifest, take_field
from probe_core.registry.prober import Prober
from probe_core.static import read_document

# How long: `FUZZ_EXAMPLES=100000 python -m pytest tests/fuzz -n 4` by hand.
fuzz = settings(
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "100")),
    derandomize="FUZZ_EXAMPLES" not in os.environ,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
TOKEN = "0123456789abcdef"
TEXTS = (
    "kind device end status ok timeout reason ids pci:0000:01:00.0 uuid:GPU-1 x:1 gpu npu name"
    " memory total free parts links peer extra unknown schema probers acme when os any_path"
    " priority api deadline_s active finding code what why fix devices id 1 1.0 linux /dev/x *"
)
WORDS = st.sampled_from([*TEXTS.split(), "\0", "\ud800", ""])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.integers(-(10**30), 10**30)
    | st.text(max_size=12)
    | WORDS
)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(WORDS | st.text(), inner, max_size=6)
    ),
    max_leaves=25,
)
FIELDS = (
    "name vendor pci memory clocks links extra unknown parent share node_index cpu"
    " driver backends peaks units cores bandwidth dt power_state"
).split()
DEVICES = st.fixed_dictionaries(
    {"ids": st.lists(WORDS, min_size=1, max_size=3), "kind": WORDS},
    optional=dict.fromkeys(FIELDS, JSON),
)


def run_of(*data: bytes) -> Run:
    run = Run(Prober("acme", "x"), TOKEN, "mark", 0.0)
    for piece in data:
        run.feed(piece, 1.0)
    return run


@fuzz
@given(st.lists(st.binary(max_size=300) | JSON.map(lambda v: encode(v).encode()), max_size=12))
def test_frames(pieces: list[bytes]) -> None:
    run = run_of(*(TOKEN.encode() + b" " + piece + b"\n" for piece in pieces))
    assert run.status in (None, *STATUSES)
    assert run.status in (None, "ok") or run.reason


@fuzz
@given(st.lists(DEVICES | JSON, max_size=6), st.lists(JSON, max_size=3))
def test_whatever_is_in_a_frame_is_collected(devices: list[Any], findings: list[Any]) -> None:
    frames = [{"kind": "device", "device": one} for one in devices]
    frames += [{"kind": "finding", "finding": one} for one in findings]
    lines = [f"{TOKEN} {encode(frame)}\n".encode() for frame in frames]
    run = run_of(*lines, f'{TOKEN} {{"kind":"end","status":"ok"}}\n'.encode())
    assert run.status == "ok"
    collected = Collected()
    collected.take_run(run)
    json.dumps(collected.outcomes, allow_nan=False)
    json.dumps([one.sighting for one in collected.said], allow_nan=False)
    assert len(collected.said) <= len(devices)


@fuzz
@given(DEVICES | JSON)
def test_devices_through_merge_resolve_and_report(device: Any) -> None:
    """From a decoded frame to the document, the way that a probe goes."""
    from probe_core.merge import merge
    from probe_core.resolve import open_chipdb, resolve
    from probe_core.sightings import check_sighting
    from probe_core.visibility import see

    sighting, _ = check_sighting(json.loads(encode(device)))
    if sighting is None:
        return
    from probe_core.merge import Said

    devices, _ = merge([Said("acme", 100, sighting)])
    resolve(devices, open_chipdb(())[0])
    see(devices, {"CUDA_VISIBLE_DEVICES": "0"})
    json.dumps(devices, allow_nan=False)


@fuzz
@given(st.text() | st.lists(WORDS | st.text(max_size=9)).map(lambda w: "\n".join(w)))
def test_entry_points(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    site = tmp_path_factory.mktemp("site")
    metadata = site / "probe_acme-1.0.dist-info"
    metadata.mkdir()
    content = f"[probe_core.probers.v1]\n{text}\n[probe_core.probers.v2]\n{text}"
    (metadata / "entry_points.txt").write_bytes(content.encode("utf-8", "surrogatepass"))
    probers, findings = discover({}, [str(site)])
    assert all(prober.name.isprintable() for prober in probers)
    assert all(finding["why"] for finding in findings)


@fuzz
@given(st.binary(max_size=400) | JSON.map(lambda v: json.dumps(v).encode()))
def test_manifests(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("manifest") / "prober.json"
    path.write_bytes(content)
    try:
        fields = read_manifest(str(path), "acme")
    except (OSError, ValueError, RecursionError):
        return
    prober = Prober("acme", "x")
    for key, value in fields.items():
        take_field(prober, key, value)
    assert 1 <= prober.priority <= 999


@fuzz
@given(JSON)
def test_manifest_tables(value: Any) -> None:
    prober = Prober("acme", "x")
    for key in ("summary", "api", "priority", "deadline_s", "active", "when", "other"):
        take_field(prober, key, value)
    assert all(problem.strip() for problem in prober.problems)


@fuzz
@given(st.binary(max_size=300) | JSON.map(lambda v: json.dumps(v).encode()))
def test_static_reports(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("static") / "report.json"
    path.write_bytes(content)
    try:
        document = read_document(str(path))
    except (OSError, ValueError, RecursionError):
        return
    assert document["devices"]


VARIABLES = "ONLY DISABLE PRIORITY TIMEOUT ACTIVE ALLOW CHIPDB STATIC ODD".split()


@fuzz
@given(st.dictionaries(st.sampled_from(VARIABLES), st.text(max_size=20) | WORDS))
def test_settings_from_the_environment(values: dict[str, str]) -> None:
    config, ignored = load_config({}, {f"PROBE_{name}": value for name, value in values.items()})
    assert all(sentence for sentence in ignored)
    hash(config.key())


TOML = st.text(max_size=200) | st.lists(
    st.sampled_from(["only = ", "[priority]\n", '"acme"', "= 5\n", "[[", "timeout = inf\n", "'''"])
).map("".join)


@fuzz
@given(TOML)
def test_settings_from_a_file(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path: Path = tmp_path_factory.mktemp("config") / "config.toml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    config, ignored = load_config({}, {}, str(path))
    assert all(sentence for sentence in ignored)
    hash(config.key())
