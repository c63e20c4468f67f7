"""Settings and the files that they name: neither a dead server nor much data hangs the host."""

from __future__ import annotations

import os

from probe_core.config import Config, is_given
from probe_core.machine import may_hang
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from probe_chipdb import Database
    from probe_core.config import IgnoredSetting
    from probe_core.model.document import FindingDoc


def load_settings(
    arguments: Mapping[str, object],
    environ: Mapping[str, str],
    file: str | None = None,
    load: Callable[[str], object] = bool,
) -> tuple[Config, list[IgnoredSetting]]:
    """Return what `load_config` returns, and raise what it raises; never hangs over a file.

    `load` is called with each part of `gate` that is needed.
    """

    looked: dict[str, bool | OSError] = {}

    def look(path: str) -> bool:
        """Return what `is_file` does; looks once, as a server that is silent costs its deadline."""
        if path not in looked:
            try:
                looked[path] = is_file(path)
            except OSError as error:
                looked[path] = error
        answer = looked[path]
        if isinstance(answer, OSError):
            raise answer
        return answer

    if not is_given(arguments, environ, file, look):
        return Config(), []
    load("values")
    from probe_core.setting_values import load_config

    def read(path: str, limit: int) -> bytes:
        load("settings")
        from probe_core.pipeline.file_reading import read_named

        return read_named(path, limit)

    return load_config(arguments, environ, file, read=read, is_file=look)


def plugin_rules(
    arguments: Mapping[str, object], environ: Mapping[str, str], file: str | None = None
) -> tuple[tuple[str, ...] | None, str | None]:
    """Return the allowlist (None: all may run), and why nothing may run where it cannot be read.

    Takes what `load_settings` takes, and raises what it raises. A restriction fails closed: a file
    that cannot be used may be the one that restricts.
    """
    config, _ = load_settings(arguments, environ, file)
    if config.sealed is not None:
        return None, f"no plugin runs: {clean_text(config.sealed.reason, 400)}"
    return config.allow, None


def on_server(path: str) -> bool:
    """Return whether looking at a path, relative ones among them, may hang."""
    try:
        return may_hang(os.path.abspath(path))
    except OSError:  # a relative path, and the working directory was deleted: nothing is there
        return False


def is_file(path: str) -> bool:
    """Return whether a file is there; raises `OSError` where its server does not answer."""
    if on_server(path):
        from probe_core.isolation.look import LOOK_S, answers

        if not answers(path):
            raise silent(path, LOOK_S)
    return os.path.isfile(path)


def silent(path: str, seconds: float) -> OSError:
    """Return the error of a file whose server does not answer."""
    from errno import EIO

    return OSError(EIO, f"its server did not answer within {seconds:g} s", path)


def open_chips(
    config: Config, packages: bool, wake_fd: int
) -> tuple[Database | None, list[FindingDoc]]:
    """Return the chip database, None where there is none, and what is to be said of it.

    `packages` says whether a vendor's package may be installed. `wake_fd` is as `run_pipeline` has
    it.
    """
    from probe_core.resolve import open_chipdb

    extra = [_absolute(config.chipdb)] if config.chipdb else []
    if not (extra or packages):
        return open_chipdb(extra, packages)
    from probe_core.pipeline.chip_reading import read_elsewhere

    added, refused, unread = read_elsewhere(extra, packages, config.timeout, wake_fd)
    database, findings = open_chipdb(extra, packages, added, refused)
    return database, [*findings, *unread]


def _absolute(path: str) -> str:
    """Return the path by which a child finds the file, too."""
    try:
        return os.path.abspath(path)
    except OSError:  # the working directory was deleted
        return path
