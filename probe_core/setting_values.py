"""Take settings from arguments, variables and a file; what a setting's value can be.

Apart from the table of settings, which every probe has: in most nothing is given.
"""

from __future__ import annotations

import os
from os.path import isfile

from probe_core.config import (
    FILE_VARIABLE,
    SETTINGS,
    Config,
    ConfigError,
    IgnoredSetting,
    default_file,
)
from probe_core.likeness import did_you_mean
from probe_core.machine import Untrusted, read_trusted
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    Read = Callable[[str, int], bytes]

__all__ = ["ARGUMENTS", "COMMAND_TABLES", "READERS", "load_config", "read_settings"]

ARGUMENTS = "the arguments"
"""Origin of a setting that the caller or the command line gave."""

ELSEWHERE = frozenset(
    {
        "PROBE_LEASES",
        "PROBE_LEASE",
        "PROBE_LEASE_ID",
        "PROBE_INSTANCE",
        "PROBE_INSTANCES",
        "PROBE_SYNTHETIC",
    }
)
"""Variables of ours that are no settings: leases read three, `probe exec --all` sets two for its
commands, and the synthetic prober reads one."""

_MARKED = ("_CORE_", "_ALERT_")
"""Parts of variables that we set for children: a prober's, and the command of `--on-alert`."""

MAX_TIMEOUT_S = 600.0
"""Ten minutes: no driver answers after that, and a node that waits longer seems dead."""

FILE_LIMIT = 64 << 10
"""Bytes of a configuration file: the worst takes tomllib 40 ms; a list of plugins has 1 KiB."""

MAX_DOTS = 100
"""Dots in a file's line: tomllib takes memory by the square of a key's parts."""

COMMAND_TABLES = "command"
"""Key of the file's table of tables, one for each command, which that command alone reads."""

_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")


def load_config(
    arguments: Mapping[str, object],
    environ: Mapping[str, str],
    file: str | None = None,
    *,
    read: Read = read_trusted,
    is_file: Callable[[str], bool] = isfile,
) -> tuple[Config, list[IgnoredSetting]]:
    """Resolve settings. Returns the configuration and what was left out of it.

    A bad argument raises `ConfigError`: it is the caller's own mistake, seen at the first run. A
    bad variable or file is an operator's, and must not keep a node from starting: it is left out
    and told, and becomes a finding. Where it may have been a restriction (the allowlist, a file),
    no plugin runs: `Config.sealed`. Unknown ``PROBE_*`` variables may be somebody else's, so they
    are only told. `read` and `is_file` look at the file, see `pipeline.settings`.
    """
    config = Config()
    ignored: list[IgnoredSetting] = []
    named = file or environ.get(FILE_VARIABLE)
    try:
        source = named or default_file(environ, is_file)
    except OSError as error:  # whether there is a file is not known: it may restrict what runs
        path = str(error.filename)
        ignored.append(_unreadable_file(_unread(path, error), path, None))
        source = None
    if source:
        ignored += _from_file(config, source, FILE_VARIABLE if named and not file else None, read)
    for name, declared in SETTINGS.items():
        variable = declared.variable
        # An empty variable is unset, as users of a shell expect of `PROBE_ONLY= probe`.
        if environ.get(variable, "").strip():
            ignored += _try(config, name, environ[variable], variable, variable)
    for name, value in arguments.items():
        if value is not None:
            _set(config, name, value, ARGUMENTS)
    by_argument = {name for name, value in arguments.items() if value is not None}
    # An argument replaces the variable, and with it what was wrong there.
    sealing = (setting for setting in ignored if setting.seals and setting.name not in by_argument)
    config.sealed = next(sealing, None)
    return config, ignored + _unknown_variables(environ)


_SERVICE = (
    r"PROBE_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?"
    r"|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)"
)
"""What Kubernetes sets for a Service named probe, or probe-…, in every pod beside it
(kubernetes.io, Service: environment variables)."""


def _unknown_variables(environ: Mapping[str, str]) -> list[IgnoredSetting]:
    names = {setting.variable for setting in SETTINGS.values()} | {FILE_VARIABLE}
    unknown = [
        name
        for name in environ
        if name.startswith("PROBE_")
        and name not in names | ELSEWHERE
        and not any(mark in name for mark in _MARKED)
    ]
    if not unknown:
        return []
    import re  # no probe without such a variable needs it

    return [
        IgnoredSetting(
            f"the environment variable {name} is not one of probe-core's:"
            f" {did_you_mean(name, names, 'PROBE_')}",
            variable=name,
            origin="the environment",
        )
        for name in sorted(unknown)
        if not re.fullmatch(_SERVICE, name)
    ]


def _from_file(config: Config, path: str, variable: str | None, read: Read) -> list[IgnoredSetting]:
    try:
        values = read_settings(path, read)
    except ConfigError as error:
        return [_unreadable_file(error, path, variable)]
    origin = f"the file {path}"
    return [
        ignored
        for name, value in values.items()
        if not (name == COMMAND_TABLES and isinstance(value, dict))
        for ignored in _try(config, name, value, origin)
    ]


def _unreadable_file(error: ConfigError, path: str, variable: str | None) -> IgnoredSetting:
    return IgnoredSetting(str(error), None, variable, f"the file {path}", seals=True)


