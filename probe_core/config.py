"""Configuration by argument, environment and file, in that order; every setting written once."""

from __future__ import annotations

from os.path import isabs, isfile, join

from probe_core.machine import Untrusted, read_trusted
from probe_core.wording import clean_text, did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from os import PathLike
    from typing import Any, TypedDict

    Read = Callable[[str, int], bytes]

    # What an argument can be, by the kind of setting.
    Names = Iterable[str] | str | None
    Ranks = Mapping[str, int] | str | None
    Seconds = float | None
    Flag = bool | None
    Path = str | PathLike[str] | None

__all__ = [
    "BASELINE",
    "MEASURED",
    "SETTINGS",
    "Config",
    "ConfigError",
    "IgnoredSetting",
    "Setting",
    "Settings",
    "journal_file",
    "load_config",
    "read_settings",
    "refuse_unknown",
    "state_base",
    "state_file",
]

MEASURED = "measured.json"
"""Name of the file of measured figures, see `state_file`."""

BASELINE = "doctor-baseline.json"
"""Name of the file of what was here when `probe doctor --save` ran, see `state_file`."""

JOURNAL = "journal.jsonl"
"""Name of the file of what changed on this computer (probe-changes), see `state_file`."""

MAX_TIMEOUT_S = 600.0
"""Ten minutes: no driver answers after that, and a node that waits longer seems dead."""

SENTENCE_LIMIT = 1000
"""Characters of a sentence about a setting: its value may be a path of a thousand characters."""

FILE_LIMIT = 64 << 10
"""Bytes of a configuration file: the worst takes tomllib 40 ms; a list of plugins has 1 KiB."""

MAX_DOTS = 100
"""Dots in a file's line: tomllib takes memory by the square of a key's parts."""

FILE_VARIABLE = "PROBE_CONFIG"
COMMAND_TABLES = "command"
"""Key of the file's table of tables, one for each command, which that command alone reads."""
ARGUMENTS = "the arguments"
"""Origin of a setting that the caller or the command line gave."""

ELSEWHERE = frozenset({"PROBE_LEASES", "PROBE_LEASE", "PROBE_SYNTHETIC"})
"""Variables of ours that are no settings: leases read two, the synthetic prober one."""

_MARKED = ("_CORE_", "_ALERT_")
"""Parts of variables that we set for children: a prober's, and the command of `--on-alert`."""

_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")


class ConfigError(ValueError):
    """A setting that cannot be used; the message says what, whose, why and what would do.

    `setting` is a key of `SETTINGS` and `reason` what is wrong with its value; both are "" where
    a whole file, or a name that is no setting, cannot be used.
    """

    def __init__(self, message: str, setting: str = "", reason: str = "") -> None:
        super().__init__(message)
        self.setting = setting
        self.reason = reason


class IgnoredSetting:
    """A setting of the environment or a file that was left out.

    `reason` is the sentence for people. `name` is a key of `SETTINGS`, None for a whole file or
    an unknown variable; `variable` the environment variable that set it; `origin` says in words
    where it stands. `seals` is whether it may have restricted what runs: then no plugin does.
    """

    __slots__ = ("name", "origin", "reason", "seals", "variable")

    def __init__(
        self,
        reason: str,
        name: str | None = None,
        variable: str | None = None,
        origin: str | None = None,
        seals: bool = False,
    ) -> None:
        self.seals = seals
        self.reason = clean_text(reason, SENTENCE_LIMIT)
        self.name = name
        self.variable = variable
        self.origin = origin and clean_text(origin, SENTENCE_LIMIT)


class Setting:
    """One setting. Its argument, option and key of the file have its name.

    `kind` is a key of `KINDS`, and says what a value can be; `meaning` is for help and reference;
    `default` is the value where nobody sets one. `variable` is its environment variable.
    """

    __slots__ = ("default", "kind", "meaning", "name", "variable")

    def __init__(self, kind: str, meaning: str, default: object) -> None:
        self.kind = kind
        self.meaning = meaning
        self.default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.variable = f"PROBE_{name.upper()}"

    @property
    def metavar(self) -> str:
        """What help writes for the option's value; "" for a flag."""
        return KINDS[self.kind][1]


def setting(kind: str, meaning: str, default: object = None) -> Any:
    """Declare a setting as an attribute of `Config`, whose type is that of the checked value."""
    return Setting(kind, meaning, default)


