# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pins of requirements-dev.txt install on every version of Python that the packages serve.

A release is checked by its own metadata, so a pin for other versions of Python than this one is checked
where the tests run with them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from workspace import packages

pytestmark = pytest.mark.once

PYTHONS = ("3.10", "3.11", "3.12", "3.13")


def pins(text: str) -> Iterator[Requirement]:
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            yield Requirement(line)


def applies(pin: Requirement, python: str) -> bool:
    environment = {"python_version": python, "python_full_version": f"{python}.0"}
    return pin.marker is None or pin.marker.evaluate(environment)


def not_installable(text: str) -> list[str]:
    """Returns the pins whose installed release refuses a version of Python that they apply to."""
    found = []
    for pin in pins(text):
        if not applies(pin, f"{sys.version_info.major}.{sys.version_info.minor}"):
            continue
        release = metadata.metadata(pin.name)
        if release["Version"].partition("+")[0] not in str(pin.specifier):
            continue  # requirements of another environment
        served = SpecifierSet(release["Requires-Python"] or "")
        found += [
            f"{pin} needs Python {served}, not {python}"
            for python in PYTHONS
            if applies(pin, python) and f"{python}.99" not in served
        ]
    return found


def test_every_pin_has_a_release_for_each_python():
    text = packages.REQUIREMENTS.read_text()
    assert not_installable(text) == []
    for python in PYTHONS:
        names = [pin.name for pin in pins(text) if applies(pin, python)]
        assert len(names) == len(set(names)) and {"torch", "sybil", "pytest"} <= set(names), python
        assert ("tomli" in names) == (python == "3.10")


def test_a_pin_that_needs_a_newer_python_is_noticed(monkeypatch):
    release = {"Version": "10.1.0", "Requires-Python": ">=3.11"}
    monkeypatch.setattr(metadata, "metadata", lambda name: release)
    assert not_installable("sybil==10.1.0\n") == ["sybil==10.1.0 needs Python >=3.11, not 3.10"]
    release["Requires-Python"] = ">=3.9"
    assert not_installable("sybil==10.1.0\n") == []
