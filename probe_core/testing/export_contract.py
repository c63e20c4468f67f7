"""Reports of made-up nodes for the contract of formats: each passed through the whole pipeline."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from tempfile import TemporaryDirectory
from typing import Any

from probe_core.machine import Machine
from probe_core.registry import find_module
from probe_core.registry.extensions import manifest_table, texts
from probe_core.testing.checks import check_import
from probe_core.testing.sightings import FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.model.document import ReportDoc


_GIB = 1 << 30
_ANSWERS = [{"step": "responding", "status": "ok", "evidence": "it answered"}]
_LOST = [{"step": "responding", "status": "broken", "evidence": "NVML 15", "code": "gpu-lost"}]
_MIG = [{"step": "granted", "status": "broken", "evidence": "MIG is on", "code": "mig-mode"}]


def _gpu(number: int, name: str | None, **fields: Any) -> dict[str, Any]:
    uuid = f"uuid:GPU-00000000-0000-0000-0000-{number:012d}"
    sighting = {
        "ids": [f"pci:0000:{number:02x}:00.0", uuid],
        "kind": "gpu",
        "vendor": "nvidia",
        "name": name,
        "driver": {"name": "nvidia", "version": "550.163.01", "cuda": "12.4"},
        "memory": {"kind": "dedicated", "total": 80 * _GIB},
        "nodes": [f"/dev/nvidia{number - 1}", "/dev/nvidiactl"],
        "step_facts": _ANSWERS,
    }
    return sighting | fields


def _instance(parent: Mapping[str, Any], number: int) -> dict[str, Any]:
    profile = "3g.40gb"
    caps = [f"/dev/nvidia-caps/nvidia-cap{number + step}" for step in (0, 1)]
    return _gpu(
        9,
        f"{parent['name']} MIG {profile}",
        ids=[f"uuid:MIG-00000000-0000-0000-0000-{number:012d}"],
        parent=parent["ids"][0],
        profile=profile,
        memory={"kind": "dedicated", "total": 40 * _GIB},
        nodes=[*parent["nodes"], *caps],
    )


_H100 = "NVIDIA H100 80GB HBM3"
_CARD = _gpu(2, "NVIDIA A100-SXM4-80GB", step_facts=_MIG)

NODES: dict[str, Sequence[Mapping[str, Any]]] = {
    "none": [],
    "eight": [_gpu(number, _H100) for number in range(1, 9)],
    "mixed": [_gpu(1, "NVIDIA GeForce RTX 3090"), _gpu(2, "NVIDIA GeForce RTX 4090")],
    "partitioned": [_CARD, _instance(_CARD, 21), _instance(_CARD, 30)],
    "lost": [_gpu(1, _H100), _gpu(2, _H100, step_facts=_LOST)],
    "all-lost": [_gpu(1, _H100, step_facts=_LOST)],
    "nameless": [_gpu(1, None, memory=None, driver=None)],
    "odd": [
        _gpu(1, 'it\'s "odd" \\ $HOME `x`, =#: \u00e9\u4e2d\ud800\n'),
        _gpu(2, "X" * 300),
        _gpu(3, "-._ (nvgpu)"),
    ],
}
"""Name to what a prober detects: whole, cut, lost and hardly described GPUs."""

USABLE = {
    "none": 0,
    "eight": 8,
    "mixed": 2,
    "partitioned": 2,
    "lost": 1,
    "all-lost": 0,
    "nameless": 1,
    "odd": 3,
}
"""Name to the number of accelerators that a job can be given."""


def node_report(name: str, folder: Path) -> ReportDoc:
    """Return the document of a made-up node; `folder` is where its files are written."""
    from probe_core import probe

    (folder / "proc").mkdir(parents=True, exist_ok=True)
    (folder / "proc" / "meminfo").write_text("MemTotal: 65536000 kB\nMemAvailable: 64000000 kB\n")
    (folder / FILE.lstrip("/")).write_text(json.dumps(NODES[name]))
    machine = Machine(str(folder), {}, "linux", "x86_64")
    probers = {"sightings": {"target": "probe_core.testing.sightings"}}
    document: Any = probe(machine=machine, only=["sightings"], probers=probers).to_json()
    report: ReportDoc = document
    return report


# The contract kit for formats of `probe export`: a subclass names one, and says how it counts.

_IDENTITY = re.compile(r"(?:GPU|MIG)-0000")
_ABSENT = re.compile(r"\b(?:None|nan|NaN|inf)\b")


@cache
def _report(name: str, run: int = 1) -> Any:
    """Return the report of a run on a node, made once for all tests."""
    with TemporaryDirectory() as folder:
        return node_report(name, Path(folder))


class ExporterContract:
    """Checks of one format; subclass it as ``TestSomething``.

    `name` is the entry point's name, `target` its ``module:function``. `volatile` are parts of
    lines that may differ between two runs: times, free memory. `identities` says that UUIDs are
    wanted, which are serial numbers in all but name. `usable` is the number of accelerators that
    jobs can be given on each node; a format for one process has 1 on the node ``partitioned``,
    since CUDA shows a process one instance alone.
    """

    name: str
    target: str
    volatile: tuple[str, ...] = ()
    identities: bool = False
    usable: Mapping[str, int] = USABLE

    def count(self, text: str) -> int:
        """Return how many accelerators `text` offers to jobs."""
        raise NotImplementedError

    def export(self, report: Any) -> str:
        """Return the text of a report, as `probe export` gets it."""
        text: str = resolve_name(self.target)(report)
        return text

    def test_importing_has_no_effects(self, capfd: Any) -> None:
        check_import(self.target.partition(":")[0], capfd)

    def test_its_manifest_has_a_summary(self) -> None:
        module = self.target.partition(":")[0]
        place = find_module(module)[0]
        assert place is not None, f"{module} cannot be located without an import"
        path = place.manifest(module, "exporter")
        assert path is not None, f"exporter.json is missing beside {module}"
        keys = (("summary", 200), ("content_type", 100), ("expiry", 100))
        assert texts(manifest_table(path, "exporters"), self.name, keys).get("summary")

    def test_every_node_gives_text(self) -> None:
        for name in NODES:
            text = self.export(copy.deepcopy(_report(name)))
            assert isinstance(text, str), f"{name}: {type(text).__name__} is no text"
            assert text.endswith("\n"), f"{name}: the last line has no end"
            text.encode()  # a lone surrogate has no bytes

    def test_unknown_is_absent(self) -> None:
        for name in NODES:
            match = _ABSENT.search(self.export(_report(name)))
            assert match is None, f"{name}: {match and match[0]} stands for an unknown value"

    def test_no_identity_is_told(self) -> None:
        if not self.identities:
            for name in NODES:
                assert not _IDENTITY.search(self.export(_report(name))), f"{name}: a UUID"

    def test_the_report_is_not_changed(self) -> None:
        for name in NODES:
            report = copy.deepcopy(_report(name))
            self.export(report)
            assert report == _report(name), f"{name}: the format changed the report"

    def test_two_runs_give_the_same_bytes(self) -> None:
        for name in ("eight", "partitioned", "lost"):
            first, second = (
                [line for line in text.split("\n") if not any(v in line for v in self.volatile)]
                for text in (self.export(_report(name, run)) for run in (1, 2))
            )
            assert first == second, f"{name}: the second run writes other lines"

    def test_what_is_blocked_is_not_offered(self) -> None:
        counts = {name: self.count(self.export(_report(name))) for name in NODES}
        wrong = {name: count for name, count in counts.items() if count != self.usable[name]}
        assert not wrong, f"it offers {wrong}; usable are { ({n: USABLE[n] for n in wrong}) }"
