"""`probe plugins new`: the files of a plugin, a warning for a name that is taken, next steps."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from probe_core.commands import Context

__all__ = ["TEMPLATES", "run"]

TEMPLATES = ("sysfs", "ctypes")
"""Kinds of probers that can be written; here, because reading options must not import them."""


def run(args: argparse.Namespace, context: Context) -> int:
    """Write the plugin `args.name` below `args.folder`."""
    from probe_core.commands import CommandError
    from probe_core.testing.names import taken
    from probe_core.testing.scaffold import INVENTED_VENDOR, write

    warnings = list(taken(args.name))  # before it is written, or it would find itself
    vendor = args.pci or INVENTED_VENDOR
    try:
        files = write(args.name, args.folder, kind=args.template, vendor=vendor)
    except (OSError, ValueError) as error:
        raise CommandError(f"the plugin {args.name!r} was not written: {error}") from None
    for path in files:
        context.out(str(path))
    for warning in warnings:
        context.err(f"probe: warning: {warning}; rename yours unless it is to replace that")
    if args.pci is None:
        sentence = f"its PCI vendor id is {vendor}, an invented one: `--pci ID` sets yours"
        context.err(f"probe: note: {sentence}")
    for step in _next_steps(args):
        context.out(step)
    return 0


def _next_steps(args: argparse.Namespace) -> tuple[str, ...]:
    from pathlib import Path

    root = Path(args.folder) / f"probe-{args.name}"
    prober = root / "src" / f"probe_{args.name.replace('-', '_')}" / "prober.py"
    return (
        "next:",
        f'  pip install -e "{root.resolve()}[test]"',
        f"  python -m pytest {root}",
        f"  probe plugins run {prober}",
    )
