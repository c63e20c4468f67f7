"""What the installed engines can allocate: the wheel decides, and one device counts."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import probe_core
from probe_cluster.planning.efficiency import efficiency_of
from probe_core.machine import Machine
from probe_core.recording import open_machine
from probe_exo import engine_memory, engine_speed, figures, node_compute, node_memory
from probe_exo.engines import EngineMemory, uses
from probe_exo.installed import Installed, installed_engines, read_installed
from probe_exo.memory import MemoryReader, close_samplers
from probe_exo.speed import EngineSpeed, speed_of

ROOT = Path(__file__).parents[3]
KIB, GIB, GB = 1 << 10, 1 << 30, 10**9
AMD = {"amd": "probe_amd.prober"} if importlib.util.find_spec("probe_amd") else {}

CPU = Installed("mlx-cpu")
CUDA = Installed("mlx-cuda-13")
METAL = Installed("mlx-metal")
VLLM = Installed(None, "0.20.1+cu129")


def card(
    slot: int, name: str = "NVIDIA GeForce RTX 4090", total: int | None = 24 * GIB, **more: Any
) -> dict[str, Any]:
    pci = {"NVIDIA GeForce RTX 4090": "10de:2684", "NVIDIA GeForce RTX 3090": "10de:2204"}
    memory = {"kind": "dedicated", "total": total, "free": total and total - slot * GIB}
    return {
        "ids": [f"pci:0000:{slot:02x}:00.0"],
        "kind": "gpu",
        "vendor": "nvidia",
        "name": name,
        "memory": memory,
        "backends": ["cuda"],
        **({"pci": {"id": pci[name]}} if name in pci else {}),
    } | more


def gpu(id_: str = "g", **more: Any) -> dict[str, Any]:
    """Return a device of a report that is written by hand."""
    memory = {"kind": "dedicated", "total": 24 * GIB, "free": 20 * GIB}
    return {
        "id": id_, "kind": "gpu", "vendor": "nvidia", "memory": memory, "backends": ["cuda"]
    } | more  # fmt: skip


def seen(index: int | None, visible: bool | None = True) -> dict[str, Any]:
    return {"cuda": {"visible": visible, "index": index, "reason": "hidden"}}


MEMINFO = {"/proc/meminfo": "MemTotal: 67108864 kB\nMemAvailable: 62914560 kB\n"}  # 64 and 60 GiB
Make = Callable[[dict[str, str]], Machine]


def engines(
    machine: Machine, wheels: Installed, *devices: dict[str, Any], **environ: str
) -> tuple[EngineMemory, ...]:
    document = {"schema": 1, "node": {"os": "linux"}, "devices": list(devices)}
    return MemoryReader(machine, document, installed=wheels).read(environ).engines


def test_the_engine_on_the_cpu_has_the_ram_whatever_cards_there_are(machine: Make) -> None:
    found = engines(machine(MEMINFO), CPU, gpu(), {"id": "cpu:0", "kind": "cpu"})
    assert found == (EngineMemory("MlxCpu", "mlx-cpu", "cpu:0", 64 * GIB, 60 * GIB),)


def test_a_container_limits_the_engine_on_the_cpu_and_says_so(machine: Make) -> None:
    group = {
        "/proc/self/cgroup": "0::/box\n",
        "/sys/fs/cgroup/box/memory.max": f"{4 * GIB}\n",
        "/sys/fs/cgroup/box/memory.current": f"{GIB}\n",
    }
    [found] = engines(machine(MEMINFO | group), CPU, gpu())
    assert (found.total, found.available) == (4 * GIB, 3 * GIB)
    assert "control group" in found.reasons["total"]


@pytest.mark.parametrize(
    ("devices", "device", "available", "why"),
    [
        # MLX's own limit and the 2 GB bind where the card is empty, else what is free.
        ([gpu(memory={"kind": "dedicated", "total": 24 * GIB, "free": 24 * GIB})],
         "g", 24 * GIB - 2 * GB, "MLX takes 0.95 of a GPU at most, and 2 GB stay free"),
        ([gpu(memory={"kind": "dedicated", "total": 192 * GIB, "free": 192 * GIB})],
         "g", int(192 * GIB * 0.95), "MLX takes 0.95"),
        ([gpu()], "g", 20 * GIB, None),
        # One GPU and never the sum: the first that CUDA shows.
        ([gpu(), gpu("h")], "g", 20 * GIB, None),
        ([gpu(visibility=seen(1)),
          gpu("h", visibility=seen(0),
              memory={"kind": "dedicated", "total": 12 * GIB, "free": 9 * GIB})],
         "h", 9 * GIB, None),
        ([gpu(visibility=seen(None, False)), gpu("h", visibility=seen(0))], "h", 20 * GIB, None),
        # Parts of a partitioned GPU count, and not the whole.
        ([gpu(visibility=seen(None)), gpu("h", parent="g", visibility=seen(0),
          memory={"kind": "dedicated", "total": 10 * GIB, "free": 7 * GIB})], "h", 7 * GIB, None),
        # Which is the first is not known: the smallest.
        ([gpu(visibility=seen(None)), gpu("h", visibility=seen(None),
          memory={"kind": "dedicated", "total": 8 * GIB, "free": 5 * GIB})], "h", 5 * GIB, None),
        # GB10: NVML has no figure, the system's memory is the GPU's.
        ([gpu(memory={"kind": "unified", "total": None})], "g", 60 * GIB, None),
        # Unknown is no figure: exo's own stands.
        ([gpu(memory={"kind": None, "total": None})], "g", None,
         "the driver does not tell how much is free"),
        ([gpu(memory={"kind": "dedicated", "total": "24", "free": -1})], "g", None,
         "the driver does not tell how much is free"),
    ],
)  # fmt: skip
def test_the_engine_on_cuda_has_its_first_gpu(
    machine: Make,
    devices: list[dict[str, Any]],
    device: str,
    available: int | None,
    why: str | None,
) -> None:
    [found] = engines(machine(MEMINFO), CUDA, *devices)
    assert (found.backend, found.device, found.available) == ("MlxCuda", device, available)
    said = found.reasons.get("available")
    assert said == why or (why is not None and said is not None and said.startswith(why))


@pytest.mark.parametrize(
    ("devices", "why"),
    [
        ([], "the node has no GPU of nvidia"),
        ([gpu(visibility=seen(None, False))], "g: hidden"),
        ([gpu(backends=[])], "g: no driver of cuda answered for it"),
        ([gpu(vendor="amd", backends=["hip"])], "the node has no GPU of nvidia"),
    ],
)
def test_without_a_gpu_the_build_for_cuda_computes_on_the_cpu(
    machine: Make, devices: list[dict[str, Any]], why: str
) -> None:
    [found] = engines(machine(MEMINFO), CUDA, *devices)
    assert (found.backend, found.wheel) == ("MlxCpu", "mlx-cuda-13")
    assert found.available == 60 * GIB
    assert found.reasons["device"] == f"mlx-cuda-13 computes on the CPU: {why}"


def test_metal_has_what_the_gpu_may_wire(machine: Make) -> None:
    limited = gpu("m", vendor="apple", memory={"kind": "unified", "parts": {"limit": 48 * GIB}})
    [found] = engines(machine(MEMINFO), METAL, limited)
    assert (found.backend, found.device, found.available) == ("MlxMetal", "m", 48 * GIB)
    own = gpu("m", vendor="apple", memory={"kind": "unified", "parts": {}})
    [found] = engines(machine(MEMINFO), METAL, own)
    assert found.available == 60 * GIB
    assert found.reasons["total"] == "macOS tells its working set to Metal programs alone"


@pytest.mark.parametrize(
    ("version", "devices", "device", "available"),
    [
        ("0.20.1+cu129", [gpu()], "g", 20 * GIB),
        ("0.20.1", [gpu(memory={"kind": "dedicated", "total": 10 * GIB, "free": 10 * GIB})],
         "g", int(10 * GIB * 0.92)),
        ("0.20.1+cpu", [gpu()], None, int(64 * GIB * 0.92)),
        ("0.20.1+rocm720", [gpu(), gpu("a", vendor="amd", backends=["hip"])], "a", 20 * GIB),
        ("0.20.1", [], None, 0),
    ],
)  # fmt: skip
def test_vllm_has_its_share_of_one_gpu_and_no_runner(
    machine: Make,
    version: str,
    devices: list[dict[str, Any]],
    device: str | None,
    available: int,
) -> None:
    document = {"schema": 1, "node": {"os": "linux"}, "devices": devices}
    reader = MemoryReader(machine(MEMINFO), document, installed=Installed(None, version))
    memory = reader.read({})
    [found] = memory.engines
    assert (found.backend, found.device) == ("Vllm", device)
    assert found.available is not None
    assert found.available == min(available, 60 * GIB)
    assert found.reasons["runner"] == "exo (b5375f8) has no runner for vLLM"
    assert memory.engine is None


CPUS_WHY = "the system's memory cannot be read"
METALS_WHY = "macOS tells its working set to Metal programs alone"
NOT_TOLD = "the driver does not tell how much is free"


@pytest.mark.parametrize(
    ("wheels", "devices", "reasons"),
    [
        (CPU, [], {"total": CPUS_WHY, "available": NOT_TOLD}),
        (METAL, [gpu("m", vendor="apple")], {"total": METALS_WHY, "available": NOT_TOLD}),
        (CUDA, [gpu(memory={"kind": "dedicated", "total": None, "free": None})],
         {"total": "the memory of g is unknown", "available": NOT_TOLD}),
    ],
    ids=range(3),
)  # fmt: skip
def test_what_is_unknown_of_an_engine_has_its_reason(
    machine: Make, wheels: Installed, devices: list[dict[str, Any]], reasons: dict[str, str]
) -> None:
    [found] = engines(machine({"/x": ""}), wheels, *devices)
    assert (found.total, found.available, found.reasons) == (None, None, reasons)


def test_vllm_without_its_gpu_has_nothing(machine: Make) -> None:
    [found] = engines(machine(MEMINFO), VLLM)
    assert (found.total, found.available) == (0, 0)
    assert found.reasons.keys() == {"runner", "device"}


def test_vllm_says_which_gpu_it_has_only_where_that_is_a_guess(machine: Make) -> None:
    small = {"kind": "dedicated", "total": 8 * GIB, "free": 5 * GIB}
    first, second = gpu(visibility=seen(0)), gpu("h", visibility=seen(1), memory=small)
    whole, part = gpu(visibility=seen(None)), gpu("h", parent="g", visibility=seen(None))
    guess = "which GPU is the first is not known; the smallest is taken"
    for devices, device, why in (
        ([first, second], "g", None),
        ([whole, part], "h", None),
        ([whole, gpu("h", visibility=seen(None), memory=small)], "h", guess),
        ([], None, "the node has no GPU of nvidia"),
    ):
        [found] = engines(machine(MEMINFO), VLLM, *devices)
        assert (found.device, found.reasons.get("device")) == (device, why)


@pytest.mark.parametrize(
    ("total", "usable"), [(GIB, 0), (2 * GB, 0), (3 * GB, GB), (40 * GB, int(40 * GB * 0.95))]
)
def test_two_gigabytes_of_a_gpu_stay_free(machine: Make, total: int, usable: int) -> None:
    memory = {"kind": "dedicated", "total": total, "free": total}
    [found] = engines(machine(MEMINFO), CUDA, gpu(memory=memory))
    assert (found.total, found.available) == (usable, usable)


def test_without_an_engine_there_is_none_and_the_reason(machine: Make) -> None:
    wheels = Installed(reasons={"mlx": "mlx is not installed"})
    memory = MemoryReader(machine(MEMINFO), {"devices": [gpu()]}, installed=wheels).read({})
    assert (memory.engines, memory.engine) == ((), None)
    assert memory.reasons["mlx"] == "mlx is not installed"


def test_what_a_person_says_counts_for_each_engine(machine: Make) -> None:
    [found] = engines(machine(MEMINFO), CUDA, gpu(), OVERRIDE_MEMORY_MB="1024")
    assert (found.available, found.reasons["available"]) == (GIB, "OVERRIDE_MEMORY_MB=1024")


@pytest.mark.parametrize("devices", [None, "text", [None], [{"id": 7}], [{"id": "g"}, 3], {}])
def test_a_senseless_report_is_no_device(devices: Any) -> None:
    [found] = uses({"devices": devices}, CUDA)
    assert (found.backend, found.device) == ("MlxCpu", None)


# What is installed.

WHOLE = {
    "mlx-0.32.0.dist-info/METADATA": "",
    "mlx/core.cpython-313-x86_64-linux-gnu.so": "",
    "mlx/lib/libmlx.so": "",
}


@pytest.mark.parametrize(
    ("files", "platform", "mlx", "why"),
    [
        ([*WHOLE, "mlx_cpu-0.32.0.dist-info/METADATA"], "linux", "mlx-cpu", None),
        ([*WHOLE, "mlx_cuda_12-0.32.0.dist-info/METADATA"], "linux", "mlx-cuda-12", None),
        ([*WHOLE, "mlx_metal-0.32.0.dist-info/METADATA"], "darwin", "mlx-metal", None),
        (list(WHOLE), "darwin", "mlx-metal", None),
        (list(WHOLE), "linux", None, "mlx was built from source, and no wheel tells its backend"),
        ([next(iter(WHOLE)), "__editable__.mlx-0.32.0.pth"], "linux", None, "mlx was built from "),
        (list(WHOLE)[:2], "linux", None, "mlx is half installed: none of mlx-cpu, mlx-cuda-12, "),
        ([], "linux", None, "mlx is not installed"),
        (["mlx_cpu-0.32.0.dist-info/METADATA"], "linux", None, "mlx-cpu is half installed: the "),
        ([*list(WHOLE)[:2], "mlx_cpu-0.32.0.dist-info/METADATA"], "linux", None,
         "mlx-cpu is half installed: mlx/lib has no libmlx"),
        ([*list(WHOLE)[::2], "mlx_cpu-1.dist-info/METADATA"], "linux", None,
         "mlx is half installed: its module core is missing"),
        ([*WHOLE, "mlx_cpu-1.dist-info/METADATA", "mlx_cuda_13-1.dist-info/METADATA"], "linux",
         None, "mlx-cpu and mlx-cuda-13 overwrite each other's library; keep one"),
    ],
)  # fmt: skip
def test_wheels_tell_the_engine(
    tmp_path: Path, files: list[str], platform: str, mlx: str | None, why: str | None
) -> None:
    for name in files:
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("")
    found = read_installed([str(tmp_path / "nothing"), str(tmp_path)], platform)
    assert (found.mlx, found.vllm) == (mlx, None)
    assert found.reasons["vllm"] == "vllm is not installed"
    said = found.reasons.get("mlx")
    assert said == why or (why is not None and said is not None and said.startswith(why))


def test_vllm_is_known_by_its_version(tmp_path: Path) -> None:
    (tmp_path / "vllm-0.20.1+cpu.dist-info").mkdir()
    assert read_installed([str(tmp_path)], "linux").reasons["vllm"].startswith("vllm is half")
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "__init__.py").write_text("")
    assert read_installed([str(tmp_path)], "linux").vllm == "0.20.1+cpu"


def test_a_frozen_application_does_not_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.frozen", True, raising=False)
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    assert installed_engines().unknown == {"mlx", "vllm"}


def test_what_is_listed_is_known_of_a_frozen_application_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    nothing = Installed(reasons={name: f"{name} is not installed" for name in ("mlx", "vllm")})
    assert installed_engines() == nothing
    for name in (*WHOLE, "mlx_cpu-0.32.0.dist-info/METADATA"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    monkeypatch.setattr("sys.frozen", True, raising=False)
    assert (installed_engines().mlx, installed_engines().unknown) == ("mlx-cpu", frozenset())


def test_an_mlx_built_here_may_be_any_engine_that_the_node_can_run(
    machine: Make, tmp_path: Path
) -> None:
    """exo's own figures stand, and its own placement: nothing is refused for want of a name."""
    for name in WHOLE:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    found = read_installed([str(tmp_path)], "linux")
    assert found.unknown == {"mlx"}
    document = {"schema": 1, "node": {"os": "linux"}, "devices": [gpu()]}
    assert figures.engines(document, found)[0] == ("MlxCpu", "MlxCuda")
    assert figures.engines(document | {"devices": []}, found)[0] == ("MlxCpu",)
    assert MemoryReader(machine(MEMINFO), document, installed=found).read({}).engine is None


