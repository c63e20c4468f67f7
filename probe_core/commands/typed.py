"""What was typed as an option and cannot be used, in the words of who typed it.

Apart from the context, so that a run without options and findings does not load it.
"""

from __future__ import annotations

import os

from probe_core.commands.context import CommandError
from probe_core.config import SETTINGS
from probe_core.likeness import suggestion
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from probe_core.config import ConfigError
    from probe_core.model.document import FindingDoc, ReportDoc


MAX_VALUE = 80
"""Characters of a wrong value that a sentence shows: a line of a terminal. A judgement."""


def unusable_option(error: ConfigError, settings: Mapping[str, object]) -> str:
    """Return the sentence about a value of an option that is none, by what the user typed."""
    if error.setting not in settings:
        return str(error)
    typed = clean_text(str(settings[error.setting]), MAX_VALUE)
    return f"--{error.setting} {typed}: {error.reason}"


def refuse_unusable(report: ReportDoc, options: Collection[str]) -> None:
    """Raise `CommandError` for a prober or a file of `options` that a finding calls unusable."""
    _refuse_unknown_probers(report, options)
    _refuse_unusable_files(report["findings"], options)


def _refuse_unknown_probers(report: ReportDoc, options: Collection[str]) -> None:
    """Raise `CommandError` for an unknown prober in an option: a usage error, not a finding.

    An option replaces the variable and the file of the same setting, so a finding about a setting
    that is among `options` is about the option.
    """
    for finding in report["findings"]:
        if finding["code"] == "unknown-prober" and finding["setting"] in options:
            prober = clean_text(finding["prober"] or "")
            names = [outcome["prober"] for outcome in report["outcomes"]]
            hint = suggestion(prober, names) or " `probe plugins` lists those that are installed."
            raise CommandError(f"--{finding['setting']} {prober}: no such prober.{hint}")


def _refuse_unusable_files(findings: Iterable[FindingDoc], options: Collection[str]) -> None:
    """Raise `CommandError` for a file that was typed as an option and cannot be used."""
    for finding in findings:
        if finding["code"] in ("static-unusable", "chip-file-unusable"):
            option, reason = finding["setting"], finding["why"]
            if option is not None and option in options:
                raise CommandError(
                    f"--{option} {finding['evidence']}: {reason}{_FORMS.get(option, '')}"
                )


_FORMS = {
    "static": "; reports are written by `probe --json > report.json`",
    "chipdb": "; `python -m probe_chipdb check FILE` lists all that is wrong",
}
"""What would have worked, for the files that an option names."""


def refuse_missing_files(options: Mapping[str, str | None]) -> None:
    """Raise `CommandError` for a typed option whose file is not there."""
    for option, path in options.items():
        names_file = option == "config" or SETTINGS[option].kind == "path"
        if names_file and path is not None:
            refuse_missing(f"--{option}", path)


def refuse_missing(option: str, path: str) -> None:
    """Raise `CommandError` for a typed file that is not there.

    What was typed now is refused now; a variable that is set for a whole fleet is a finding.
    """
    from probe_core.pipeline.settings import on_server

    # Where a dead server could hold the look for ever, the child that reads the file says it.
    if not on_server(path) and not os.path.exists(path):
        raise CommandError(f"{option} {path}: no such file")


def two_machines(options: Collection[str]) -> str:
    """Return the sentence about a recorded machine beside a report that stands for every probe."""
    if "static" in options:
        return "--static and --machine exclude each other"
    return (
        "--machine: the setting `static` (PROBE_STATIC, or the file of settings) gives a report in"
        " place of every probe; leave it out to probe a recorded machine"
    )


# What the file of settings holds for one command.


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
    from probe_core.config import FILE_VARIABLE, ConfigError, default_file
    from probe_core.pipeline.file_reading import read_named
    from probe_core.pipeline.settings import is_file
    from probe_core.setting_values import COMMAND_TABLES, read_settings

    path = file or environ.get(FILE_VARIABLE) or default_file(environ, is_file)
    tables = read_settings(path, read_named).get(COMMAND_TABLES, {}) if path else {}
    table = tables.get(command, {}) if isinstance(tables, dict) else None
    if not isinstance(table, dict):
        raise ConfigError(f"the file {path} sets {COMMAND_TABLES}.{command}, which is no table")
    return table
