"""The options that all commands that probe share, and the settings that they stand for."""

from __future__ import annotations

from probe_core.config import SETTINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

__all__ = ["RECORDING_HELP", "add_probe_options", "settings_of"]

RECORDING_HELP = "a folder that stands for /, a file of `probe record`, or a tar archive"
"""What a recorded machine can be."""


def add_probe_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that probes; `Context.report` reads them."""
    group = parser.add_argument_group("probing")
    for flag, metavar in (
        ("only", "NAMES"),
        ("disable", "NAMES"),
        ("priority", "NAME=N"),
        ("timeout", "SECONDS"),
        ("allow", "NAMES"),
        ("chipdb", "FILE"),
        ("static", "FILE"),
    ):
        _, variable, text = SETTINGS[flag]
        group.add_argument(f"--{flag}", metavar=metavar, help=f"{text} [{variable}]")
    for flag in ("active", "hostname", "anonymous"):
        _, variable, text = SETTINGS[flag]
        # None, not False, where the option is absent: the variable then decides.
        group.add_argument(
            f"--{flag}", action="store_const", const=True, help=f"{text} [{variable}]"
        )
    group.add_argument("--config", metavar="FILE", help="a TOML file of settings [PROBE_CONFIG]")
    group.add_argument(
        "--machine", metavar="PATH", help=f"probe a recorded machine: {RECORDING_HELP}"
    )


def settings_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings that the command line gives as options."""
    return {name: value for name in SETTINGS if (value := getattr(args, name, None)) is not None}
