# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Names of providers, as users write them in `TORCH_MUSA_OPS` and pass them to `torch.musa.ops`."""

from __future__ import annotations

import os

from ._load import extension
from .errors import UnknownOpError, UnknownProviderError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# torch's CPU kernels on copies of the operands, the last resort of every operator.
COPIES = "host-copy"
# The runtime's own providers: copies, and compositions of other operators.
OWN_PROVIDERS = (COPIES, "runtime")
# Earlier names that are accepted, and their current names; op_policy.cpp has the same.
ALIASES = {"native": "host", "cpu": "host-copy"}


def check_environment(environ: Mapping[str, str] | None = None) -> None:
    """Check `TORCH_MUSA_OPS` against the loaded providers, before the C++ side reads it.

    The variable is a list of providers, `"mudnn,host"`, or rules
    `"aten::mm=ported;aten::*norm*=host,ported"`, or both.

    Raises:
        UnknownProviderError: names the offending part and the providers that exist.
    """
    environ = os.environ if environ is None else environ
    check_specification(environ.get("TORCH_MUSA_OPS", ""), "TORCH_MUSA_OPS")


def check_specification(specification: str, where: str) -> None:
    """Check the rules of a specification; `where` is the source that an error names."""
    for part in specification.split(";"):
        rule = part.strip()
        if not rule:
            continue
        pattern, equals, names = rule.rpartition("=")
        if equals and not pattern.strip():
            raise UnknownOpError(
                f"{where}: {rule!r} names no operator before '='. Write e.g. 'aten::mm=host'"
            )
        for name in names.split(","):
            check_provider(name.strip(), f"{where}, in {rule!r}")


def known_providers() -> list[str]:
    """Names of the providers of this process, those of loaded packs first."""
    known = list(extension().ops_providers())
    return known + [name for name in OWN_PROVIDERS if name not in known]


def check_provider(name: str, where: str) -> None:
    """Raise UnknownProviderError unless there is a provider of this name."""
    known = known_providers()
    if ALIASES.get(name, name) not in known:
        raise UnknownProviderError(
            f"{where}: there is no provider {name!r}; there are: {', '.join(known)}.\n"
            "Likely causes: the op pack of the provider is not installed, or failed to load.\n"
            "Fix: python -m torch_musa packs lists the packs and their failures"
        )
