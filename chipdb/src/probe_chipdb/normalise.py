"""Brings the spellings of one product, by many drivers and tools, to one exact key.

It takes away decoration (trademarks, driver suffixes, a redundant vendor) and unifies case,
hyphens and `80 GB` against `80GB`. It never takes away a word that tells two products apart:
sizes, `Laptop GPU`, `Max-Q`, `SUPER`, `Ti`, `D`, `SXM`, `PCIe`, `NVL` all stay. What is left is
compared for equality only.

Pure, and versioned: a change of any result is a new NORMALISE_VERSION.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

NORMALISE_VERSION = 1

KINDS = (
    "name",  # a marketing name, origin unknown
    "nvml",
    "amdgpu",  # libdrm's amdgpu.ids
    "lspci",
    "pci",  # a name from pci.ids
    "vulkan",
    "opencl",
    "gl",
    "drm",
    "metal",
    "wmi",
    "windows",
    "cpuinfo",
    "dt",
)

MAX_LENGTH = 256  # longer texts are no product names

_TRADEMARKS = ("(r)", "(tm)", "(c)", "®", "™", "©")
_VENDORS = (
    "nvidia corporation",
    "nvidia",
    "advanced micro devices, inc. [amd/ati]",
    "advanced micro devices, inc. [amd]",
    "advanced micro devices, inc.",
    "ati technologies inc.",
    "ati technologies inc",
    "amd/ati",
    "amd",
    "ati",
    "intel corporation",
    "intel",
    "qualcomm technologies, inc",
    "qualcomm",
    "arm",
)
# Words that name no product: "Intel Graphics" keeps its vendor, "UHD Graphics 620" does not.
_EMPTY_WORDS = frozenset(
    ("graphics", "gpu", "device", "display", "controller", "vga", "compatible", "adapter", "corporation",
     "processor", "family", "series", "integrated", "npu", "neural", "accelerator", "video")
)  # fmt: skip
_GL_TAILS = ("/pcie/sse2", "/pci/sse2", "/integrated/sse2", "/sse2", "/pcie", "/pci", "/agp/sse2")
_CLASSES = (
    "vga compatible controller",
    "3d controller",
    "display controller",
    "processing accelerators",
    "processing accelerator",
    "co-processor",
)


def normalise(text: str, kind: str = "name") -> str:
    """The key under which a name is compared; the empty text when nothing is left.

    Idempotent: normalise(normalise(x, kind), kind) == normalise(x, kind).

    >>> normalise("NVIDIA GeForce RTX 3080/PCIe/SSE2", "gl")
    'geforce rtx 3080'
    >>> normalise("Mesa Intel(R) UHD Graphics 620 (KBL GT2)", "gl")
    'uhd graphics 620'

    Raises ValueError for a kind that is not in KINDS.
    """
    if kind not in _RULES:
        raise ValueError(f"unknown kind {kind!r}: one of {', '.join(KINDS)}")
    if kind == "dt":
        return _device_tree(text)
    key = _letters(text[:MAX_LENGTH])
    while True:
        before = key
        for rule in _RULES[kind]:
            key = rule(key)
        key = _spaces(key)
        if key == before:
            return key


def is_generic(key: str) -> bool:
    """Whether a normalised name holds no word that could name a product.

    >>> is_generic("radeon graphics"), is_generic("radeon 780m graphics")
    (True, False)
    """
    return all(word in _EMPTY_WORDS or word in _BRANDS for word in key.split())


_BRANDS = frozenset(
    ("nvidia", "amd", "ati", "intel", "arm", "apple", "qualcomm", "radeon", "geforce", "arc", "iris", "xe",
     "hd", "uhd", "mali", "adreno", "orin", "tegra", "vega", "pro", "plus", "(nvgpu)", "nvgpu")
)  # fmt: skip


def _device_tree(text: str) -> str:
    """A compatible is exact already; a property read whole ends in NUL and may hold several."""
    return text.partition("\0")[0].strip().lower()


def _letters(text: str) -> str:
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    text = text.replace("‐", "-").replace("‑", "-").replace("–", "-").lower()
    for mark in _TRADEMARKS:
        text = text.replace(mark, " ")
    return _spaces(text)


def _spaces(text: str) -> str:
    words = text.replace("\u00a0", " ").split()
    return " ".join(words)


def _join_sizes(text: str) -> str:
    """`80 gb` and `80gb`, `max-q` and `max q`, are one spelling each."""
    words = text.replace("-", " ").replace(" / ", "/").split()
    out: list[str] = []
    for word in words:
        if word == "gb" and out and out[-1].isdecimal():
            out[-1] += "gb"
        else:
            out.append(word)
    return " ".join(out)


def _drop_vendor(text: str) -> str:
    for vendor in _VENDORS:
        if text.startswith(vendor + " "):
            rest = text[len(vendor) + 1 :].strip()
            if rest and not all(word in _EMPTY_WORDS for word in rest.split()):
                return rest
    return text


def _drop_final_parenthesis(text: str) -> str:
    """Mesa, RADV, ANV, NVK and others put the die and the driver there."""
    if text.endswith(")") and (start := _opening(text)) > 0:
        return text[:start].strip()
    return text


def _opening(text: str) -> int:
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += (text[at] == ")") - (text[at] == "(")
        if depth == 0:
            return at
    return -1


_DRIVER_WORDS = (
    "radv", "radeonsi", "llvm", "drm ", "nvk", "panfrost", "panvk", "turnip", "aco",
    "microsoft corporation", " gt1", " gt2", " gt3", " gt4",
)  # fmt: skip


def _drop_driver_parenthesis(text: str) -> str:
    """The same, where the origin is not known: only with a driver's word inside."""
    if text.endswith(")") and (start := _opening(text)) > 0:
        inside = text[start + 1 : -1]
        if any(word in inside for word in _DRIVER_WORDS):
            return text[:start].strip()
    return text


