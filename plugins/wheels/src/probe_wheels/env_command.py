"""`probe env`: the lines that make an installer choose the build that fits this node."""

from __future__ import annotations

from contextlib import contextmanager

from probe_core.commands import CommandError, Option, did_you_mean, probe_options
from probe_core.commands.recorded import opened
from probe_core.machine import Machine
from probe_core.model.naming import named_by
from probe_wheels.choice import CPU, UNKNOWN, choose, pin_of
from probe_wheels.devices import gpus_of, module_driver
from probe_wheels.rules import TORCH, cuda_of_driver, dotted, text_of, version_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from probe_core.commands import Context
    from probe_core.model.document import ReportDoc
    from probe_wheels.choice import Choice
    from probe_wheels.devices import Gpu


HELP = """Print the lines that make an installer choose the build that fits this node.

For uv and conda they are lines for a shell: eval "$(probe env --for uv)". A comment says why.
Nothing is installed, and no interpreter is started."""

_USUAL = "x86_64"

EXAMPLES = (
    ('eval "$(probe env --for uv)"', "before `uv pip install torch`"),
    ("probe env --for pip > torch.txt", "requirements for pip"),
    ("probe env --explain", "also what uv alone would choose"),
)


KINDS = ("uv", "pip", "conda", "variants")

ARGUMENTS = (
    Option(
        "for",
        "INSTALLER",
        "uv (default), pip, conda or variants",
        absent="uv",
        dest="installer",
        choices=KINDS,
    ),
    Option("explain", "", "also print what the installer alone would choose"),
    Option("device", "ID", "the device to choose for, by its id"),
    Option("json", "", "print one JSON document"),
    *probe_options(),
)


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
    chosen = [gpus[place] for place in named_by(device, [[gpu.id] for gpu in gpus])]
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
    """Return whether programs use musl; beside glibc its loader is there for cross-compilers."""
    names = machine.listdir("/lib")
    if not any(name.startswith("ld-musl-") for name in names):
        return False
    if machine.exists("/etc/alpine-release"):  # gcompat has glibc's names there
        return True
    folders = ["lib", "lib64", "usr/lib", *(f"lib/{name}" for name in names if "-gnu" in name)]
    return not any(machine.exists(f"/{folder}/libc.so.6") for folder in folders)


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
    features = features_of(vendor, choice.served, version_of(choice.assumed))
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
        same = ", the same" if backend == choice.backend else ", another one"
        same = same if choice.backend != UNKNOWN else ""
        return [_comment(f"uv alone would take {backend}{same}: {reason}")]
    if installer == "conda":
        return [_comment("conda alone takes the newest CUDA of the driver, whatever the GPU is")]
    return [_comment("pip alone takes PyPI's build, whatever the GPU is; it looks at no hardware")]


def _for_pip(choice: Choice) -> list[str]:
    """Return requirements, one a line; PyTorch's index has to be named by the user."""
    if choice.backend == UNKNOWN:
        return []
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
        "backend": choice.backend or None,
        "requirement": pin_of(choice.series) if choice.backend != UNKNOWN else None,
        "variables": dict(variables),
        "properties": properties(choice.served, version_of(choice.assumed)),
        "why": choice.reason,
        "assumed_cuda": choice.assumed or None,
        "devices": [gpu.id for gpu in choice.served],
        "excluded": [{"device": gpu.id, "why": reason} for gpu, reason in excluded],
        "alone": {"backend": own[0], "why": own[1]},
    }


# What installers choose by themselves, and the variables that tell them better.

_INTEL_DISPLAY = "03"
"""Class of PCI devices that uv takes for a GPU with XPU when their vendor is Intel."""

_ROCM_FOLDERS = ("/opt/rocm/bin", "/usr/bin")


def alone(
    gpus: Sequence[Gpu], report: ReportDoc, machine: Machine, *, musl: bool = False
) -> tuple[str, str]:
    """Return the backend that uv's own `auto` takes on this node, and why.

    In uv's order: NVIDIA's driver, then `rocm_agent_enumerator`, then any display adapter of
    Intel, else the CPU (astral-sh/uv at 26a9dd4b21, crates/uv-torch/src/accelerator.rs).
    """
    os = report["node"]["os"]
    if os == "darwin":
        return CPU, "macOS has one build"
    drivers = [gpu.driver for gpu in gpus if gpu.vendor == "nvidia" and gpu.driver]
    driver = max(drivers, default=module_driver(machine))
    if driver:
        return _by_driver(driver, os), f"it compares the driver alone ({dotted(driver)})"
    known = TORCH["uv"]["amd"]
    processors = [(gpu.processor or "").partition(":")[0] for gpu in gpus if gpu.vendor == "amd"]
    processors = [name for name in processors if name in known]
    if processors and os == "linux" and _has_enumerator(machine):
        lowest = min(processors, key=known.index)
        return TORCH["rocm"][0]["backend"], f"it takes the lowest processor ({lowest})"
    if any(_is_intel_display(device["pci"]) for device in report["devices"] if device["pci"]):
        if musl:
            return CPU, "it has no XPU build for musl"
        return TORCH["xpu"]["backend"], "it takes any display adapter of Intel for an XPU"
    return CPU, "it finds no GPU"


