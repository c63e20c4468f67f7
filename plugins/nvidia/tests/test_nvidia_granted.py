"""What this process was given of the node's GPUs: slices, permissions, exclusion, MIG."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

Ask = Callable[..., dict[str, Any]]
Steps = Callable[[dict[str, Any]], dict[str, tuple[str, str | None]]]

JOB = {"SLURM_JOB_ID": "4711"}


def gpus_of(fake: ModuleType, *numbers: int) -> str:
    """Return the profile of eight H100 with those alone that `numbers` names."""
    head, *gpus = (fake.PROFILES / "h100x8.profile").read_text().split("\ngpu\n")
    return "\ngpu\n".join([head, *(gpus[number].rstrip("\n") for number in numbers)]) + "\n"


def addresses(trees: ModuleType, *numbers: int) -> list[str]:
    return [f"pci:{trees.H100_ADDRESSES[number]}" for number in numbers]


def test_slurm_slice_comes_out_exact(
    ask: Ask, fake: ModuleType, trees: ModuleType, steps: Steps, tmp_path: Path
) -> None:
    trees.eight_h100(tmp_path)
    said = ask(gpus_of(fake, 2, 5), tmp_path, environ=JOB)
    found = {gpu["ids"][0]: gpu for gpu in said["devices"]}
    assert sorted(found) == sorted(addresses(trees, *range(8)))
    for place, identity in enumerate(addresses(trees, 2, 5)):
        gpu = found.pop(identity)
        assert gpu["node_index"] == {"nvml": place}
        assert gpu["memory"]["total"] == 85520809984
        assert gpu["step_facts"][2]["evidence"] == f"NVML lists it as GPU {place} of 2"
        assert gpu["nodes"][0] == f"/dev/nvidia{(2, 5)[place]}"
    for gpu in found.values():
        assert "backends" not in gpu
        assert steps(gpu) == {"library": ("ok", None), "granted": ("broken", "slurm-slice")}
        assert gpu["step_facts"][1]["evidence"] == "NVML lists 2 of 8 GPUs, not this one"
        assert gpu["name"] == "NVIDIA H100 80GB HBM3"
    (finding,) = said["findings"]
    names = ", ".join(addresses(trees, 0, 1, 3, 4, 6, 7))
    assert (finding["code"], finding["severity"]) == ("gpu-not-listed", "info")
    assert (finding["what"], finding["step"]) == (f"NVML does not list {names}", "granted")
    assert "--gres" in finding["fix"]


@pytest.mark.heavy
def test_every_gpu_is_announced_before_it_is_asked(
    ask: Ask, fake: ModuleType, trees: ModuleType, tmp_path: Path
) -> None:
    trees.eight_h100(tmp_path)
    assert ask("h100x8", tmp_path)["touched"] == addresses(trees, *range(8))
    # In a slice an index means no address: all are asked for by address.
    slice_of_two = ask(gpus_of(fake, 2, 5), tmp_path, environ=JOB)
    assert slice_of_two["touched"] == addresses(trees, *range(8))


def test_slice_of_a_library_that_knows_no_addresses(
    ask: Ask, fake: ModuleType, trees: ModuleType, steps: Steps, tmp_path: Path
) -> None:
    trees.eight_h100(tmp_path)
    text = gpus_of(fake, 2, 5).replace("gpu\n", "on nvmlDeviceGetHandleByPciBusId_v2 13\ngpu\n", 1)
    said = ask(text, tmp_path, environ=JOB)
    found = {gpu["ids"][0]: steps(gpu)["granted"][0] for gpu in said["devices"]}
    listed = addresses(trees, 2, 5)
    assert found == {i: "ok" if i in listed else "broken" for i in addresses(trees, *range(8))}
    # The address is announced as soon as the handle has told it.
    first = [addresses(trees, 0)[0], "nvidia:index-0", listed[0], "nvidia:index-1", listed[1]]
    assert said["touched"] == first


def test_nvml_lists_more_than_the_bus_shows(
    ask: Ask, fake: ModuleType, trees: ModuleType, steps: Steps, tmp_path: Path
) -> None:
    tree = trees.Tree(tmp_path)
    tree.add_driver()
    tree.add_pci(trees.H100_ADDRESSES[1], "2330")
    said = ask(gpus_of(fake, 0, 1), tmp_path)
    found = {gpu["ids"][0]: gpu["node_index"]["nvml"] for gpu in said["devices"]}
    assert found == dict(zip(addresses(trees, 0, 1), (0, 1), strict=True))
    assert said["findings"] == []


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("file", "content", "code"),
    [
        ("/.dockerenv", "", "not-granted"),
        ("/run/.containerenv", 'engine="podman-5.4"\nrootless=1\n', "not-granted"),
        (
            "/proc/self/cgroup",
            "0::/kubepods.slice/pod1.slice/cri-1.scope\n",
            "not-granted",
        ),
        (
            "/proc/self/cgroup",
            "0::/system.slice/slurmstepd.scope/job_12/step_0/user/task_0\n",
            "slurm-slice",
        ),
        ("/proc/self/cgroup", "5:devices:/slurm/uid_1000/job_12/step_0\n", "slurm-slice"),
    ],
)
def test_who_made_the_slice(
    ask: Ask,
    fake: ModuleType,
    trees: ModuleType,
    steps: Steps,
    tmp_path: Path,
    file: str,
    content: str,
    code: str,
) -> None:
    trees.eight_h100(tmp_path).file(file, content)
    said = ask(gpus_of(fake, 0), tmp_path)
    assert [steps(gpu)["granted"] for gpu in said["devices"][1:]] == [("broken", code)] * 7
    assert [f["severity"] for f in said["findings"]] == ["info"]


def test_gpu_that_the_host_itself_misses_is_no_slice(
    ask: Ask, fake: ModuleType, trees: ModuleType, steps: Steps, tmp_path: Path
) -> None:
    trees.eight_h100(tmp_path).file("/proc/self/cgroup", "0::/user.slice/session-2.scope\n")
    said = ask(gpus_of(fake, 0, 1, 2, 3, 4, 5, 6), tmp_path)
    missing = said["devices"][-1]
    assert missing["ids"][0] == addresses(trees, 7)[0]
    assert steps(missing) == {"library": ("ok", None), "responding": ("broken", "not-responding")}
    (finding,) = said["findings"]
    assert (finding["severity"], finding["step"]) == ("warning", "responding")
    assert "RmInitAdapter" in finding["fix"]


def test_open_modules_without_their_firmware(
    ask: Ask, fake: ModuleType, trees: ModuleType, steps: Steps, tmp_path: Path
) -> None:
    tree = trees.eight_h100(tmp_path)
    tree.file("/lib/firmware/nvidia/570.211.01/gsp_ga10x.bin", "")
    said = ask(gpus_of(fake, 0), tmp_path)
    assert steps(said["devices"][-1])["driver"] == ("broken", "gsp-firmware-missing")
    assert said["findings"][0]["why"].endswith("/lib/firmware/nvidia/580.95.05 has none")
    tree.file("/lib/firmware/nvidia/580.95.05/gsp_ga10x.bin", "")
    assert "driver" not in steps(ask(gpus_of(fake, 0), tmp_path)["devices"][-1])


@pytest.mark.heavy
def test_no_permission_for_one_gpu_is_no_fault_of_it(
    ask: Ask, fake: ModuleType, trees: ModuleType, steps: Steps, tmp_path: Path
) -> None:
    """NVML counts GPUs that it has no permission for (nvmlDeviceGetCount_v2)."""
    trees.eight_h100(tmp_path)
    text = gpus_of(fake, *range(8)).replace("GPU-a1000000-0000-4000-8000-000000000003", "x")
    text = text.replace("uuid x\n", "uuid x\non handle 4\n")
    said = ask(text, tmp_path)
    kept = said["devices"][-1]
    assert [len(said["devices"]), kept["ids"][0]] == [8, addresses(trees, 3)[0]]
    assert steps(kept) == {"library": ("ok", None), "granted": ("broken", "not-granted")}
    reason = "NVML_ERROR_NO_PERMISSION from nvmlDeviceGetHandleByIndex"
    assert kept["step_facts"][1]["evidence"] == reason
    assert "power_state" not in kept
    assert said["findings"] == []  # the core makes one of the fact
    job = ask(text, tmp_path, environ=JOB)
    assert steps(job["devices"][-1])["granted"] == ("broken", "slurm-slice")


def test_handle_without_any_permission(ask: Ask, steps: Steps) -> None:
    text = "gpu\nname A\npci 00000000:01:00.0 0x1EB810DE 0\n"
    said = ask(text + "on handle 0\non nvmlDeviceGetPciInfo_v3 0\non * 4\n")
    (gpu,) = said["devices"]
    assert steps(gpu)["granted"] == ("broken", "not-granted")
    assert said["findings"] == []


def test_no_permission_for_a_gpu_without_an_address(ask: Ask) -> None:
    said = ask("gpu\nname A\non handle 4\n")
    (finding,) = said["findings"]
    assert (finding["code"], finding["severity"]) == ("gpu-not-listed", "info")
    assert (finding["device"], finding["step"]) == (None, "granted")
    assert "reset" not in finding["fix"]


def test_excluded_gpu(
    ask: Ask, fake: ModuleType, trees: ModuleType, steps: Steps, tmp_path: Path
) -> None:
    tree = trees.eight_h100(tmp_path)
    address = trees.H100_ADDRESSES[7]
    tree.add_information(address, "NVIDIA H100 80GB HBM3", "GPU-x", minor=7, excluded=True)
    said = ask(gpus_of(fake, *range(7)), tmp_path)
    excluded = said["devices"][-1]
    assert excluded["ids"][0] == f"pci:{address}"
    assert steps(excluded)["granted"] == ("broken", "gpu-excluded")
    evidence = f"/proc/driver/nvidia/gpus/{address}/information: GPU Excluded: Yes"
    assert excluded["step_facts"][1]["evidence"] == evidence
    assert [steps(gpu)["granted"] for gpu in said["devices"][:7]] == [("ok", None)] * 7
    (finding,) = said["findings"]
    assert (finding["severity"], finding["device"]) == ("info", f"pci:{address}")


def test_nothing_granted_is_still_told_for_each(
    ask: Ask, trees: ModuleType, steps: Steps, tmp_path: Path
) -> None:
    trees.eight_h100(tmp_path)
    said = ask("no-devices", tmp_path, environ=JOB)
    assert [steps(gpu)["granted"] for gpu in said["devices"]] == [("broken", "slurm-slice")] * 8
    assert said["error"]["code"] == "no-devices"
    assert "Slurm" in said["error"]["reason"]
    assert "--gres" in said["error"]["fix"]
    trees.Tree(tmp_path).file("/.dockerenv", "")
    assert "--gpus all" in ask("no-devices", tmp_path)["error"]["fix"]


@pytest.mark.heavy
@pytest.mark.parametrize("mode", [0, 1, 3])
def test_exclusive_use_is_no_ban(ask: Ask, steps: Steps, mode: int) -> None:
    said = ask(f"gpu\nname A\npci 00000000:01:00.0 0x1EB810DE 0\ncompute-mode {mode}\n")
    (gpu,) = said["devices"]
    words = {0: "default", 1: "exclusive-thread", 3: "exclusive-process"}
    assert gpu["compute_mode"] == words[mode]
    assert steps(gpu)["granted"] == ("ok", None)
    assert said["findings"] == []


def test_mig_without_instances(ask: Ask, steps: Steps) -> None:
    said = ask("a100-mig-empty")
    assert steps(said["devices"][0])["granted"] == ("broken", "mig-without-instances")


def test_container_given_one_mig_instance(
    ask: Ask, fake: ModuleType, trees: ModuleType, steps: Steps, tmp_path: Path
) -> None:
    """The bus shows two cards, NVML the first alone, and of its instances the one at index 2."""
    tree = trees.Tree(tmp_path)
    tree.add_driver()
    tree.file("/.dockerenv", "")
    for number, address in enumerate(("0000:3b:00.0", "0000:d8:00.0")):
        tree.add_pci(address, "20b0")
        tree.add_information(address, "NVIDIA A100-SXM4-40GB", None, minor=number)
    caps = "/proc/driver/nvidia/capabilities/gpu0/mig/gi3"
    tree.file(f"{caps}/access", "DeviceFileMinor: 30\nDeviceFileMode: 292\nDeviceFileModify: 1\n")
    tree.file(f"{caps}/ci0/access", "DeviceFileMinor: 31\nDeviceFileMode: 292\n")
    text = (fake.PROFILES / "a100-mig.profile").read_text()
    only = text[: text.index("mig 0\n")] + text[text.index("mig 2\n") : text.index("mig 5\n")]
    said = ask(only, tmp_path)
    parent, instance, other = said["devices"]
    assert steps(parent)["granted"] == ("ok", None)
    assert instance["parent"] == parent["ids"][0] == "pci:0000:3b:00.0"
    assert instance["nodes"] == [
        "/dev/nvidia0",
        "/dev/nvidiactl",
        "/dev/nvidia-uvm",
        "/dev/nvidia-caps/nvidia-cap30",
        "/dev/nvidia-caps/nvidia-cap31",
    ]
    assert steps(instance) == dict.fromkeys(("library", "responding", "granted"), ("ok", None))
    assert steps(other)["granted"] == ("broken", "not-granted")
    assert said["touched"][-3:] == ["pci:0000:3b:00.0", "pci:0000:3b:00.0", "pci:0000:d8:00.0"]


def test_passthrough_beside_an_own_card(
    ask: Ask, trees: ModuleType, steps: Steps, tmp_path: Path
) -> None:
    tree = trees.Tree(tmp_path)
    tree.add_driver()
    tree.add_pci("0000:04:00.0", "1eb8")
    tree.add_pci("0000:05:00.0", "2204", driver="vfio-pci")
    said = ask("t4", tmp_path)
    (gpu,) = said["devices"]
    assert gpu["step_facts"][2]["evidence"] == "NVML lists it as GPU 0 of 1"
    assert said["findings"] == []


@pytest.mark.parametrize("driver", ["vfio-pci", "pciback", "nvgrace_gpu_vfio_pci"])
def test_all_reserved_for_guests_is_no_failure(
    ask: Ask, trees: ModuleType, tmp_path: Path, driver: str
) -> None:
    tree = trees.Tree(tmp_path)
    tree.add_pci("0000:05:00.0", "2204", driver=driver)
    said = ask("t4", tmp_path, modules=True)
    assert said["not_applicable"] == (f"{driver} reserves every NVIDIA GPU for virtual machines")
    assert said["modules"] == []


def test_void_of_cdi_with_nodes_is_healthy(
    ask: Ask, trees: ModuleType, steps: Steps, tmp_path: Path
) -> None:
    """Every CDI specification sets NVIDIA_VISIBLE_DEVICES=void (nvidia-container-toolkit)."""
    tree = trees.Tree(tmp_path)
    tree.add_driver()
    tree.add_pci("0000:04:00.0", "1eb8")
    tree.file("/run/.containerenv", "")
    for node in ("nvidia0", "nvidiactl", "nvidia-uvm"):
        tree.file(f"/dev/{node}", "")
    environ = {"NVIDIA_VISIBLE_DEVICES": "void", "container": "podman"}
    said = ask("t4", tmp_path, environ=environ)
    assert steps(said["devices"][0]) == dict.fromkeys(
        ("library", "responding", "granted"), ("ok", None)
    )
    assert said["findings"] == []
