"""Bundle the tables of chips, which are data files."""

from PyInstaller.utils.hooks import collect_data_files

datas = collect_data_files("probe_chipdb")