class Config:
    """Resolved settings; every field is always set.

    `only` is None when all probers may run; `timeout` is None where each prober's own deadline
    holds; `origins` tells for each setting where it came from. `sealed` is the restriction that
    cannot be used, so that no plugin may run; None in the ordinary case.
    """

    # Each setting once: arguments, variables, keys of the file, options, help, completion and the
    # reference follow from this table. `Settings` below has the types of the arguments.
    only: tuple[str, ...] | None = setting(
        "names", "run these probers alone (names, comma-separated)"
    )
    disable: tuple[str, ...] = setting(
        "names", "do not run these probers (names, comma-separated)", ()
    )
    priority: Mapping[str, int] = setting(
        "ranks", "override priorities, 1 to 999 (`nvidia=900,amd=1`)", {}
    )
    timeout: float | None = setting("seconds", "deadline of each prober, in seconds")
    allow: tuple[str, ...] | None = setting(
        "distributions", "load plugins of these alone (`name==1.0`)"
    )
    chipdb: str | None = setting("path", "a TOML file of chips to add to chipdb")
    static: str | None = setting("path", "a report to give instead of probing")
    expect: str | None = setting("expectation", "what should be here: `8xh100`, `4xl40s+1xa2`")
    active: bool = setting("flag", "allow probers that open devices or create contexts", False)
    hostname: bool = setting("flag", "report the host's name, too", False)
    anonymous: bool = setting("flag", "report no id of the node", False)
    verbose: bool = setting("flag", "keep what probers print, also of those that succeed", False)

    def __init__(self) -> None:
        for name, declared in SETTINGS.items():
            setattr(self, name, declared.default)
        self.origins: dict[str, str] = {}
        self.sealed: IgnoredSetting | None = None

    def variable_of(self, setting: str) -> str | None:
        """Return the environment variable that set a setting; None where something else did."""
        variable = SETTINGS[setting].variable
        return variable if self.origins.get(setting) == variable else None

    def key(self) -> tuple[object, ...]:
        """Return what decides the report, to find a cached one."""
        values = (getattr(self, name) for name in SETTINGS)
        return (*map(_hashable, values), self.sealed and self.sealed.reason)


if TYPE_CHECKING:

    class Settings(TypedDict, total=False):
        """The settings as arguments of `probe`; None is as if it was not given."""

        only: Names
        disable: Names
        priority: Ranks
        timeout: Seconds
        allow: Names
        chipdb: Path
        static: Path
        expect: Names
        active: Flag
        hostname: Flag
        anonymous: Flag
        verbose: Flag


SETTINGS = {name: value for name, value in vars(Config).items() if isinstance(value, Setting)}
"""Every setting by its name, in the order of help and reference."""


def _hashable(value: object) -> object:
    return tuple(sorted(value.items())) if isinstance(value, dict) else value


def refuse_unknown(call: Callable[..., object], settings: Mapping[str, object]) -> None:
    """Raise `TypeError`, as Python does, for a keyword argument of a call that is no setting."""
    for name in settings:
        if name not in SETTINGS:
            from inspect import signature

            known = {*SETTINGS, *signature(call).parameters} - {"settings"}
            problem = f"{call.__name__}() got an unexpected keyword argument {name!r}"
            raise TypeError(f"{problem}: {did_you_mean(name, known)}")


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
        ignored.append(_unreadable_file(_unread(str(error.filename), error), error.filename, None))
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


def state_file(environ: Mapping[str, str], name: str) -> str | None:
    """Return where a file of ours is kept; None where the environment names no place for state.

    XDG_STATE_HOME, LOCALAPPDATA or HOME: the user database is not asked, as its server may be dead.
    """
    base, below = state_base(environ)
    return join(base, below, "probe-core", name) if base else None


def journal_file(environ: Mapping[str, str]) -> str | None:
    """Return where what changed on this computer is noted; None where nothing names a place."""
    return state_file(environ, JOURNAL)


def state_base(environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the folder that the environment names for state, and what lies below it; "" for none.

    The first is whose the state is: the user's home, or what he names instead.
    """
    for variable, below in (("XDG_STATE_HOME", ""), ("LOCALAPPDATA", ""), ("HOME", ".local/state")):
        base = environ.get(variable, "")
        if isabs(base):
            return base, below
    return "", ""


def default_file(environ: Mapping[str, str], is_file: Callable[[str], bool] = isfile) -> str | None:
    """Return the user's own configuration file if there is one (XDG base directories)."""
    user = environ.get("HOME") or ""
    base = environ.get("XDG_CONFIG_HOME") or (f"{user}/.config" if user else "")
    path = f"{base}/probe-core/config.toml" if base else ""
    return path if path and is_file(path) else None


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
    if unknown:
        import re  # no probe without such a variable needs it

        unknown = [name for name in unknown if not re.fullmatch(_SERVICE, name)]
    return [
        IgnoredSetting(
            f"the environment variable {name} is not one of probe-core's:"
            f" {did_you_mean(name, names, 'PROBE_')}",
            variable=name,
            origin="the environment",
        )
        for name in sorted(unknown)
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
        read = KINDS[SETTINGS[name].kind][0]
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
    import os

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


KINDS: dict[str, tuple[Callable[[Any], object], str]] = {
    "names": (_names, "NAMES"),
    "distributions": (_distributions, "NAMES"),
    "ranks": (_ranks, "NAME=N"),
    "seconds": (_seconds, "SECONDS"),
    "path": (_path, "FILE"),
    "expectation": (_expectation, "WHAT"),
    "flag": (_flag, ""),
}
"""Kind of a setting: what reads a value, and what help writes for it; a flag has none."""
