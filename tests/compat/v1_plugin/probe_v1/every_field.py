"""A generator that uses every field a sighting had in version 1."""

from probe_core.api import API_VERSION, Machine, Request, hookimpl

FOLDER = "/sys/class/acme/acme0"


@hookimpl
def probe_devices(request: Request):
    machine = request.machine
    assert isinstance(machine, Machine)
    assert API_VERSION.startswith("1.")
    assert machine.read("/no/such/file") is None
    assert not machine.exists("/no/such/file")
    assert machine.listdir(FOLDER) == ["link", "memory_bytes"]
    assert machine.realpath(f"{FOLDER}/link") == f"{FOLDER}/memory_bytes"
    assert machine.read_bytes(f"{FOLDER}/memory_bytes", 4) == b"0x40"
    assert (machine.os, machine.arch, machine.live) == ("linux", "x86_64", False)
    assert request.active is False
    assert request.deadline_s == 4.0
    (seen,) = [one for one in request.bus if one.get("pci", {}).get("id") == "1ac0:0001"]
    yield {
        "ids": [*seen["ids"], "uuid:NPU-ACME-0001", "v1:0001"],
        "kind": "npu",
        "vendor": "acme",
        "name": "Acme One",
        "pci": {"id": "1ac0:0001", "subsystem": "1ac0:0002", "revision": "a1", "class": "120000"},
        "dt": ["acme,one", "acme,npu"],
        "gpu_id": "acme:0x0001",
        "compute_capability": "1.0",
        "gfx": "acme1",
        "arch": "acme-v1",
        "units": 32,
        "cores": 1024,
        "threads": 64,
        "clocks": {"max_mhz": 1500, "memory_max_mhz": 3200.5},
        "bus_width_bits": 128,
        "bandwidth": 136_000_000_000,
        "memory": {
            "kind": "dedicated",
            "total": machine.read_int(f"{FOLDER}/memory_bytes"),
            "free": 15 << 30,
            "used": 1 << 30,
            "usable": 15 << 30,
            "parts": {"vram": 16 << 30, "reserved": 64 << 20},
        },
        "driver": {"name": "acme", "version": "1.2.3"},
        "backends": ["acme"],
        "power_state": "active",
        "numa_node": 1,
        "links": [{"kind": "pcie", "peer": None, "width": 16, "gts": 16.0, "generation": 4}],
        "node_index": {"acme": 0},
        "processes": 2,
        "peaks": [
            {
                "dtype": "fp16",
                "path": "matrix",
                "accumulate": "fp32",
                "sparsity": "dense",
                "clock": "max",
                "tflops": 196.6,
                "source": "the driver",
            }
        ],
        "extra": {"serial": "A-1"},
        "unknown": {"memory.parts.gtt": "the card has none"},
    }
    yield {
        "ids": ["v1:0001/part0"],
        "kind": "npu",
        "vendor": "acme",
        "parent": "v1:0001",
        "share": {"units": 8, "of": 32},
        "memory_bytes": 4 << 30,
    }
