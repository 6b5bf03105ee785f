# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.utils.simple_porting`: ports a folder of CUDA sources to a sibling folder of MUSA sources.

The rules are those of `musa-port`, except that files keep their names apart from the suffix (`.mu` and `.muh`
for `.cu` and `.cuh`), because a setup.py lists the resulting files.
"""

import re
import shutil
from pathlib import Path

from musa_port import rules
from musa_port.engine import Engine
from musa_port.files import SUFFIXES, InputError

from .deprecation import warn_once

_RENAMED = {".cu": ".mu", ".cuh": ".muh"}


class SimplePorting:
    """Ports the folder `cuda_dir_path` to `<cuda_dir_path>_musa`, which `run` overwrites.

    Args:
        cuda_dir_path (str): the folder of CUDA sources.
        mapping_rule (dict of str to str, optional): text replacements that are applied before the rules of
            musa-port; the longest match wins, and results are not replaced again.
        ignore_dir_paths (list of str, optional): folders that are skipped.
        drop_default_mapping (bool): apply only `mapping_rule`.
    """

    def __init__(self, cuda_dir_path, mapping_rule=None, ignore_dir_paths=None, drop_default_mapping=False):
        self.cuda_dir_path = Path(cuda_dir_path)
        self.musa_dir_path = self.cuda_dir_path.with_name(f"{self.cuda_dir_path.resolve().name}_musa")
        self.mapping_rule = dict(mapping_rule or {})
        self.ignore_dir_paths = [Path(path).resolve() for path in ignore_dir_paths or ()]
        self.drop_default_mapping = drop_default_mapping

    def run(self):
        """Writes the folder. The sources are not modified.

        Raises:
            musa_port.files.InputError: if the folder does not exist, or two files have the same output path.
        """
        warn_once(
            "torch_musa.utils.simple_porting.SimplePorting",
            "CUDAExtension of torch_musa.utils.cpp_extension, which ports while it builds, or musa-port",
        )
        if not self.cuda_dir_path.is_dir():
            raise InputError(
                f"SimplePorting: there is no folder {self.cuda_dir_path}.\n"
                "Likely cause: the path is relative to another folder than the current one.\n"
                "Fix: run setup.py from the folder that it is in, or pass an absolute path"
            )
        files = [
            path
            for path in sorted(self.cuda_dir_path.resolve().rglob("*"))
            if path.is_file() and not any(path.is_relative_to(left_out) for left_out in self.ignore_dir_paths)
        ]
        targets = {path: self._target(path) for path in files}
        _refuse_clashes(targets)
        engine = _KeepingNames({path.name for path in (*files, *targets.values())})
        shutil.rmtree(self.musa_dir_path, ignore_errors=True)
        for path, target in targets.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix in SUFFIXES:
                text = path.read_text(encoding="utf-8", errors="surrogateescape")
                text = _replaced(text, self.mapping_rule)
                if not self.drop_default_mapping:
                    text = engine.port(text).text
                target.write_text(text, encoding="utf-8", errors="surrogateescape")
            else:
                shutil.copyfile(path, target)

    def _target(self, path):
        return self.musa_dir_path / _renamed(path).relative_to(self.cuda_dir_path.resolve())


class _KeepingNames(Engine):
    """The engine of musa-port, except that it renames only the suffixes of the tree's files."""

    def __init__(self, names):
        super().__init__(rules.load("torch"))
        self.names = names

    def path(self, path):
        name = Path(path)
        return str(_renamed(name)) if name.name in self.names else super().path(path)


def _renamed(path):
    return path.with_suffix(_RENAMED.get(path.suffix, path.suffix))


def _replaced(text, mapping):
    """Replaces each key by its value in one pass; the longest match wins."""
    if not mapping:
        return text
    keys = sorted(mapping, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, keys)), lambda found: mapping[found.group()], text)


def _refuse_clashes(targets):
    inputs = {}
    for path, target in targets.items():
        inputs.setdefault(target, []).append(path)
    clashes = [
        f"  {target}: {', '.join(map(str, paths))}" for target, paths in inputs.items() if len(paths) > 1
    ]
    if clashes:
        raise InputError(
            "\n".join(
                [
                    "SimplePorting: two files would have one name in the result:",
                    *clashes,
                    "Likely cause: the folder holds both CUDA sources and a port of them to MUSA.",
                    "Fix: list the folder of the port in ignore_dir_paths, or remove the port",
                ]
            )
        )


__all__ = ["SimplePorting"]