# Real and recorded machines.

Probed = Callable[..., dict[str, Any]]


@pytest.fixture
def probed(tmp_path: Path) -> Probed:
    """Probe a machine, with what a made-up prober finds there."""

    def probe(machine: Machine, devices: list[dict[str, Any]] | None = None) -> dict[str, Any]:
        if devices is None:
            return probe_core.probe(machine=machine, probers=AMD).to_json()
        path = tmp_path / "devices.json"
        path.write_text(json.dumps(devices))
        environ = {"EXO_TEST_DEVICES": str(path)}
        given = Machine(machine.root, environ, machine.os, machine.arch)
        return probe_core.probe(machine=given, probers={"given": "exo_given_prober"}).to_json()

    return probe


def test_a_4090_and_a_3090(probed: Probed, machine: Make) -> None:
    here = machine(MEMINFO)
    report = probed(here, [card(1), card(2, "NVIDIA GeForce RTX 3090")])
    [found] = MemoryReader(here, report, installed=CUDA).read({}).engines
    assert (found.device, found.total) == ("pci:0000:01:00.0", 24 * GIB - 2 * GB)
    assert found.available == min(23 * GIB, 24 * GIB - 2 * GB)
    speed = speed_of(report, CUDA)
    assert speed is not None
    # One card's 1,008 GB/s, of which engines reach a share: no speed of MLX on cards was published.
    known = efficiency_of("gddr-new", "llama.cpp")
    assert known is not None
    assert speed.bandwidth == pytest.approx(1008e9 * known.share)
    assert speed.layer_seconds == known.tau
    assert speed.reasons == {"basis": known.basis}
    assert speed_of(report, VLLM) is None


