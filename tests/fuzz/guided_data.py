"""The parsers of data files, variables and texts, for the coverage-guided fuzzer."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

__all__ = ["PARSERS", "seeds"]

_FOLDER = TemporaryDirectory()


def _held(data: bytes) -> str:
    """Return the path of a file that holds the bytes."""
    path = Path(_FOLDER.name, str(os.getpid()))
    path.write_bytes(data)
    return str(path)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def settings(data: bytes) -> None:
    config, ignored = import_module("probe_core.setting_values").load_config({}, {}, _held(data))
    hash(config.key())
    assert all(ignored)


def static_report(data: bytes) -> None:
    module = import_module("probe_core.pipeline.static")
    document, findings = module.load_static(_held(data))
    if document is None:
        assert findings[0]["why"]
        return
    import_module("probe_core.pipeline.refresh").refresh(document, {"CUDA_VISIBLE_DEVICES": "0"})
    assert import_module("probe_core.model").Report.from_json(document).devices


def chips(data: bytes) -> None:
    database = import_module("probe_chipdb").load(extra=[_held(data)], packages=False)
    assert all(database.problems)
    for chip in database.tables()[0].chips:
        found = database.chip(chip[0])
        assert found is None or isinstance(found.peaks(), tuple)


def chip_names(data: bytes) -> None:
    """A name as each of the tools may print it, then what stands in it as other keys."""
    chipdb = import_module("probe_chipdb")
    database = globals().setdefault("_database", chipdb.load(packages=False))
    name = _text(data)
    for kind in chipdb.KINDS:
        match = database.match(name=name, name_kind=kind)
        assert match.chip or match.reason
    first, _, second = name.partition(" ")
    database.match(pci=first, subsystem=second, gpu_id=first, gfx=second, dt=[first, second])
    assert database.cpu(name=name, vendor=first, flags=second.split()).reason


def visibility(data: bytes) -> None:
    """The first byte says which variable the text is of; a NUL parts it from the next one's."""
    module = import_module("test_fuzz_visibility")
    start = data[0] if data else 0
    values = enumerate(_text(data[1:]).split("\0"), start)
    environ = {module.VARIABLES[at % len(module.VARIABLES)]: value for at, value in values}
    seen = import_module("probe_core.visibility")
    seen.findings(seen.see(module.NODES[3], environ))


def processors(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    json.dumps(import_module("probe_core.probers.cpu_files").parse(text), allow_nan=False)
    assert len(import_module("probe_core.probers.cpu_files").cpu_list(text)) <= 65_536


def topologies(data: bytes) -> None:
    module = import_module("probe_cluster.planning.old_exo")
    errors = import_module("probe_cluster.shared")
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return
    try:
        module.Topology.from_json(document).to_json()
    except errors.ClusterError:
        return


def lease_records(data: bytes) -> None:
    parse = import_module("probe_core.leasing.records")._parse
    record = parse(data.decode("ascii", "replace"))
    assert record.command.isprintable()
    assert all(name.isprintable() for name in record.devices)


def plugins(data: bytes) -> None:
    """What the plugins read of kernels, drivers and tools."""
    text = data.decode("utf-8", "replace")
    import_module("probe_amd.kfd").parse(text)
    assert (import_module("probe_mali.gpuinfo").GpuInfo(text).cores or 1) > 0
    for entry in import_module("probe_apple.ioreg").entries(data):
        import_module("probe_apple.ioreg").pci_ids(entry)
    profile: Any = import_module("probe_apple.profiler").Profile(data)
    assert isinstance(profile.displays, list)
    import_module("probe_exo.mac").parse_hardware(text)
    mac = import_module("probe_exo.mac")
    mac.parse_ports(text, mac.parse_interfaces(text))
    import_module("probe_core.sysfs.pci").normal_id(text)
    import_module("probe_core.sysfs.uevent").parse(text)
    import_module("probe_core.sysfs.fdinfo").parse(text)


PARSERS: dict[str, Callable[[bytes], None]] = {
    "settings": settings,
    "static-report": static_report,
    "chips": chips,
    "chip-names": chip_names,
    "visibility": visibility,
    "processors": processors,
    "topologies": topologies,
    "lease-records": lease_records,
    "plugins": plugins,
}

# Where good inputs lie: module of the bounded tests, names in it.
_SEEDS = {
    "manifest": ("test_fuzz_registry", "MANIFEST"),
    "entry-points": ("test_fuzz_registry", "ENTRIES"),
    "frames": ("test_fuzz_frames", "END"),
    "settings": ("test_fuzz_settings", "TOML"),
    "static-report": ("test_fuzz_settings", "REPORT"),
    "chips": ("test_fuzz_chips", "EXAMPLE", "SMALL", "CPU"),
    "chip-names": ("test_fuzz_chips", "SAID"),
    "visibility": ("test_fuzz_visibility", "ENTRIES"),
    "processors": ("test_fuzz_machine", "X86", "ARM"),
    "topologies": ("test_fuzz_cluster", "TOPOLOGY"),
    "lease-records": ("test_fuzz_leases", "RECORD"),
}


def seeds(parser: str) -> list[bytes]:
    """Return good inputs for a parser to begin with; each entry of a list is one."""
    module, *names = _SEEDS.get(parser, ("json",))
    found = [getattr(import_module(module), name) for name in names]
    flat = [one for seed in found for one in (seed if isinstance(seed, list) else [seed])]
    dumped = (json.dumps(one) if isinstance(one, dict) else one for one in flat)
    return [one.encode() if isinstance(one, str) else one for one in dumped]
