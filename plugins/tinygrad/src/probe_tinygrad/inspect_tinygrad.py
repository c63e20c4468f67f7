"""What the installed tinygrad is: version, backends, their order, how it chooses.

Read from the package and not from a table of versions, so a new one that works alike needs nothing.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, ModuleType

    from probe_tinygrad.messages import About, Style

__all__ = ["describe", "load"]


def load() -> ModuleType:
    """Import tinygrad; raises whatever it raises."""
    import tinygrad

    module: ModuleType = tinygrad
    return module


def describe(tinygrad: ModuleType) -> About:
    """Return version, backends and their order, how DEV is read, and the numeric variables."""
    return {
        "version": _version(os.path.dirname(os.path.abspath(str(tinygrad.__file__)))),
        "backends": list(tinygrad.Device._devices),
        "style": _style(tinygrad),
        "numbers": _numeric_variables(),
        "order": _order(tinygrad),
    }


def _order(tinygrad: ModuleType) -> list[str]:
    """Return the backends that tinygrad tries by itself, in its order.

    From 0.10.1 they are ``ALL_DEVICES``; before, a tuple in the code of the method that tries them.
    """
    from tinygrad import device

    names = getattr(device, "ALL_DEVICES", None)
    if names is None:
        names = next(_tuples(type(tinygrad.Device)), ())
    return [name for name in names if name in tinygrad.Device._devices]


def _tuples(kind: type) -> Iterator[tuple[str, ...]]:
    for name in ("get_available_devices", "DEFAULT"):
        code = _code(vars(kind).get(name))
        for constant in code.co_consts if code else ():
            if isinstance(constant, tuple) and "METAL" in constant:
                yield constant


def _code(member: object) -> CodeType | None:
    """Return the code of a function, property or cached property."""
    for attribute in ("func", "fget"):
        member = getattr(member, attribute, member)
    return getattr(member, "__code__", None)


def _style(tinygrad: ModuleType) -> Style:
    """Return how a backend is chosen: by ``DEV`` targets, by ``DEV`` names, or by ``CUDA=1``."""
    from tinygrad import helpers

    if hasattr(helpers, "Target"):
        return "targets"
    code = _code(vars(type(tinygrad.Device)).get("DEFAULT"))
    return "names" if code is not None and "DEV" in code.co_consts else "flags"


def _numeric_variables() -> list[str]:
    """Return the variables that it reads as whole numbers on import, and fails on otherwise."""
    from tinygrad import helpers

    variables = getattr(helpers.ContextVar, "_cache", {})
    return sorted(
        name for name, variable in variables.items() if type(getattr(variable, "value", 0)) is int
    )


def _version(package: str) -> str | None:
    """Return the version from the metadata beside the package; importlib.metadata costs 40 ms."""
    for name in os.listdir(os.path.dirname(package)):
        if name.startswith("tinygrad-") and name.endswith((".dist-info", ".egg-info")):
            return name.removesuffix(".dist-info").removesuffix(".egg-info").split("-")[1]
    return None
