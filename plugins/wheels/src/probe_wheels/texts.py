"""What distributions say of their own build, in text: versions, `version.py`, METADATA.

Text tells the toolkit; which GPUs a build has code for, only its libraries tell.
"""

from __future__ import annotations

__all__ = ["TEXT_FILES", "build_tag", "build_text", "requires_of"]

TEXT_FILES = {
    "torch": "torch/version.py",
    "torchvision": "torchvision/version.py",
    "torchaudio": "torchaudio/version.py",
    "tensorflow": "tensorflow/python/platform/build_info.py",
    "tensorflow-rocm": "tensorflow/python/platform/build_info.py",
    "tensorflow-cpu": "tensorflow/python/platform/build_info.py",
    "onnxruntime": "onnxruntime/capi/build_and_package_info.py",
    "onnxruntime-gpu": "onnxruntime/capi/build_and_package_info.py",
    "xformers": "xformers/version.py",
}
"""Distribution to the file of its own that says what it was built with."""

_TAGS = ("cu", "rocm", "cpu", "xpu", "gpu", "hip", "gfx")
_KEYS = ("__version__", "version", "cuda", "hip", "rocm", "xpu", "cuda_version", "package_name")
MAX_VALUE = 64
MAX_REQUIRES = 256


def build_tag(version: str) -> str | None:
    """Return the build that the local part of a version names: ``cu128`` of ``2.9.1+cu128``.

    Longer ones occur: ``2.8.3+cu12torch2.6cxx11abiFALSE``, ``2.4.0+rocm6.3.4.git7cecbf6d``.
    """
    local = version.partition("+")[2]
    for part in local.replace("-", ".").replace("_", ".").split("."):
        if part.startswith(_TAGS):
            start = local.index(part)
            return _numbered(local[start:])
    return None


def _numbered(text: str) -> str:
    """Return the letters at the start of a text, and the numbers and dots that follow."""
    at = next((at for at, char in enumerate(text) if not char.isalpha()), len(text))
    end = at
    while end < len(text) and (text[end].isdigit() or text[end] == "."):
        end += 1
    return text[:end].rstrip(".")


def build_text(text: str) -> dict[str, str]:
    """Return what a `version.py` or a `build_info.py` assigns; "" for None.

    ``cuda: Optional[str] = '13.0'`` and ``cuda = '11.7'`` both occur, and tensorflow writes
    pairs into one OrderedDict.
    """
    values: dict[str, str] = {}
    for line in text.splitlines()[:4096]:
        name, equals, value = line.partition("=")
        key = name.partition(":")[0].strip()
        if equals and key in _KEYS:
            values[key.strip("_")] = _literal(value.strip())
        elif "OrderedDict([" in line:
            values.update(_pairs(line))
    return values


def _literal(text: str) -> str:
    quote = text[:1]
    if quote in ("'", '"'):
        return text[1:].partition(quote)[0][:MAX_VALUE]
    return "" if text.startswith("None") else text[:MAX_VALUE]


def _pairs(line: str) -> dict[str, str]:
    """Return the wanted pairs of ``OrderedDict([('cuda_version', '12.5.1'), …])``."""
    values = {}
    for key in ("cuda_version", "is_cuda_build", "is_rocm_build"):
        _, mark, rest = line.partition(f"('{key}', ")
        if mark:
            values[key] = rest.partition(")")[0].strip("'")[:MAX_VALUE]
    return values


def requires_of(metadata: str) -> list[str]:
    """Return the requirements in a METADATA that no extra guards: ``nvidia-cublas-cu12==12.8``."""
    lines = []
    for line in metadata.splitlines():
        if not line:
            break  # what follows is the description
        if line.startswith("Requires-Dist:") and "extra ==" not in line:
            lines.append(line[14:].partition(";")[0].strip()[:128])
    return lines[:MAX_REQUIRES]
