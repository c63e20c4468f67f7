"""What drivers, tools and logs put around a product's name, each taken off by its own function."""

from probe_chipdb.pci_text import is_hex, is_pci_id

# Takes off what one driver or tool puts around a product's name, each by a function of its own.
#
# All take and return text in lower case with single spaces. The spellings are those that
# tests/strings/*.tsv records, each with where it was seen.

_GL_TAILS = (
    " compute engine",
    "/pcie/sse2",
    "/pci/sse2",
    "/integrated/sse2",
    "/integrated",
    "/agp/sse2",
    "/sse2",
    "/pcie",
    "/pci",
    " opengl engine",
)
_CLASSES = (
    "vga compatible controller",
    "3d controller",
    "display controller",
    "processing accelerators",
    "processing accelerator",
    "co-processor",
    "system peripheral",
)
# Where a line of lspci has the class at the latest: behind a slot, which with VMD's five digits of
# domain takes 14 letters ("10000:01:00.0 "). Further right it is part of a name.
_CLASS_BEFORE = 16


def drop_final_parenthesis(text: str) -> str:
    """Mesa, RADV, ANV, NVK and others put the die and the driver there."""
    if text.endswith(")") and (start := _opening(text)) > 0 and text[start:] != "(pascal)":
        return text[:start].strip()
    return text  # "TITAN X (Pascal)" is the one product that bears one


def _opening(text: str) -> int:
    """Where the parenthesis opens that the last letter closes, or -1."""
    if text.find(")") == len(text) - 1:
        return text.rfind("(")  # one pair: most names
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += (text[at] == ")") - (text[at] == "(")
        if depth == 0:
            return at
    return -1


_DRIVER_WORDS = (
    "radv", "radeonsi", "llvm", "drm ", "nvk", "panfrost", "panvk", "turnip", "aco",
    "microsoft corporation", " gt1", " gt2", " gt3", " gt4", "g13", "g14", "g15", "0x0000",
    "panthor", "nvidia_proprietary", "amd proprietary", "open source", "open-source", "moltenvk",
    "open_source_mesa", "mesa_",
)  # fmt: skip
# The dies that Mesa's Intel drivers print: "Intel(R) Arc(tm) A770 Graphics (DG2)".
_DIES = frozenset((
    "hsw", "bdw", "chv", "skl", "bxt", "kbl", "glk", "aml", "whl", "cfl", "cml", "icl", "ehl",
    "jsl", "tgl", "rkl", "adl", "rpl", "dg1", "dg2", "atsm", "pvc", "mtl", "arl", "bmg", "lnl",
    "ptl", "wcl",
))  # fmt: skip
# ggml prints the Vulkan driver behind the device: "Tesla T4 (NVIDIA)".
_VENDORS = ("nvidia", "radv", "intel corporation", "amd", "apple", "samsung", "arm")
_REMARKS = ("igpu", "dgpu", "npu", "integrated", "discrete")  # OpenVINO's and players' own


def drop_driver_parenthesis(text: str) -> str:
    """The same, where the origin is not known: only with a driver's or a die's word inside."""
    if not text.endswith(")") or (start := _opening(text)) <= 0:
        return text
    name, inside = text[:start].strip(), text[start + 1 : -1]
    return name if _is_drivers(inside) or inside == name else text


def _is_drivers(inside: str) -> bool:
    if any(mark in inside for mark in _DRIVER_WORDS) or inside in _VENDORS:
        return True
    if inside in _REMARKS:
        return True
    number = inside.startswith("0x") and is_hex(inside[2:])
    return number or inside.replace("-", " ").partition(" ")[0] in _DIES


def drop_mesa(text: str) -> str:
    """`mesa intel(r) ...`, `turnip adreno ...`: the driver before the name."""
    for driver in ("mesa dri ", "mesa ", "turnip ", "anv "):
        text = text.removeprefix(driver)
    return text


