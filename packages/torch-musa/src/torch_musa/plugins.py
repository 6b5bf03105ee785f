# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Finding and loading op packs: collect, sort, check, import, register, each in isolation.

pluggy's own entry-point loader has neither order nor isolation: the first pack that raises would prevent the
others from loading. Here each pack ends as a :class:`PackRecord`, loaded or with the cause of failure. Packs
load at the first use of the device; `import_hooks.py` and `pack_modules.py` run before. The contract is
described in `musa_runtime/hookspecs.py`.

A program gets a :class:`PackWarning` for each pack that was not loaded, before it can call an operator that
only this pack has.

Environment: `TORCH_MUSA_DISABLE_PACKS` (names, comma-separated, or `all`), `TORCH_MUSA_STRICT=1` (the first
failure is raised), `TORCH_MUSA_TRACE_PACKS=1` (every hook call on stderr).
"""

import functools
import importlib.resources
import operator
import os
import re
import shlex
import sys
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path, PurePath

import pluggy

import musa_runtime
from musa_runtime import hookspecs, installation, link_names, ops, sdk, switches
from musa_runtime.errors import ContractVersionError, PackError

from . import entry_points, import_hooks, pack_modules, pins


class PackWarning(UserWarning):
    """A pack was not loaded: the cause and the fix."""


@dataclass
class PackRecord:
    """The state of one pack.

    Attributes:
        name (str): name of the entry point.
        dist (str), version (str): the distribution that contains it.
        status (str): `"found"` (not loaded yet), `"loaded"`, `"disabled"`, `"incompatible"` (version of the
            contract or of another package, or kernels for another SDK) or `"failed"`.
        error (PackError or None): the error, chained to the pack's exception.
        seconds (float): time spent loading it.
        providers (list of str), ops (int): what it added to the op registry.
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
    """Returns the pluggy manager with the contract's hooks and the loaded packs."""
    global _manager
    if _manager is None:
        _manager = pluggy.PluginManager(hookspecs.PROJECT)
        _manager.add_hookspecs(hookspecs)
        if switches.flag("TORCH_MUSA_TRACE_PACKS"):
            _manager.add_hookcall_monitoring(_trace_before, _trace_after)
    return _manager


def records():
    """Returns the :class:`PackRecord` list so far, which is empty before the first use of the device."""
    return list(_records or ())


def found():
    """Returns records of the installed packs, read from metadata without running code of a pack."""
    return [record for record, _ in _discover()]


def load_packs(strict=None):
    """Loads every installed pack once; later calls return the same records.

    Args:
        strict (bool, optional): raise the first failure; default: `TORCH_MUSA_STRICT`. Without this argument
            failures that are not raised are warnings; a command that passes False prints them itself.

    Raises:
        PackError: the first failure, if strict.
        SettingError: if `TORCH_MUSA_STRICT` is invalid, or `TORCH_MUSA_DISABLE_PACKS` names no pack.
    """
    global _records
    raises = switches.flag("TORCH_MUSA_STRICT") if strict is None else strict
    first = _records is None
    if _records is None:
        _check_disabled()
        manager()  # here, because an invalid setting is no failure of a pack
        # Assigned last, so an interrupted load is retried instead of being taken for complete.
        loaded = []
        for record, entry in _discover():
            taken = next((other for other in loaded if other.name == record.name), None)
            _load_pack(record, entry, taken)
            loaded.append(record)
        _records = loaded
    if raises:
        for record in _records:
            if record.error is not None:
                raise record.error.with_traceback(None)
    elif strict is None and first:
        for record in _records:
            if record.error is not None:
                warnings.warn(str(record.error), PackWarning, stacklevel=1)
    return records()


def _check_disabled():
    """Raises a SettingError if `TORCH_MUSA_DISABLE_PACKS` has a name that neither a pack nor an extra has.

    Names of extras are accepted so that one value serves environments with different packs.
    """
    from . import extras

    variable = "TORCH_MUSA_DISABLE_PACKS"
    packs = {record.name for record in found()}
    known = {"all", *packs, *(extra.replace("-", "_") for extra in extras.installs())}
    for name in entry_points.disabled():
        if name not in known:
            raise switches.invalid(
                variable,
                os.environ[variable],
                f"'all' or names of packs, with commas ({', '.join(sorted(packs))}), not {name!r}",
            )


def check_pack_of(name):
    """Checks that the pack with `torch.musa.<name>` is loaded, or will be on first use of the device.

    Returns:
        bool: whether it is loaded.

    Raises:
        PackError: if it is not installed, disabled, or failed to load.
    """
    reason = pack_modules.why_missing(name)
    if reason is None and name not in pack_modules.offered():
        reason = f"torch.musa.{name}: no installed pack offers it.\nFix: python -m torch_musa doctor"
    if reason is not None:
        raise PackError(reason)
    dist = entry_points.dist_of(pack_modules.offered()[name])
    loaded = records()
    for record in loaded:
        if record.dist == dist and record.error is not None:
            raise record.error
    return bool(loaded)


