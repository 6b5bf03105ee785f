# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.utils.simple_porting`: ports a folder of CUDA sources to a sibling folder of MUSA sources.

The rules are those of `musa-port`, except that files keep their names apart from the suffix (`.mu` and `.muh`
for `.cu` and `.cuh`), because a setup.py lists the resulting files.
"""

import logging
import re
import shutil
from pathlib import Path

from musa_port import rules
from musa_port.engine import Engine
from musa_port.files import SUFFIXES, InputError

from .deprecation import warn_once

# Programs set its level. A file's warnings are those of musa-port, which the build prints.
LOGGER = logging.getLogger("torch_musa.utils.simple_porting")
# Programs assign other tables: suffixes of the results, and replacements for every `SimplePorting`.
EXT_REPLACED_MAPPING = {"cu": "mu", "cuh": "muh"}
_MAPPING_RULE = {}


class SimplePorting:
    """Ports the folder `cuda_dir_path` to `<cuda_dir_path>_musa`, which `run` overwrites.

    `run` calls `load_replaced_mapping` once and `modify_file` for each file, which subclasses may override.
    If `musa_dir_path` is set to `cuda_dir_path`, files are ported in place.

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

    def load_replaced_mapping(self):
        """Makes `mapping_rule` a list of (text, replacement), the longest text first."""
        self.mapping_rule = sorted(
            {**_MAPPING_RULE, **dict(self.mapping_rule)}.items(), key=lambda pair: len(pair[0]), reverse=True
        )

    def modify_file(self, cuda_filepath, musa_filepath):
        """Writes the port of one file; copies files that are no sources.

        Args:
            cuda_filepath, musa_filepath (str): the file and its result, which may be the same.
        """
        if Path(cuda_filepath).suffix in SUFFIXES:
            text = Path(cuda_filepath).read_text(encoding="utf-8", errors="surrogateescape")
            text = _replaced(text, dict(self.mapping_rule))
            if not self.drop_default_mapping:
                text = self._engine.port(text).text
            Path(musa_filepath).write_text(text, encoding="utf-8", errors="surrogateescape")
        elif Path(cuda_filepath) != Path(musa_filepath):
            shutil.copyfile(cuda_filepath, musa_filepath)

    def run(self):
        """Writes the folder. The sources are not modified, unless they are ported in place.

        Raises:
            musa_port.files.InputError: if the folder does not exist, or two files have the same output path.
        """
        warn_once(
            "torch_musa.utils.simple_porting.SimplePorting",
            "CUDAExtension of torch_musa.utils.cpp_extension, which ports while it builds, or musa-port",
        )
        source, result = Path(self.cuda_dir_path), Path(self.musa_dir_path)
        if not source.is_dir():
            raise InputError(
                f"SimplePorting: there is no folder {source}.\n"
                "Likely cause: the path is relative to another folder than the current one.\n"
                "Fix: run setup.py from the folder that it is in, or pass an absolute path"
            )
        source, result = source.resolve(), result.resolve()
        files = [
            path
            for path in sorted(source.rglob("*"))
            if path.is_file() and not any(path.is_relative_to(left_out) for left_out in self.ignore_dir_paths)
        ]
        targets = {path: result / _renamed(path).relative_to(source) for path in files}
        _refuse_clashes(targets)
        self._engine = _KeepingNames({path.name for path in (*files, *targets.values())})
        self.load_replaced_mapping()
        if result != source:
            shutil.rmtree(result, ignore_errors=True)
        for path, target in targets.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            self.modify_file(str(path), str(target))


class _KeepingNames(Engine):
    """The engine of musa-port, except that it renames only the suffixes of the tree's files."""

    def __init__(self, names):
        super().__init__(rules.load("torch"))
        self.names = names

    def path(self, path):
        name = Path(path)
        return str(_renamed(name)) if name.name in self.names else super().path(path)


def _renamed(path):
    suffix = path.suffix.removeprefix(".")
    return path.with_suffix(f".{EXT_REPLACED_MAPPING[suffix]}") if suffix in EXT_REPLACED_MAPPING else path


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