def _unread(path: str, error: OSError) -> ConfigError:
    reason = error.strerror or str(error)
    return ConfigError(f"the configuration file {path} cannot be read: {reason}")


def read_settings(path: str, read: Read) -> Mapping[str, Any]:
    """Return what a file of settings holds, unchecked. Raises `ConfigError`."""
    try:
        data = read(path, FILE_LIMIT)
        import tomllib  # now: `read` may have it imported, see `gate`

        if len(data) > FILE_LIMIT:
            raise ValueError(f"it is larger than {FILE_LIMIT >> 10} KiB")
        text = data.decode()
        if any(line.count(".") > MAX_DOTS for line in text.split("\n")):
            raise ValueError(f"it has a line with more than {MAX_DOTS} dots")
        return tomllib.loads(text)
    except Untrusted as reason:
        raise ConfigError(f"the configuration file {path} is not used: {reason}") from None
    except OSError as error:
        raise _unread(path, error) from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the configuration file {path} is not valid TOML: {error}") from None


def _try(
    config: Config, name: str, value: object, origin: str, variable: str | None = None
) -> list[IgnoredSetting]:
    try:
        _set(config, name, value, origin)
    except ConfigError as error:
        setting = name if name in SETTINGS else None
        # A misspelt key of a file may be the allowlist; a variable's name is known.
        seals = variable is None or name == "allow"
        return [IgnoredSetting(str(error), setting, variable, origin, seals=seals)]
    return []


def _set(config: Config, name: str, value: object, origin: str) -> None:
    if name not in SETTINGS:
        hint = did_you_mean(name, SETTINGS)
        raise ConfigError(f"{origin} set {name!r}, which is no setting: {hint}")
    try:
        read = READERS[SETTINGS[name].kind]
        setattr(config, name, read(value))
    except (TypeError, ValueError) as error:
        shown = clean_text(_repr(value), 80)
        reason = str(error)
        raise ConfigError(f"{origin} set {name!r} to {shown}: {reason}", name, reason) from None
    config.origins[name] = origin


def _repr(value: object) -> str:
    try:
        return repr(value)
    except Exception:  # a number of thousands of digits, a stranger's object
        return f"a value of type {type(value).__name__}"


def _names(value: str | Iterable[str]) -> tuple[str, ...]:
    listed = not isinstance(value, (bytes, dict)) and hasattr(value, "__iter__")
    items = value.split(",") if isinstance(value, str) else list(value) if listed else [value]
    if not all(isinstance(item, str) for item in items):
        raise TypeError("expected names, as a list or separated by commas")
    return tuple(filter(None, (str(item).strip() for item in items)))


def _distributions(value: str | Iterable[str]) -> tuple[str, ...]:
    """Check each entry of an allowlist: what is mistyped would silently allow less, or nothing."""
    entries = _names(value)
    for entry in entries:
        name, equals, version = entry.partition("==")
        plain = name.strip().replace("-", "a").replace("_", "a").replace(".", "a")
        if not (plain.isascii() and plain.isalnum()) or (equals and not version.strip(" =")):
            raise ValueError(f"expected a distribution's name, or name==version, found {entry!r}")
    return entries


def _ranks(value: str | Mapping[str, int]) -> dict[str, int]:
    pairs = (
        [item.partition("=")[::2] for item in _names(value)]
        if isinstance(value, str)
        else list(value.items())
        if hasattr(value, "items")
        else None
    )
    if pairs is None:
        raise TypeError("expected NAME=NUMBER, separated by commas, or a table")
    ranks = {}
    for name, rank in pairs:
        if not isinstance(name, str):
            raise TypeError(f"expected a prober's name, found {name!r}")
        if isinstance(rank, bool) or not str(rank).strip().isdecimal():
            if isinstance(value, str):
                raise ValueError("write NAME=NUMBER, from 1 to 999 (nvidia=900)")
            raise ValueError(f"expected a priority from 1 to 999 for {name.strip()!r}")
        ranks[name.strip()] = int(rank)
        if not 1 <= ranks[name.strip()] <= 999:
            raise ValueError(f"the priority of {name.strip()!r} must be from 1 to 999")
    return ranks


def _seconds(value: str | float) -> float:
    if isinstance(value, bool):
        raise TypeError("not a number of seconds (such as 2.5)")
    try:
        seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError("not a number of seconds (such as 2.5)") from None
    if not 0 < seconds <= MAX_TIMEOUT_S:
        raise ValueError(f"expected seconds above 0 and up to {MAX_TIMEOUT_S:g}")
    return seconds


def _flag(value: str | bool) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise ValueError("expected 1 or 0")


def _path(value: Any) -> str:
    path = os.fspath(value)
    if not isinstance(path, str) or "\0" in path or not path:
        raise ValueError("expected the path of a file")
    return path


def _expectation(value: str | Iterable[str]) -> str:
    """Check an expectation, as one text or its parts as a list; see `model.expected`."""
    from probe_core.model.expected import read

    text = value if isinstance(value, str) else " + ".join(_names(value))
    read(text)
    return text.strip()


READERS: dict[str, Callable[[Any], object]] = {
    "names": _names,
    "distributions": _distributions,
    "ranks": _ranks,
    "seconds": _seconds,
    "path": _path,
    "expectation": _expectation,
    "flag": _flag,
}
"""Kind of a setting: what reads a value of it, and raises `ValueError` or `TypeError`."""
