# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A shared build is made once, and again when an input changes or when it failed."""

from __future__ import annotations

import pytest

from tests.harness import builds

pytestmark = pytest.mark.once


def test_a_shared_build_is_made_again_only_after_a_change_or_a_failure(tmp_path, monkeypatch):
    monkeypatch.setattr(builds, "SHARED", tmp_path / "shared")
    source = tmp_path / "source"
    made = []

    def build(path):
        made.append(source.read_text())
        if source.read_text() == "bad":
            raise RuntimeError("does not compile")
        path.write_text(source.read_text())

    def get():
        return builds.shared("program", builds.digest([source], "-O1"), build).read_text()

    source.write_text("one")
    assert (get(), get(), made) == ("one", "one", ["one"])
    source.write_text("bad")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="does not compile"):
            get()
    source.write_text("two")
    assert (get(), get(), made) == ("two", "two", ["one", "bad", "bad", "two"])
    assert builds.digest([source], "-O1") != builds.digest([source], "-O2")
