"""Run in exo's own interpreter: its gathering loop, with a probe-exo that a test chooses.

Prints what came within some seconds. `hangs`: every call of probe-exo blocks. `lies`: its answers
have the wrong types. `absent`: it is not installed. `core`: it is this repository's.
"""

from __future__ import annotations

import sys
import threading
from types import ModuleType, SimpleNamespace

import anyio
from anyio import move_on_after

fault = sys.argv[1]


def stand_in(answer: object) -> None:
    """Put a probe-exo into place whose functions all behave alike."""

    def call(*_: object, **__: object) -> object:
        if fault == "hangs":
            threading.Event().wait()
        return answer

    package = ModuleType("probe_exo")
    sys.modules["probe_exo"] = package
    for name, functions in {
        "memory": ["engine_memory"],
        "node": ["node_backends", "node_identity"],
        "links": ["node_interfaces"],
        "speed": ["engine_speed"],
    }.items():
        module = ModuleType(f"probe_exo.{name}")
        for function in functions:
            setattr(module, function, call)
        setattr(package, name, module)
        sys.modules[f"probe_exo.{name}"] = module


if fault == "absent":
    sys.modules["probe_exo"] = None  # type: ignore[assignment]
elif fault != "core":
    stand_in(SimpleNamespace(available="much", backends=("Abacus",), why_not={}, kind=7))

from exo.shared.types.profiling import MemoryUsage  # noqa: E402
from exo.utils.channels import channel  # noqa: E402
from exo.utils.info_gatherer import info_gatherer  # noqa: E402


async def gather() -> set[str]:
    """Return the kinds of information that came."""
    kinds: set[str] = set()
    wanted = {"MemoryUsage", "NodeNetworkInterfaces", "NodeBackends"}
    if fault == "hangs":  # exo asks for its engines for 30 s, which a test does not wait for
        wanted.remove("NodeBackends")
        kinds.add("NodeBackends")
    sender, receiver = channel[info_gatherer.GatheredInfo]()
    gatherer = info_gatherer.InfoGatherer(info_sender=sender)
    async with anyio.create_task_group() as group:
        group.start_soon(gatherer.run)
        with move_on_after(25):
            async for info in receiver:
                kinds.add(type(info).__name__)
                if isinstance(info, MemoryUsage) and fault != "core":
                    assert info.engine_available is None
                    assert info.placeable == info.ram_available
                if wanted <= kinds:
                    break
        group.cancel_scope.cancel()
    return kinds


found = anyio.run(gather)
assert {"MemoryUsage", "NodeNetworkInterfaces", "NodeBackends"} <= found, found
print("memory, interfaces and backends")
sys.stdout.flush()
import os  # noqa: E402

os._exit(0)  # a thread that hangs would keep the interpreter