def drop_gl_tail(text: str) -> str:
    """`.../pcie/sse2`: what OpenGL drivers say of the bus and the processor."""
    for tail in _GL_TAILS:
        text = text.removesuffix(tail)
    if text.endswith(" (nvgpu)"):
        text = text.replace("tegra ", "", 1)  # OpenGL on a Jetson: "NVIDIA Tegra Orin (nvgpu)"
    return text


_WRAPPERS = ("d3d12 (", "microsoft direct3d12 (", "zink vulkan ", "vulkan 1.")


def unwrap(text: str) -> str:
    """What a layered driver runs on: `D3D12 (X)`, `zink Vulkan 1.3(X)`, `Vulkan 1.3.0 (X)`."""
    if text.endswith(")") and text.startswith(_WRAPPERS) and "(" in text:
        return text[text.find("(") + 1 : -1].strip()
    return text


# The vendor's part of ANGLE's name, where the rest is the device alone.
_ANGLE_VENDORS = (
    "nvidia", "nvidia corporation", "amd", "ati technologies inc.", "intel", "intel inc.", "apple",
    "apple inc.", "qualcomm", "arm", "google", "samsung", "microsoft", "imagination technologies",
    "mesa", "mesa/x.org", "x.org", "vmware", "unknown",
)  # fmt: skip


def angle(text: str) -> str:
    """`ANGLE (NVIDIA, NVIDIA GeForce RTX 4090 Direct3D11 vs_5_0 ps_5_0, D3D11)`, or X alone.

    Older and newer Chromes print one, two or three parts; commas inside the device's own
    parentheses part nothing ("AMD Radeon (radeonsi, navi31, LLVM 17.0.6)").
    """
    if not text.startswith("angle ("):
        return text
    parts = _top_level(text[len("angle (") :].replace("co., ltd.,", "co. ltd.,"))
    has_vendor = len(parts) > 2 or (len(parts) == 2 and parts[0] in _ANGLE_VENDORS)
    name = parts[1] if has_vendor else ", ".join(parts)
    name = _nested(name.removeprefix("angle metal renderer: "))
    for backend in (" direct3d", " opengl"):
        name = name.partition(backend)[0]
    return name


def _nested(name: str) -> str:
    """Samsung's driver is itself an ANGLE: `ANGLE ((Samsung Xclipse 940) on Vulkan 1.3.279)`."""
    if name.startswith("angle (("):
        return _top_level(name[len("angle ((") :])[0]
    if name.startswith("angle vulkan 1."):
        return name.removeprefix("angle ")
    return name.partition(" on vulkan ")[0]


def _top_level(text: str) -> list[str]:
    """The parts that commas separate, up to the parenthesis that closes the whole."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth < 0 or (letter == "," and not depth):
            parts.append(text[start:at].strip())
            start = at + 1
            if depth < 0:
                return parts
    return [*parts, text[start:].strip()]


def bracket(text: str) -> str:
    """pci.ids puts the product into the last bracket: `AD102 [GeForce RTX 4090]`."""
    text = drop_id_bracket(text)
    if text.endswith("]") and (start := text.rfind("[")) > 0:
        return text[start + 1 : -1].strip() or text
    return text


def drop_id_bracket(text: str) -> str:
    """`... [10de:2684]` and `... [0x56a0]`: the id is no part of the name."""
    if text.endswith("]") and (start := text.rfind("[")) > 0:
        inside = text[start + 1 : -1].strip()
        if is_pci_id(inside) or inside.startswith("0x"):
            return text[:start].strip()
    return text


def lspci_line(text: str) -> str:
    """`01:00.0 VGA compatible controller [0300]: NVIDIA Corporation AD102 [...] (rev a1)`.

    Also the quoted form of `lspci -mm`. What follows the first line is no name.
    """
    if text.count('"') >= 6:
        fields = text.split('"')
        return f"{fields[3]} {_drop_device(fields[5])}"
    text = text.partition(" subsystem: ")[0].partition(" kernel driver in use:")[0]
    while text.endswith(")") and (start := text.rfind(" (")) > 0:
        if not text[start:].startswith((" (rev ", " (prog-if ")):
            break
        text = text[:start].strip()
    return _drop_class(text)


def _drop_class(text: str) -> str:
    for name in _CLASSES:
        at = text.find(name)
        if 0 <= at <= _CLASS_BEFORE:
            return text[at + len(name) :].partition(":")[2].strip() or text
    return text


def _drop_device(field: str) -> str:
    """`lspci -nnmm` puts the device's four digits behind its name: `AD102 [...] [2684]`."""
    head, _, last = field.rpartition(" [")
    return head if head and len(last) == 5 and is_hex(last[:4]) else field


