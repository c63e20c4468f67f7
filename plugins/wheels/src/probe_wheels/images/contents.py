"""What an image contains that decides where it runs: programs, wheels, libraries, toolkits."""

from __future__ import annotations

import os

from probe_wheels.distributions import normal, read_distributions, read_packages
from probe_wheels.environment import find_environment
from probe_wheels.files import Budget, Exhausted, Opened
from probe_wheels.frameworks import VENDORS, framework_of, has_code, vendors_of
from probe_wheels.images.layers import binary_of
from probe_wheels.images.nvidia import Compat, mounted_by, mounts_program, states_cuda
from probe_wheels.images.outside import GGML, outside_of
from probe_wheels.images.program import Program, path_of, program_of
from probe_wheels.images.purpose import FIRST, NEEDING, is_spared, purpose_of, watcher_of
from probe_wheels.images.toolkits import compats_of, rocblas_processors, rocm_of, toolkit_of
from probe_wheels.images.tree import Tree
from probe_wheels.images.view import ImageFiles
from probe_wheels.rules import IMAGES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from probe_wheels.documents import DistributionDoc
    from probe_wheels.images.image import Image
    from probe_wheels.images.layers import Binary

SECONDS = 300.0
_LIBRARIES = (
    "lib", "lib64", "usr/lib", "usr/lib64", "usr/local/lib", "usr/local/lib64",
    "lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu", "usr/local/lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/local/lib/aarch64-linux-gnu",
    "usr/local/nvidia/lib", "usr/local/nvidia/lib64",
)  # fmt: skip

_BY_SHADERS = ("nvidia", "amd", "intel")

# TensorRT's libraries with what builds engines for a chip, each named after it.
_BUILDER = "libnvinfer_builder_resource_sm"
# NGC's images put cuda-compat before the driver's own library where a check of theirs says so.
_CHOOSER = "/etc/shinit_v2"
MAX_LINKED = 256


