# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The op packs that an error of an operator names, because they may serve it and are missing or refused.

The metadata of torch-musa lists the packs, each with a prefix of the dotted names of its operators. A dot
and a further word in the name of an entry distinguish several prefixes of one pack.
"""

from musa_runtime import ops

from . import entry_points


def register() -> None:
    """Makes errors of operators that no installed pack serves name the packs that are missing."""
    ops.set_pack_advice(advice)


def advice(op: str) -> str:
    """Returns which packs that are not loaded may serve an operator ("aten::histc") and the fix, or ""."""
    name = op.replace("::", ".")
    listed = entry_points.select(entry_points.OP_PACKS)
    packs = [entry.name.partition(".")[0] for entry in listed if name.startswith(entry.value)]
    from . import extras  # imported on failures only, because it parses torch-musa's metadata

    if missing := list(dict.fromkeys(dist for pack in packs for dist in extras.missing(pack))):
        from musa_runtime.installation import command

        verb = "is" if len(missing) == 1 else "are"
        names = " and ".join(missing)
        return f"{names}, which may serve it, {verb} not installed.\nFix: {command(*missing)}"
    from . import plugins

    if refused := [record for record in plugins.records() if record.error and record.name in packs]:
        names = " and ".join(f"{record.name!r} ({record.dist} {record.version})" for record in refused)
        commands = dict.fromkeys(filter(None, (record.error.command for record in refused)))
        return (
            f"The op pack {names}, which may serve it, was not loaded: "
            "python -m torch_musa packs has the cause.\n"
            f"Fix: {' && '.join(commands) or 'python -m torch_musa doctor'}"
        )
    if disabled := [pack for pack in dict.fromkeys(packs) if entry_points.is_disabled(pack)]:
        names = " and ".join(map(repr, disabled))
        return (
            f"TORCH_MUSA_DISABLE_PACKS switches off {names}, which may serve it.\n"
            "Fix: remove it from that variable"
        )
    return ""
