"""What does `probe doctor --env` cost: again beside `probe --json`, and first beside a plain walk?

The environment has the shape of PyTorch 2.14.1 with its CUDA libraries: 29 distributions, 140
libraries, 22 of them with code, and a list of 13,000 files. PROBE_BENCH_ENV names a real one, which
alone has a target for the first look: what is made here lies in few pages, and is walked too fast.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench_doctor import _machine
from measure import Figure, costs, seconds
from place import ROOT, Place

WARM = 1.5
"""Times `probe --json`: nothing of the environment has changed since the last look."""
FIRST = 3.0
"""Times a walk over the headers of the same libraries, with nothing remembered."""

TARGETS = "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"
LIBRARIES, CONTAINERS, PLAIN, FILES = 22, 180, 118, 13_000

# What has to be read in any case: each library's sections, and the head of each piece of code.
WALK = """
import os, struct, sys
for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        path = os.path.join(folder, name)
        if ".so" not in name or os.path.islink(path):
            continue
        file = os.open(path, os.O_RDONLY)
        head = os.pread(file, 64, 0)
        if head[:4] == b"\\x7fELF" and head[4] == 2:
            (table,), (size, count, at) = struct.unpack_from("<Q", head, 40), struct.unpack_from("<HHH", head, 58)
            raw = os.pread(file, size * count, table)
            rows = [struct.unpack_from("<IIQQQQ", raw, row * size) for row in range(count)]
            texts = os.pread(file, rows[at][5], rows[at][4])
            for row in rows:
                place, end = row[4], row[4] + row[5]
                walked = texts[row[0]:].partition(b"\\0")[0] == b".nv_fatbin"
                while walked and place + 16 <= end:
                    place = (place + 7) & ~7
                    piece = os.pread(file, 80, place)
                    if piece[:4] != b"\\x50\\xed\\x55\\xba":
                        break
                    header, length = struct.unpack_from("<6xHQ", piece)
                    entry, place = place + header, place + header + length
                    while entry + 64 <= place:
                        first, payload = struct.unpack_from("<4xIQ", os.pread(file, 64, entry))
                        entry += first + payload
        os.close(file)
"""  # noqa: E501


def run(place: Place) -> Iterator[Figure]:
    """Compare both, on this machine and on one with a GPU."""
    if not place.has("probe_wheels"):
        return
    environ = {**place.environ, "XDG_CACHE_HOME": str(place.folder / "cache")}
    environment = os.environ.get("PROBE_BENCH_ENV") or str(_environment(place.folder / "env"))
    yield _first(place, environ, environment)
    recorded = str(_machine(place.folder / "env-machine", 1))
    for name, arguments in (("this machine", ()), ("a GPU", ("--machine", recorded))):
        base = [place.python, "-m", "probe_core"]
        commands = {
            "probe": [*base, "--json", *arguments],
            "env": [*base, "doctor", "--env", environment, "--json", *arguments],
        }
        taken = costs(commands, place.rounds(20), environ, statuses=(0, 1))
        ratio, _ = taken["env"].against(taken["probe"])
        note = f"{taken['env'].wall * 1000:.1f} ms against {taken['probe'].wall * 1000:.1f} ms"
        yield Figure(f"probe doctor --env, {name}", ratio, "× probe --json", WARM, note)


def _first(place: Place, environ: Mapping[str, str], environment: str) -> Figure:
    """Compare the first look with the walk; the files are in the page cache for both."""
    commands = {
        "walk": [place.python, "-c", WALK, environment],
        "first": [place.python, "-m", "probe_core", "doctor", "--json", "--env", environment],
    }
    walls: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(place.rounds(9) + 1):
        for name, command in commands.items():
            shutil.rmtree(environ["XDG_CACHE_HOME"], ignore_errors=True)
            wall = seconds(command, environ)
            if number:
                walls[name].append(wall)
    middle = {name: sorted(times)[len(times) // 2] for name, times in walls.items()}
    note = f"{middle['first'] * 1000:.0f} ms against {middle['walk'] * 1000:.0f} ms"
    target = FIRST if "PROBE_BENCH_ENV" in os.environ else None
    return Figure("its first look", middle["first"] / middle["walk"], "× a walk", target, note)


def _environment(root: Path) -> Path:
    """Write the environment, with the builder of the plugin's tests."""
    sys.path.insert(0, str(ROOT / "plugins" / "wheels" / "tests"))
    import wheel_files as build

    site = build.environment(root)
    code, plain = build.cuda({TARGETS: CONTAINERS}), build.elf([(".text", b"")])
    torch: dict[str, bytes | str] = {f"torch/lib/libplain{n}.so": plain for n in range(PLAIN)}
    torch["torch/lib/libtorch_cuda.so"] = code
    torch["torch/version.py"] = "__version__ = '2.14.1+cu130'\ncuda: Optional[str] = '13.0'\n"
    info = build.install(site, "torch", "2.14.1", torch)
    with open(info / "RECORD", "a", encoding="utf-8") as file:
        file.writelines(f"torch/include/ATen/ops/file{n}.h,sha256=0,1\n" for n in range(FILES))
    for number in range(LIBRARIES - 1):
        name = f"nvidia-part{number}"
        build.install(site, name, "13.0", {f"nvidia/part{number}/lib/lib{number}.so.13": code})
    for number in range(7):
        build.install(site, f"plain{number}", "1.0", {f"plain{number}.py": ""})
    return root