def drop_hex_id(text: str) -> str:
    """Intel's compute runtime prints `Intel(R) Graphics [0x56a0]`."""
    start = text.rfind("[0x")
    return text[:start].strip() if start > 0 and text.endswith("]") else text


MALI = ("mali", "immortalis")


def drop_mali_revision(text: str) -> str:
    """`mali-g610 r0p0` and `mali-g610 (r0p0)`: the silicon's revision is no product."""
    head, _, last = text.rpartition(" ")
    revision = last.strip("()")
    # "r41p0-01eac0" is the driver's release, with its build.
    major, p, minor = revision.partition("-")[0][1:].partition("p")
    if head and revision[:1] == "r" and p and major.isdecimal() and minor.isdecimal():
        return head
    return text


def drop_mali_counts(text: str) -> str:
    """`mali-g610 4 cores r0p0 0xa867`: the count and the id are facts beside the name."""
    if not text.startswith(MALI):
        return text
    head, _, last = text.rpartition(" ")
    if last.startswith("0x") and len(last) <= 10 and is_hex(last[2:]):
        return head
    name, _, count = head.rpartition(" ")
    return name if last in ("cores", "core") and count.isdecimal() and name else text


def mali_cores(text: str) -> str:
    """`mali-g72 mp3`, as Arm and phone makers write `mc3`."""
    head, _, last = text.rpartition(" ")
    if text.startswith(MALI) and last.startswith("mp") and last[2:].isdecimal():
        return f"{head} mc{last[2:]}"
    return text


def drop_apple_cores(text: str) -> str:
    """`apple m1 max (gpu - 32 cores)`: the count is a fact beside the name."""
    if text.startswith("apple ") and text.endswith(")") and (start := _opening(text)) > 0:
        return text[:start].strip() if "core" in text[start:] else text
    return text


def drop_snapdragon_model(text: str) -> str:
    """`snapdragon x - x126100 - qualcomm hexagon npu`: one NPU for all models of a line.

    Beside "adreno gpu" the model stays: it decides which GPU it is.
    """
    line, _, tail = text.partition(" - ")
    model, _, unit = tail.partition(" - ")
    plain = text.startswith("snapdragon ") and unit.endswith("hexagon npu") and model.isalnum()
    return f"{line} {unit}" if plain else text


def drop_slot(text: str) -> str:
    """`amd ati 07:00.0 radeon rx 6800`: where a card sits is not what it is."""
    if "." not in text or ":" not in text:
        return text
    return " ".join(token for token in text.split() if not _is_slot(token))


def _is_slot(token: str) -> bool:
    head, dot, function = token.rpartition(".")
    parts = head.split(":")
    return bool(dot) and len(function) == 1 and len(parts) in (2, 3) and is_hex("".join(parts))


def cpu_words(text: str) -> str:
    """`Intel(R) Core(TM) i7-8650U CPU @ 1.90GHz`, `... 64-Core Processor`, `... w/ Radeon`."""
    text = text.partition("@")[0].strip()
    for graphics in (" with radeon", " w/ radeon"):
        text = text.partition(graphics)[0]
    head, _, last = text.rpartition(" ")
    if last == "processor" and "-core" in head.rpartition(" ")[2]:
        text = head.rpartition(" ")[0]
    return text.removesuffix(" cpu").removesuffix(" processor")


