"""What the file of settings holds for one command."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["command_settings"]


def command_settings(
    command: str, environ: Mapping[str, str], file: str | None = None
) -> Mapping[str, object]:
    """Return the table ``[command.NAME]`` of the file of settings; empty where there is none.

    `file` is what `--config` names. The values are unchecked. Raises `CommandError` for a file that
    cannot be read.
    """
    from probe_core.commands.context import CommandError
    from probe_core.config import ConfigError

    try:
        return _table(command, environ, file)
    except ConfigError as error:
        raise CommandError(f"{command}: {error}") from None
    except OSError as error:  # whether there is a file is not known
        reason = error.strerror or str(error)
        raise CommandError(f"{command}: {error.filename} cannot be read: {reason}") from None


def _table(command: str, environ: Mapping[str, str], file: str | None) -> Mapping[str, object]:
    """Return the table. Raises `ConfigError` for a bad file or table."""
    from probe_core.config import (
        COMMAND_TABLES,
        FILE_VARIABLE,
        ConfigError,
        default_file,
        read_settings,
    )
    from probe_core.pipeline.settings import is_file, read_named

    path = file or environ.get(FILE_VARIABLE) or default_file(environ, is_file)
    tables = read_settings(path, read_named).get(COMMAND_TABLES, {}) if path else {}
    table = tables.get(command, {}) if isinstance(tables, dict) else None
    if not isinstance(table, dict):
        raise ConfigError(f"the file {path} sets {COMMAND_TABLES}.{command}, which is no table")
    return table
