# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Finding and loading op packs: collect, sort, check, import, register, each in isolation.

pluggy's own entry-point loader has neither order nor isolation: the first pack that raises would take the
others with it. Here each pack ends as a :class:`PackRecord`, loaded or with the cause why not. Packs load at
the first use of the device.

Environment: `TORCH_MUSA_DISABLE_PACKS` (names, comma-separated, or `all`), `TORCH_MUSA_STRICT=1` (the first
failure is raised), `TORCH_MUSA_TRACE_PACKS=1` (every hook call on stderr).
"""

import os
import sys
import time
from dataclasses import dataclass, field
from importlib import metadata

import pluggy

from musa_runtime import hookspecs, installation, ops
from musa_runtime.errors import ContractVersionError, PackError


@dataclass
class PackRecord:
    """What became of one pack.

    Attributes:
        name (str): of the entry point.
        dist (str), version (str): the distribution that brings it.
        status (str): `"found"` (not tried yet), `"loaded"`, `"disabled"`, `"incompatible"` (contract version)
            or `"failed"`.
        error (PackError or None): the cause, chained to the exception of the pack.
        seconds (float): time spent on it.
        providers (list of str), ops (int): what its libraries added to the op registry.
    """

    name: str
    dist: str
    version: str
    status: str = "found"
    error: PackError | None = None
    seconds: float = 0.0
    providers: list[str] = field(default_factory=list)
    ops: int = 0
    plugin: object = None


_manager = None
_records = None


def manager():
    """The pluggy manager that knows the contract's hooks and the loaded packs."""
    global _manager
    if _manager is None:
        _manager = pluggy.PluginManager(hookspecs.PROJECT)
        _manager.add_hookspecs(hookspecs)
        if os.environ.get("TORCH_MUSA_TRACE_PACKS") == "1":
            _manager.add_hookcall_monitoring(_trace_before, _trace_after)
    return _manager


def records():
    """The packs as loaded so far: a list of :class:`PackRecord`, empty before the first use of the device."""
    return list(_records or ())


def found():
    """The installed packs as records with status `"found"`, from metadata alone: no code of a pack runs."""
    return [record for record, _, _ in _discover()]


def load_packs(strict=None):
    """Load every installed pack, once; later calls return the same records.

    Args:
        strict (bool, optional): raise the first failure; None asks `TORCH_MUSA_STRICT`.

    Raises:
        PackError: the first failure, if strict.
    """
    global _records
    if _records is None:
        # Assigned last, so an interrupted load is retried instead of being taken for complete.
        loaded = []
        for record, entry, contract in _discover():
            taken = next((other for other in loaded if other.name == record.name), None)
            _load_pack(record, entry, contract, taken)
            loaded.append(record)
        _records = loaded
    if os.environ.get("TORCH_MUSA_STRICT") == "1" if strict is None else strict:
        for record in _records:
            if record.error is not None:
                raise record.error.with_traceback(None)
    return records()


def _discover():
    """(record, entry point, declared contract) of each pack, in order of names."""
    entries = metadata.entry_points()
    contracts = {(e.dist.name, e.name): e.value for e in entries.select(group=hookspecs.CONTRACT_GROUP)}
    packs = sorted(
        entries.select(group=hookspecs.PLUGIN_GROUP), key=lambda entry: (entry.name, entry.dist.name)
    )
    for entry in packs:
        record = PackRecord(entry.name, entry.dist.name, entry.dist.version)
        yield record, entry, contracts.get((entry.dist.name, entry.name))


def hook_results(name):
    """Call one hook of every loaded pack, in isolation.

    Returns:
        list of (PackRecord, result, error): result is None where the pack has no such hook; error is the
            exception it raised.
    """
    results = []
    for record in records():
        if record.status == "loaded":
            try:
                results.append((record, _call(record.plugin, name), None))
            except Exception as error:  # noqa: BLE001 - returned to the caller
                results.append((record, None, error))
    return results


def _load_pack(record, entry, contract, taken):
    start = time.perf_counter()
    if is_disabled(entry.name):
        record.status = "disabled"
    else:
        try:
            _check_contract(record, contract)
            if taken is not None:
                raise PackError(f"the name is taken by {taken.dist} {taken.version}")
            _import_and_register(record, entry)
            record.status = "loaded"
        except ContractVersionError as error:
            record.status, record.error = "incompatible", error
        except (Exception, SystemExit) as error:  # noqa: BLE001 - kept in the record; a pack may even exit
            _forget(record)
            record.status, record.error = "failed", _describe(record, error)
    record.seconds = time.perf_counter() - start