def test_a_card_whose_bandwidth_is_unknown_has_no_speed() -> None:
    report = {"schema": 1, "node": {"os": "linux"}, "devices": [gpu()]}
    known = efficiency_of("gddr-old", "llama.cpp")
    assert known is not None
    reasons = {"basis": known.basis, "bandwidth": "the memory bandwidth of g is unknown"}
    assert speed_of(report, CUDA) == EngineSpeed("MlxCuda", "g", None, reasons=reasons)
    assert speed_of(report | {"devices": []}, CUDA) is None


GB10 = card(1, "NVIDIA GB10", memory={"kind": "unified", "total": 125_513_920 * KIB}) | {
    "ids": ["pci:000f:01:00.0"]
}


def test_a_gb10_has_the_systems_memory(probed: Probed) -> None:
    with open_machine(str(ROOT / "tests/machines/dgx-spark--nvidia-gb10.json")) as machine:
        [found] = MemoryReader(machine, probed(machine, [GB10]), installed=CUDA).read({}).engines
    assert found.backend == "MlxCuda"
    assert found.available == 117_440_512 * KIB


@pytest.mark.skipif(not AMD, reason="probe-amd is not installed")
def test_an_amd_gpu_is_no_engine_of_mlx(probed: Probed) -> None:
    machine = Machine(str(ROOT / "plugins/exo/examples/machines/strix-halo"))
    report = probed(machine)
    [found] = MemoryReader(machine, report, installed=CPU).read({}).engines
    assert (found.backend, found.available) == ("MlxCpu", 120_000_000 * KIB)
    assert node_compute(report).devices != ("cpu:0",)


