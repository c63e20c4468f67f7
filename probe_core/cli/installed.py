"""Read `command.json`: data beside a command's module that says what `probe --help` shows.

A mistake in a manifest never stops its command: the help then shows less, and says what is wrong.
"""

from __future__ import annotations

from probe_core.cli import COMMANDS, OTHER
from probe_core.machine.trust import Trust
from probe_core.registry.entrypoints import is_module_name, scan
from probe_core.registry.extensions import (
    Extension,
    locate_extension,
    manifest_table,
    name_rejection,
    rejections,
    texts,
)
from probe_core.wording import clean_text, counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from probe_core.registry.entrypoints import EntryPoint

    Problem = tuple[str, str]
    """The name of a command ("" where none is at fault alone), and a sentence."""


MAX_GROUP = 40
MAX_SUMMARY = 200
"""Characters: a heading, and a summary of two lines at 100 columns. A judgement."""


def read_manifest(path: str) -> dict[str, Any]:
    """Return the table of commands in a manifest; raises `ValueError` with the reason."""
    return manifest_table(path, "commands")


def read_entry(commands: dict[str, Any], name: str) -> dict[str, str]:
    """Return the `group` and `summary` of a command, as far as given; raises `ValueError`."""
    return texts(commands, name, (("group", MAX_GROUP), ("summary", MAX_SUMMARY)))


# Find the commands that installed distributions bring, without importing any of them.
#
# A command is an entry point in the group `probe_core.commands.v1`; a manifest beside its module
# says what `probe --help` shows. The rules are those of probers: a broken distribution costs only
# itself, and as root nothing is used that somebody other than root could have written.

GROUP = "probe_core.commands.v1"
_GROUP_STEM = "probe_core.commands.v"

BROUGHT_BY = {
    "cluster": "probe-cluster",
    "topology": "probe-cluster",
    "partition": "probe-cluster",
    "fit": "probe-cluster",
    "export": "probe-export",
    "bench": "probe-bench",
    "env": "probe-wheels",
    "report": "probe-report",
    "watch": "probe-watch",
}
"""Commands that a distribution of this project brings, to name it where it is missing."""

RESERVED = frozenset({"help", "probe", "version"})
"""Names that no plugin can take: words that a person may write to ask `probe` itself."""

MAX_COMMANDS = 64
"""Commands of all plugins together. A page of help holds some forty; beyond that the path is
broken or hostile, and its manifests are not worth the time to read. A judgement."""


class InstalledCommand(Extension):
    """A command of a plugin: whose it is, where it lies, and what `probe --help` shows of it.

    `group` and `summary` are clean, but may be anything.
    """

    __slots__ = ("group", "summary")

    def __init__(self, entry: EntryPoint) -> None:
        super().__init__(entry)
        self.group = OTHER
        self.summary = ""


def installed_commands(
    environ: Mapping[str, str], name: str | None = None, paths: Iterable[str] | None = None
) -> tuple[dict[str, InstalledCommand], list[Problem]]:
    """Return the usable commands by name, and what is wrong with the others.

    With a `name` only commands of that name are looked at. Of two commands with one name the
    first on the path that can be used counts. `environ` holds the allowlist.
    """
    entries, broken = scan(paths, _GROUP_STEM)
    problems = [_left_out_distribution(problem.distribution, problem.reason) for problem in broken]
    candidates: list[InstalledCommand] = []
    trust = Trust()  # one for all, because they share the folders above them
    for entry in entries[:MAX_COMMANDS]:
        if name is None or entry.name == name:
            command = InstalledCommand(entry)
            if reason := _rejection(entry) or locate_extension(command, "command", trust):
                problems.append(_left_out(command, reason))
            else:
                candidates.append(command)
    if len(entries) > MAX_COMMANDS:
        count = len(entries) - MAX_COMMANDS
        left_out = f"{counted(count, 'command')} {'is' if count == 1 else 'are'} left out"
        sentence = f"{left_out}: more than {MAX_COMMANDS} are installed"
        problems.append(("", f"{sentence}; remove some distributions"))
    commands = _first_of_each(candidates, _trust(candidates, environ, trust), problems)
    problems += _describe(commands.values())
    return commands, problems


def _left_out(command: InstalledCommand, reason: str) -> Problem:
    name = clean_text(command.name, 80)
    return command.name, f"{command.owner}: the command {name!r} is left out: {reason}"


def _left_out_distribution(distribution: str, reason: str) -> Problem:
    owner = clean_text(distribution)
    sentence = f"{owner}: its commands are left out: {clean_text(reason, 400)}"
    return "", f"{sentence}; reinstall or remove it"


def _rejection(entry: EntryPoint) -> str | None:
    """Return why an entry point is no command, whatever lies behind it."""
    if reason := name_rejection(entry, GROUP):
        return reason
    if entry.name in COMMANDS or entry.name in RESERVED:
        return "the name belongs to probe-core; rename it"
    if not is_module_name(entry.target):
        return f"its entry point {clean_text(entry.target, 80)!r} is no module; name a module"
    return None


def _trust(
    candidates: list[InstalledCommand], environ: Mapping[str, str], trust: Trust
) -> list[str | None]:
    """Return for each candidate why it must not be used; None where it may."""
    if not candidates:
        return []
    from probe_core.pipeline.settings import plugin_rules

    allow, problem = plugin_rules({}, environ)
    if problem is not None:
        return [problem for _ in candidates]
    return list(rejections(candidates, allow, trust))


def _first_of_each(
    candidates: list[InstalledCommand], reasons: list[str | None], problems: list[Problem]
) -> dict[str, InstalledCommand]:
    commands: dict[str, InstalledCommand] = {}
    for command, reason in zip(candidates, reasons, strict=True):
        if reason is None and command.name in commands:
            owner = commands[command.name].owner
            reason = f"{owner} has a command of that name and goes first; remove one of them"
        if reason is None:
            commands[command.name] = command
        else:
            problems.append(_left_out(command, reason))
    return commands


def _describe(commands: Iterable[InstalledCommand]) -> Iterator[Problem]:
    """Take group and summary out of the manifests; yield what is wrong with those."""
    tables: dict[str, dict[str, Any]] = {}  # a manifest is read once for all its commands
    for command in commands:
        path = command.manifest
        if path is None:
            continue
        try:
            if path not in tables:
                tables[path] = read_manifest(path)
            fields = read_entry(tables[path], command.name)
        except ValueError as error:
            name, reason = path.rpartition("/")[2], clean_text(str(error), 400)
            sentence = f"{command.owner}: the command {command.name!r} has a mistake in {name}"
            yield command.name, f"{sentence}: {reason}; its author can correct it"
            continue
        command.group = clean_text(fields.get("group", "")) or OTHER
        command.summary = clean_text(fields.get("summary", ""))
