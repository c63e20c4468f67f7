"""`probe doctor`: the first broken link of each device, with the line that repairs it."""

from __future__ import annotations

import os
import sys

from probe_core.commands.options import JSON, SHARED_OPTIONS, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Iterable

    from probe_core.commands import Context
    from probe_core.config import Config
    from probe_core.doctor.bundle import Bundle
    from probe_core.doctor.check import Request
    from probe_core.doctor.document import DoctorDoc
    from probe_core.doctor.installed import CheckSet
    from probe_core.doctor.remote import RemoteCheck
    from probe_core.machine import Machine
    from probe_core.model.document import ReportDoc
    from probe_core.recording.document import Recording


HELP = (
    "Say why a device cannot be used: the cause, its evidence, and the command that repairs it on"
    " this distribution, container engine or orchestrator. Nothing is opened, woken or changed."
    " Exit status: 0 without an error, 1 with one, or where plugins failed and no accelerator was"
    " found, 2 usage."
)
EXAMPLES = (
    ("probe doctor", "what is wrong, and the line that repairs it"),
    ("probe doctor --device 01:00.0 --json", "one device, for a script"),
    ("probe doctor --next-boot", "which device the next boot takes its driver"),
    ("probe doctor --bundle", "one archive to attach to a question"),
)
BUNDLE = "probe-bundle.tar.gz"

