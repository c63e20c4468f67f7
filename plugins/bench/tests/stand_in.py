"""gcc in the place of clang, with which tinygrad compiles for CPUs: a device that can be broken.

What clang alone knows is translated. A fault is C code at the end of each kernel that mentions some
text: every thread of the kernel writes the wrong value after it wrote its own.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

_SCRIPT = """#!{python} -IS
import re, subprocess, sys, tempfile
source = sys.stdin.read()
vectors = r"aligned\\((\\d+)\\),ext_vector_type\\(\\d+\\)"
source = re.sub(vectors, r"aligned(\\1),vector_size(\\1)", source)
kernel = re.search(r"void \\w+\\((\\w+(?: \\w+)?)\\* restrict (\\w+)", source)
if kernel and {text!r} and {text!r} in source and {result!r} == kernel[1]:
    body, brace, tail = source.rpartition("}}")
    source = body + {fault!r}.replace("RESULT", kernel[2]) + brace + tail
words = [word for word in sys.argv[1:] if word not in ("-o", "-") and "--target" not in word]
with tempfile.NamedTemporaryFile() as made:
    command = [{gcc!r}, *words, "-D__fp16=_Float16", "-", "-o", made.name]
    done = subprocess.run(command, input=source, text=True)
    sys.stdout.buffer.write(made.read())
sys.exit(done.returncode)
"""

GCC = shutil.which("gcc")


def compiler(folder: Path, *, text: str = "", result: str = "", fault: str = "") -> str:
    """Write the compiler; return its folder, for PATH.

    `fault` goes into kernels whose source has `text` and whose first buffer is of type `result`; it
    names that buffer RESULT.
    """
    folder.mkdir()
    script = _SCRIPT.format(python=sys.executable, gcc=GCC, text=text, result=result, fault=fault)
    (folder / "clang").write_text(script)
    (folder / "clang").chmod(0o755)
    return str(folder)
