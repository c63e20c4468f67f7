"""What a device reaches of its theoretical bandwidth with an engine: figures of efficiency.toml."""

from __future__ import annotations

import os
import re
import tomllib
from functools import cache
from typing import NamedTuple, TypedDict, cast

from probe_cluster.planning.engines import ENGINES, engine_name, usual_engine
from probe_core.commands import bandwidth as rate_text

# Makers' names of cards with high-bandwidth memory, which chips of their architecture may lack.
_HBM = re.compile(
    r"\b(?:A100|A800|A30|H100|H200|H800|H20|GH200|B100|B200|GB200|B300|GB300|V100|P100|"
    r"MI\d{2,3}[AX]?|Radeon VII|Instinct)\b",
    re.IGNORECASE,
)
_APPLE = re.compile(r"\bM(\d+)\b")


class EfficiencyTable(TypedDict):
    """The tables of efficiency.toml; its comments say what they hold."""

    range: float
    share: dict[str, float | dict[str, float]]
    tau: dict[str, dict[str, float]]
    kind: dict[str, float]
    reduce: dict[str, float]
    hop: dict[str, float]


class Efficiency(NamedTuple):
    """How a class of device runs models with an engine."""

    share: float
    """Of the theoretical bandwidth."""
    tau: float
    """Seconds of a layer of a dense model beyond its bytes."""
    basis: str
    """What it rests on."""
    measured: bool = False
    """Whether the bandwidth is a measured one, which no fit on published speeds is about."""
    engine: str | None = None
    """Name of the engine."""

    def layer_seconds(self, kind: str) -> float:
        """Return the seconds of a layer beyond its bytes, by kind of model."""
        return self.tau * table()["kind"].get(kind, 1.0)


@cache
def table() -> EfficiencyTable:
    """Return the figures."""
    path = os.path.join(os.path.dirname(__file__), "efficiency.toml")
    with open(path, "rb") as file:
        return cast("EfficiencyTable", tomllib.load(file))


def device_class(
    kind: str, vendor: str | None, name: str | None, arch: str | None, unified: bool
) -> str | None:
    """Return the class of a device; None for one whose like was never measured."""
    if kind == "cpu":
        return "cpu"
    if vendor == "apple":
        match = _APPLE.search(name or "")
        return None if match is None else "apple-m1-m2" if int(match[1]) < 3 else "apple-m3"
    if kind != "gpu" or vendor not in ("nvidia", "amd"):
        return None
    if unified:
        return "unified"
    if _HBM.search(name or ""):
        return "hbm"
    new = vendor == "nvidia" and (arch or "").startswith(("ada", "blackwell"))
    return "gddr-new" if new else "gddr-old"


def efficiency_of(class_: str | None, engine: str = "auto") -> Efficiency | None:
    """Return what a class of device reaches with an engine; None where nothing was measured.

    ``auto`` is the usual engine of the class. Raises `ClusterError` for an unknown engine.
    """
    engine = engine_name(engine)
    if engine == "auto":
        engine = usual_engine(class_)
    computes = ENGINES[engine].computes or ""
    tau = table()["tau"].get(computes, {}).get(class_ or "")
    own = table()["share"].get(computes)
    share = own.get(class_ or "") if isinstance(own, dict) else None
    general = table()["share"].get(class_ or "")
    if share is None and isinstance(general, float):
        share = general
    if tau is None or share is None:
        return None
    basis = f"{engine} on {class_}: {share:.0%} of the bandwidth and {tau:g} us a layer"
    return Efficiency(share, tau * 1e-6, f"{basis}, fitted on published speeds", engine=engine)


def with_measured(default: Efficiency, bandwidth: float, by: str) -> Efficiency:
    """Return the efficiency over a measured bandwidth (bytes per second), which needs no share.

    An engine reads at most as fast as a loop that does nothing else: times are lower bounds.
    """
    speed = f"measured: {rate_text(bandwidth)} read by {by}"
    basis = f"{speed}, and {default.tau * 1e6:g} us a layer"
    return Efficiency(1.0, default.tau, basis, measured=True, engine=default.engine)


def hop_software(engine: str) -> float:
    """Return the seconds that an engine adds to each hop of a pipeline."""
    hops = table()["hop"]
    return (hops[engine] if engine in hops else hops.get(ENGINES[engine].computes or "", 0)) * 1e-6
