"""Writes the templates as modules, for wheels: Jinja2 compiles them once and not for each page."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "src"))

from probe_report.html import compile_templates

if __name__ == "__main__":
    compile_templates(Path(sys.argv[1]) / "probe_report" / "templates")
