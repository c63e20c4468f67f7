"""Writes the tables of `data` as JSON, for wheels: to read TOML takes ten times as long."""

import json
import sys
import tomllib
from pathlib import Path

DATA = Path("probe_wheels") / "data"


def main(into: str) -> None:
    """Write each table below a folder, where the wheel has it."""
    target = Path(into) / DATA
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted((Path(__file__).parent / "src" / DATA).glob("*.toml")):
        table = tomllib.loads(path.read_text("utf-8"))
        text = json.dumps(table, ensure_ascii=False, separators=(",", ":"))
        (target / f"{path.stem}.json").write_text(text, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
