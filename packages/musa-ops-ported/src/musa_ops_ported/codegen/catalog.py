# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The operators of `ops.yaml`, with their definitions in the installed torchgen."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torchgen
import yaml
from torchgen.gen import get_grouped_native_functions, parse_native_yaml
from torchgen.model import DispatchKey, NativeFunction, NativeFunctionsGroup

OPS = Path(__file__).resolve().parents[1] / "ops.yaml"
# stub: torch's own host code, which calls a DispatchStub that the kernel file registers.
# kernel: a function in the kernel file.
# composed: torch's device-independent kernel, which calls other operators.
WAYS = ("stub", "kernel", "composed")
COMPOSITIONS = (
    DispatchKey.CompositeExplicitAutograd,
    DispatchKey.CompositeExplicitAutogradNonFunctional,
    DispatchKey.CompositeImplicitAutograd,
)


class CatalogError(ValueError):
    """`ops.yaml` lists an operator that torch does not have, or lists one twice."""


@dataclass(frozen=True)
class Operator:
    """An operator with all forms that torch derives from it, or a single overload."""

    name: str  # as written in ops.yaml
    family: str
    source: str
    way: str
    when: str | None  # a predicate over the operator's arguments
    native: NativeFunctionsGroup | NativeFunction
    torch_kernel: str | None  # at::native::<this>: of the CPU, or of all devices if composed

    @property
    def structured(self) -> bool:
        return isinstance(self.native, NativeFunctionsGroup) and self.native.structured

    def forms(self) -> list[NativeFunction]:
        """Returns the overloads to register."""
        return list(self.native.functions()) if self.structured else [self.native]


def torchgen_file(name: str) -> Path:
    return Path(torchgen.__file__).parent / "packaged" / "ATen" / "native" / name


class Catalog:
    """ops.yaml, read."""

    def __init__(self, path: Path = OPS):
        parsed = parse_native_yaml(
            str(torchgen_file("native_functions.yaml")), str(torchgen_file("tags.yaml"))
        )
        self._cpu = parsed.backend_indices[DispatchKey.CPU]
        self._composed = [parsed.backend_indices[key] for key in COMPOSITIONS]
        self._by_name: dict[str, tuple[NativeFunction, NativeFunctionsGroup | None]] = {}
        for native in get_grouped_native_functions(parsed.native_functions):
            group = native if isinstance(native, NativeFunctionsGroup) else None
            for function in native.functions() if group is not None else [native]:
                self._by_name[str(function.func.name)] = (function, group)
        # ops.yaml may list a structured operator under the name of any of its forms.
        self.operators = list(self._read(path))

    def sources(self) -> list[str]:
        """Returns the kernel files, without duplicates."""
        return list(dict.fromkeys(operator.source for operator in self.operators))

    def _read(self, path: Path) -> Iterator[Operator]:
        seen: dict[str, str] = {}
        text = path.read_text()
        for family, count in Counter(re.findall(r"^(\w+):", text, re.MULTILINE)).items():
            if count > 1:  # YAML would silently keep the last one
                raise CatalogError(f"the family {family} is defined {count} times")
        families = yaml.safe_load(text)
        removed = self._removed(families.pop("removed", {}))
        for family, sources in families.items():
            for source, ways in sources.items():
                for way, entries in ways.items():
                    if way not in WAYS:
                        raise CatalogError(f"{family}, {source}: {way!r} is none of {', '.join(WAYS)}")
                    for entry in entries:
                        if _name_and_predicate(entry)[0] in removed:
                            continue
                        operator = self._operator(family, source, way, entry)
                        for form in operator.forms():
                            name = str(form.func.name)
                            if name in seen:
                                raise CatalogError(
                                    f"{name} is listed twice: as {seen[name]} and as {operator.name}"
                                )
                            seen[name] = operator.name
                        yield operator

    def _removed(self, listed: dict[str, list[str]]) -> set[str]:
        """Returns those of the listed operators that the installed torch no longer has.

        Args:
            listed: maps the first minor version of torch without them to their names.

        Raises:
            CatalogError: if the installed torch has one of them, or a minor version is not a string.
        """
        have = _numbers(torch_version())
        removed: set[str] = set()
        for minor, names in listed.items():
            if not isinstance(minor, str):
                raise CatalogError(f'removed: the version {minor} must be quoted: "{minor}"')
            if have >= _numbers(minor):
                removed.update(names)
        if wrong := sorted(removed & set(self._by_name)):
            raise CatalogError(f"removed: torch {torch_version()} has the operator {wrong[0]}")
        return removed

    def _operator(self, family: str, source: str, way: str, entry: str | dict[str, str]) -> Operator:
        name, when = _name_and_predicate(entry)
        if name not in self._by_name:
            close = difflib.get_close_matches(name, self._by_name, n=3, cutoff=0.5)
            hint = f" Did you mean {', '.join(close)}?" if close else ""
            raise CatalogError(f"{family}, {source}: torch {torch_version()} has no operator {name}.{hint}")
        function, group = self._by_name[name]
        native = group if group is not None and group.structured else function
        of_cpu = group.out if native is group else function
        kernel = self._cpu.get_kernel(of_cpu)
        if way == "stub" and kernel is None:
            raise CatalogError(
                f"{family}, {source}: torch has no CPU kernel for {name}, so there is no host code to reuse"
            )
        if way == "composed":
            kernel = next(filter(None, (index.get_kernel(function) for index in self._composed)), None)
            if kernel is None or native is group:
                raise CatalogError(f"{family}, {source}: torch does not compose {name} for every device")
        return Operator(name, family, source, way, when, native, kernel.kernel if kernel else None)


def _name_and_predicate(entry: str | dict[str, str]) -> tuple[str, str | None]:
    return next(iter(entry.items())) if isinstance(entry, dict) else (entry, None)


def _numbers(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def torch_version() -> str:
    """Returns the version of the torch whose operators torchgen lists."""
    text = (Path(torchgen.__file__).parents[1] / "torch" / "version.py").read_text()
    return re.search(r"""^__version__ = ['"](.*)['"]$""", text, re.MULTILINE).group(1)