# Finds the product's name in a line that a tool printed around it: labels, tables, logs.

_LABELS = (
    "opengl renderer string:", "opengl renderer:", "gl_renderer:", "renderer:", "chipset model:",
    "graphics card:", "video card:", "adapter:", "cuda device:", "gpu model:", "gres/gpu:",
    "card series:", "card model:", "card name:", "chip type:", "product name:", "product:",
    "marketing name:", "market_name:", "board name:", "gpu name:", "device_name:",
    "device board name (amd)", "device board name", "device name:", "device name",
    "devicename =", "devicename:", "model name:", "model:", "chip:", "device:",
    "graphics:", "display:", "vga:", "gpu:", "npu:", "metal:", "name:", "name =",
    "name=", "caption:", '"gpu":', "'name':", '"name":', "graphics card:",
)  # fmt: skip
# What tools number devices as: "GPU 0: NAME".
_COUNTED = (
    "gpu",
    "device",
    "npu",
    "cuda",
    "xpu",
    "hip",
    "rocm",
    "sycl",
    "card",
    "vulkan",
    "metal",
)
# Where the name ends in the logs of llama.cpp, ollama, TensorFlow, ComfyUI and hashcat.
_TAILS = (
    " (uuid: ", " (driver version ", " major: ",
    ", pci bus id", ", compute capability", ", gfx", " driver:", " vendor:",
    " : cudamallocasync",
    " : native", " [discrete]", " [integrated]", " @ ",
)  # fmt: skip
_READING_UNITS = ("w", "mhz", "%")
# Columns of nvidia-smi behind the name: persistence mode and driver model.
_STATES = frozenset(("on", "off", "n/a", "wddm", "tcc", "mcdm", "ok"))


def name_in(text: str) -> str:
    """The name in a line, already in lower case with single spaces.

    >>> name_in("gpu 0: nvidia a100-sxm4-80gb (uuid: gpu-5d5ba0d6)")
    'nvidia a100-sxm4-80gb'
    >>> name_in("| 0 nvidia geforce rtx 4090 off | 00000000:01:00.0 off | off |")
    'nvidia geforce rtx 4090'
    >>> name_in("ggml_vulkan: 0 = amd radeon rx 7900 xtx (radv navi31) | uma: 0 | fp16: 1")
    'amd radeon rx 7900 xtx (radv navi31)'
    """
    if text.startswith("|"):
        text = _first_cell(text)  # before the cut at " | " below
    text = _unindexed(text)
    text = _assigned(text.removeprefix("* ").partition(" | ")[0])
    text = _unlabelled(_without_tail(text))
    return _unquoted(_uncounted(text))


def _without_tail(text: str) -> str:
    for tail in _TAILS:
        if tail in text and not _is_inside(text, at := text.index(tail)):
            text = text[:at]
    if text.endswith((" mib)", " mib free)")):
        return text.rpartition("(")[0].strip() or text  # llama.cpp: "(12227 MiB, 8861 MiB free)"
    if ", " in text:
        text = _without_readings(text)
    megabytes = text.find(" mb")
    if megabytes > 0 and ", " in text[:megabytes]:
        return text[: text.rindex(", ", 0, megabytes)]  # hashcat: ", 16192/16304 MB"
    return text


def _is_inside(text: str, at: int) -> bool:
    """Whether a parenthesis is open there: "(radeonsi, gfx1201, LLVM 20.1.8)" is Mesa's own."""
    return text.count("(", 0, at) > text.count(")", 0, at)


def _without_readings(text: str) -> str:
    """`nvidia rtx a6000, 300.00 w, 2100 mhz`: fields of nvidia-smi --query-gpu that name nothing.

    The memory stays: it is a fact beside the product.
    """
    name, *fields = text.split(", ")
    kept = [field for field in fields if not _is_reading(field)]
    return text if len(kept) == len(fields) else ", ".join((name, *kept))