def _has_enumerator(machine: Machine) -> bool:
    """Return whether uv can start `rocm_agent_enumerator`: by PATH, as far as that is known.

    ROCm's packages put it into /opt/rocm/bin, which is on no PATH by itself.
    """
    folders = [folder for folder in machine.environ.get("PATH", "").split(":") if folder]
    return any(
        machine.exists(f"{folder}/rocm_agent_enumerator") for folder in folders or _ROCM_FOLDERS
    )


def _by_driver(driver: tuple[int, ...], os: str) -> str:
    rows = TORCH["uv"]["windows" if os == "windows" else "linux"]
    fitting = (backend for backend, least in rows if driver >= version_of(least))
    return next(fitting, CPU)


def _is_intel_display(pci: object) -> bool:
    if not isinstance(pci, dict):
        return False
    vendor = str(pci.get("id", "")).partition(":")[0]
    return vendor == "8086" and str(pci.get("class", "")).startswith(_INTEL_DISPLAY)


def uv_variables(choice: Choice) -> dict[str, str]:
    """Return the variables for uv. A value that uv refuses is left out: all its commands fail."""
    variables = {}
    if choice.backend in TORCH["uv"]["backends"]:
        variables["UV_TORCH_BACKEND"] = choice.backend
    first = choice.served[0] if choice.served else None
    if first is not None and first.vendor == "nvidia" and first.driver:
        variables["UV_CUDA_DRIVER_VERSION"] = dotted(first.driver)
    if first is not None and first.processor in TORCH["uv"]["amd"]:
        variables["UV_AMD_GPU_ARCHITECTURE"] = first.processor
    return variables


def conda_variables(choice: Choice) -> dict[str, str]:
    """Return the overrides of conda's virtual packages: the CUDA that device and driver take.

    `__cuda` is the driver's CUDA by default, and `__cuda_arch` the lowest compute capability
    (CEP 46). For a GPU that CUDA 13 dropped, `__cuda` is held to the last 12.
    """
    served = [gpu for gpu in choice.served if gpu.vendor == "nvidia"]
    if not served:
        return {} if choice.backend == UNKNOWN else {"CONDA_OVERRIDE_CUDA": ""}
    cuda = _cuda_of(choice, served)
    lowest = min(pair for gpu in served for pair in gpu.capabilities)
    variables = {"CONDA_OVERRIDE_CUDA_ARCH": text_of(lowest)}
    if cuda:
        variables = {"CONDA_OVERRIDE_CUDA": text_of(cuda), **variables}
    return variables


def _cuda_of(choice: Choice, served: Sequence[Gpu]) -> tuple[int, ...]:
    """Return the newest CUDA for the devices; its builds must have code for all of them."""
    drivers = [cuda_of_driver(gpu.driver, gpu.os) for gpu in served if gpu.driver]
    cuda = min(drivers, default=version_of(choice.toolkit))
    dropped = any(pair < (7, 5) for gpu in served for pair in gpu.capabilities)
    return min(cuda, (12, 9)) if dropped else cuda


def variant_variables(choice: Choice) -> dict[str, str]:
    """Return the variables that the draft's existing providers read instead of the hardware."""
    if not choice.served:
        return {}
    first = choice.served[0]
    if first.vendor == "nvidia":
        variables = {}
        if cuda := _cuda_of(choice, choice.served):
            name = "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION"
            variables[name] = text_of(cuda)
        # The lowest of all: the provider itself takes the highest, and breaks the others.
        pair = min(pair for gpu in choice.served for pair in gpu.capabilities)
        variables["NV_VARIANT_PROVIDER_FORCE_SM_ARCH"] = text_of(pair)
        return variables
    if first.vendor == "amd" and first.processor:
        return {"AMD_VARIANT_PROVIDER_FORCE_GFX_ARCH": first.processor.partition(":")[0]}
    return {}


def pip_requirements(choice: Choice) -> list[str]:
    """Return how the builds of other frameworks for these devices are called, for pip."""
    if not choice.served or choice.served[0].vendor != "nvidia":
        return []
    # Of the build's own CUDA: another one might need another driver.
    major = choice.toolkit.partition(".")[0]
    jax = [f"jax[cuda{major}]"] if major in _WITH_JAX else []
    return [*jax, f"cupy-cuda{major}x"]


_WITH_JAX = {"12", "13"}
"""Versions of CUDA that JAX has builds for; of 11 it published the last in 2024 (recalled)."""