def _discover():
    """Returns (record, entry point) of each pack, sorted by name. Records mistakes in the metadata."""
    contracts = {
        (entry_points.dist_of(entry), entry.name): entry.value
        for entry in entry_points.select(entry_points.CONTRACTS_V1)
    }
    found = {}
    for group in sorted(entry_points.installed().groups, key=_version_of, reverse=True):
        version = _version_of(group)
        for entry in entry_points.select(group) if version else ():
            key = entry.name, entry_points.dist_of(entry)
            contract = f"v{version}" if version > 1 else contracts.get(key[::-1])
            # A pack may declare several versions, for older and newer loaders; the newest supported
            # one is used.
            if key not in found or found[key][0].contract not in _CONTRACTS:
                found[key] = PackRecord(*key, entry_points.version_of(entry), contract=contract), entry
    for record, _ in found.values():
        if not entry_points.is_disabled(record.name):
            _check_before_loading(record)
    for entry in entry_points.without_pack():
        dist = entry_points.dist_of(entry)
        record = PackRecord(entry.name, dist, entry_points.version_of(entry))
        named = entry.group in (entry_points.IMPORT_HOOKS, entry_points.ATTRIBUTES)
        needed = f"pack named {entry.name!r}" if named else "pack"
        _fail(record, PackError(f"{entry.group} = {entry.value}: {dist} declares no {needed}"))
        found.setdefault((entry.name, dist), (record, entry))
    return [found[key] for key in sorted(found)]


def _version_of(group):
    """Returns the contract version of an entry point group, or 0 for other groups."""
    match = re.fullmatch(re.escape(entry_points.PACKS_V1) + r"(?:\.v(\d+))?", group)
    return int(match.group(1) or 1) if match else 0


def _check_before_loading(record):
    """Records a failed import hook, or a module name that another distribution has taken."""
    error = import_hooks.failures.get((record.dist, record.name))
    if error is not None:
        _fail(record, error)
        return
    if error := _taken_name(record):
        _fail(record, PackError(error))


def _taken_name(record):
    """Returns the error for the first module of a record whose name is taken, or None."""
    for group, prefix in ((entry_points.MODULES, "torch.musa"), (entry_points.SUBMODULES, "torch_musa")):
        for entry in entry_points.select(group):
            if entry_points.dist_of(entry) != record.dist:
                continue
            owner = entry_points.offered(group).get(entry.name)
            taken_by = owner and entry_points.dist_of(owner)
            if group == entry_points.MODULES and entry.name in sys.modules["torch_musa.musa"].__all__:
                return f"torch.musa.{entry.name} is taken by torch.musa itself"
            if group == entry_points.SUBMODULES and sys.modules["torch_musa"]._has_file(entry.name):
                return f"torch_musa.{entry.name} is taken by torch_musa itself"
            if owner is not None and taken_by != record.dist:
                return f"{prefix}.{entry.name} is taken by {taken_by} {entry_points.version_of(owner)}"
    return None


def hook_results(name):
    """Calls one hook of every loaded pack, in isolation.

    Returns:
        list of (PackRecord, result, error): result is None if the pack has no such hook; error is the
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
        except (ContractVersionError, _ReleaseError, _SdkError) as error:
            _forget(record)
            record.status, record.error = "incompatible", error
        except (Exception, SystemExit) as error:  # noqa: BLE001 - stored in the record; a pack may even exit
            _forget(record)
            _fail(record, error)
    if record.status != "loaded" and taken is None and record.name not in record.providers:
        # TORCH_MUSA_OPS may name an installed pack that is not in use; the next provider in the
        # order serves instead.
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


class _SdkError(PackError):
    """The pack's kernels were compiled for another SDK than the one in use."""


