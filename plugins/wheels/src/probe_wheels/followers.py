"""Libraries that are chosen by the toolkit of the installed PyTorch, as bitsandbytes does it."""

from __future__ import annotations

from probe_wheels.choice import best_build, why_no_build
from probe_wheels.distributions import normal
from probe_wheels.frameworks import tag_version
from probe_wheels.targets import version_of
from probe_wheels.verdicts import Judgement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_wheels.devices import Gpu
    from probe_wheels.documents import DistributionDoc
    from probe_wheels.judging import Scene

__all__ = ["file_toolkit", "loaded_libraries"]

_KINDS = {"nvidia": "cuda", "amd": "rocm", "intel": "xpu"}


def file_toolkit(path: str) -> tuple[str, tuple[int, ...]]:
    """Return kind and version in a name: ("cuda", (12, 8)) of ``libbitsandbytes_cuda128.so``.

    ROCm's major version has one digit: ``rocm714`` is 7.14 (bitsandbytes 0.50.2, cextension.py).
    """
    stem = path.rpartition("/")[2].partition(".")[0].rpartition("_")[2]
    for kind in _KINDS.values():
        digits = stem.removeprefix(kind)
        if stem.startswith(kind) and digits.isdigit() and len(digits) < 6:
            if kind == "rocm":
                return kind, (int(digits[0]), int(digits[1:] or 0))
            return kind, tag_version(digits) if kind == "cuda" else (int(digits),)
    return "", ()


def loaded_libraries(paths: Sequence[str], gpu: Gpu, scene: Scene) -> list[str] | Judgement:
    """Return the library that will be loaded; all of the vendor's where nothing decides.

    A PyTorch of another vendor, or for the CPU, makes it load a library for that: then the
    verdict comes back instead.
    """
    kind = _KINDS.get(gpu.vendor, "")
    versions = {path: file_toolkit(path)[1] for path in paths if file_toolkit(path)[0] == kind}
    torch = next((doc for doc in scene.documents if normal(doc["name"]) == "torch"), None)
    if not versions:
        return list(paths)
    if torch is None:
        return _for_next_torch(versions, gpu)
    toolkit = _torch_toolkit(torch, kind)
    if not toolkit:
        return _of_torch(torch, gpu)
    override = scene.environ.get(f"BNB_{kind.upper()}_VERSION", "")
    if override.isdigit() and kind == "cuda":
        toolkit = tag_version(override)
    return [_closest(versions, toolkit)] if kind != "xpu" else list(versions)


def _for_next_torch(versions: dict[str, tuple[int, ...]], gpu: Gpu) -> list[str]:
    """Return the library for the PyTorch that would be installed; all where none fits."""
    if gpu.vendor != "nvidia" or why_no_build(gpu) is not None:
        return list(versions)
    return [_closest(versions, version_of(best_build(gpu, [gpu]).toolkit))]


def _torch_toolkit(torch: DistributionDoc, kind: str) -> tuple[int, ...]:
    text, tag = torch["text"], torch["build"] or ""
    keys = {"cuda": ("cuda",), "rocm": ("hip", "rocm"), "xpu": ("xpu",)}[kind]
    stated = next((text[key] for key in keys if text.get(key)), "")
    if stated:
        return version_of(stated)
    digits = tag.removeprefix("cu") if kind == "cuda" else tag.removeprefix(kind)
    if digits == tag:
        return ()
    return tag_version(digits) if kind == "cuda" and digits.isdigit() else version_of(digits or "1")


def _of_torch(torch: DistributionDoc, gpu: Gpu) -> Judgement:
    text, tag = torch["text"], torch["build"] or ""
    others = any(text.get(key) for key in ("cuda", "hip", "rocm", "xpu"))
    if others or tag.startswith(("cu", "rocm", "xpu")):
        reason = "it loads the library of the installed PyTorch's vendor, which is another one"
        return Judgement("other-vendor", "code for PyTorch's vendor", "another PyTorch", reason)
    reason = "it loads its CPU library, because the installed PyTorch is a CPU build"
    return Judgement("cpu-build", "its CPU library", f"a PyTorch build for {gpu.target}", reason)


def _closest(versions: dict[str, tuple[int, ...]], toolkit: tuple[int, ...]) -> str:
    """Return the library of the same version, else the next lower, else the next higher one."""
    same = {path: version for path, version in versions.items() if version[:1] == toolkit[:1]}
    lower = [path for path, version in same.items() if version <= toolkit[:2]]
    if lower:
        return max(lower, key=lambda path: same[path])
    candidates = same or versions
    return min(candidates, key=lambda path: candidates[path])
