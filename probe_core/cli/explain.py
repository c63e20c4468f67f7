"""`probe explain`: the decisions of a probe on a page; of one device, the source of every value."""

from __future__ import annotations

from probe_core.commands.options import COLOR, Option, add_options, add_probe_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from probe_core.commands import Context
    from probe_core.model.document import DeviceDoc

HELP = (
    "Show the decisions, results and timings of a probe; of DEVICE, the source of every value and"
    " how each peak is derived."
)

EXAMPLES = (
    ("probe explain", "every decision, and every device"),
    ("probe explain 4090", "one device, by a part of its name or id"),
    ("probe explain 01:00.0 --json", "the same for a script"),
)

_OWN = (
    Option("all", "", "every device in full; of one device, also its peaks with sparsity"),
    Option("json", "", "print one JSON document"),
    COLOR,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `probe explain`."""
    parser.add_argument(
        "device", nargs="?", help="a device: its id, whole or as `probe` shows it, or its model"
    )
    add_options(parser, _OWN)
    add_probe_options(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the explanation."""
    report = context.report()
    devices = report["devices"]
    if args.device is not None:
        devices = matching(devices, args.device)
    if args.json:
        context.json({**report, "devices": devices})
        return 0
    if args.device is None:
        from probe_core.cli.explain_run import run_lines

        for line in run_lines(report, context):
            context.out(line)
    if args.device is not None or args.all:
        from probe_core.cli.explain_device import device_lines

        for device in devices:
            for line in device_lines(device, context, sparse=args.all):
                context.out(line)
    return 0


def matching(devices: list[DeviceDoc], wanted_text: str) -> list[DeviceDoc]:
    """Return the devices that a text names: by an id, whole or short, or by their model.

    A part of an id will do where it fits one device. Raises `CommandError` where no device or, by
    an id, several are named.
    """
    from probe_core.commands import CommandError
    from probe_core.model.short_ids import named_by

    ids = [[device["id"], *device["ids"]] for device in devices]
    places = named_by(wanted_text, ids)
    part = wanted_text.lower()
    if not places:
        fits = [at for at, device in enumerate(devices) if part in (device["name"] or "").lower()]
        if fits:
            return [devices[at] for at in fits]
        places = [at for at, own in enumerate(ids) if any(part in name.lower() for name in own)]
    if len(places) == 1 or (places and part.startswith("cpu:")):
        return [devices[at] for at in places]
    listed = ", ".join(devices[at]["id"] for at in places or range(len(devices)))
    if places:
        raise CommandError(f"{wanted_text!r} names several devices; write one of {listed}")
    raise CommandError(f"no device has an id with {wanted_text!r} in it; there are: {listed}")
