"""Times the reader on synthetic tables: run `python bench/lookup.py`; it prints one line a figure.

Each cold figure is a fresh interpreter with compiled bytecode: import, load and the first lookup.
"""

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SRC = Path(__file__).resolve().parents[1] / "src"
RUNS = 15
ROUNDS = 7

COLD = """
import sys, time
sys.path.insert(0, {src!r})
start = time.perf_counter()
import probe_chipdb
from probe_chipdb import table
table.FOLDER = {table!r}
match = probe_chipdb.load(packages={packages}).match({question})
print((time.perf_counter() - start) * 1000, match.chip is not None)
"""


def synthetic(count: int, into: Path) -> Path:
    """A table of `count` chips with six keys each; returns its folder."""
    sys.path.insert(0, str(SRC))
    from probe_chipdb.entry.pack import texts
    from probe_chipdb.entry.validate import Data
    from probe_chipdb.tools.build import rendered

    data = Data()
    data.archs["one"] = {
        "name": "One", "family": "one", "vendor": "acme", "unit": "SM", "source": ["book"],
        "confidence": "vendor", "rates": {"fp16.matrix.fp32": 512, "bf16.matrix.fp32": 512},
    }  # fmt: skip
    for at in range(count):
        data.chips[f"acme/x{at}"] = {
            "id": f"acme/x{at}", "name": f"Acme GX {at} Laptop GPU", "vendor": "acme",
            "kind": "gpu", "family": "A family", "arch": "one", "units": at % 200 + 1, "year": 2024,
            "clock": {"base": 1000, "boost": 2000}, "source": ["book"], "power": 200,
            "memory": {"gib": 16, "type": "GDDR6", "bus": 256, "gbs": 512},
            "pci": [pci(at), f"{pci(at)}/1234:5678"],
            "aliases": [f"GX{at} [Acme {at}]", f"Acme chip {at}"], "note": "a note of usual length",
        }  # fmt: skip
    folder = into / str(count) / "table"
    folder.mkdir(parents=True)
    for name, text in rendered(texts(data)).items():
        (folder / name).write_text(text)
    return folder


def pci(at: int) -> str:
    """The PCI key of a synthetic chip."""
    return f"aa{at >> 16:02x}:{at & 0xFFFF:04x}"


def cold(table: str, question: str, packages: bool = False) -> float:
    """Median milliseconds in fresh interpreters."""
    code = COLD.format(src=str(SRC), table=f"{table}/", question=question, packages=packages)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    times = []
    for _ in range(RUNS + 1):
        out = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        ).stdout.split()
        assert out[1] == "True", "the lookup found nothing"
        times.append(float(out[0]))
    return sorted(times[1:])[RUNS // 2]


def warm(table: str, count: int) -> tuple[float, float, float, float]:
    """Microseconds: a repeated PCI id, a repeated name, PCI ids and names never asked before."""
    import probe_chipdb
    from probe_chipdb import table as tables

    tables.FOLDER = f"{table}/"
    db = probe_chipdb.load(packages=False)
    some = random.Random(1).sample(range(count), min(count, 1000))

    def timed(questions: list[dict[str, str]]) -> float:
        start = time.perf_counter()
        for question in questions:
            db.match(**question)  # type: ignore[arg-type]
        return (time.perf_counter() - start) / len(questions) * 1e6

    ids = [{"pci": pci(at)} for at in some]
    names = [{"name": f"Acme GX {at} Laptop GPU", "name_kind": "nvml"} for at in some]
    new_ids, new_names = timed(ids), timed(names)
    return timed(ids), timed(names), new_ids, new_names


ASKED = ("id", "name", "id and name")
"""What a look-up may be asked of a real chip."""


def never(asked: str) -> float:
    """Microseconds for a question of ASKED that no look-up had before, of 1,000 real chips.

    The least of some rounds. What a process imports and reads once is done.
    """
    import probe_chipdb
    from probe_chipdb import table as tables

    tables.FOLDER = f"{SRC}/probe_chipdb/table/"
    chips = probe_chipdb.load(packages=False).chips()
    questions: dict[str, dict[str, str]] = {}
    for chip in chips:
        name = {"name": chip.name, "name_kind": "nvml"}
        if asked == "name":
            questions[chip.name] = name
        elif chip.pci:
            device = chip.pci[0][: len("10de:2684")]
            questions[device] = {"pci": device, **(name if asked == "id and name" else {})}
    first, some = [*questions.values()][:100], [*questions.values()][100:]
    spent = []
    for seed in range(ROUNDS):
        db = probe_chipdb.load(packages=False)
        for question in first:
            db.match(**question)  # type: ignore[arg-type]
        asking = random.Random(seed).sample(some, 1_000)
        start = time.perf_counter()
        for question in asking:
            db.match(**question)  # type: ignore[arg-type]
        spent.append(time.perf_counter() - start)
    return min(spent) / 1_000 * 1e6


def memory(table: str) -> float:
    """MiB that Python allocates to load the table and answer 1,000 questions."""
    import tracemalloc

    tracemalloc.start()
    warm(table, 1000)
    size = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return size


def main() -> None:
    """Print every figure."""
    with tempfile.TemporaryDirectory() as folder:
        for count in (2_000, 20_000):
            path = str(synthetic(count, Path(folder)))
            question = f"pci='aa00:{count // 2:04x}'"
            print(f"{count} chips: cold load and first lookup {cold(path, question):.2f} ms")
            again, name, new, new_name = warm(path, count)
            print(f"{count} chips: warm, asked before: id {again:.2f} us, name {name:.2f} us")
            print(
                f"{count} chips: warm, never asked before: id {new:.1f} us, name {new_name:.1f} us"
            )
            print(f"{count} chips: memory {memory(path):.1f} MiB")
    real = str(SRC / "probe_chipdb" / "table")
    question = "pci='10de:2684'"
    print(f"the real table: cold {cold(real, question):.2f} ms")
    print(f"the real table: cold, with vendor packages {cold(real, question, True):.2f} ms")
    for asked in ASKED:
        print(f"the real table: warm, {asked} never asked before: {never(asked):.1f} us")
    print(f"the real table: memory {memory(real):.1f} MiB")


if __name__ == "__main__":
    main()
