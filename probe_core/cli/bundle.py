"""`probe doctor --bundle`: what the archive holds is listed, then it is written."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from probe_core.commands import Context
    from probe_core.config import Config
    from probe_core.doctor.bundle import Bundle
    from probe_core.doctor.document import DoctorDoc
    from probe_core.machine import Machine
    from probe_core.model.document import ReportDoc
    from probe_core.recording.recording import Recording

__all__ = ["write_bundle"]

_MAX_LISTED = 12


def write_bundle(args: argparse.Namespace, context: Context, document: DoctorDoc) -> None:
    """Write the archive; raises `CommandError` where that cannot be."""
    from probe_core.doctor.bundle import first_cause

    bundle = context.examined(lambda machine, report: _bundle(context, machine, report))
    for line in _contents(bundle):
        context.err(line)
    if first_cause(bundle.document) != first_cause(document):
        context.err("The archive gives another first cause than this computer: say so with it.")
    _save(args.bundle, bundle.archive(), args.force)
    context.err(f"{args.bundle} was written. `probe doctor --machine {args.bundle}` reads it.")


def _bundle(context: Context, machine: Machine, report: ReportDoc) -> Bundle:
    from tempfile import TemporaryDirectory

    from probe_core.commands import probe_document
    from probe_core.config import load_config
    from probe_core.doctor.bundle import make_bundle, with_evidence
    from probe_core.doctor.check import Request

    config, _ = load_config({}, context.environ)
    recording = with_evidence(_recording(machine, config, context), Request(machine, report))
    with TemporaryDirectory(prefix="probe-bundle-", ignore_cleanup_errors=True) as folder:
        return make_bundle(
            recording, folder, lambda recorded: probe_document(recorded, context.environ)
        )


def _recording(machine: Machine, config: Config, context: Context) -> Recording:
    from probe_core.cli.record import recorded_machine
    from probe_core.recording.sources import Sources

    return recorded_machine(machine, Sources(config.allow), config, context).recording


def _contents(bundle: Bundle) -> Iterable[str]:
    """Return what the archive holds, by folder."""
    folders: dict[str, int] = {}
    for path in (*bundle.members, *bundle.recording.links):
        top = "/".join(path.split("/")[:3]) if path.count("/") > 2 else path
        folders[top] = folders.get(top, 0) + 1
    yield "The archive holds (UUIDs, serial numbers, host and user names are replaced or left out):"
    largest = sorted(folders.items(), key=lambda item: (-item[1], item[0]))
    for name, count in largest[:_MAX_LISTED]:
        yield f"  {name}" + (f": {count} entries" if count > 1 else "")
    if len(largest) > _MAX_LISTED:
        yield f"  and {sum(count for _, count in largest[_MAX_LISTED:])} more entries"
    yield "`tar tzf` lists every name. Look it through before you share it."


def _save(path: str, content: bytes, force: bool) -> None:
    from probe_core.commands import CommandError

    try:
        with open(path, "wb" if force else "xb") as file:
            file.write(content)
    except FileExistsError:
        raise CommandError(f"doctor: {path} exists already; --force overwrites it") from None
    except OSError as error:
        raise CommandError(f"doctor: {path}: {error.strerror or error}", 1) from None