def _drop_mesa(text: str) -> str:
    for word in ("mesa dri ", "mesa ", "turnip ", "anv "):
        text = text.removeprefix(word)
    return text


def _drop_gl_tail(text: str) -> str:
    for tail in _GL_TAILS:
        text = text.removesuffix(tail)
    return text


def _angle(text: str) -> str:
    """`ANGLE (NVIDIA, NVIDIA GeForce RTX 4090 Direct3D11 vs_5_0 ps_5_0, D3D11)`."""
    if not text.startswith("angle (") or text.count(",") < 2:
        return text
    name = text.split(",")[1].strip().removeprefix("angle metal renderer: ")
    for word in (" direct3d", " opengl", " vulkan "):
        name = name.partition(word)[0]
    return name


def _bracket(text: str) -> str:
    """pci.ids puts the product into the last bracket: `AD102 [GeForce RTX 4090]`."""
    if text.endswith("]") and (start := text.rfind("[")) > 0:
        inside = text[start + 1 : -1].strip()
        if _is_pci_id(inside) or inside.startswith("0x"):
            return text[:start].strip()
        return inside or text
    return text


def _is_pci_id(text: str) -> bool:
    vendor, colon, device = text.partition(":")
    hexadecimal = "0123456789abcdef"
    return (
        bool(colon)
        and len(vendor) == len(device) == 4
        and all(letter in hexadecimal for letter in vendor + device)
    )


def _lspci_line(text: str) -> str:
    """`01:00.0 VGA compatible controller [0300]: NVIDIA Corporation AD102 [...] (rev a1)`."""
    if text.endswith(")") and (start := text.rfind("(")) > 0 and text[start:].startswith(("(rev ", "(prog-if ")):
        text = text[:start].strip()
    for name in _CLASSES:
        found = text.find(name)
        if 0 <= found <= 16:
            text = text[found + len(name) :].partition(":")[2].strip() or text
            break
    return text


def _drop_hex_id(text: str) -> str:
    """Intel's compute runtime prints `Intel(R) Graphics [0x56a0]`."""
    start = text.rfind("[0x")
    return text[:start].strip() if start > 0 and text.endswith("]") else text


def _drop_mali_revision(text: str) -> str:
    """`mali-g610 r0p0` and `mali-g610 (r0p0)`: the silicon's revision is no product."""
    head, _, last = text.rpartition(" ")
    word = last.strip("()")
    major, p, minor = word[1:].partition("p")
    if head and word[:1] == "r" and p and major.isdecimal() and minor.isdecimal():
        return head
    return text


def _cpu_words(text: str) -> str:
    text = text.partition("@")[0].strip()
    for word in (" with radeon", " w/ radeon"):
        text = text.partition(word)[0]
    head, _, last = text.rpartition(" ")
    if last == "processor" and "-core" in head.rpartition(" ")[2]:
        head, text = "", head.rpartition(" ")[0]
    return text.removesuffix(" cpu").removesuffix(" processor")


_COMMON: tuple["Callable[[str], str]", ...] = (_drop_vendor, _join_sizes)
_DRIVER = (_angle, _drop_gl_tail, _drop_mesa, _drop_hex_id, _drop_mali_revision)
_RULES: dict[str, tuple["Callable[[str], str]", ...]] = {
    "name": (_lspci_line, _bracket, *_DRIVER, _drop_driver_parenthesis, *_COMMON),
    "nvml": _COMMON,
    "amdgpu": _COMMON,
    "lspci": (_lspci_line, _bracket, *_COMMON),
    "pci": (_lspci_line, _bracket, *_COMMON),
    "vulkan": (*_DRIVER, _drop_final_parenthesis, *_COMMON),
    "opencl": (*_DRIVER, _drop_final_parenthesis, *_COMMON),
    "gl": (*_DRIVER, _drop_final_parenthesis, *_COMMON),
    "drm": (*_DRIVER, *_COMMON),
    "metal": _COMMON,
    "wmi": (_drop_driver_parenthesis, *_COMMON),
    "windows": (_drop_driver_parenthesis, *_COMMON),
    "cpuinfo": (_cpu_words, *_COMMON),
    "dt": (),
}