def _is_reading(field: str) -> bool:
    number, _, unit = field.partition(" ")
    return unit in _READING_UNITS and number.replace(".", "", 1).isdecimal()


def _unlabelled(text: str) -> str:
    if " : " in text:
        # nvidia-smi -q aligns the colons of its labels.
        head, _, value = text.partition(" : ")
        if head + ":" in _LABELS:
            text = value
    while text.startswith(_LABELS):
        label = next(label for label in _LABELS if text.startswith(label))
        value = text[len(label) :].strip()
        if not value:
            break
        text = value
    return text


def _unquoted(text: str) -> str:
    text = text.removesuffix(",")
    quoted = len(text) > 2 and text[0] == text[-1] in "\"'" and text[0] not in text[1:-1]
    return text[1:-1] if quoted else text


def _first_cell(text: str) -> str:
    """A row of nvidia-smi, hl-smi or npu-smi: index, name, state."""
    if "gpu:" in text and (sycl := text.split("|"))[2:3] and ":gpu:" in sycl[2]:
        return sycl[3].strip() if len(sycl) > 3 else ""  # llama.cpp's list of SYCL devices
    cells = [cell.split() for cell in text.strip("| ").split(" |")]
    if len(cells) > 1 and len(cells[0]) == 1 and cells[0][0].isdecimal():
        del cells[0]
    tokens = cells[0]
    if tokens and tokens[0].isdecimal():
        del tokens[0]
    while tokens and tokens[-1] in _STATES:
        del tokens[-1]
    return " ".join(tokens)


def _assigned(text: str) -> str:
    """`... name="NVIDIA GeForce RTX 4090" total=...`, and ggml's `ggml_vulkan: 0 = NAME`."""
    for quote in ('name="', "name='", 'description="'):
        if quote in text:
            return text[text.index(quote) + len(quote) :].partition(quote[-1])[0]
    return _of_tool(text) or _of_framework(text) or text


def _unindexed(text: str) -> str:
    """Slurm's `gpu:nvidia_h200:8(S:0-1)` and `(IDX:0-7)`: sockets and indices of a gres."""
    for mark in ("(s:", "(idx:") if text.endswith(")") else ():
        text = text.partition(mark)[0]
    return text


_LABEL_KEYS = frozenset((
    "gpu.product", "gpu.product-name", "gke-accelerator", "gke-tpu-accelerator",
    "instance-gpu-name", "instance-type",
))  # fmt: skip
"""Labels of Kubernetes nodes that name a product, behind the domain of who sets them."""


def _of_label(text: str) -> str:
    """`nvidia.com/gpu.product=NVIDIA-L4`, or with `: `; empty for another text."""
    domain, _, rest = text.partition("/")
    if "." not in domain or " " in domain:
        return ""
    key, _, value = rest.partition("=" if "=" in rest else ": ")
    return value if key in _LABEL_KEYS else ""


_BACKENDS = ("cann", "cuda", "hip", "metal", "mtl", "musa", "opencl", "rocm", "sycl", "vulkan")


def _of_backend(text: str) -> str:
    """llama.cpp's `CUDA0 (NVIDIA GeForce RTX 4090)`; empty for another text."""
    device, _, name = text.partition(" (")
    backend = device.rstrip("0123456789")
    is_device = backend != device and backend in _BACKENDS and text.endswith(")")
    return name[:-1] if is_device else ""


def _of_tool(text: str) -> str:
    """The name in a line of ggml, BOINC, nvtop or sycl-ls; empty for another text."""
    if name := _of_label(text) or _of_backend(text):
        return name
    if text.startswith("ggml_") and " = " in text:
        return text[text.index(" = ") + 3 :]
    for start in ("default device: ", "gpu name: "):
        if text.startswith("ggml_metal") and start in text:
            return text[text.index(start) + len(start) :]
    if ": using device " in text and " (" in text:
        return balanced(text[text.index(" (") + 2 :])
    if text.startswith("device ") and "] pcie gen" in text and " [" in text[:12]:
        return text[text.index("[") + 1 : text.index("] pcie gen")]
    if text.startswith(_BOINC):
        return text[text.index(": ") + 2 :]
    return _of_sycl(text) if text.startswith(_SYCL) else ""


