"""`probe record`: this machine as a file that `--machine` takes, on any other machine."""

from __future__ import annotations

import os

from probe_core.commands.options import RECORDING_HELP, Argument, Option
from probe_core.wording import counted, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from probe_core.commands import Context
    from probe_core.config import Config
    from probe_core.machine import Machine
    from probe_core.model.document import RecordedAnswer
    from probe_core.recording.declared import Sources
    from probe_core.recording.gather import Gathered

HELP = (
    "Write this machine as a recording: the files that the installed plugins declare that they"
    " read, and what vendors' libraries answered, as readable JSON, which --machine takes anywhere."
    " Like a probe, it wakes no device. Serial numbers, UUIDs, host and user names are left out or"
    " replaced; look the file through before you share it."
)
DEFAULT = "recorded-machine.json"
_LAST = "It is readable JSON: look it through before you share it."
_LEFT_OUT = (
    "Left out: serial numbers, MAC addresses, host and user names, names of control groups, and the"
    " environment but for the variables that hide devices. UUIDs are replaced."
)
_MAX_NAMES = 8
"""Sleeping devices named at most: those of one server of eight GPUs."""
EXAMPLES = (
    ("probe record", "write recorded-machine.json here"),
    ("probe record - | gzip > machine.json.gz", "to standard output"),
    ("probe --machine recorded-machine.json", "what it gives, on any computer"),
)


ARGUMENTS = (
    Argument(
        "file",
        f"where to write (default: {DEFAULT}); - for standard output",
        count="?",
        metavar="FILE",
        absent=DEFAULT,
    ),
    Option("files-only", "", "run no plugin, and load no vendor's library"),
    Option("force", "", "overwrite the file"),
    Option("machine", "PATH", f"record another recorded machine: {RECORDING_HELP}", dest="source"),
)


def run(args: argparse.Namespace, context: Context) -> int:
    """Write the recording; report what it holds and what it leaves out."""
    from probe_core.machine import Machine
    from probe_core.pipeline.settings import load_settings
    from probe_core.recording.declared import Sources
    from probe_core.recording.document import write

    if args.file != "-":
        refuse_existing(args.file, args.force)
    config, ignored = load_settings({}, context.environ)
    sources = Sources(config.allow)
    asked = None if args.files_only else config
    if args.source is None:
        gathered = recorded_machine(Machine(environ=context.environ), sources, asked, context)
    else:
        from probe_core.commands.recorded import opened

        with opened(args.source) as machine:
            gathered = recorded_machine(machine, sources, asked, context)
    text = write(gathered.recording)
    if args.file == "-":
        context.out(text.rstrip("\n"))
    else:
        save(args.file, text.encode(), args.force)
    reasons = [setting.reason for setting in ignored]
    for line in (*reasons, *_summary(args.file, gathered), *_coverage(sources), _LAST):
        context.err(line)
    return 0


def recorded_machine(
    machine: Machine, sources: Sources, config: Config | None, context: Context
) -> Gathered:
    """Return the recording of a machine; raises `CommandError`."""
    from probe_core.commands import CommandError
    from probe_core.recording.gather import gather
    from probe_core.recording.paths import BadRecording

    if machine.os != "linux":
        raise CommandError(f"on {machine.os} plugins read no files that could be recorded")
    try:
        answers = _answers(machine, config, context) if config is not None else {}
        return gather(machine, _origin(machine), sources.declarations, answers=answers)
    except BadRecording as error:
        # Something changed while it was read, such as a GPU that was unplugged.
        raise CommandError(f"{error}; try again") from None


def _answers(machine: Machine, config: Config, context: Context) -> dict[str, RecordedAnswer]:
    """Run the plugins as a probe does; return the answers that files alone would not give."""
    from probe_core.pipeline.answers import answers_of
    from probe_core.pipeline.probers import Builtins, find, run_selected, select_probers

    builtins, found = Builtins(machine, config), find(machine, {})
    decisions = select_probers(found, builtins.scan, machine, config, None)
    runs = run_selected(lambda: decisions, builtins, machine, config, waiting=context.waiting())
    return answers_of(runs)


def _origin(machine: Machine) -> str:
    from probe_core import __version__

    if not machine.live:  # a synthetic recording stays marked as one
        from probe_core.recording.opening import about

        if (origin := about(machine.root).origin) is not None:
            return origin
    return f"recorded by `probe record` of probe-core {__version__}"


def refuse_existing(path: str, force: bool) -> None:
    """Refuse a file that is there, before the work that it would be written after."""
    from probe_core.commands import CommandError

    if not force and os.path.lexists(path):
        raise CommandError(f"{path} exists already; --force overwrites it")


def save(path: str, content: bytes, force: bool, failure: int = 2) -> None:
    """Write what a command made; raises `CommandError`, of status `failure` where that fails."""
    from probe_core.commands import CommandError
    from probe_core.machine.writing import create_file, replace_named_file

    try:
        (replace_named_file if force else create_file)(path, content)
    except FileExistsError:  # made since `refuse_existing` looked
        raise CommandError(f"{path} exists already; --force overwrites it") from None
    except ValueError as error:  # a null byte
        raise CommandError(f"{path!a}: {error}") from None
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}", failure) from None


def _summary(path: str, gathered: Gathered) -> list[str]:
    recording = gathered.recording
    target = "standard output" if path == "-" else path
    files, links = counted(len(recording.files), "file"), counted(len(recording.links), "link")
    lines = [f"{files} and {links} were written to {target}.", _LEFT_OUT]
    if recording.answers:
        lines.append(f"Answers of libraries: {joined(recording.answers, 'and')}.")
    if gathered.asleep:
        names = ", ".join(gathered.asleep[:_MAX_NAMES])
        names += " …" if gathered.asleep[_MAX_NAMES:] else ""
        lines.append(f"Left out, so as not to wake them: most files of {names}.")
    if gathered.unreadable:
        lines.append(
            f"Left out, for they cannot be read: {counted(len(gathered.unreadable), 'file')}."
        )
    if gathered.over:
        lines.append(f"Left out, for a recording is full: {counted(gathered.over, 'file')}.")
    return lines


def _coverage(sources: Sources) -> list[str]:
    """Return which plugins' files the recording holds, and which it cannot hold."""
    lines = [
        f"Covered: the files that probe-core reads, and those of {joined(sources.covered, 'and')}."
        if sources.covered
        else "Covered: the files that probe-core reads; no installed plugin declares others.",
        "Files that only other plugins read are missing: install those first, then record again.",
    ]
    if sources.silent:
        lines.append(
            f"Not covered, for their manifests declare no files: {joined(sources.silent)}."
        )
    lines += [f"Not covered: {refusal}." for refusal in sources.refused]
    return lines + [f"{f['what']}: {f['why']}; {f['fix']}." for f in sources.findings]