class Contents:
    """What decides, found once for an image and judged for every node.

    `documents` are distributions, and code beside them, for GPUs. `vendors` are those whose GPUs it
    has code for, or asks for. `host_library` is a library of NVIDIA's driver that the loader wants
    for the program, "" for none. `falls_back` is whether all of its code is of programs that use
    the CPU where no GPU is found, `cpu_first` whether they take the CPU before a GPU, and `skips`
    whether they leave out a GPU that they have no code for. `linked_code` names the code that the
    program is linked with. `watcher` is the program by which it watches GPUs, and computes nothing;
    "" elsewhere. `configured` are the folders of the loader's configuration. `chooser` is a start
    script that chooses the libcuda, "" without one. `rocm` is the version of ROCm's user space,
    `kernels` are the processors of its rocBLAS, and `builders` the chips that its TensorRT builds
    for. `shaders` is whether all of its code is for Vulkan, `asks` whether a variable alone, or a
    vendor's libraries, want a GPU, and `is_sycl` whether it has code for Intel's. `unjudged` is why
    nobody knows whether it does without a GPU of those vendors, "" for no reason.
    """

    def __init__(self, image: Image, files: ImageFiles) -> None:
        self.image = image
        self.files = files
        self.environ: Mapping[str, str] = image.config.environ
        self.documents: list[DistributionDoc] = []
        self.vendors: list[str] = []
        self.host_library = ""
        self.falls_back = False
        self.skips = False
        self.watcher = ""
        self.builders: list[tuple[int, int]] = []
        self.linked_code: set[str] = set()
        self.shaders = False
        self.asks = False
        self.cpu_first = False
        self.unjudged = ""
        self.is_sycl = False
        self.chooser = ""
        self.program: Program | None = None
        self.compat: list[Compat] = []
        self.toolkit: tuple[int, ...] = ()
        self.rocm: tuple[int, ...] = ()
        self.kernels: set[str] = set()
        self.problems: list[str] = []
        self.names: set[str] = set()
        self._own_arch: str | None = None
        self._libc: tuple[str, tuple[int, ...]] | None = None
        self._musl: bool | None = None
        self._cxx: tuple[int, ...] | None = None
        self.configured: list[str] = []

    @property
    def is_environment(self) -> bool:
        """Whether it is a Python environment, whose system is the node's own."""
        return self.image.kind == "environment"

    def place(self, path: str) -> str:
        """Return where a file lies, for people: ``/usr/lib/a.so (layer 3)``."""
        tree, layers = self.files.tree, self.image.layers
        number = tree.layers.get(tree.resolve(path))
        return path if number is None or not layers else f"{path} ({layers[number]})"

    def binary(self, path: str) -> Binary | None:
        """Return what the loader needs of a library; None for what is no ELF file."""
        if not self.is_environment:
            return self.files.binary(path)
        try:
            with Opened(path, self.files) as file:
                return binary_of(file)
        except OSError:
            return None

    def libc(self) -> tuple[str, tuple[int, ...]]:
        """Return the path of glibc and the version that it has; "" where the image has none."""
        if self._libc is None:
            found = [path for path in self.files.tree.files if path.endswith("/libc.so.6")]
            self._libc = (f"/{found[0]}", ()) if found else ("", ())
            for path in sorted(found, key=len):
                binary = self.files.binary(path)
                if binary is not None and binary.machine == (self.arch or binary.machine):
                    self._libc = (f"/{path}", binary.provides)
                    break
        return self._libc

    @property
    def arch(self) -> str | None:
        """The architecture: what the configuration says, else that of its program or C library."""
        if self.image.config.arch:
            return self.image.config.arch
        program = self.program
        if program and program.binary:
            return program.binary.machine
        if self._own_arch is None:
            libraries = [p for p in self.files.tree.files if p.endswith(".so") or _is_system(p)]
            ordered = sorted(libraries, key=lambda path: (not _is_system(path), len(path)))
            found = (self.files.binary(path) for path in ordered[:64])
            machines = (b.machine for b in found if b and b.machine not in ("cuda", "amdgpu"))
            self._own_arch = next(machines, "")
        return self._own_arch or None

    def is_musl(self) -> bool:
        """Return whether musl is its C library, and glibc is not there."""
        if self._musl is None:
            self._musl = any(name.startswith("ld-musl-") for name in self.names)
        return self._musl and not self.libc()[0]

    def found(self, library: str, binary: Binary, path: str) -> bool | None:
        """Return whether the loader finds a library; None where it lies elsewhere in the image."""
        if library not in self.names:
            return False
        return True if self._located(library, binary, path) else None

    def _located(self, library: str, binary: Binary, path: str) -> str | None:
        """Return the path at which the loader finds a library; None for none that is known."""
        origin = path.rpartition("/")[0]
        own = [folder.replace("${ORIGIN}", "$ORIGIN") for folder in binary.folders]
        folders = [folder.replace("$ORIGIN", origin) for folder in own]
        folders += [*self.library_path, *self.configured, *_LIBRARIES, origin]
        tree = self.files.tree
        names = (folder.strip("/") for folder in folders)
        return next((f"/{name}/{library}" for name in names if library in tree.names(name)), None)

    def linked(self, binary: Binary, path: str) -> Iterator[tuple[str, Binary]]:
        """Yield a file and the libraries that the loader finds for it, the nearest first."""
        waiting, seen = [(path, binary)], {path}
        for place, own in waiting:
            yield place, own
            for library in own.needed:
                found = self._located(library, own, place)
                if found is not None and found not in seen and len(seen) < MAX_LINKED:
                    seen.add(found)
                    other = self.binary(found)
                    waiting += [(found, other)] if other else []

    def cxx(self) -> tuple[int, ...]:
        """Return the highest version of GLIBCXX that a libstdc++ of the image has; () for none."""
        if self._cxx is None:
            paths = [path for path in self.files.tree.files if "/libstdc++.so.6" in path]
            found = (self.files.binary(path) for path in paths)
            self._cxx = max((b.cxx_provides for b in found if b), default=())
        return self._cxx

    @property
    def library_path(self) -> list[str]:
        """The folders in which the loader looks first."""
        return [path for path in self.environ.get("LD_LIBRARY_PATH", "").split(":") if path]


def _is_system(path: str) -> bool:
    """Return whether a file is a C library or the loader of musl, which has the library in it."""
    name = path.rpartition("/")[2]
    return name == "libc.so.6" or name.startswith("ld-musl-")


def contents_of(image: Image) -> Contents:
    """Return what decides of an image. What cannot be read is in its `problems`."""
    if image.kind == "environment":
        return _of_environment(image)
    contents = Contents(image, ImageFiles(image.tree(), SECONDS))
    contents.problems += image.problems
    contents.names = {path.rpartition("/")[2] for path in contents.files.tree.files}
    contents.names |= {path.rpartition("/")[2] for path in contents.files.tree.links}
    try:
        _fill(contents)
    except Exhausted as error:
        contents.problems.append(f"not all of it was read: {error}")
    contents.problems += [
        f"{document['name']}: {document['note']}"
        for document in contents.documents
        if "note" in document
    ]
    return contents