def _of_framework(text: str) -> str:
    """The name in a line of TensorFlow, vLLM, Ultralytics or WebGL; empty for another text."""
    if " name: " in text and ("(device: " in text or "-> device: " in text):
        return text[text.index(" name: ") + 7 :]
    if text.startswith("google inc.") and ", angle (" in text:
        return text[text.index(", angle (") + 2 :]  # WebGL's vendor before its renderer
    if "device_name=" in text:  # vLLM's files of tuned kernels
        value = text[text.index("device_name=") + 12 :].partition(",")[0]
        return value.removesuffix(".json").replace("_", " ")
    if text.startswith(("ultralytics ", "yolo")) and " cuda:" in text:
        return text[text.index(" cuda:") + 1 :]
    return ""


# BOINC's list of coprocessors: "CUDA: NVIDIA GPU 0: NVIDIA GeForce RTX 4070 Ti (driver version ..."
_BOINC = (
    "cuda: nvidia gpu ", "opencl: nvidia gpu ", "opencl: amd/ati gpu ", "opencl: intel gpu ",
    "cal: ati gpu ",
)  # fmt: skip
_BOINC_GPUS = ("nvidia gpu ", "amd/ati gpu ", "ati gpu ", "intel gpu ")
_SYCL = ("[level_zero:gpu", "[opencl:gpu", "[cuda:gpu", "[hip:gpu")


def _of_sycl(text: str) -> str:
    """A line of sycl-ls: backend, platform, name, version, driver.

    `[opencl:gpu][opencl:0] Intel(R) OpenCL Graphics, Intel(R) Arc(TM) A770 Graphics OpenCL 3.0 NEO
    [24.39]`, and older ones without a platform.
    """
    shown = text.partition("] ")[2]
    name = shown.rpartition(", ")[2].removeprefix("... ")
    head, _, driver = name.rpartition(" [")
    if head and not driver.startswith("0x"):  # "Intel(R) Graphics [0xe223]" holds the PCI id
        name = head.strip().removesuffix("opencl 3.0 neo").strip()
    head, _, version = name.rpartition(" ")
    versioned = version.replace(".", "").isdecimal() and "." in version
    return head if head and (versioned or version.startswith("gfx")) else name


def balanced(text: str) -> str:
    """Up to the parenthesis that closes the one before the text."""
    depth = 1
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if not depth:
            return text[:at].strip()
    return text.strip()


def _uncounted(text: str) -> str:
    """`gpu 0: NAME`, `device-1: NAME`, `gpu[0] : NAME`, `cuda:0 NAME`."""
    if text[:1] == "[" and text[1:2].isdecimal() and "] " in text[:6]:
        return text[text.index("] ") + 2 :]  # gpustat
    for vendor in _BOINC_GPUS if text.startswith(_BOINC_GPUS) else ():
        number, colon, name = text.removeprefix(vendor).partition(": ")
        if colon and number.isdecimal():
            return name
    head, comma, tail = text.partition(", ")
    if comma and len(head) < 3 and head.isdecimal():
        return tail  # nvidia-smi --format=csv
    for kind in _COUNTED if text.startswith(_COUNTED) else ():
        if not text.startswith(kind):
            continue
        numbered = text[len(kind) :].lstrip(" -[:#")
        name = numbered.lstrip("0123456789")
        if name == numbered:
            continue
        if name.lstrip("] ").startswith(":"):
            return name.lstrip("] ")[1:].strip() or text
        if text[len(kind)] == ":" and name.startswith(" "):
            return name.lstrip("] ") or text
    return text
