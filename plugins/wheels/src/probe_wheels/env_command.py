"""`probe env`: the lines that make an installer choose the build that fits this node."""

from __future__ import annotations

from contextlib import contextmanager

from probe_core.commands import CommandError, add_probe_options, did_you_mean
from probe_core.commands.recorded import opened
from probe_core.machine import Machine
from probe_wheels.choice import CPU, choose, pin_of
from probe_wheels.devices import gpus_of
from probe_wheels.installers import (
    KINDS,
    alone,
    conda_variables,
    pip_requirements,
    uv_variables,
    variant_variables,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from probe_core.commands import Context
    from probe_core.model.document import ReportDoc
    from probe_wheels.choice import Choice
    from probe_wheels.devices import Gpu

__all__ = ["EXAMPLES", "HELP", "add_arguments", "run"]

HELP = """Print the lines that make an installer choose the build that fits this node.

For uv and conda they are lines for a shell: eval "$(probe env --for uv)". A comment says why.
Nothing is installed, and no interpreter is started."""

_USUAL = "x86_64"

EXAMPLES = (
    ('eval "$(probe env --for uv)"', "before `uv pip install torch`"),
    ("probe env --for pip > torch.txt", "requirements for pip"),
    ("probe env --explain", "also what uv alone would choose"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `probe env`."""
    parser.add_argument(
        "--for",
        dest="installer",
        choices=KINDS,
        default="uv",
        metavar="INSTALLER",
        help="uv (default), pip, conda or variants",
    )
    parser.add_argument(
        "--explain", action="store_true", help="also print what the installer alone would choose"
    )
    parser.add_argument("--device", metavar="ID", help="the device to choose for, by its id")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    add_probe_options(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the lines; returns 0, or 1 when the named device has no build."""
    report = context.report()
    environ = {} if args.machine else context.environ
    gpus = gpus_of(report, environ)
    is_assumed = _assume_architecture(gpus)
    with _machine(args, context) as machine:
        musl = _is_musl(machine)
        choice = choose(_selected(gpus, args.device), musl=musl)
        backend, reason = alone(gpus, report, machine, musl=musl)
    if is_assumed:
        choice.reason += f"; the node's architecture is unknown: {_USUAL} is assumed"
    variables = _variables(args.installer, choice)
    if args.json:
        context.json(_document(args.installer, choice, variables, (backend, reason)))
    else:
        for line in _lines(args, choice, variables, report, (backend, reason)):
            context.out(line)
    return 1 if args.device and not choice.served else 0


def _assume_architecture(gpus: Iterable[Gpu]) -> bool:
    """Give GPUs of a recording that does not say its architecture the usual one; tell whether.

    Without it no build would fit, and a node with GPUs would get the build for the CPU.
    """
    unknown = [gpu for gpu in gpus if gpu.arch == "unknown"]
    for gpu in unknown:
        gpu.arch = _USUAL
    return bool(unknown)


def _selected(gpus: list[Gpu], device: str | None) -> list[Gpu]:
    if device is None:
        return gpus
    chosen = [gpu for gpu in gpus if gpu.id == device]
    if not chosen:
        hint = did_you_mean(device, [gpu.id for gpu in gpus])
        raise CommandError(f"--device {device} is no GPU of this node; {hint}")
    return chosen


@contextmanager
def _machine(args: argparse.Namespace, context: Context) -> Iterator[Machine]:
    """Yield the machine whose files uv would look at."""
    if args.machine is None:
        yield Machine(environ=context.environ)
        return
    with opened(args.machine) as machine:
        yield machine


def _is_musl(machine: Machine) -> bool:
    return any(name.startswith("ld-musl-") for name in machine.listdir("/lib"))


def _variables(installer: str, choice: Choice) -> dict[str, str]:
    if installer == "uv":
        return uv_variables(choice)
    if installer == "conda":
        return conda_variables(choice)
    return variant_variables(choice) if installer == "variants" else {}


def _lines(
    args: argparse.Namespace,
    choice: Choice,
    variables: Mapping[str, str],
    report: ReportDoc,
    own: tuple[str, str],
) -> list[str]:
    lines = _comments(choice)
    if args.explain:
        lines += _explained(args.installer, choice, own)
    windows = report["node"]["os"] == "windows"
    lines += [_assignment(name, value, windows) for name, value in variables.items()]
    if args.installer == "pip":
        lines += _for_pip(choice)
    elif args.installer == "variants":
        lines += _static_list(choice)
    return lines


def _static_list(choice: Choice) -> list[str]:
    """Return a comment for each feature with its values; `--json` has a property an entry."""
    from probe_wheels.variants import features_of

    vendor = choice.served[0].vendor if choice.served else ""
    features = features_of(vendor, choice.served)
    head = [_comment("the static list of the variant protocol's draft, the best value first:")]
    lines = [
        _comment(f"{vendor} :: {name} :: {', '.join(values)}") for name, values in features.items()
    ]
    return head + lines if lines else []


def _assignment(name: str, value: str, windows: bool) -> str:
    if windows:
        return f'$env:{name} = "{value}"'
    return f"export {name}={value}" if value else f'export {name}=""'


def _comments(choice: Choice) -> list[str]:
    """Return the reason, and each device that the choice leaves out, as comments of a shell."""
    names = dict.fromkeys(f"{gpu.name} ({gpu.target})" for gpu in choice.served)
    subject = f"{', '.join(names)}: " if names else ""
    lines = [_comment(f"{subject}{choice.reason}")]
    if choice.series:
        lines.append(
            _comment(f"that is the last series with its code: install '{pin_of(choice.series)}'")
        )
    # Equal devices are told once; a dictionary keeps their order.
    excluded = dict.fromkeys(
        f"without {gpu.name} ({gpu.target or gpu.id}): {reason}" for gpu, reason in choice.excluded
    )
    return lines + [_comment(text) for text in excluded]


def _comment(text: str) -> str:
    # A device's name is foreign text: a line break in it would become a command of the shell.
    return "# " + "".join(char if char.isprintable() else " " for char in text)


def _explained(installer: str, choice: Choice, own: tuple[str, str]) -> list[str]:
    if installer in ("uv", "variants"):
        backend, reason = own
        same = "the same" if backend == choice.backend else "another one"
        return [_comment(f"uv alone would take {backend}, {same}: {reason}")]
    if installer == "conda":
        return [_comment("conda alone takes the newest CUDA of the driver, whatever the GPU is")]
    return [_comment("pip alone takes PyPI's build, whatever the GPU is; it looks at no hardware")]


def _for_pip(choice: Choice) -> list[str]:
    """Return requirements, one a line; PyTorch's index has to be named by the user."""
    if choice.backend == CPU:
        return [_comment("PyTorch: the index cpu of its documentation (pip takes its address)")]
    index = f"PyTorch: the index {choice.backend} of its documentation (pip takes its address), or"
    command = f"uv pip install {_quoted(pin_of(choice.series))} --torch-backend={choice.backend}"
    return [_comment(f"{index}: {command}"), *pip_requirements(choice)]


def _quoted(requirement: str) -> str:
    return f"'{requirement}'" if "<" in requirement else requirement


def _document(
    installer: str, choice: Choice, variables: Mapping[str, str], own: tuple[str, str]
) -> dict[str, object]:
    """Return the answer as data: what is chosen, why, and whom it leaves out."""
    from probe_wheels.variants import properties

    excluded: Sequence[tuple[Gpu, str]] = choice.excluded
    return {
        "schema": 1,
        "installer": installer,
        "backend": choice.backend,
        "requirement": pin_of(choice.series),
        "variables": dict(variables),
        "properties": properties(choice.served),
        "why": choice.reason,
        "devices": [gpu.id for gpu in choice.served],
        "excluded": [{"device": gpu.id, "why": reason} for gpu, reason in excluded],
        "alone": {"backend": own[0], "why": own[1]},
    }