def _check_sdk(record, libraries):
    """Compares the SDK that each library declares (`<library>.sdk`) with the one in use.

    Called before any of them is loaded: with another SDK, the dynamic linker finds undefined symbols, or the
    driver cannot run the kernels.
    """
    declared = [(path, built) for path in libraries if (built := sdk.built_for(path)) is not None]
    if not declared:
        return
    here = musa_runtime.load().sdk or sdk.resolve()
    kind = here.kind
    for path, built in declared:
        if kind is None or sdk.runs_with(built, kind):
            continue
        for_built, for_here = sdk.title(built), sdk.title(kind)
        # "musa" alone is a vendor's SDK of unknown version, whose wheels have some number.
        known = record.version.endswith(f".{built}") and kind != "musa"
        version = record.version.removesuffix(built) + kind if known else ""
        command = installation.command_of_another_build(record.dist, version, for_here)
        build = "wheels" if here.source == "musa_emulator" else f"wheels --sdk {shlex.quote(here.home)}"
        home = sdk.emulator_home() if built == "emulator" else None
        place = shlex.quote(home) if home else f"<directory of {for_built}>"
        raise _SdkError(
            f"{_title(record)} was built for {for_built}, and the SDK here is {for_here}; "
            "it was not loaded.\n"
            f"  have: {os.path.basename(path)} with kernels for {for_built}\n"
            f"  need: kernels for {for_here}, the SDK at {here.home} (from {here.source})\n"
            "Likely causes: the wheels of another SDK were installed; "
            "MUSA_HOME names another SDK than intended.\n"
            f"Fix: {command}\n"
            f"Or, in a checkout, to build these wheels: python3 tools/dev.py {build}\n"
            f"Or, for the SDK of this pack: export MUSA_HOME={place}\n"
            f"To run without it: {_disable(record)}",
            command,
        )


def _check_link_names(record, path, error):
    """Raises an _SdkError if a library was refused because it needs one that the SDK has by another name."""
    here = musa_runtime.load().sdk
    reason = link_names.reason_of(error)
    if found := link_names.explain(here, record.dist, os.path.basename(path), reason):
        text = f"{_title(record)} was not loaded: {found}\nTo run without it: {_disable(record)}"
        raise _SdkError(text, found.command) from error


def _import_and_register(record, entry):
    record.plugin = plugin = entry.load()
    plugins = manager()
    plugins.register(plugin, name=record.name)
    plugins.check_pending()  # a misspelled hook raises, instead of never being called
    if not plugins.get_hookcallers(plugin):
        raise PackError(
            f"{entry.value} has no hook. Fix: mark each hook with @musa_runtime.hookspecs.hookimpl"
        )

    rank = _rank(record)
    libraries = _call(plugin, "musa_libraries")
    if isinstance(libraries, (str, os.PathLike)):
        raise PackError(
            f"musa_libraries must return a list of paths, but returned the path {str(libraries)!r}"
        )
    if libraries:
        import torch

        libraries = [os.fspath(_resolve(path, entry)) for path in libraries]
        _check_sdk(record, libraries)
        before = ops.offers()
        try:
            for path in libraries:
                try:
                    link_names.load(path, musa_runtime.load().sdk, torch.ops.load_library)
                except OSError as error:
                    _check_link_names(record, path, error)
                    raise
                # A library whose kernels are rejected still loads, because dlopen cannot pass
                # exceptions on.
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
    """Returns the rank of the pack's providers: its own, or its contract's default."""
    rank = _call(record.plugin, "musa_rank")
    if rank is None:
        return hookspecs.RANK_V1 if record.contract == "v1" else hookspecs.DEFAULT_RANK
    if not isinstance(rank, int) or isinstance(rank, bool):
        raise PackError(f"musa_rank must return an int, but returned {rank!r}")
    return rank


def _resolve(path, entry):
    """Returns the path of a library; a relative path is relative to the package of the entry point."""
    if os.path.isabs(path):
        return path
    spec = sys.modules[entry.module].__spec__
    # importlib.resources also finds the library of an editable install.
    folder = importlib.resources.files(spec.parent) if spec.parent else Path(spec.origin).parent
    return functools.reduce(operator.truediv, PurePath(path).parts, folder)


def _call(plugin, name, **arguments):
    """Calls one plugin's hook and returns the result, or None without such a hook."""
    plugins = manager()
    others = [other for other in plugins.get_plugins() if other is not plugin]
    results = plugins.subset_hook_caller(name, others)(**arguments)
    return results[0] if results else None


def _forget(record):
    if record.plugin is not None and manager().is_registered(record.plugin):
        manager().unregister(record.plugin)
    record.plugin = None


def _describe(record, error):
    # A library cannot be unloaded, so kernels that it registered before the failure remain
    # candidates.
    remains = f"; {record.ops} of its kernels stay registered" if record.ops else ""
    lines = [
        f"{_title(record)} could not be loaded: {_causes(error)}",
        f"The other packs are not affected{remains}.",
    ]
    command = getattr(error, "command", None)
    if command is None and "\nFix: " not in str(error):  # otherwise the error's text already contains a fix
        command = installation.command(record.dist, reinstall=True)
        lines += [
            "Likely causes: an incomplete installation; a build for another torch or musa-runtime.",
            f"Fix: {command}",
        ]
    described = PackError("\n".join([*lines, f"To run without it: {_disable(record)}"]), command)
    described.__cause__ = error
    return described


def _causes(error):
    """Returns the text of an error and its causes: torch puts the dynamic linker's message in the cause."""
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
