"""How an agent gets to a node: a shell script that holds its program and looks for a Python."""

from __future__ import annotations

import os
import shlex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_cluster.gather_model import Start

__all__ = ["agent_command", "agent_script"]

_MODULES = ("pair_addresses", "pair_sockets", "pair_agent")
"""In the order in which they import each other."""

_LOADER = """
import sys, types
sys.modules["probe_cluster"] = types.ModuleType("probe_cluster")
for name, text in {texts!r}.items():
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec"), module.__dict__)
module.main(sys.argv[1:])
"""

# The Python of `probe` is in the first line of its script. csh expands "!" also within quotes:
# there is none.
_SCRIPT = (
    "PATH=$PATH:$HOME/.local/bin:/usr/local/bin:/opt/probe/bin;"
    " for p in {candidates} python3 python; do"
    " $p -I -S -c 'import sys; sys.exit(sys.version_info < (3, 8))' </dev/null >/dev/null 2>&1"
    " && exec $p {words}; done;"
    " n=${{SLURMD_NODENAME:-$(uname -n)}};"
    " printf '%-511s\n' \"#probe-cluster $n $$ error 127 |\""
).replace("\n", "\\n")

# Without `probe` head would read the input, which is the agent's commands.
_OF_SCRIPT = "\"$(head -n 1 $(command -v {name}) </dev/null 2>/dev/null | sed -n 's/^#.//p')\""


def agent_command(seconds: float, name: str = "", places: str = "") -> list[str]:
    """Return the words after a Python that start the agent.

    `name` is the node's, `places` are where its commands come from; see `pair_agent`.
    """
    import base64
    import zlib

    data = base64.b64encode(zlib.compress(_program().encode(), 9)).decode("ascii")
    code = f"import base64,zlib;exec(zlib.decompress(base64.b64decode('{data}')))"
    tail = [name, places] if places else [name] if name else []
    return ["-I", "-S", "-c", code, f"{seconds:g}", *tail]


def _program() -> str:
    """Return the text of the agent: its modules, which a node does not have, and their start."""
    folder = os.path.dirname(__file__)
    texts = {}
    for name in _MODULES:
        with open(os.path.join(folder, f"{name}.py"), encoding="utf-8") as file:
            texts[f"probe_cluster.{name}"] = file.read()
    return _LOADER.format(texts=texts)


def agent_script(start: Start, places: str = "") -> str:
    """Return the script of one node, for ``sh -c``."""
    name = shlex.quote(start.command[0])
    is_python = os.path.basename(start.command[0]).startswith("python")
    candidates = name if is_python else _OF_SCRIPT.format(name=name)
    words = _quoted(agent_command(start.seconds, places=places))
    return _SCRIPT.format(candidates=candidates, words=words)


def _quoted(words: Sequence[str]) -> str:
    return " ".join(shlex.quote(word) for word in words)
