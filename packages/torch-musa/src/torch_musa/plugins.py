# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Finding and loading op packs: collect, sort, check, import, register, each in isolation.

pluggy's own entry-point loader has neither order nor isolation: the first pack that raises would take the
others with it. Here each pack ends as a :class:`PackRecord`, loaded or with the cause why not. Packs load at
the first use of the device; `import_hooks.py` and `pack_modules.py` hold what runs before. The contract is
described in `musa_runtime/hookspecs.py`.

Environment: `TORCH_MUSA_DISABLE_PACKS` (names, comma-separated, or `all`), `TORCH_MUSA_STRICT=1` (the first
failure is raised), `TORCH_MUSA_TRACE_PACKS=1` (every hook call on stderr).
"""

import functools
import importlib.resources
import operator
import os
import re
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path, PurePath

import pluggy

from musa_runtime import hookspecs, installation, ops
from musa_runtime.errors import ContractVersionError, PackError

from . import entry_points, import_hooks, pack_modules, pins


@dataclass
class PackRecord:
    """What became of one pack.

    Attributes:
        name (str): of the entry point.
        dist (str), version (str): the distribution that brings it.
        status (str): `"found"` (not tried yet), `"loaded"`, `"disabled"`, `"incompatible"` (with the version
            of the contract, or of another package) or `"failed"`.
        error (PackError or None): the cause, chained to the exception of the pack.
        seconds (float): time spent on it.
        providers (list of str), ops (int): what its libraries added to the op registry.
        contract (str or None): the version that it declares, as `"v2"`; None if contract v1's second entry
            point is missing.
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
    contract: str | None = None


_CONTRACTS = tuple(f"v{version}" for version in range(1, hookspecs.CONTRACT_VERSION + 1))

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
    return [record for record, _ in _discover()]


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
        for record, entry in _discover():
            taken = next((other for other in loaded if other.name == record.name), None)
            _load_pack(record, entry, taken)
            loaded.append(record)
        _records = loaded
    if os.environ.get("TORCH_MUSA_STRICT") == "1" if strict is None else strict:
        for record in _records:
            if record.error is not None:
                raise record.error.with_traceback(None)
    return records()


def check_pack_of(name):
    """Checks that the pack that offers `torch.musa.<name>` is loaded or will be with the device's first use.

    Returns:
        bool: whether it is loaded.

    Raises:
        PackError: it is not installed, disabled, or failed to load.
    """
    reason = pack_modules.why_missing(name)
    if reason is None and name not in pack_modules.offered():
        reason = f"torch.musa.{name}: no installed pack offers it.\nFix: python -m torch_musa doctor"
    if reason is not None:
        raise PackError(reason)
    dist = pack_modules.offered()[name].dist.name
    loaded = records()
    for record in loaded:
        if record.dist == dist and record.error is not None:
            raise record.error
    return bool(loaded)


def _discover():
    """(record, entry point) of each pack, in order of names; mistakes in the metadata are recorded."""
    contracts = {
        (entry.dist.name, entry.name): entry.value for entry in entry_points.select(entry_points.CONTRACTS_V1)
    }
    found = {}
    for group in sorted(entry_points.installed().groups, key=_version_of, reverse=True):
        version = _version_of(group)
        for entry in entry_points.select(group) if version else ():
            key = entry.name, entry.dist.name
            contract = f"v{version}" if version > 1 else contracts.get((entry.dist.name, entry.name))
            # A pack may declare several versions, for loaders of several ages: the newest known one counts.
            if key not in found or found[key][0].contract not in _CONTRACTS:
                found[key] = PackRecord(*key, entry.dist.version, contract=contract), entry
    for record, _ in found.values():
        if not entry_points.is_disabled(record.name):
            _check_before_loading(record)
    for entry in entry_points.without_pack():
        record = PackRecord(entry.name, entry.dist.name, entry.dist.version)
        named = entry.group in (entry_points.IMPORT_HOOKS, entry_points.ATTRIBUTES)
        needed = f"pack named {entry.name!r}" if named else "pack"
        _fail(record, PackError(f"{entry.group} = {entry.value}: {entry.dist.name} declares no {needed}"))
        found.setdefault((entry.name, entry.dist.name), (record, entry))
    return [found[key] for key in sorted(found)]


def _version_of(group):
    """The contract that a group of entry points belongs to; 0 for other groups."""
    match = re.fullmatch(re.escape(entry_points.PACKS_V1) + r"(?:\.v(\d+))?", group)
    return int(match.group(1) or 1) if match else 0


def _check_before_loading(record):
    """Records an import hook that failed, or a module name that another distribution has taken."""
    error = import_hooks.failures.get((record.dist, record.name))
    if error is not None:
        _fail(record, error)
        return
    if error := _taken_name(record):
        _fail(record, PackError(error))


