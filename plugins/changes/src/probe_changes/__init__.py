"""What changed on a computer since its devices worked, and what its next boot will change.

`next_boot` is a check of `probe doctor --next-boot` and `--if`: `loaders` says which kernel starts,
`projection` what the machine is with it, and the doctor's own rules judge that machine. `journal`
keeps a chain of changes, `causes` says which of them broke a device; `journal_command`,
`since_command` and `since_check` show it.
"""
