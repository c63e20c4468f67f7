"""Code for GPUs that no package brings: programs, and folders of libraries beside them."""

from __future__ import annotations

from probe_wheels.distributions import unread
from probe_wheels.frameworks import VENDORS, has_code, name_of_builds
from probe_wheels.images.layers import WHOLE, role_of
from probe_wheels.images.purpose import is_backend
from probe_wheels.records import is_library
from probe_wheels.rules import version_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from probe_wheels.documents import DistributionDoc, LibraryDoc
    from probe_wheels.images.layers import File
    from probe_wheels.images.view import ImageFiles

# Programs that take a library with code for GPUs where one fits, and else the CPU (llama.cpp,
# ggml/src/ggml-backend-reg.cpp; ollama, docs/gpu.md).
GGML = ("libggml",)

# Where the toolkits of vendors lie. Their libraries are for what is built with them, and do not
# decide; their programs (CUDA's samples) are as others.
_TOOLKITS = ("usr/local/cuda", "opt/rocm", "opt/intel/oneapi/", "opt/nvidia/nsight")


def outside_of(
    files: ImageFiles, environ: Mapping[str, str], claimed: set[str], sites: Iterable[str]
) -> tuple[list[DistributionDoc], dict[str, str]]:
    """Return the folders of libraries and programs with code for GPUs outside of packages.

    `claimed` are the files of packages, `sites` the folders of packages of Python. Beside them: the
    files that may have code and cannot be read, each with the reason.
    """
    problems: dict[str, str] = {}
    folders: dict[tuple[str, str], dict[str, LibraryDoc]] = {}
    below = tuple(f"{site.lstrip('/')}/" for site in sites)
    for path, file in files.tree.files.items():
        if path.startswith(below) or f"/{path}" in claimed or not _may_have_code(path, file):
            continue
        if path.startswith(_TOOLKITS) and is_library(path):
            continue
        files.spend()
        read = files.read(file)
        document = read.document if read else {}
        folder, name = _backend(path)
        # What only draws by Vulkan (GTK, libplacebo of a player) tells nothing of computing.
        has_shaders = document.get("vulkan") and path.rpartition("/")[2].startswith(GGML)
        if has_shaders or any(has_code(document, vendor) for vendor in VENDORS):
            # Of backends, and of builds for several chips, a program takes what fits. Of all else
            # nobody knows what it takes.
            whole = folder if is_backend(f"/{path}") else f"{folder}/{name_of_builds(path)}"
            folders.setdefault((whole, folder), {})[name] = document
        elif "problem" in document and file.size > WHOLE:
            problems[f"/{path}"] = document["problem"]
    cuda = version_of(environ.get("CUDA_VERSION", ""))
    return [_folder(*place, found, cuda) for place, found in sorted(folders.items())], problems


def _backend(path: str) -> tuple[str, str]:
    """Return the folder that a library belongs to, and its path there.

    Ollama has a folder for each toolkit (``cuda_v12``, ``cuda_v13``) and takes what fits.
    """
    folder, _, name = path.rpartition("/")
    above, _, toolkit = folder.rpartition("/")
    if name.startswith(GGML) and toolkit.startswith(("cuda", "rocm", "hip", "vulkan")):
        return above, f"{toolkit}/{name}"
    return folder, name


def _may_have_code(path: str, file: File) -> bool:
    return role_of(path, file.mode) in ("code", "program", "executable") and "/stubs/" not in path


def _folder(
    name: str, folder: str, files: dict[str, LibraryDoc], cuda: tuple[int, ...]
) -> DistributionDoc:
    if len(files) == 1 and name != folder:
        name = f"{folder}/{next(iter(files))}"
    document = unread(f"/{name}", "", _build_of(files, cuda), f"/{folder}", f"/{folder}")
    document["files"] = files
    return document


def _build_of(files: Iterable[str], version: tuple[int, ...]) -> str | None:
    """Return the tag of the CUDA that an image is made for, as a wheel of it would have: cu128."""
    if len(version) > 1 and not any("/" in name for name in files):
        return f"cu{version[0]}{version[1]}"
    return None
