# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Cases that are known to fail: a closed list. A case that passes, or fails otherwise, is an error."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """Why a case fails.

    Attributes:
        reason (str): the cause, with the place in the package.
        match (str): part of the failure's text.
        one_liner (str): what users write instead.
        cure (str): the case that shows that this works.
    """

    reason: str
    match: str
    one_liner: str
    cure: str


KNOWN_FAILURES: dict[str, Known] = {}