ARGUMENTS = (
    JSON,
    Option("all", "", "list every check with its result"),
    Option("list", "", "list the checks and what each needs; run none"),
    Option("only", "CODES", "run these checks alone (comma-separated)", dest="codes"),
    Option("device", "ID", "look at this device alone (an id, or part of it)"),
    Option("env", "PATH", "look into a Python environment, too (default: python's)", bare=""),
    Option("next-boot", "", "look at this computer as its next boot will make it"),
    Option("if", "NAME=VALUE", "look at it with driver=595, kernel=… or torch=…", dest="supposed"),
    Option("save", "", "keep the state of this computer, to compare with later"),
    Option("bundle", "FILE", f"write one archive for a question ({BUNDLE})", bare=BUNDLE),
    Option("force", "", "overwrite the archive"),
    # `--only` names checks here, not plugins.
    *(option for option in SHARED_OPTIONS if option.name != "only"),
)


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the findings; returns 1 where one of them is an error."""
    _check(args)
    if args.list:
        return _list(args, context)
    document = context.examined(lambda machine, report: _examined(args, context, machine, report))
    _print(document, args, context)
    if args.bundle is not None:
        write_bundle(args, context, document)
    return 1 if document["healthy"] is False else 0


def _check(args: argparse.Namespace) -> None:
    """Refuse options that contradict each other, or name what is not there, before all else."""
    from probe_core.commands.context import CommandError
    from probe_core.commands.typed import refuse_missing
    from probe_core.wording import clean_text

    if args.config is not None:
        refuse_missing("--config", args.config)
    if args.codes is not None and not _codes(args.codes):
        hint = "name a check, or leave out the option; `probe doctor --list` lists them"
        raise CommandError(f"doctor: --only has no code; {hint}")
    if args.save and args.machine is not None:
        raise CommandError("doctor: --save keeps the state of this computer; leave out --machine")
    if _assumed(args) and (args.save or args.bundle is not None or args.codes is not None):
        hint = "leave out --save, --bundle and --only"
        raise CommandError(f"doctor: --next-boot and --if look at another state; {hint}")
    if args.force and args.bundle is None:
        raise CommandError("doctor: --force overwrites an archive; name it with --bundle FILE")
    # Off Linux nothing is in files that a recording could hold; said before a probe is waited for.
    if args.bundle is not None and args.machine is None and sys.platform in ("darwin", "win32"):
        hint = "attach what `probe doctor --json` prints"
        raise CommandError(f"doctor: --bundle holds recordings, which are made on Linux; {hint}")
    if args.bundle is not None and not os.path.isdir(os.path.dirname(args.bundle) or "."):
        typed = clean_text(args.bundle, 200)
        raise CommandError(f"doctor: --bundle {typed}: no such folder")
    if args.bundle is not None:
        from probe_core.cli.record import refuse_existing

        refuse_existing(args.bundle, args.force)


def _print(document: DoctorDoc, args: argparse.Namespace, context: Context) -> None:
    if args.json:
        context.json(document)
        return
    # A script that wants JSON does not pay for the text.
    from probe_core.cli.doctor_text import lines

    chosen = args.codes is not None or bool(_assumed(args))
    for line in lines(document, context, show_all=bool(args.all), chosen=chosen):
        context.out(line)


def _examined(
    args: argparse.Namespace, context: Context, machine: Machine, report: ReportDoc
) -> DoctorDoc:
    from probe_core.doctor.assumed import examine_assumed, with_driver
    from probe_core.doctor.baseline import compare
    from probe_core.doctor.check import Request
    from probe_core.doctor.examine import examine

    assumed = _assumed(args)
    request = Request(
        machine,
        with_driver(report, assumed.get("driver")),
        environment=_environment(args.env, machine),
        device=_device(args.device, report),
        assumed=assumed,
    )
    if assumed:
        return examine_assumed(request, report, _supposing(args, context, request))
    only = _codes(args.codes)
    remote = _remote(request, only, args, context)
    document = examine(request, remote=remote, only=only)
    if args.save:
        context.err(f"The state of this computer was saved to {_saved(request, document)}.")
        _note_changes(context)
    elif machine.live:
        compare(request, document)
    return document


def _saved(request: Request, document: DoctorDoc) -> str:
    from probe_core.commands import CommandError
    from probe_core.config import BASELINE, state_file
    from probe_core.doctor.baseline import save

    try:
        return save(request, document)
    except ValueError as error:
        raise CommandError(f"doctor: nothing is saved: {error}", 1) from None
    except OSError as error:
        path = state_file(request.machine.environ, BASELINE)
        hint = "name another folder in XDG_STATE_HOME"
        raise CommandError(f"doctor: {path}: {error.strerror or error}; {hint}", 1) from None


def _note_changes(context: Context) -> None:
    """Have the journal of changes, where one is installed, note the state that is saved."""
    from probe_core.cli.plugin_commands import installed_commands, run_installed
    from probe_core.commands import CommandError

    if "journal" not in installed_commands(context.environ, "journal")[0]:
        return
    try:
        run_installed("journal", ["--quiet"])
    except CommandError as error:  # the state is saved all the same
        context.err(f"probe: the journal was not written: {error}")


def _environment(path: str | None, machine: Machine) -> str | None:
    if path != "":
        return path
    from probe_core.selection.interpreter import command_line_python

    return command_line_python(machine)


def _device(part: str | None, report: ReportDoc) -> str | None:
    """Return the id of the device that an option names, by an id or a part of one."""
    if part is None:
        return None
    from probe_core.commands import CommandError
    from probe_core.model.ids import ACCELERATORS

    devices = [device for device in report["devices"] if device["kind"] in ACCELERATORS]
    exact = [device["id"] for device in devices if part in device["ids"]]
    ids = exact or [
        device["id"]
        for device in devices
        if any(part.lower() in name.lower() for name in device["ids"])
    ]
    if len(ids) == 1:
        return ids[0]
    problem = f"--device {part} names {len(ids)} devices" if ids else f"--device {part}: no device"
    known = ", ".join(ids or [device["id"] for device in devices]) or "no accelerator"
    raise CommandError(f"doctor: {problem}; there are: {known}")


def _codes(text: str | None) -> list[str]:
    return [code.strip() for code in (text or "").split(",") if code.strip()]


def _remote(
    request: Request, only: Collection[str], args: argparse.Namespace, context: Context
) -> list[RemoteCheck]:
    """Run other distributions' checks, unless only checks of the core are asked for."""
    from probe_core.doctor.examine import all_checks

    own = {check.code for check in all_checks()} if only else set()
    if only and own.issuperset(only):
        return []
    sets = _sets(context)
    if request.environment is not None and not sets:
        context.err("probe: no installed check reads environments; probe-wheels brings them")
    checks: list[RemoteCheck] = []
    if sets:
        from probe_core.doctor.remote import run_installed

        remote = run_installed(sets, request)
        checks = remote.checks
        for owner, problem in remote.problems:
            context.err(f"probe: the checks of {owner} did not all run: {problem}")
    if only:
        _refuse_unknown(only, own | {check.code for check in checks})
    return checks


ASSUMABLE = ("driver", "kernel", "torch")
"""What `--if` takes, in any number, separated by commas."""