def _of_environment(image: Image) -> Contents:
    """Return what decides of a Python environment of this computer."""
    files = ImageFiles(Tree({}, {}), SECONDS)
    contents = Contents(image, files)
    budget = Budget(SECONDS)
    environment = find_environment(image.folder, {}, budget)
    documents = read_distributions(environment.sites, budget)
    if environment.kind == "conda":
        documents += read_packages(environment.prefix, documents, budget, None)
    contents.documents = [document for document in documents if _decides(document)]
    contents.problems += [problem.summary for problem in environment.problems]
    _conclude(contents)
    return contents


def _fill(contents: Contents) -> None:
    files, tree = contents.files, contents.files.tree
    sites = _sites(tree, contents.environ)
    documents = read_distributions(sites, files)
    for prefix in sorted(
        {path.rpartition("/conda-meta/")[0] for path in tree.files if "conda-meta/" in path}
    ):
        documents += read_packages(f"/{prefix}".rstrip("/"), documents, files, None)
    claimed = {
        files.real(os.path.join(document["site"], path))
        for document in documents
        for path in document["files"]
    }
    loose, unread = outside_of(files, contents.environ, claimed, sites)
    contents.problems += [f"{contents.place(path)}: {text}" for path, text in unread.items()]
    contents.kernels = kernels = rocblas_processors(tree)
    installed = [normal(document["name"]) for document in documents]
    documents = [*filter(_decides, documents), *loose]
    for document in documents:
        if not document["gfx"] and kernels and "amd" in vendors_of(document):
            document["gfx"] = sorted(kernels)
    contents.documents = documents
    contents.configured = _configured(files)
    contents.program = program_of(files, contents.image.config)
    contents.compat = compats_of(files, contents.environ)
    # A link's name (libcudart.so.12) has less of the version than its file's.
    runtimes = (p.rpartition("/")[2] for p in tree.files if "/libcudart.so." in p)
    contents.toolkit = toolkit_of(runtimes, contents.environ)
    contents.chooser = _CHOOSER if files.is_file(_CHOOSER) else ""
    contents.rocm = rocm_of(files, documents)
    contents.builders = _builders(contents.names)
    contents.linked_code = _linked_code(contents, loose)
    _conclude(contents)
    contents.unjudged = _unjudged(contents, installed)
    words = contents.image.config.program
    if watcher := watcher_of(words, contents.names):
        _watch(contents, watcher)
    elif contents.asks and is_spared(words, contents.names):
        contents.vendors, contents.asks, contents.unjudged = [], False, ""


def _unjudged(contents: Contents, installed: Iterable[str]) -> str:
    """Return why nobody knows whether an image without code for GPUs does without one, or "".

    Its program may need another accelerator, or an interface to GPUs that it is linked with.
    """
    stems = {name.partition(".so")[0] for name in contents.names if name.startswith("lib")}
    named = [text for stem, text in IMAGES["others"].items() if stem in stems]
    if named:
        reason = f"it has libraries for {' and '.join(named)}, whose code is not read"
        return f"{reason}: whether it does without is unknown"
    program, table = contents.program, IMAGES["interfaces"]
    needed = program.binary.needed if program and program.binary else ()
    taken = [name for name in needed if name in table["libraries"]]
    taken += [name for name in installed if name in table["distributions"]]
    if not taken or is_spared(contents.image.config.program, contents.names):
        return ""
    reason = f"it takes {taken[0]}: whether there is a driver for it in the container, or it does"
    return f"{reason} without, is unknown"


def _builders(names: Iterable[str]) -> list[tuple[int, int]]:
    """Return the compute capabilities that TensorRT builds engines for, in rising order."""
    chips = {n.removeprefix(_BUILDER).partition(".")[0] for n in names if n.startswith(_BUILDER)}
    return sorted((int(c[:-1]), int(c[-1])) for c in chips if c.isdecimal() and 1 < len(c) < 5)


