"""The values of options that completion offers: names from metadata, devices from a short look."""

from __future__ import annotations

import os

from probe_core.config import SETTINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from probe_core.registry.entrypoints import EntryPoint

    Offered = list[tuple[str, str]]
    Source = Callable[[str, Sequence[str], Mapping[str, str]], Offered]

__all__ = ["LISTS", "UNFINISHED", "values_of", "within_limit"]

LIMIT_S = 0.25
"""Seconds for what may hang, the rest of a Tab takes 50 ms: a person waits no longer for one."""


class within_limit:  # used as a statement
    """End the process silently when what is inside takes longer than `LIMIT_S`.

    By a thread of C, which ends a hanging driver or import too; a signal's handler in Python would
    wait for it. The shell then offers nothing.
    """

    __slots__ = ("_null",)

    def __enter__(self) -> None:
        import faulthandler

        self._null = open(os.devnull, "w")
        faulthandler.dump_traceback_later(LIMIT_S, exit=True, file=self._null)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        import faulthandler

        faulthandler.cancel_dump_traceback_later()
        self._null.close()


def values_of(dest: str, typed: str, before: Sequence[str], environ: Mapping[str, str]) -> Offered:
    """Return the values of an argument by its name; none where nothing is known of them.

    `typed` is what they begin with; `before` are the command and its words that are typed already.
    """
    setting = SETTINGS.get(dest)
    source = _OF_KINDS.get(setting.kind) if setting is not None else _SOURCES.get(dest)
    if source is None:
        return []
    # Whatever cannot be read, a shell gets no words for it and no message between its own.
    try:
        return source(typed, before, environ)
    except Exception:
        return []


def _probers(typed: str, before: Sequence[str], environ: Mapping[str, str]) -> Offered:
    own = [("bus", "built in"), ("cpu", "built in")]
    return own + [(entry.name, _owner(entry)) for entry in _entries()]


def _entries() -> Sequence[EntryPoint]:
    from probe_core.registry.entrypoints import GROUP, scan

    return [entry for entry in scan()[0] if entry.group == GROUP]


def _owner(entry: EntryPoint) -> str:
    return f"{entry.distribution} {entry.version}".strip()


def _ranks(typed: str, before: Sequence[str], environ: Mapping[str, str]) -> Offered:
    if "=" in typed:
        return []
    return [(f"{name}=", owner) for name, owner in _probers(typed, before, environ)]


def _distributions(typed: str, before: Sequence[str], environ: Mapping[str, str]) -> Offered:
    return list({entry.distribution: _owner(entry) for entry in _entries()}.items())


def _plugin_names(typed: str, before: Sequence[str], environ: Mapping[str, str]) -> Offered:
    """Return the names for `plugins why-not` and its like; a new one is nobody's."""
    return [] if "new" in before else _probers(typed, before, environ)


def _runtimes(typed: str, before: Sequence[str], environ: Mapping[str, str]) -> Offered:
    from probe_core.model.readiness import RUNTIMES

    return [(name, "") for name in RUNTIMES]


def _chips(typed: str, before: Sequence[str], environ: Mapping[str, str]) -> Offered:
    """Return vendors first, then the chips of one: of all there are thousands."""
    from probe_core.resolve import open_chipdb

    file = environ.get("PROBE_CHIPDB")
    database = open_chipdb([file] if file else ())[0]
    if database is None:
        return []
    ids = sorted({id_ for table in database.tables() for id_, _ in table.chips})
    if "/" in typed:
        return [(id_, "") for id_ in ids if id_.startswith(typed)]
    return [(vendor, "") for vendor in dict.fromkeys(f"{id_.partition('/')[0]}/" for id_ in ids)]


_OF_ACCELERATORS = (["doctor"], ["env"], ["exec"])
"""Commands that take no processor: none is leased, and none has a driver to repair."""


def _settings_of_kinds(*kinds: str) -> set[str]:
    return {name for name, setting in SETTINGS.items() if setting.kind in kinds}


def _devices(typed: str, before: Sequence[str], environ: Mapping[str, str]) -> Offered:
    """Return the devices that the built-in probers see: no plugin that could hang is started."""
    from probe_core.cli.parser import Parser
    from probe_core.commands.context import Context
    from probe_core.commands.options import add_probe_options

    parser = Parser(prog="probe")
    add_probe_options(parser)
    args = parser.parse_args(["--only", "bus,cpu"])
    args.machine, args.static = _value_of(before, "--machine"), _value_of(before, "--static")
    with within_limit():
        devices = Context(args, environ=environ).report()["devices"]
    excluded = "cpu" if before[:1] in _OF_ACCELERATORS else None
    shown = [device for device in devices if device["kind"] != excluded]
    return [(device["id"], device["name"] or "") for device in shown]


def _value_of(words: Sequence[str], option: str) -> str | None:
    """Return the value that an option has on the line."""
    for at, word in enumerate(words):
        if word == option and at + 1 < len(words):
            return words[at + 1]
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return None


def _leased(typed: str, before: Sequence[str], environ: Mapping[str, str]) -> Offered:
    from probe_core.leasing.folder import lease_folder
    from probe_core.leasing.listing import leases

    folder = lease_folder(environ)
    try:
        with within_limit():
            entries = leases(folder)
    finally:
        folder.close()
    devices = [(entry["device"], entry["command"] or "") for entry in entries]
    owners = [(str(e["pid"]), e["command"] or "") for e in entries if e["pid"] is not None]
    return [*dict(devices).items(), *dict(owners).items(), ("all", "every lease")]


def _checks(typed: str, before: Sequence[str], environ: Mapping[str, str]) -> Offered:
    """Return the core's checks, and those that the manifests of other distributions list."""
    from probe_core.doctor.examine import all_checks
    from probe_core.doctor.installed import installed_checks

    own = [(check.code, check.summary) for check in all_checks()]
    with within_limit():
        sets = [entry for entry in installed_checks(None) if not entry.problem]
    return own + [(code, entry.owner) for entry in sets for code in entry.codes]


_SOURCES: dict[str, Source] = {
    "codes": _checks,
    "device": _devices,
    "kill": _leased,
    "name": _plugin_names,
    "query": _chips,
    "runtime": _runtimes,
}
"""What the arguments of commands can be, by their names in the parser."""

_OF_KINDS: dict[str, Source] = {
    "distributions": _distributions,
    "names": _probers,
    "ranks": _ranks,
}
"""What settings can be, by their kinds."""

LISTS = frozenset({"codes", "device", "kill"}) | _settings_of_kinds(
    "distributions", "names", "ranks"
)
"""Arguments that take several values, separated by commas."""

UNFINISHED = frozenset({"query"}) | _settings_of_kinds("ranks")
"""Arguments whose values are completed in two steps."""
