# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The plugin contract: everything an op pack can tell the loader.

A pack is named by an entry point of group `torch_musa.plugins`, whose value is a module or object that has
some of these hooks, marked with `@hookimpl`. Another entry point of the same name, in group
`torch_musa.contract`, says which version of this contract the pack was written for, as `"v1"`; so it is known
before any code of the pack runs::

    [project.entry-points."torch_musa.plugins"]
    demo = "demo_pack.plugin"
    [project.entry-points."torch_musa.contract"]
    demo = "v1"

A hook may take fewer arguments than its specification names. Imported on first use only, since it brings
pluggy.
"""

import pluggy

PROJECT = "torch_musa"
PLUGIN_GROUP = "torch_musa.plugins"
CONTRACT_GROUP = "torch_musa.contract"
CONTRACT_VERSION = 1

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def musa_pack_info():
    """What the pack is: a dict whose `summary` is one line for `python -m torch_musa packs`."""


@hookspec
def musa_libraries():
    """Paths of shared libraries to load, in order; loading them registers the pack's candidates."""


@hookspec
def musa_register(musa):
    """Register what is written in Python, after the libraries; `musa` is the module `torch.musa`."""


@hookspec
def musa_doctor_checks():
    """Further checks for `doctor`: (title, function) pairs; a function returns a detail or raises."""


@hookspec
def musa_env_report():
    """Further lines for `env`: a dict of str to str, e.g. the version of a library."""
