# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The public names of torch.cuda, compared with those of torch.musa in its own spelling.

As a script (`python -m tests.torch_musa.cuda_names`) it prints the counts, the missing names, and the
excuses.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:  # pytest itself depends on tomli there
    import tomli as tomllib

EXCUSES = Path(__file__).parents[1] / "data" / "cuda_names_excused.toml"

_SPELLING = (
    ("cuda", "musa"),
    ("CUDA", "MUSA"),
    ("Cuda", "Musa"),
    ("cudnn", "mudnn"),
    ("nccl", "mccl"),
    ("nvtx", "mttx"),
)


def spelled(name: str) -> str:
    """A name of torch.cuda in torch.musa's spelling."""
    for cuda, musa in _SPELLING:
        name = name.replace(cuda, musa)
    return name


def names_of(root: types.ModuleType) -> list[str]:
    """Dotted public names of a package: its own, and those of its public submodules."""
    names = list(_public(root, root))
    for module in _submodules(root):
        prefix = module.__name__.removeprefix(root.__name__ + ".")
        names += [f"{prefix}.{name}" for name in _public(module, root)]
    return sorted(set(names))


def _submodules(package: types.ModuleType) -> list[types.ModuleType]:
    found = []
    for info in pkgutil.iter_modules(getattr(package, "__path__", [])):
        if not info.name.startswith("_"):
            module = importlib.import_module(f"{package.__name__}.{info.name}")
            found += [module, *_submodules(module)]
    return found


def _public(module: types.ModuleType, root: types.ModuleType) -> list[str]:
    declared = getattr(module, "__all__", ())
    return [
        name
        for name in dir(module)
        if not name.startswith("_") and (name in declared or not _is_import(module, name, root))
    ]


def _is_import(module: types.ModuleType, name: str, root: types.ModuleType) -> bool:
    """Whether a module has a name only because it uses it: `os`, `Any`, in a submodule also `Tensor`."""
    value = getattr(module, name)
    if getattr(typing, name, module) is value:
        return True
    if isinstance(value, types.ModuleType):
        return not value.__name__.startswith(module.__name__ + ".")
    home = getattr(value, "__module__", None)
    if not isinstance(home, str):
        return False  # a plain value
    if module is root:  # a name that torch itself defines is public there on purpose: OutOfMemoryError
        return home.partition(".")[0] != root.__name__.partition(".")[0]
    return home != module.__name__


@dataclass
class Parity:
    """Outcome of a comparison. Every public name is in exactly one of the first three fields."""

    present: list[str] = field(default_factory=list)
    excused: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)

    def counts(self) -> str:
        total = len(self.present) + len(self.excused) + len(self.missing)
        return (
            f"public names of torch.cuda: {total}; torch.musa has {len(self.present)}, excused with a reason "
            f"{len(self.excused)}, missing {len(self.missing)}"
        )


def compare(cuda: types.ModuleType, musa: types.ModuleType, excuses: dict[str, str]) -> Parity:
    """Compares the names. An excuse for a submodule covers all its names; one that covers no name is
    stale."""
    result = Parity()
    names = names_of(cuda)
    for name in names:
        excuse = next((key for key in _and_parents(name) if key in excuses), None)
        if _has(musa, spelled(name)):
            result.present.append(name)
            if name in excuses:
                result.stale.append(f"{name}: torch.musa has it")
        elif excuse is not None:
            result.excused[name] = excuses[excuse]
        else:
            result.missing.append(name)
    for key, reason in excuses.items():
        if not any(key in _and_parents(name) for name in names):
            result.stale.append(f"{key}: torch.cuda has no such name")
        if len(reason.split()) < 4:
            result.stale.append(f"{key}: {reason!r} is no reason")
    return result


def _and_parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(len(parts), 0, -1)]


def _has(module: object, dotted: str) -> bool:
    for part in dotted.split("."):
        if not hasattr(module, part):
            return False
        module = getattr(module, part)
    return True


def excuses() -> dict[str, str]:
    """The recorded excuses, `{name: reason}`; some apply only if a package is not installed."""
    groups = tomllib.loads(EXCUSES.read_text(encoding="utf-8"))["excuse"]
    return {
        name: group["reason"]
        for group in groups
        if "unless_installed" not in group or not _installed(group["unless_installed"])
        for name in group["names"]
    }


def _installed(package: str) -> bool:
    spec = importlib.util.find_spec(package)
    return spec is not None and spec.origin is not None  # a folder that pip left behind has none


def main() -> None:
    import torch

    result = compare(torch.cuda, torch.musa, excuses())
    print(result.counts())
    for name in result.missing:
        print(f"  missing  {name} -> torch.musa.{spelled(name)}")
    for line in result.stale:
        print(f"  stale    {line}")
    for reason in dict.fromkeys(result.excused.values()):
        names = [name for name, why in result.excused.items() if why == reason]
        print(f"  excused  {', '.join(names)}\n           {reason}")


if __name__ == "__main__":
    main()
