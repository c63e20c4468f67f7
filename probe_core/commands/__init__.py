"""What a command of `probe` may import, its own or a plugin's: the public contract of commands.

Nothing is imported until a name is used, so that a command pays for what it needs and no more.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.awaiting import within as within
    from probe_core.commands.context import CommandError as CommandError
    from probe_core.commands.context import Context as Context
    from probe_core.commands.measured import measured_amount as measured_amount
    from probe_core.commands.measured import measured_name as measured_name
    from probe_core.commands.measured import measured_part as measured_part
    from probe_core.commands.measured import save_measured as save_measured
    from probe_core.commands.options import Argument as Argument
    from probe_core.commands.options import Option as Option
    from probe_core.commands.options import add_options as add_options
    from probe_core.commands.options import add_probe_options as add_probe_options
    from probe_core.commands.options import probe_options as probe_options
    from probe_core.commands.options import seconds_of as seconds_of
    from probe_core.commands.reports import node_network as node_network
    from probe_core.commands.reports import numa_cpus as numa_cpus
    from probe_core.commands.reports import parse_json as parse_json
    from probe_core.commands.reports import parse_report as parse_report
    from probe_core.commands.reports import probe_document as probe_document
    from probe_core.commands.reports import read_report as read_report
    from probe_core.commands.reports import read_report_text as read_report_text
    from probe_core.commands.reports import system_memory as system_memory
    from probe_core.commands.reports import write_json as write_json
    from probe_core.commands.reports import write_json_lines as write_json_lines
    from probe_core.commands.tables import grid as grid
    from probe_core.commands.tables import grid_rows as grid_rows
    from probe_core.commands.text import bandwidth as bandwidth
    from probe_core.commands.text import columns as columns
    from probe_core.commands.text import folded as folded
    from probe_core.commands.text import listed as listed
    from probe_core.commands.text import paint as paint
    from probe_core.commands.text import rate as rate
    from probe_core.commands.text import size as size
    from probe_core.commands.text import wrapped as wrapped
    from probe_core.commands.typed import command_settings as command_settings
    from probe_core.config import journal_file as journal_file
    from probe_core.config import state_base as state_base
    from probe_core.doctor.check import Request as Request
    from probe_core.leasing.listing import leases_now as leases_now
    from probe_core.likeness import did_you_mean as did_you_mean
    from probe_core.machine.trust import Trust as Trust
    from probe_core.machine.trust import allowed as allowed
    from probe_core.machine.writing import replace_file as replace_file
    from probe_core.machine.writing import replace_named_file as replace_named_file
    from probe_core.measured.compare import above_peak as above_peak
    from probe_core.measured.compare import claims as claims
    from probe_core.measured.compare import with_fractions as with_fractions
    from probe_core.measured.compare import with_repeat as with_repeat
    from probe_core.model.ids import driver_text as driver_text
    from probe_core.pipeline.expected import is_container_without_id as is_container_without_id
    from probe_core.pipeline.expected import keys_of as keys_of
    from probe_core.pipeline.settings import plugin_rules as plugin_rules
    from probe_core.recording.anonymise import Anonymiser as Anonymiser
    from probe_core.recording.anonymise import without_identities as without_identities
    from probe_core.registry import find_module as find_module
    from probe_core.registry import scan as scan
    from probe_core.resolve import shorthand as shorthand
    from probe_core.selection.candidates import document_of as document_of

_NAMES = {
    "awaiting": "within",
    "commands.context": "CommandError Context",
    "commands.measured": "measured_amount measured_name measured_part save_measured",
    "commands.options": "Argument Option add_options add_probe_options probe_options seconds_of",
    "commands.reports": "node_network numa_cpus parse_json parse_report probe_document "
    "read_report read_report_text system_memory write_json write_json_lines",
    "commands.tables": "grid grid_rows",
    "commands.text": "bandwidth columns folded listed paint rate size wrapped",
    "commands.typed": "command_settings",
    "config": "journal_file state_base",
    "doctor.check": "Request",
    "leasing.listing": "leases_now",
    "likeness": "did_you_mean",
    "machine.trust": "Trust allowed",
    "machine.writing": "replace_file replace_named_file",
    "measured.compare": "above_peak claims with_fractions with_repeat",
    "model.ids": "driver_text",
    "pipeline.expected": "is_container_without_id keys_of",
    "pipeline.settings": "plugin_rules",
    "recording.anonymise": "Anonymiser without_identities",
    "registry": "find_module scan",
    "resolve": "shorthand",
    "selection.candidates": "document_of",
}
"""Module below the core to the names of it that a command may import."""

_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [*_MODULES]


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'probe_core.commands' has no attribute {name!r}")
    # Not by importlib, which would be imported for this alone.
    value: object = getattr(__import__(f"probe_core.{module}", fromlist=[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
