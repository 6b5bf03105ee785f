# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""An action runs once when a module is imported, and leaves no trace in the import system."""

from __future__ import annotations

import importlib
import importlib.util
import sys

import pytest

from musa_runtime.import_actions import after_import

pytestmark = pytest.mark.once


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The name of a module that is not imported yet."""
    name = "imported_for_an_action"
    (tmp_path / f"{name}.py").write_text("value = 7\n")
    monkeypatch.syspath_prepend(tmp_path)
    finders = list(sys.meta_path)
    yield name
    sys.modules.pop(name, None)
    sys.meta_path[:] = finders


def test_a_module_that_is_imported_runs_the_action_at_once(module):
    importlib.import_module(module)
    finders, calls = list(sys.meta_path), []
    after_import(module, lambda: calls.append(sys.modules[module].value))
    assert calls == [7] and sys.meta_path == finders


def test_a_module_that_is_imported_later_runs_the_action_then_and_once(module):
    finders, calls = list(sys.meta_path), []
    after_import(module, lambda: calls.append(sys.modules[module].value))
    importlib.import_module("json")
    assert calls == []
    importlib.import_module(module)
    assert calls == [7] and sys.meta_path == finders
    del sys.modules[module]
    importlib.import_module(module)
    assert calls == [7]


def test_several_actions_run(module):
    calls = []
    for name in ("first", "second"):
        after_import(module, lambda name=name: calls.append(name))
    importlib.import_module(module)
    assert sorted(calls) == ["first", "second"]


def test_the_module_has_its_own_loader_again(module):
    plain = importlib.util.find_spec(module)
    after_import(module, lambda: None)
    imported = importlib.import_module(module)
    assert type(imported.__spec__.loader) is type(imported.__loader__) is type(plain.loader)
    assert imported.__spec__.origin == plain.origin


def test_a_module_that_does_not_exist_raises_the_usual_error():
    finders = list(sys.meta_path)
    after_import("no_module_of_this_name", lambda: pytest.fail("nothing was imported"))
    with pytest.raises(ModuleNotFoundError, match="no_module_of_this_name"):
        importlib.import_module("no_module_of_this_name")
    assert sys.meta_path == finders


def test_an_action_that_raises_fails_the_import(module):
    def fail():
        raise ValueError("not registered")

    after_import(module, fail)
    with pytest.raises(ValueError, match="not registered"):
        importlib.import_module(module)
    assert module not in sys.modules
    # The action has run; the module is importable.
    assert importlib.import_module(module).value == 7


def test_no_action_runs_in_the_middle_of_an_import(module, tmp_path):
    calls = []
    sys.after_import_test = lambda: after_import(module, lambda: calls.append(sys.modules[module].done))
    (tmp_path / f"{module}.py").write_text("import sys\nsys.after_import_test()\ndone = True\n")
    try:
        importlib.import_module(module)
    finally:
        del sys.after_import_test
    assert calls == [], "the action ran before the module was complete"
