@rem Windows runs no script without a suffix; python.exe lies beside this file, or one folder above.
@if exist "%~dp0python.exe" ("%~dp0python.exe" -m probe_core %*) else "%~dp0..\python.exe" -m probe_core %*