def _taken_name(record):
    """The error for the first module of a record whose name is taken; None if there is none."""
    for group, prefix in ((entry_points.MODULES, "torch.musa"), (entry_points.SUBMODULES, "torch_musa")):
        for entry in entry_points.select(group):
            if entry.dist.name != record.dist:
                continue
            owner = entry_points.offered(group).get(entry.name)
            if group == entry_points.MODULES and entry.name in sys.modules["torch_musa.musa"].__all__:
                return f"torch.musa.{entry.name} is taken by torch.musa itself"
            if group == entry_points.SUBMODULES and sys.modules["torch_musa"]._has_file(entry.name):
                return f"torch_musa.{entry.name} is taken by torch_musa itself"
            if owner is not None and owner.dist.name != record.dist:
                return f"{prefix}.{entry.name} is taken by {owner.dist.name} {owner.dist.version}"
    return None


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


def _load_pack(record, entry, taken):
    start = time.perf_counter()
    if entry_points.is_disabled(entry.name):
        record.status = "disabled"
    elif record.error is None:
        try:
            _check_contract(record)
            _check_pins(record, entry.dist.requires)
            if taken is not None:
                raise PackError(f"the name is taken by {taken.dist} {taken.version}")
            _import_and_register(record, entry)
            record.status = "loaded"
        except (ContractVersionError, _ReleaseError) as error:
            record.status, record.error = "incompatible", error
        except (Exception, SystemExit) as error:  # noqa: BLE001 - kept in the record; a pack may even exit
            _forget(record)
            _fail(record, error)
    if record.status != "loaded" and taken is None and record.name not in record.providers:
        # An order of providers may name a pack that is installed but not in use: the next in it serves.
        ops.add_provider(record.name, hookspecs.DEFAULT_RANK)
    record.seconds = time.perf_counter() - start


def _fail(record, error):
    record.status, record.error = "failed", _describe(record, error)


def _check_contract(record):
    if record.contract in _CONTRACTS:
        return
    have = (
        f"contract {record.contract}"
        if record.contract
        else f"no entry point {record.name!r} in group {entry_points.CONTRACTS_V1!r}"
    )
    need = " or ".join(f"contract {contract}" for contract in _CONTRACTS)
    command = installation.command(record.dist, reinstall=True)
    raise ContractVersionError(
        f"{_title(record)} was written for another version of the plugin contract.\n"
        f"  have: {have}\n"
        f"  need: {need}\n"
        f"Fix: install a version of it for contract {_CONTRACTS[-1]}: {command}\n"
        f"To run without it: {_disable(record)}",
        command,
    )


class _ReleaseError(PackError):
    """The pack requires another release of an installed package."""


def _check_pins(record, requirements):
    for requirement, name, have in pins.unmet(requirements):
        command = installation.command(record.dist, name, reinstall=True)
        raise _ReleaseError(
            f"{_title(record)} is of another release than the installed {name}; it was not loaded.\n"
            f"  have: {name} {have}\n"
            f"  need: {requirement}\n"
            "Likely causes: one of the two was upgraded or installed alone.\n"
            f"Fix: {command}\n"
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

    rank = _rank(record)
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
                torch.ops.load_library(os.fspath(_resolve(path, entry)))
                # A library whose kernels are refused loads nevertheless: nothing is thrown through dlopen.
                if failures := ops.take_pack_failures():
                    raise PackError("\n".join(failure["message"] for failure in failures))
        finally:
            added = {name: count - before.get(name, 0) for name, count in ops.offers().items()}
            record.providers = sorted(name for name, count in added.items() if count)
            record.ops = sum(added.values())
            for provider in record.providers:
                ops.add_provider(provider, rank)
    _call(plugin, "musa_register", musa=sys.modules["torch_musa.musa"])


def _rank(record):
    """The rank of the pack's providers: its own, or the default of its contract."""
    rank = _call(record.plugin, "musa_rank")
    if rank is None:
        return hookspecs.RANK_V1 if record.contract == "v1" else hookspecs.DEFAULT_RANK
    if not isinstance(rank, int) or isinstance(rank, bool):
        raise PackError(f"musa_rank must return an int, but returned {rank!r}")
    return rank


def _resolve(path, entry):
    """The path of a library; a relative one begins at the package of the entry point's module."""
    if os.path.isabs(path):
        return path
    spec = sys.modules[entry.module].__spec__
    # Through importlib.resources, which also finds the library of an editable install.
    folder = importlib.resources.files(spec.parent) if spec.parent else Path(spec.origin).parent
    return functools.reduce(operator.truediv, PurePath(path).parts, folder)


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
