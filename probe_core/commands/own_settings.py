"""What the file of settings holds for one command."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["command_settings"]


def command_settings(command: str, environ: Mapping[str, str]) -> Mapping[str, object]:
    """Return the table ``[command.NAME]`` of the file of settings; empty where there is none.

    Its values are unchecked. Raises `CommandError` for a file that cannot be read.
    """
    from probe_core.commands.context import CommandError
    from probe_core.config import ConfigError, command_table
    from probe_core.pipeline.settings import is_named_file, read_named

    try:
        return command_table(command, environ, read=read_named, is_file=is_named_file)
    except ConfigError as error:
        raise CommandError(f"{command}: {error}") from None
