"""Configuration by argument, environment and file, in that order; every setting written once.

`setting_values` takes them from there, where anything is given: in most probes nothing is.
"""

from __future__ import annotations

from os.path import isabs, isfile, join

from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from os import PathLike
    from typing import Any, TypedDict

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
    "is_given",
    "journal_file",
    "place_of_state",
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

SENTENCE_LIMIT = 1000
"""Characters of a sentence about a setting: its value may be a path of a thousand characters."""

FILE_VARIABLE = "PROBE_CONFIG"
METAVARS = {
    "names": "NAMES",
    "distributions": "NAMES",
    "ranks": "NAME=N",
    "seconds": "SECONDS",
    "path": "FILE",
    "expectation": "WHAT",
    "flag": "",
}
"""Kind of a setting: what help writes for its value. `setting_values.READERS` reads one."""


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

    `kind` is a key of `METAVARS`, and says what a value can be; `meaning` is for help and
    reference; `default` is the value where nobody sets one. `variable` is its environment variable.
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
        return METAVARS[self.kind]


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

            from probe_core.likeness import did_you_mean

            known = {*SETTINGS, *signature(call).parameters} - {"settings"}
            problem = f"{call.__name__}() got an unexpected keyword argument {name!r}"
            raise TypeError(f"{problem}: {did_you_mean(name, known)}")


def is_given(
    arguments: Mapping[str, object],
    environ: Mapping[str, str],
    file: str | None = None,
    is_file: Callable[[str], bool] = isfile,
) -> bool:
    """Return whether anything may set anything: an argument, a variable of ours, or a file."""
    if file or any(value is not None for value in arguments.values()):
        return True
    if any(name.startswith("PROBE_") for name in environ):
        return True
    try:
        return default_file(environ, is_file) is not None
    except OSError:  # whether there is a file is not known
        return True


def state_file(environ: Mapping[str, str], name: str) -> str | None:
    """Return where a file of ours is kept; None where the environment names no place for state.

    XDG_STATE_HOME, LOCALAPPDATA or HOME: the user database is not asked, as its server may be dead.
    """
    base, below = state_base(environ)
    return join(base, below, "probe-core", name) if base else None


def place_of_state(environ: Mapping[str, str], name: str) -> str:
    """Return where a file of ours is written; raises `ValueError` where `state_file` has none."""
    path = state_file(environ, name)
    if path is None:
        raise ValueError("neither XDG_STATE_HOME nor HOME names a folder")
    return path


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
    """Return the user's own configuration file if there is one.

    XDG base directories: a path that is not absolute names none; the working folder is anybody's.
    """
    for variable, below in (("XDG_CONFIG_HOME", ""), ("HOME", "/.config")):
        base = environ.get(variable, "")
        if isabs(base):
            path = f"{base}{below}/probe-core/config.toml"
            return path if is_file(path) else None
    return None
