# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The plugin contract, version 2: everything that an op pack can declare to the loader.

A pack is an entry point of group `torch_musa.plugins.v2`, whose value is a module or object that has some of
the hooks below, marked with `@hookimpl`. The group names the version of the contract, so that it can be
checked before any code of the pack runs. Hooks are called at the first use of the device. More groups are for
objects that are needed earlier::

    [project.entry-points."torch_musa.plugins.v2"]
    demo = "demo_pack.plugin"                # hooks
    [project.entry-points."torch_musa.import.v2"]
    demo = "demo_pack.startup:musa_import"   # called as musa_import(torch.musa) by `import torch`
    [project.entry-points."torch_musa.modules.v2"]
    foo = "demo_pack.foo"                    # the module torch.musa.foo, imported on first access
    [project.entry-points."torch_musa.submodules.v2"]
    "bar.baz" = "demo_pack.baz"              # the module torch_musa.bar.baz, imported on first access
    [project.entry-points."torch_musa.attributes.v2"]
    demo = "demo_pack.names:attribute"       # called as attribute("x") for torch_musa.x, unless it exists
    [project.entry-points."torch_musa.run_options.v2"]
    foo = "demo_pack.run:foo"                # foo() is a context manager: python -m torch_musa run --foo x.py

An import hook has the name of its pack. It must be defined before its module imports torch, and must neither
use the device nor import anything slow. If it raises, the pack fails to load, and `import torch` continues.
A function for attributes has the name of its pack too, and raises AttributeError for other names.

A hook may take fewer arguments than its specification names. Packs of version 1 load too: they are in group
`torch_musa.plugins`, with a second entry point of the same name and the value `v1` in group
`torch_musa.contract`. This module is imported on first use only, since it imports pluggy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

PROJECT = "torch_musa"
CONTRACT_VERSION = 2

# Position of a pack that has no `musa_rank`: behind the vendor's library (100), before torch's CPU kernels in
# device memory (350; 200 where devices compute on the host), compositions (400) and copies to the host (500).
DEFAULT_RANK = 150
# Version 1 had no ranks: packs other than this project's came first.
RANK_V1 = 50

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def musa_pack_info() -> dict[str, Any]:
    """Information about the pack: a dict whose `summary` is one line for `python -m torch_musa packs`."""


@hookspec
def musa_libraries() -> Sequence[str]:
    """Shared libraries to load, in order: absolute, or relative to the pack's package (`lib/libdemo.so`)."""


@hookspec
def musa_rank() -> int:
    """Rank of the pack's kernels in the default order of providers: an int; lower ranks come first."""


@hookspec
def musa_register(musa: ModuleType) -> None:
    """Register Python code, after the libraries; `musa` is the module `torch.musa`."""


@hookspec
def musa_doctor_checks() -> Sequence[tuple[str, Callable[[], object]]]:
    """Further checks for `doctor`: (title, function) pairs; it returns a detail, raises or warns."""


@hookspec
def musa_env_report() -> dict[str, str]:
    """Further lines for `env`: a dict of str to str, e.g. the version of a library."""
