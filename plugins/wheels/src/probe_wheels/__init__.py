"""Which of a node's devices the wheels of a Python environment have code for.

Read from files alone, standard library only: nothing is imported, executed or changed. Nothing of
this package is imported until a name is used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_wheels.choice import Choice as Choice
    from probe_wheels.choice import choose as choose
    from probe_wheels.devices import Gpu as Gpu
    from probe_wheels.devices import gpus_of as gpus_of
    from probe_wheels.environment import Environment as Environment
    from probe_wheels.environment import find_environment as find_environment
    from probe_wheels.surveying import Survey as Survey
    from probe_wheels.surveying import survey as survey
    from probe_wheels.surveying import wheels as wheels

_MODULES = {
    "Choice": "choice",
    "choose": "choice",
    "Gpu": "devices",
    "gpus_of": "devices",
    "Environment": "environment",
    "find_environment": "environment",
    "Survey": "surveying",
    "survey": "surveying",
    "wheels": "surveying",
}

__all__ = [*_MODULES]


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'probe_wheels' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"probe_wheels.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
