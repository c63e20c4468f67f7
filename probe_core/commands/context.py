"""What a command gets: the report, where to write, and how wide and colourful that place is."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TextIO, TypeVar

    from probe_core.commands.waiting import WaitingLine
    from probe_core.config import Config, IgnoredSetting
    from probe_core.isolation.launch import Waiting
    from probe_core.isolation.run import Run
    from probe_core.machine import Machine
    from probe_core.model.document import ReportDoc
    from probe_core.sampling import AsyncRounds, Rounds

    Answer = TypeVar("Answer")

# Wider than the 80 columns of a terminal by default: what goes into a file or a pipe has all
# columns. The report's whole table with the longest name of a desktop GPU takes 107.
DEFAULT_WIDTH = 120

# Below this a table is a column of ellipses; a terminal may wrap it instead. A judgement.
MIN_WIDTH = 40

MAX_LINE = 8192
"""Characters of one line of an error: it may quote a path, of PATH_MAX (4,096) bytes."""


SLOW_S = 0.7
"""Seconds after which a terminal names who is waited for.

Eight H100 answer in 0.08 s (measured), so a fast machine never shows it."""


class CommandError(Exception):
    """A command that cannot be carried out: one sentence, and the exit status.

    `program` is the name that begins the sentence on standard error, where it is not the
    command's own (``probe exec``).
    """

    program: str | None = None

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.status = status


class Context:
    """One run of one command.

    `args` are the parsed arguments, `environ` the environment variables, `recorded` those of the
    recorded machine that was probed (empty before, and without one), `width` the columns to fill,
    `terminal` whether standard output is one, and `colour` whether it shows colours.
    `output_error` is what a write to standard output raised: a closed pipe or a full disk.
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
        self.recorded: Mapping[str, str] = {}
        self._stdout = sys.stdout if stdout is None else stdout
        self.terminal = _is_terminal(self._stdout)
        self.colour = self._colours(getattr(args, "color", None))
        self.width = terminal_width(self.environ, self._stdout)
        self.output_error: OSError | None = None

    def _colours(self, choice: str | None) -> bool:
        """Return whether to colour: by `choice`, else NO_COLOR (no-color.org), else terminals."""
        if choice in ("always", "never"):
            return choice == "always"
        if self.environ.get("NO_COLOR") or self._stdout is None:
            return False
        if self.environ.get("FORCE_COLOR"):
            return True
        return self.terminal and self.environ.get("TERM") != "dumb"

    def encodable(self, text: str) -> str:
        """Return `text` as standard output can show it: on an ASCII terminal ``-`` for ``–``."""
        if text.isascii():
            return text
        from probe_core.commands.text import encodable

        encoding = self._stdout.encoding if self._stdout is not None else None
        return encodable(text, encoding or "ascii")

    def out(self, text: str) -> None:
        """Write a line of data to standard output."""
        if self._stdout is None:  # closed by the caller (`probe >&-`)
            return
        try:
            self._stdout.write(self.encodable(text) + "\n")
        except OSError as error:
            self.output_error = error
            raise

    def flush(self) -> None:
        """Write what is buffered: for a command that goes on after a line."""
        if self._stdout is None:
            return
        try:
            self._stdout.flush()
        except OSError as error:
            self.output_error = error
            raise

    def err(self, text: str) -> None:
        """Write a line of words to standard error."""
        write_error(text)

    def json(self, data: Any, shared: tuple[str, ...] = ()) -> None:
        """Write exactly one JSON document to standard output, in ASCII.

        Indented for a person at a terminal. For a script on one line: only then does Python use
        its C encoder, which is five times faster on a node with eight GPUs. `shared` names tables
        of the document and the fields that many of them share, see `jsontext.write_shared`.
        """
        if self.terminal:
            import json

            self.out(json.dumps(data, indent=2))
            return
        from probe_core.jsontext import write, write_shared

        self.out(write_shared(data, *shared) if shared else write(data))

    def report(self, meanwhile: Callable[[], object] | None = None) -> ReportDoc:
        """Probe with the options of this run and return the report's document.

        `meanwhile` is called once while plugins run, and not where none does: the place to import
        what is needed afterwards, for a library takes milliseconds to answer. Raises `CommandError`
        for options that make no sense, unknown probers among them, and what `meanwhile` raises.
        """
        settings = self._settings()
        return self._probed(lambda machine: self._document(machine, settings, meanwhile))

    def examined(
        self,
        use: Callable[[Machine, ReportDoc], Answer],
        meanwhile: Callable[[], object] | None = None,
    ) -> Answer:
        """Probe, and return what `use` makes of the machine, while it is open, and its report.

        `meanwhile` is as for `report`. Raises `CommandError` as `report` does, and what `use`
        raises.
        """
        settings = self._settings()
        return self._probed(
            lambda machine: use(machine, self._document(machine, settings, meanwhile))
        )

    def _document(
        self,
        machine: Machine,
        of_run: tuple[Config, list[IgnoredSetting], dict[str, Any]],
        meanwhile: Callable[[], object] | None,
    ) -> ReportDoc:
        """Probe a machine with the settings of this run, as `_settings` returns them."""
        from probe_core.config import ConfigError
        from probe_core.pipeline.run import document

        config, ignored, settings = of_run
        try:
            report = document(
                config, ignored, machine=machine, waiting=self.waiting(), meanwhile=meanwhile
            )
        except ConfigError as error:
            from probe_core.commands.typed import unusable_option

            raise CommandError(unusable_option(error, settings)) from None
        if settings and report["findings"]:
            from probe_core.commands.typed import refuse_unusable

            refuse_unusable(report, settings)
        if config.static and getattr(self.args, "machine", None) is not None:
            from probe_core.commands.typed import two_machines

            raise CommandError(two_machines(settings))
        return report

    def samples(
        self,
        interval: float,
        count: int | None = None,
        devices: Sequence[str] | None = None,
        report: ReportDoc | None = None,
    ) -> Rounds:
        """Begin rounds of samples with the options of this run; arguments as of `samples`.

        Raises `CommandError` for options that make no sense.
        """
        from probe_core.config import ConfigError
        from probe_core.sampling import samples

        assert self.args is not None
        args = self.args
        only = args.only
        if args.allow is not None:  # of the distributions; samplers are chosen by prober
            outcomes = (report or self.report())["outcomes"]
            only = [o["prober"] for o in outcomes if o["status"] != "skipped"]
        names = ("disable", "timeout", "active", "config")
        settings: Any = {name: getattr(args, name) for name in names}
        try:
            return samples(interval, count, devices, report, only=only, **settings)
        except ConfigError as error:
            from probe_core.commands.options import settings_of
            from probe_core.commands.typed import unusable_option

            raise CommandError(unusable_option(error, settings_of(self.args))) from None

    def samples_async(self, *arguments: Any) -> AsyncRounds:
        """Begin the rounds of `samples` for an event loop."""
        from probe_core.sampling import AsyncRounds

        return AsyncRounds(self.samples(*arguments))

    def config(self) -> Config:
        """Return the settings of this run: options, environment and file.

        Raises `CommandError` for an option that makes no sense.
        """
        return self._settings()[0]

    def _settings(self) -> tuple[Config, list[IgnoredSetting], dict[str, Any]]:
        """Return the settings, what was left out of them, and those that were typed."""
        from probe_core.commands.options import settings_of
        from probe_core.config import ConfigError
        from probe_core.pipeline.settings import load_settings

        settings = settings_of(self.args) if self.args else {}
        file = getattr(self.args, "config", None)
        if settings or file:
            from probe_core.commands.typed import refuse_missing_files

            refuse_missing_files({**settings, "config": file})
        try:
            config, ignored = load_settings(settings, self.environ, file)
            if file and config.sealed is not None and config.sealed.variable is None:
                raise CommandError(config.sealed.reason)
        except ConfigError as error:
            from probe_core.commands.typed import unusable_option

            raise CommandError(unusable_option(error, settings)) from None
        return config, ignored, settings

    def waiting(self) -> Waiting | None:
        """Return what shows on a terminal who is waited for; None where nobody would read it.

        Where all plugins answer at once nothing of it is imported.
        """
        stream = sys.stderr
        if stream is None or not _is_terminal(stream) or getattr(self.args, "quiet", False):
            return None
        if self.environ.get("CI") or self.environ.get("TERM") == "dumb":
            return None
        try:
            stream.fileno()
        except (OSError, ValueError, AttributeError):  # a notebook's: it calls itself a terminal
            return None
        line: WaitingLine | None = None

        def show(now: float, runs: Sequence[Run]) -> None:
            nonlocal line
            if line is None:
                if not runs or now < runs[0].started + SLOW_S:
                    return
                from probe_core.commands.waiting import WaitingLine

                line = WaitingLine(stream, self.environ, getattr(self.args, "color", None))
            line.show(now, runs)

        return show

    def _probed(self, probe: Callable[[Machine], Answer]) -> Answer:
        from probe_core.machine import Machine

        path = getattr(self.args, "machine", None)
        if path is None:
            return probe(Machine(environ=self.environ))
        from probe_core.commands.recorded import opened

        with opened(path) as machine:
            self.recorded = machine.environ
            return probe(machine)


def write_error(text: str) -> None:
    """Write lines to standard error, if there is one. What they quote is made harmless."""
    if sys.stderr is not None:
        from probe_core.wording import clean_text

        text = "\n".join(clean_text(line, MAX_LINE) for line in text.split("\n"))
        encoding = sys.stderr.encoding or "ascii"
        sys.stderr.write(text.encode(encoding, "replace").decode(encoding) + "\n")


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # a host closed it
        return False


def terminal_width(environ: Mapping[str, str], stdout: TextIO | None) -> int:
    """Return the columns to fill: COLUMNS, else the terminal's, else 120."""
    columns = environ.get("COLUMNS", "")
    # Six digits and more are no terminal; Python itself refuses to convert thousands of digits.
    if columns.isdecimal() and len(columns) < 6 and int(columns) > 0:
        return max(MIN_WIDTH, int(columns))
    try:
        if stdout is not None and _is_terminal(stdout):
            return max(MIN_WIDTH, os.get_terminal_size(stdout.fileno()).columns)
    except (OSError, ValueError):
        pass
    return DEFAULT_WIDTH
