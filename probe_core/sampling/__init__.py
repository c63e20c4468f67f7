"""Live figures: what each device does now, round after round.

    for round in probe_core.samples(interval=1.0):
        for sample in round.samples:
            print(sample["device"], sample["status"], sample["busy"])

Each sampler is one process that stays, see `isolation.resident`; nothing runs between rounds.
"""

from __future__ import annotations

import os

from probe_core.config import ConfigError, refuse_unknown
from probe_core.machine import Machine
from probe_core.sampling.rounds import AsyncRounds, Rhythm, Round, Rounds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, Unpack

    from probe_core.config import Settings
    from probe_core.model import Report
    from probe_core.probing import Target
    from probe_core.sampling.engine import Engine

__all__ = ["AsyncRounds", "Round", "Rounds", "samples", "samples_async"]

LEAST_S, MOST_S = 0.1, 3600.0
"""Bounds of `interval`. Below a tenth of a second a driver's own figures do not change."""


def samples(
    interval: float = 1.0,
    count: int | None = None,
    devices: Iterable[str] | str | None = None,
    report: Report | Mapping[str, Any] | None = None,
    *,
    config: str | os.PathLike[str] | None = None,
    machine: Machine | None = None,
    probers: Mapping[str, Target] | None = None,
    **settings: Unpack[Settings],
) -> Rounds:
    """Return an iterator of rounds, one each `interval` seconds (0.1 to 3600), for ever or `count`.

    `devices` are ids, whole or short, to which samples are restricted. `report` is what `probe`
    returned, or its document: samples then have its ids and order. Without one the buses and the
    samplers name the devices, which needs no probe. The rest are arguments as of `probe`.

    The first round comes at once and waits for libraries to start, as `probe` does; rates need a
    second round. Close the iterator (``close()``, ``with``) to end its processes; they end with
    the host in any case. Raises `ConfigError` for an argument that cannot be used, and nothing
    that hardware, drivers or plugins could cause.
    """
    refuse_unknown(samples, settings)
    rhythm = Rhythm(_interval(interval))
    make = _maker(settings, rhythm, devices, report, config, machine, probers)
    return Rounds(make, rhythm, _count(count))


def samples_async(
    interval: float = 1.0,
    count: int | None = None,
    devices: Iterable[str] | str | None = None,
    report: Report | Mapping[str, Any] | None = None,
    *,
    config: str | os.PathLike[str] | None = None,
    machine: Machine | None = None,
    probers: Mapping[str, Target] | None = None,
    **settings: Unpack[Settings],
) -> AsyncRounds:
    """Return what `samples` does for ``async for`` (asyncio, or trio), arguments as there.

    Waits in a thread that lasts one round. Cancelling the task ends the processes first.
    """
    refuse_unknown(samples_async, settings)
    return AsyncRounds(
        samples(
            interval,
            count,
            devices,
            report,
            config=config,
            machine=machine,
            probers=probers,
            **settings,
        )
    )


def _maker(
    settings: Mapping[str, object],
    rhythm: Rhythm,
    devices: object,
    report: object,
    config: object,
    machine: object,
    probers: object,
) -> Callable[[], Engine]:
    """Check the arguments, and return what makes the engine in the first round."""
    from probe_core.pipeline.settings import load_settings
    from probe_core.probing import checked_machine, checked_path, checked_probers

    here = checked_machine(machine) or Machine()
    selected, listed, extra = _ids_of(devices), _listed(report), checked_probers(probers)
    if selected is not None and listed is not None:
        _check_listed(selected, listed)
    loaded, _ = load_settings(settings, here.environ, checked_path(config))
    if loaded.static and loaded.sealed is None:
        from probe_core.config import IgnoredSetting

        loaded.sealed = IgnoredSetting(
            "a static report stands for all probers", "static", seals=True
        )

    def make() -> Engine:
        from probe_core.sampling.engine import Engine

        return Engine(
            here, loaded, report=listed, selected=selected, extra=extra, clock=rhythm.clock
        )

    return make


def _interval(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConfigError(f"the argument 'interval' is {value!r}: expected seconds")
    if not LEAST_S <= value <= MOST_S:
        raise ConfigError(f"the argument 'interval' is {value}: expected {LEAST_S} to {MOST_S:g} s")
    return float(value)


def _count(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"the argument 'count' is {value!r}: expected a whole number from 1")
    return value


def _ids_of(devices: object) -> Sequence[str] | None:
    if devices is None:
        return None
    names = [devices] if isinstance(devices, str) else devices
    if not isinstance(names, (list, tuple, set, frozenset)) or not names:
        raise ConfigError(f"the argument 'devices' is {devices!r}: expected ids of devices")
    if not all(isinstance(name, str) and name for name in names):
        raise ConfigError(f"the argument 'devices' is {devices!r}: expected ids of devices")
    return sorted(names)


def _check_listed(names: Sequence[str], listed: Sequence[Mapping[str, Any]]) -> None:
    """Raise `ConfigError` for a name that no device of the report has, nor the node itself."""
    from probe_core.likeness import did_you_mean
    from probe_core.model.naming import answers_to
    from probe_core.sampling.node import NODE

    known = [
        [NODE],
        *([str(device.get("id")), *map(str, device.get("ids") or ())] for device in listed),
    ]
    for name in names:
        if name != NODE and not any(answers_to(ids, name) for ids in known):
            hint = did_you_mean(name, [NODE, *(ids[0] for ids in known)])
            raise ConfigError(f"no device of the report is {name!r}: {hint}")


def _listed(report: object) -> Sequence[Mapping[str, Any]] | None:
    """Return the devices of a report or of its document."""
    if report is None:
        return None
    to_json = getattr(report, "to_json", None)
    document = to_json() if callable(to_json) else report
    listed = document.get("devices") if isinstance(document, dict) else None
    if not isinstance(listed, (list, tuple)) or not all(isinstance(d, dict) for d in listed):
        raise ConfigError("the argument 'report' is no report: give what `probe` returned")
    return list(listed)
