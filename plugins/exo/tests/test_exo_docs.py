"""What the README and the examples show does run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1]


def run(*arguments: str) -> str:
    path = [entry for entry in sys.path if entry]
    code = f"import sys; sys.path[:] = {path!r}; sys.argv = {list(arguments)!r}\n"
    code += "import runpy; runpy.run_path(sys.argv[0], run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.heavy
@pytest.mark.parametrize("number", range(4))
def test_the_readmes_python_runs(number: int, tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (HERE / "README.md").read_text("utf-8"), re.DOTALL)
    assert len(blocks) == 4
    script = tmp_path / "block.py"
    script.write_text(blocks[number])
    run(str(script))


@pytest.mark.heavy
def test_two_simulated_nodes_come_to_a_plan() -> None:
    lines = run(str(HERE / "examples" / "two_nodes.py")).splitlines()
    assert '  "desktop-7900xtx": {' in lines
    shares = dict(re.findall(r"^(\S+): layers (\d+ to \d+)$", "\n".join(lines), re.MULTILINE))
    assert next(iter(shares.values())).startswith("0 to ")
    assert list(shares.values())[-1].endswith(" to 79")


@pytest.mark.heavy
def test_the_gpus_of_the_simulated_nodes_tell_their_memory() -> None:
    pytest.importorskip("probe_amd")
    out = run(str(HERE / "examples" / "two_nodes.py"))
    assert '"chip": "AMD Radeon RX 7900 XTX"' in out
    assert '"chip": "AMD Radeon 8060S Graphics"' in out
    assert '"memory": 24560' in out
    assert re.search(r"^fastest .* fits: True$", out, re.MULTILINE)
