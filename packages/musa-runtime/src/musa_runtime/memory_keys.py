# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Keys of the allocators' statistics."""

from __future__ import annotations

from typing import Any


def flatten(nested: dict[str, Any]) -> dict[str, Any]:
    """Nested dicts as one, keys joined by dots and sorted; a tuple such as a pool's id becomes `0_1`."""
    flat = {}

    def add(prefix: str, value: Any) -> None:
        if not isinstance(value, dict):
            flat[prefix] = value
            return
        for key, inner in value.items():
            name = "_".join(map(str, key)) if isinstance(key, tuple) else str(key)
            add(f"{prefix}.{name}" if prefix else name, inner)

    add("", nested)
    return dict(sorted(flat.items()))