def is_disabled(name):
    """Whether `TORCH_MUSA_DISABLE_PACKS` names the pack."""
    disabled = {part.strip() for part in os.environ.get("TORCH_MUSA_DISABLE_PACKS", "").split(",")}
    return name in disabled or "all" in disabled


def _check_contract(record, declared):
    need = f"v{hookspecs.CONTRACT_VERSION}"
    if declared == need:
        return
    have = (
        f"contract {declared}"
        if declared
        else f"no entry point {record.name!r} in group {hookspecs.CONTRACT_GROUP!r}"
    )
    command = installation.command(record.dist, reinstall=True)
    raise ContractVersionError(
        f"{_title(record)} was written for another version of the plugin contract.\n"
        f"  have: {have}\n"
        f"  need: contract {need}\n"
        f"Fix: install a version of it for contract {need}: {command}\n"
        f"To run without it: {_disable(record)}",
        command,
    )


def _import_and_register(record, entry):
    record.plugin = plugin = entry.load()
    plugins = manager()
    plugins.register(plugin, name=record.name)
    plugins.check_pending()  # a misspelled hook is an error, not a hook that is never called
    if not plugins.get_hookcallers(plugin):
        raise PackError(
            f"{entry.value} has no hook. Is each function marked with @musa_runtime.hookspecs.hookimpl?"
        )

    libraries = _call(plugin, "musa_libraries")
    if isinstance(libraries, (str, os.PathLike)):
        raise PackError(
            f"musa_libraries must return a list of paths, but returned the path {str(libraries)!r}"
        )
    if libraries:
        import torch

        before = ops.offers()
        try:
            for path in libraries:
                torch.ops.load_library(os.fspath(path))
        finally:
            added = {name: count - before.get(name, 0) for name, count in ops.offers().items()}
            record.providers = sorted(name for name, count in added.items() if count)
            record.ops = sum(added.values())
    _call(plugin, "musa_register", musa=sys.modules["torch_musa.musa"])


def _call(plugin, name, **arguments):
    """Result of one plugin's hook, None where it has none."""
    plugins = manager()
    others = [other for other in plugins.get_plugins() if other is not plugin]
    results = plugins.subset_hook_caller(name, others)(**arguments)
    return results[0] if results else None


def _forget(record):
    if record.plugin is not None and manager().is_registered(record.plugin):
        manager().unregister(record.plugin)
    record.plugin = None


def _describe(record, error):
    # A library cannot be unloaded: what it registered before the failure stays a candidate.
    remains = f"; {record.ops} of its kernels stay registered" if record.ops else ""
    lines = [
        f"{_title(record)} could not be loaded: {_causes(error)}",
        f"The other packs are not affected{remains}.",
    ]
    command = getattr(error, "command", None)
    if command is None and "\nFix: " not in str(error):  # an error that has a fix names it in its text
        command = installation.command(record.dist, reinstall=True)
        lines += [
            "Likely causes: an incomplete installation; a build for another torch or musa-runtime.",
            f"Fix: {command}",
        ]
    described = PackError("\n".join([*lines, f"To run without it: {_disable(record)}"]), command)
    described.__cause__ = error
    return described


def _causes(error):
    """The error and what it came from: torch, for one, hides the dynamic linker's words in the cause."""
    texts = []
    while error is not None:
        texts.append(f"{type(error).__name__}: {error}")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n  from ".join(texts)


def _title(record):
    return f"op pack {record.name!r} ({record.dist} {record.version})"


def _disable(record):
    return f"export TORCH_MUSA_DISABLE_PACKS={record.name}"


def _trace_before(hook_name, hook_impls, arguments):
    for impl in hook_impls:
        print(f"torch_musa packs: {impl.plugin_name}.{hook_name}({', '.join(arguments)})", file=sys.stderr)


def _trace_after(outcome, hook_name, hook_impls, arguments):
    if hook_impls:
        told = f"raised {outcome.exception!r}" if outcome.exception else f"returned {outcome.get_result()!r}"
        print(f"torch_musa packs: {hook_name} {told}", file=sys.stderr)
