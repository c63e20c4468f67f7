"""What a command gets: the report, where to write, and how wide and colourful that place is."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Collection, Iterable, Mapping
    from typing import Any, TextIO

    from probe_core.machine import Machine
    from probe_core.model.document import FindingDoc, ReportDoc

__all__ = ["CommandError", "Context", "terminal_width", "write_error"]

# Wider than the 80 columns of a terminal by default: what goes into a file or a pipe is not cut
# at the edge of a screen. The report's table with three GPUs and their ids takes 97 (README).
DEFAULT_WIDTH = 100

# Below this a table is a column of ellipses; a terminal may wrap it instead. A judgement.
MIN_WIDTH = 40

MAX_LINE = 8192
"""Characters of one line of an error: it may quote a path, of PATH_MAX (4,096) bytes."""


class CommandError(Exception):
    """A command that cannot be carried out: one sentence, and the exit status."""

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.status = status


class Context:
    """One run of one command.

    `args` are the parsed arguments, `environ` the environment variables, `width` the columns to
    fill, and `colour` tells whether standard output shows colours. `output_error` is what a write
    to standard output raised: a closed pipe or a full disk.
    """

    def __init__(
        self,
        args: argparse.Namespace | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        stdout: TextIO | None = None,
    ) -> None:
        self.args = args
        self.environ = os.environ if environ is None else environ
        self._stdout = sys.stdout if stdout is None else stdout
        self.colour = _colour(self.environ, self._stdout)
        self.width = terminal_width(self.environ, self._stdout)
        self.output_error: OSError | None = None

    def out(self, text: str) -> None:
        """Write a line of data to standard output."""
        if self._stdout is None:  # closed by the caller (`probe >&-`)
            return
        encoding = self._stdout.encoding or "ascii"
        # A terminal that cannot show "·" gets "?", not a traceback.
        try:
            self._stdout.write(text.encode(encoding, "replace").decode(encoding) + "\n")
        except OSError as error:
            self.output_error = error
            raise

    def err(self, text: str) -> None:
        """Write a line of words to standard error."""
        write_error(text)

    def json(self, data: object) -> None:
        """Write exactly one JSON document to standard output, in ASCII.

        Indented for a person at a terminal. For a script on one line: only then does Python use
        its C encoder, which is five times faster on a node with eight GPUs.
        """
        if self._stdout is not None and self._stdout.isatty():
            import json

            self.out(json.dumps(data, indent=2))
            return
        from probe_core.jsontext import write

        self.out(write(data))

    def report(self) -> ReportDoc:
        """Probe with the options of this run and return the report's document.

        Raises `CommandError` for options that make no sense, unknown probers among them.
        """
        from probe_core.commands.options import settings_of
        from probe_core.config import ConfigError
        from probe_core.pipeline.settings import load_settings
        from probe_core.probing import document

        try:
            settings = settings_of(self.args) if self.args else {}
            file = getattr(self.args, "config", None)
            config, ignored = load_settings(settings, self.environ, file)
            if file and config.sealed is not None and config.sealed.variable is None:
                raise CommandError(config.sealed.reason)
            probed: Any = self._probed(lambda machine: document(config, ignored, machine=machine))
        except ConfigError as error:
            raise CommandError(str(error)) from None
        report: ReportDoc = probed
        _refuse_unknown_probers(report["findings"], settings)
        _refuse_unusable_files(report["findings"], settings)
        return report

    def _probed(self, probe: Callable[[Machine], object]) -> object:
        from probe_core.machine import Machine

        path = getattr(self.args, "machine", None)
        if path is None:
            return probe(Machine(environ=self.environ))
        from probe_core.commands.recorded import opened

        with opened(path) as machine:
            return probe(machine)


def _refuse_unknown_probers(findings: Iterable[FindingDoc], options: Collection[str]) -> None:
    """Raise `CommandError` for an unknown prober in an option: a usage error, not a finding.

    An option replaces the variable and the file of the same setting, so a finding about a setting
    that is among `options` is about the option.
    """
    for finding in findings:
        if finding["code"] == "unknown-prober" and finding["setting"] in options:
            option, prober = finding["setting"], finding["prober"]
            problem = f"--{option} names a plugin {prober!r} that is not installed"
            raise CommandError(f"{problem}: {finding['fix']}")


def _refuse_unusable_files(findings: Iterable[FindingDoc], options: Collection[str]) -> None:
    """Raise `CommandError` for a file that was typed as an option and cannot be used."""
    for finding in findings:
        if finding["code"] in ("static-unusable", "chip-file-unusable"):
            option = finding["setting"]
            if option in options:
                raise CommandError(f"--{option} {finding['evidence']}: {finding['why']}")


def write_error(text: str) -> None:
    """Write lines to standard error, if there is one. What they quote is made harmless."""
    if sys.stderr is not None:
        from probe_core.wording import clean_text

        text = "\n".join(clean_text(line, MAX_LINE) for line in text.split("\n"))
        encoding = sys.stderr.encoding or "ascii"
        sys.stderr.write(text.encode(encoding, "replace").decode(encoding) + "\n")


def _colour(environ: Mapping[str, str], stdout: TextIO | None) -> bool:
    """Return whether to colour: terminals alone, never against NO_COLOR (no-color.org)."""
    if environ.get("NO_COLOR") or stdout is None:
        return False
    if environ.get("FORCE_COLOR"):
        return True
    return stdout.isatty() and environ.get("TERM") != "dumb"


def terminal_width(environ: Mapping[str, str], stdout: TextIO | None) -> int:
    """Return the columns to fill: COLUMNS, else the terminal's, else a hundred."""
    columns = environ.get("COLUMNS", "")
    # Six digits and more are no terminal; Python itself refuses to convert thousands of digits.
    if columns.isdecimal() and len(columns) < 6 and int(columns) > 0:
        return max(MIN_WIDTH, int(columns))
    try:
        if stdout is not None and stdout.isatty():
            return max(MIN_WIDTH, os.get_terminal_size(stdout.fileno()).columns)
    except (OSError, ValueError):
        pass
    return DEFAULT_WIDTH