def _linked_code(contents: Contents, loose: list[DistributionDoc]) -> set[str]:
    """Return the names of code outside of packages that the program, or what it links, has."""
    program = contents.program
    if program is None or program.binary is None or not loose:
        return set()
    linked = {path for path, _ in contents.linked(program.binary, program.path)}
    return {
        document["name"]
        for document in loose
        if any(f"{document['site']}/{path}" in linked for path in document["files"])
    }


def _configured(files: ImageFiles) -> list[str]:
    names = [f"/etc/ld.so.conf.d/{name}" for name in files.listed("/etc/ld.so.conf.d")]
    texts = [files.text(path) for path in ("/etc/ld.so.conf", *names)]
    lines = [line.strip() for text in texts for line in text.splitlines()[:1024]]
    return [line for line in lines if line.startswith("/")]


def _conclude(contents: Contents) -> None:
    """Fill in the vendors that it has code for, or asks for, and whether it can do without."""
    environ = contents.environ
    purpose = purpose_of(contents.documents, contents.names)
    found = set(purpose.vendors)
    contents.host_library = _host_library(contents)
    # A tool that wants no GPU (NVIDIA's container toolkit) may stand on a base with CUDA.
    wants_none = environ.get("NVIDIA_VISIBLE_DEVICES") in ("void", "none") and not found
    states = states_cuda(environ) and not wants_none
    if contents.host_library or states:
        found.add("nvidia")
    if not found and any(
        library.get("vulkan") and path.rpartition("/")[2].startswith(GGML)
        for document in contents.documents
        for path, library in document["files"].items()
    ):
        found.update(_BY_SHADERS)
        contents.shaders = True
    elif not found and contents.rocm:
        found.add("amd")
    contents.asks = purpose.components and not states and not contents.rocm
    found = found or purpose.compiling
    if not found and environ.get("NVIDIA_VISIBLE_DEVICES") not in (None, "", "void", "none"):
        found.add("nvidia")
        contents.asks = True
    contents.vendors = [vendor for vendor in VENDORS if vendor in found]
    contents.falls_back = purpose.use != NEEDING and not contents.host_library
    contents.cpu_first = purpose.use == FIRST and contents.falls_back and not states
    contents.skips = purpose.skips
    contents.is_sycl = any(
        has_code(library, "intel") for d in contents.documents for library in d["files"].values()
    )


def _watch(contents: Contents, watcher: str) -> None:
    """Take an image for one that watches GPUs: code that lies in it, and its CUDA, do not count."""
    contents.watcher = watcher
    contents.vendors = ["nvidia"]
    contents.documents, contents.toolkit, contents.rocm, contents.compat = [], (), (), []
    contents.falls_back = contents.cpu_first = False
    contents.asks = watcher not in IMAGES["watchers"]["needing"]
    contents.host_library = contents.host_library or "libnvidia-ml.so.1"


def _host_library(contents: Contents) -> str:
    """Return a library of the host that the loader wants for the program or what it links.

    "" where it wants none. A backend of ggml that is linked, not loaded by name, keeps its programs
    from starting then, so ggml's own library counts as the program does, which a shell may start.
    """
    program = contents.program
    if program and program.missing and mounts_program(program.path):
        return program.path
    started = [(program.path, program.binary)] if program else []
    ggml = [f"/{p}" for p in contents.files.tree.files if "/libggml.so" in f"/{p}"]
    started += [(path, contents.binary(path)) for path in ggml]
    for start, own in started:
        for path, binary in contents.linked(own, start) if own else ():
            for name in binary.needed:
                # That of a compat folder is none that the loader finds.
                if mounted_by(name) and not contents.found(name, binary, path):
                    return name
    return ""


def _decides(document: DistributionDoc) -> bool:
    """Return whether a distribution may say something of GPUs."""
    return bool(document["files"] or document["gfx"] or framework_of(document["name"]))


def _sites(tree: Tree, environ: Mapping[str, str]) -> list[str]:
    """Return the folders with Python packages; first those of the interpreter that PATH finds."""
    found = {
        path.rpartition("/")[0].rpartition("/")[0]
        for path in tree.files
        if path.rpartition("/")[0].endswith((".dist-info", ".egg-info"))
    }
    prefixes = [folder.strip("/").removesuffix("bin").rstrip("/") for folder in path_of(environ)]

    def rank(site: str) -> tuple[int, str]:
        places = [at for at, p in enumerate(prefixes) if p and site.startswith(f"{p}/lib")]
        return (places[0] if places else len(prefixes)), site

    return [f"/{site}" for site in sorted(found, key=rank)]
