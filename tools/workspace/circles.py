# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Finds circular includes between C++ folders, and circular imports between Python modules."""

import ast
import posixpath
import re
import symtable
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

SOURCES = re.compile(r"packages/(?P<package>[^/]+)/csrc/(?P<path>.+\.(?:h|hpp|cpp|cc|c|inc|mu|muh))")
MODULES = re.compile(r"packages/(?P<package>[^/]+)/src/(?P<path>.+\.py)")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
OWN_FILES = "."  # the files directly in csrc


@dataclass(frozen=True)
class Use:
    """One line of a file that includes or imports another file of the same package."""

    line: int
    user: str
    used: str

    def __str__(self) -> str:
        return f"{self.user}:{self.line} uses {self.used}"


Graph = dict[str, dict[str, Use]]  # node -> the nodes that it uses, each with one use as evidence


def check_circles(texts: dict[str, str]) -> list[str]:
    """Returns the circles in a tree given as file names with their texts.

    Returns:
        list of str: one line per circle, which names a file for each step. Circles that share a folder or a
        module with another one may be missing, and appear once that one is removed.
    """
    found = []
    for package, files in _by_package(SOURCES, texts).items():
        for folder, graph in _levels(_includes(files)).items():
            where = posixpath.normpath(f"packages/{package}/csrc/{folder}")
            found += [f"{where}: folders include each other: {circle}" for circle in _circles(graph)]
    for package, files in _by_package(MODULES, texts).items():
        graph: Graph = {}
        for use in _imports(files):
            graph.setdefault(use.user, {}).setdefault(use.used, use)
        found += [f"packages/{package}/src: modules import each other: {c}" for c in _circles(graph)]
    return found


def _by_package(pattern: re.Pattern, texts: dict[str, str]) -> dict[str, dict[str, str]]:
    packages: dict[str, dict[str, str]] = {}
    for name, text in texts.items():
        if match := pattern.fullmatch(name):
            packages.setdefault(match["package"], {})[match["path"]] = text
    return packages


def _includes(files: dict[str, str]) -> Iterator[Use]:
    """Yields includes within the same csrc; names are relative to the including folder or its parents."""
    for user, text in files.items():
        for number, line in enumerate(text.splitlines(), 1):
            if match := INCLUDE.match(line):
                folders = PurePosixPath(user).parents
                candidates = (posixpath.normpath(f"{folder}/{match[1]}") for folder in folders)
                used = next((name for name in candidates if name in files), None)
                if used is not None and used != user:
                    yield Use(number, user, used)


def _levels(uses: Iterator[Use]) -> dict[str, Graph]:
    """Returns per folder the graph of its direct subfolders, each with all its contents.

    A folder and its subfolders may include each other, because they are one part. The files directly in csrc
    and csrc's subfolders are not.
    """
    levels: dict[str, Graph] = {}
    for use in uses:
        user, used = PurePosixPath(use.user).parent.parts, PurePosixPath(use.used).parent.parts
        shared = 0
        while shared < min(len(user), len(used)) and user[shared] == used[shared]:
            shared += 1
        nodes = [parts[shared] if shared < len(parts) else OWN_FILES for parts in (user, used)]
        if nodes[0] == nodes[1] or (OWN_FILES in nodes and shared > 0):
            continue
        graph = levels.setdefault("/".join(user[:shared]), {})
        graph.setdefault(nodes[0], {}).setdefault(nodes[1], use)
    return levels


def _imports(files: dict[str, str]) -> Iterator[Use]:
    """Yields imports of modules of the same package, including those inside functions."""
    modules = {_module(name): name for name in files}

    def owner(source: str, name: str) -> str | None:
        """Returns the file run by `from source import name`; None if outside this package or compiled."""
        if f"{source}.{name}" in modules:
            return modules[f"{source}.{name}"]
        file = modules.get(source)
        compiled = (
            file is not None and file.endswith("/__init__.py") and name not in {*_bound(files[file]), "*"}
        )
        return None if compiled else file

    for user, text in files.items():
        package = _module(user) if user.endswith("/__init__.py") else _module(user).rpartition(".")[0]
        for node in ast.walk(ast.parse(text, filename=user)):
            if isinstance(node, ast.Import):
                found = [modules.get(alias.name) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                parts = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
                source = ".".join([*parts, *([node.module] if node.module else [])])
                found = [owner(source, alias.name) for alias in node.names]
            else:
                continue
            yield from (Use(node.lineno, user, used) for used in found if used is not None and used != user)


def _module(name: str) -> str:
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _bound(text: str) -> set[str]:
    """Returns the names that a module binds at its top level."""
    symbols = symtable.symtable(text, "module", "exec").get_symbols()
    return {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}


def _circles(graph: Graph) -> list[str]:
    """Returns a shortest circle through each node that is on a circle, but on no earlier one."""
    found: list[str] = []
    seen: set[str] = set()
    for start in sorted(graph):
        if start not in seen and (steps := _way_back(graph, start)):
            found.append("; ".join(str(use) for _, use in steps))
            seen.update(node for node, _ in steps)
    return found


def _way_back(graph: Graph, start: str) -> list[tuple[str, Use]]:
    """Returns the shortest cycle from a node as steps (node reached, use); empty if there is none."""
    ways: dict[str, list[tuple[str, Use]]] = {start: []}
    queue = [start]
    for node in queue:
        for used, use in sorted(graph.get(node, {}).items()):
            if used == start:
                return [*ways[node], (used, use)]
            if used not in ways:
                ways[used] = [*ways[node], (used, use)]
                queue.append(used)
    return []
