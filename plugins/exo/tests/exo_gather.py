"""Run in exo's own interpreter: its gathering loop, with a probe-exo that a test chooses.

Prints what came, and how often exo warned. `hangs`: every call of probe-exo blocks. `lies`: its
answers have the wrong types. `absent`: it is not installed. `core`: it is this repository's.
`driver`: it is, and a prober of it hangs.
"""

from __future__ import annotations

import sys
import threading
from types import ModuleType, SimpleNamespace

import anyio
from anyio import move_on_after
from loguru import logger

fault = sys.argv[1]

OTHER_THREADS = 2
"""Of exo's own: NVML's, and that of its disks."""


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
elif fault == "driver":
    import probe_core

    probe_core.register("given", "exo_given_prober")
elif fault != "core":
    stand_in(SimpleNamespace(available="much", backends=("Abacus",), why_not={}, kind=7))

from exo.shared.types.profiling import MemoryUsage  # noqa: E402
from exo.utils.channels import channel  # noqa: E402
from exo.utils.info_gatherer import info_gatherer  # noqa: E402

backends: list[str] = []


async def gather() -> set[str]:
    """Return the kinds of information that came."""
    kinds: set[str] = set()
    wanted = {"MemoryUsage", "NodeNetworkInterfaces", "NodeBackends", "StaticNodeInformation"}
    sender, receiver = channel[info_gatherer.GatheredInfo]()
    gatherer = info_gatherer.InfoGatherer(info_sender=sender)
    async with anyio.create_task_group() as group:
        group.start_soon(gatherer.run)
        with move_on_after(40):
            async for info in receiver:
                kinds.add(type(info).__name__)
                if isinstance(info, info_gatherer.NodeBackends):
                    backends.extend(backend.value for backend in info.backends)
                if isinstance(info, MemoryUsage) and fault in ("hangs", "lies", "absent"):
                    assert info.engine_available is None
                    assert info.placeable == info.ram_available
                if wanted <= kinds:
                    break
        await anyio.sleep(1.5)  # what is asked each second was asked twice then
        group.cancel_scope.cancel()
    return kinds


lines: list[str] = []
logger.add(lines.append, level="INFO", format="{message}")
found = anyio.run(gather)
assert {
    "MemoryUsage",
    "NodeNetworkInterfaces",
    "NodeBackends",
    "StaticNodeInformation",
} <= found, found
told = [line for line in lines if "cannot be told" in line]
assert len(told) == len(set(told)), told
# One thread for each question that hangs: memory, backends, model, links, speed.
workers = [thread for thread in threading.enumerate() if thread.name.startswith("AnyIO")]
assert fault != "hangs" or len(workers) <= 5 + OTHER_THREADS, workers
print(backends)
print(*[line for line in lines if line.startswith("Engines: ")], end="")
print("memory, interfaces, backends and identity;", len(told), "warnings")
sys.stdout.flush()
import os  # noqa: E402

os._exit(0)  # a thread that hangs would keep the interpreter
