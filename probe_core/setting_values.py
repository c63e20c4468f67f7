"""What a setting's value can be, and how it is taken from an argument, a variable or a file.

Apart from the table of settings, which every probe has: most have no setting to take.
"""

from __future__ import annotations

import os

from probe_core.config import SETTINGS, ConfigError, IgnoredSetting
from probe_core.machine import Untrusted
from probe_core.wording import clean_text, did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from probe_core.config import Config, Read

__all__ = [
    "COMMAND_TABLES",
    "READERS",
    "put",
    "read_settings",
    "take",
    "take_file",
    "unanswered",
]

MAX_TIMEOUT_S = 600.0
"""Ten minutes: no driver answers after that, and a node that waits longer seems dead."""

FILE_LIMIT = 64 << 10
"""Bytes of a configuration file: the worst takes tomllib 40 ms; a list of plugins has 1 KiB."""

MAX_DOTS = 100
"""Dots in a file's line: tomllib takes memory by the square of a key's parts."""

COMMAND_TABLES = "command"
"""Key of the file's table of tables, one for each command, which that command alone reads."""

_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")


def take_file(config: Config, path: str, variable: str | None, read: Read) -> list[IgnoredSetting]:
    """Take the settings of a file, which `variable` names; return what was left out."""
    try:
        values = read_settings(path, read)
    except ConfigError as error:
        return [_unreadable_file(error, path, variable)]
    origin = f"the file {path}"
    return [
        ignored
        for name, value in values.items()
        if not (name == COMMAND_TABLES and isinstance(value, dict))
        for ignored in take(config, name, value, origin)
    ]


def unanswered(error: OSError) -> IgnoredSetting:
    """Return the file of which is not known whether it is there: it may restrict what runs."""
    path = str(error.filename)
    return _unreadable_file(_unread(path, error), path, None)


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


def take(
    config: Config, name: str, value: object, origin: str, variable: str | None = None
) -> list[IgnoredSetting]:
    """Set what a file or a variable says; return it where it cannot be used."""
    try:
        put(config, name, value, origin)
    except ConfigError as error:
        setting = name if name in SETTINGS else None
        # A misspelt key of a file may be the allowlist; a variable's name is known.
        seals = variable is None or name == "allow"
        return [IgnoredSetting(str(error), setting, variable, origin, seals=seals)]
    return []


def put(config: Config, name: str, value: object, origin: str) -> None:
    """Set a checked value. Raises `ConfigError`."""
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
