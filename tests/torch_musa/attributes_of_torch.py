# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Lists the module attributes, class attributes and registry entries of torch that torch_musa changes.

As a script: imports torch alone, records every object reachable by name, runs the given statement, and
compares by identity, for which all must be in one process. Prints JSON: {"replaced": [...], "added": [...]}.
"""

from __future__ import annotations

import json
import sys
import types

# Beyond what `import torch` loads: the modules that other backends are known to patch.
ALSO = (
    "torch.distributed",
    "torch.utils.checkpoint",
    "torch.utils.data",
    "torch.nn.parallel",
    "torch.nn.utils.rnn",
    "torch.profiler",
    "torch.amp.grad_scaler",
    "torch.serialization",
    "torch.storage",
    "torch.random",
    "torch.multiprocessing.reductions",
    "torch.utils.cpp_extension",
)


def modules():
    """The loaded modules of torch, including the built-in ones below `torch._C`."""
    found = {
        name: module
        for name, module in list(sys.modules.items())
        # torch.musa is this project's own module under torch's name.
        if name == "torch" or (name.startswith("torch.") and name.split(".")[1] != "musa")
    }
    pending = [("torch._C", found["torch._C"])]
    while pending:
        name, module = pending.pop()
        found[name] = module
        for key, value in vars(module).items():
            if isinstance(value, types.ModuleType) and f"{name}.{key}" not in found:
                pending.append((f"{name}.{key}", value))
    return found


def remember():
    """Every named object of torch, as {"module:name": (module in which it was found, object)}.

    Classes have the name of their definition; dicts and lists of a module are entered one level deep.
    """
    memory = {}
    classes = set()
    for name, module in modules().items():
        for key, value in list(vars(module).items()):
            path = f"{name}:{key}"
            memory[path] = (name, value)
            inner = {}
            if (
                isinstance(value, type)
                and value.__module__.partition(".")[0] == "torch"
                and value not in classes
            ):
                classes.add(value)
                path = f"{value.__module__}:{value.__qualname__}"
                inner = {f"{path}.{attribute}": object_ for attribute, object_ in vars(value).items()}
            elif type(value) is dict and not key.startswith("__"):
                inner = {f"{path}[{entry!r}]": object_ for entry, object_ in value.items()}
            elif type(value) is list:
                inner = {f"{path}[{index}]": object_ for index, object_ in enumerate(value)}
            for path, object_ in inner.items():
                memory.setdefault(path, (name, object_))
    return memory


def same(before, after):
    """Compares by identity, and plain values, whose identity has no meaning, by equality."""
    if before is after:
        return True
    plain = (int, float, str, bytes, bool, tuple, frozenset, type(None))
    return isinstance(before, plain) and type(before) is type(after) and before == after


def compare(before, after, known):
    """Differences between two records. The content of a module that was not loaded before is no addition to
    torch."""
    replaced, added = [], []
    for path, (module, value) in after.items():
        if path not in before:
            imported = isinstance(value, types.ModuleType) and value.__name__.startswith("torch.")
            if module in known and not imported:
                added.append((path, describe(value)))
        elif not same(before[path][1], value):
            replaced.append((path, describe(value)))
    removed = [(path, "removed") for path in before if path not in after]
    return {"replaced": sorted(replaced + removed), "added": sorted(added)}


def describe(value):
    """Kind and origin of an object; the origin shows whether a replacement is torch's own."""
    getter = value.fget if isinstance(value, property) else value
    module = getattr(getter, "__module__", None)
    if isinstance(value, types.ModuleType):
        return f"module {value.__name__}"
    return f"{type(value).__name__} of {module}" if isinstance(module, str) else type(value).__name__


def main(statement):
    import importlib

    importlib.import_module("torch")
    for name in ALSO:
        importlib.import_module(name)
    known, before = set(modules()), remember()
    exec(statement, {})
    print(json.dumps(compare(before, remember(), known)))


if __name__ == "__main__":
    # The script's directory has no module to import, and could only shadow other modules.
    sys.path.pop(0)
    main(sys.argv[1])