def _assumed(args: argparse.Namespace) -> dict[str, str]:
    """Return what `--next-boot` and `--if` assume, by name; refuse what is no assumption."""
    from probe_core.commands.context import CommandError
    from probe_core.likeness import did_you_mean
    from probe_core.wording import clean_text

    result = {"boot": "next"} if args.next_boot else {}
    for part in (args.supposed or "").split(",") if args.supposed is not None else ():
        name, _, value = part.strip().partition("=")
        if name not in ASSUMABLE:
            hint = did_you_mean(name, ASSUMABLE)
            raise CommandError(f"doctor: --if {clean_text(part, 80)}: no such assumption; {hint}")
        if not value or not value.replace(".", "").replace("-", "").replace("_", "").isalnum():
            hint = f"write it as {name}={_EXAMPLE[name]}"
            raise CommandError(f"doctor: --if {clean_text(part, 80)}: no version; {hint}")
        if name == "driver" and not value.replace(".", "").isdecimal():
            raise CommandError(f"doctor: --if driver={value}: no version; write driver=595")
        result[name] = value
    return result


_EXAMPLE = {"driver": "595", "kernel": "6.8.0-62-generic", "torch": "2.11"}


def _supposing(args: argparse.Namespace, context: Context, request: Request) -> list[RemoteCheck]:
    """Run the installed sets that judge another state, and those about environments."""
    from probe_core.commands import CommandError
    from probe_core.doctor.check import ASSUMED, ENVIRONMENT
    from probe_core.doctor.remote import run_installed

    sets = _sets(context)
    wanted = [entry for entry in sets if {ASSUMED, ENVIRONMENT} & {*entry.needs}]
    judging = [entry for entry in wanted if ASSUMED in entry.needs and not entry.problem]
    if not judging:
        raise CommandError(
            "doctor: no installed check looks at the next boot or at --if;"
            " run: pip install probe-changes"
        )
    if "torch" in request.assumed and not any("supposed-torch" in e.codes for e in judging):
        raise CommandError("doctor: --if torch=… is judged by probe-wheels; pip install it")
    remote = run_installed(wanted, request)
    for owner, problem in remote.problems:
        context.err(f"probe: the checks of {owner} did not all run: {problem}")
    return remote.checks


def _sets(context: Context) -> list[CheckSet]:
    """Return the sets of checks that the allowlist admits, be it an option's or a variable's."""
    from probe_core.doctor.installed import installed_checks

    config = context.config()
    sealed = config.sealed.reason if config.sealed is not None else None
    return installed_checks(config.allow, sealed)


def _refuse_unknown(only: Collection[str], known: Collection[str]) -> None:
    from probe_core.commands import CommandError
    from probe_core.likeness import suggestion
    from probe_core.wording import clean_text

    for code in only:
        if code not in known:
            hint = suggestion(code, known) or " Run `probe doctor --list`."
            raise CommandError(f"doctor: --only {clean_text(code, 80)}: no such check.{hint}")


def _list(args: argparse.Namespace, context: Context) -> int:
    from probe_core.cli.doctor_text import listed, table

    entries = listed(_sets(context), context)
    if only := _codes(args.codes):
        _refuse_unknown(only, {entry["code"] for entry in entries})
        entries = [entry for entry in entries if entry["code"] in only]
    if args.json:
        context.json(entries)
        return 0
    for line in table(entries, context):
        context.out(line)
    return 0


# `probe doctor --bundle`: what the archive holds is listed, then it is written.

_MAX_LISTED = 12


def write_bundle(args: argparse.Namespace, context: Context, document: DoctorDoc) -> None:
    """Write the archive; raises `CommandError` where that cannot be."""
    from probe_core.cli.record import save
    from probe_core.doctor.bundle import first_cause

    bundle = context.examined(lambda machine, report: _bundle(context, machine, report))
    for line in _contents(bundle):
        context.err(line)
    if first_cause(bundle.document) != first_cause(document):
        context.err("The archive gives another first cause than this computer: say so with it.")
    save(args.bundle, bundle.archive(), args.force, failure=1)
    context.err(f"{args.bundle} was written. `probe doctor --machine {args.bundle}` reads it.")


def _bundle(context: Context, machine: Machine, report: ReportDoc) -> Bundle:
    from tempfile import TemporaryDirectory

    from probe_core.commands import probe_document
    from probe_core.doctor.bundle import make_bundle, with_evidence
    from probe_core.doctor.check import Request
    from probe_core.setting_values import load_config

    config, _ = load_config({}, context.environ)
    recording = with_evidence(_recording(machine, config, context), Request(machine, report))
    with TemporaryDirectory(prefix="probe-bundle-", ignore_cleanup_errors=True) as folder:
        return make_bundle(
            recording, folder, lambda recorded: probe_document(recorded, context.environ)
        )


def _recording(machine: Machine, config: Config, context: Context) -> Recording:
    from probe_core.cli.record import recorded_machine
    from probe_core.recording.declared import Sources

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