def test_a_mac(probed: Probed, machine: Make) -> None:
    here = machine(MEMINFO)
    mac = {
        "ids": ["apple:gpu0"],
        "kind": "gpu",
        "vendor": "apple",
        "name": "Apple M3 Ultra",
        "units": 80,
        "memory": {"kind": "unified", "total": 64 * GIB, "parts": {"limit": 48 * GIB}},
        "backends": ["metal"],
    }
    report = probed(Machine(here.root, os="darwin", arch="aarch64"), [mac])
    [found] = MemoryReader(here, report, installed=METAL).read({}).engines
    assert (found.backend, found.available) == ("MlxMetal", 48 * GIB)
    speed = speed_of(report, METAL)
    assert speed is not None
    known = efficiency_of("apple-m3", "mlx", dies=2)
    assert known is not None
    assert speed.bandwidth == pytest.approx(819.2e9 * known.share)
    assert speed.layer_seconds == known.tau


@pytest.mark.heavy
def test_memory_that_was_taken_meanwhile_is_seen(
    given: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    samples, wheels = tmp_path / "samples.json", tmp_path / "wheels"

    def use(amount: int) -> None:
        now = {"status": "ok", "memory": {"total": 24 * GIB, "used": amount}}
        fresh = tmp_path / "fresh.json"
        fresh.write_text(json.dumps({"pci:0000:01:00.0": now}))
        fresh.replace(samples)

    for name in (*WHOLE, "mlx_cuda_13-0.32.0.dist-info/METADATA"):
        (wheels / name).parent.mkdir(parents=True, exist_ok=True)
        (wheels / name).write_text("")
    monkeypatch.syspath_prepend(str(wheels))
    monkeypatch.setenv("EXO_TEST_SAMPLES", str(samples))
    use(4 * GIB)
    given(card(1))
    try:
        assert poll(20 * GIB) == 20 * GIB
        use(20 * GIB)
        assert poll(4 * GIB) == 4 * GIB
        assert node_memory(max_age_s=0.2).engine is not None
        speed = engine_speed()
        assert speed is not None
        assert speed.device == "pci:0000:01:00.0"
    finally:
        close_samplers()


def poll(wanted: int) -> int | None:
    """Ask as exo does, in a thread every second or so, until a figure is there."""

    async def loop() -> int | None:
        for _ in range(200):
            found = await asyncio.to_thread(engine_memory, 0.2)
            if found is not None and found.available == wanted:
                break
            await asyncio.sleep(0.1)
        return None if found is None else found.available

    return asyncio.run(loop())
