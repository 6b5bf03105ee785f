# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The error of `torch.compile` if the pack that registers with torch's compiler is missing.

`backend="eager"` and `backend="aot_eager"` need no pack. Inductor, the default, does.
"""

from __future__ import annotations

from musa_runtime.import_actions import after_import

from . import entry_points, import_hooks

_PACK = "compile"  # also the name of the extra that installs it


def register() -> None:
    """Makes Inductor raise the error when it is imported, unless the pack has registered."""
    if _PACK not in import_hooks.called:
        after_import("torch._inductor.compile_fx", _refuse)


def _refuse() -> None:
    from . import inductor_refusal

    inductor_refusal.refuse(_reason)


def _reason() -> str:
    without = 'To run without it: torch.compile(..., backend="aot_eager")'
    failed = [error for (_, pack), error in import_hooks.failures.items() if pack == _PACK]
    if failed:
        cause = f"the pack {_PACK!r} failed: {failed[0]!r}.\nFix: python -m torch_musa doctor"
    elif entry_points.is_disabled(_PACK):
        cause = (
            f"TORCH_MUSA_DISABLE_PACKS switches the pack {_PACK!r} off.\nFix: remove it from that variable"
        )
    else:
        from musa_runtime.installation import command

        from . import extras

        wheels = extras.missing(_PACK) or extras.installs().get(_PACK, ())
        cause = (
            f"{' and '.join(wheels)} (the extra torch-musa[{_PACK}]) is not installed.\n"
            f"Fix: {command(*wheels)}"
        )
    return f"torch.compile cannot generate code for musa: {cause}\n{without}"
