"""What an AI chip can do: units, clocks, memory and peaks, or the reason why that is unknown.

Nothing is imported until it is used: a node without accelerators pays for this line alone.

    >>> import probe_chipdb
    >>> db = probe_chipdb.load()
    >>> db.match(pci="10de:2684").chip.name
    'NVIDIA GeForce RTX 4090'
"""

# Not typing's own: importing typing would cost more than this whole package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb._version import __version__ as __version__
    from probe_chipdb.chip import Chip as Chip
    from probe_chipdb.chip import Clock as Clock
    from probe_chipdb.chip import Memory as Memory
    from probe_chipdb.cpu import CpuMatch as CpuMatch
    from probe_chipdb.database import Database as Database
    from probe_chipdb.database import load as load
    from probe_chipdb.matching import Match as Match
    from probe_chipdb.peaks import Arch as Arch
    from probe_chipdb.peaks import Peak as Peak
    from probe_chipdb.shortcuts import bandwidth as bandwidth
    from probe_chipdb.shortcuts import canonical as canonical
    from probe_chipdb.shortcuts import memory as memory
    from probe_chipdb.shortcuts import peak as peak
    from probe_chipdb.shortcuts import why as why
    from probe_chipdb.spelling import KINDS as KINDS
    from probe_chipdb.spelling import NORMALISE_VERSION as NORMALISE_VERSION
    from probe_chipdb.spelling import normalise as normalise

_MODULES = {
    "__version__": "_version",
    "Arch": "peaks",
    "Chip": "chip",
    "Clock": "chip",
    "Memory": "chip",
    "CpuMatch": "cpu",
    "Database": "database",
    "load": "database",
    "Match": "matching",
    "KINDS": "spelling",
    "NORMALISE_VERSION": "spelling",
    "normalise": "spelling",
    "Peak": "peaks",
    "bandwidth": "shortcuts",
    "canonical": "shortcuts",
    "memory": "shortcuts",
    "peak": "shortcuts",
    "why": "shortcuts",
}

__all__ = [  # noqa: RUF022 - in the order a reader meets them
    "peak",
    "why",
    "bandwidth",
    "memory",
    "canonical",
    "load",
    "Database",
    "Match",
    "Chip",
    "Clock",
    "Memory",
    "Arch",
    "Peak",
    "CpuMatch",
    "normalise",
    "KINDS",
    "NORMALISE_VERSION",
    "__version__",
]


def __getattr__(name: str) -> object:
    module_name = _MODULES.get(name)
    if module_name is None:
        raise AttributeError(f"module 'probe_chipdb' has no attribute {name!r}")
    module = __import__(f"probe_chipdb.{module_name}", fromlist=[name])
    value: object = getattr(module, name)
    globals()[name] = value  # so that the next access is a plain one
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
