"""Finds the product's name in a line that a tool printed around it: labels, tables, logs."""

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


def _of_tool(text: str) -> str:
    """The name in a line of ggml, BOINC, nvtop or sycl-ls; empty for another text."""
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
