"""Bundle the core whole, and every prober that is installed where the application is built.

Nothing imports them where PyInstaller looks: the core imports its stages when they are needed, and
a prober's module is named by an entry point and imported in its own process. The distributions'
metadata goes along, so that the bundled probers are found as everywhere.
"""

from importlib.metadata import entry_points

from PyInstaller.utils.hooks import collect_data_files, collect_submodules, copy_metadata

GROUPS = ("probe_core.probers.v1", "probe_core.chipdb.v1")

found = [point for group in GROUPS for point in entry_points(group=group) if point.dist]
packages = sorted({"probe_core", *(point.module.partition(".")[0] for point in found)})
hiddenimports = [name for package in packages for name in collect_submodules(package)]
datas = [pair for package in packages for pair in collect_data_files(package)]
for name in sorted({point.dist.name for point in found}):
    datas += copy_metadata(name)
