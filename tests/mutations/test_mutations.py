# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The seeded faults apply to this tree, and a measurement is refused if a test fails without a fault."""

import pytest

from tests.mutations import __main__ as runner
from tests.mutations import copies
from tests.mutations.faults import CONTROL, Fault, load, problems
from workspace import packages

pytestmark = pytest.mark.once


def test_each_fault_replaces_a_text_that_occurs_once(tmp_path):
    control, *faults = load()
    assert problems([control, *faults], copies.ROOT) == []
    assert control.id == CONTROL
    assert {fault.package for fault in faults} == set(packages.package_names())

    (tmp_path / "a.cpp").write_text("x = 1;\nx = 1;\ny = 2;\n")
    bad = [("x = 1;", "x = 2;"), ("z = 3;", ""), ("y = 2;", "y = 2;"), ("y = 2;", "y = 3;")]
    found = problems([Fault(f"f{i}", "a.cpp", *texts, "") for i, texts in enumerate(bad)], tmp_path)
    assert [line.split(":")[0] for line in found] == ["f0", "f1", "f2"]
    sampled, other = "tests/conformance/test_ops.py", "tests/musa_amp/test_scaling.py"
    wrong = [faults[0]._replace(first=path) for path in (sampled, other, "tests/musa_runtime/test_none.py")]
    assert len(problems(wrong, copies.ROOT)) == 3


def test_a_measurement_continues_and_needs_a_control_that_is_not_found(tmp_path, capsys):
    faults = [Fault(name, f"packages/{name}/a.py", "a", "b", "") for name in (CONTROL, "seen", "missed")]
    made, record, results = [object()], tmp_path / "records" / "mutations.json", {"missed": None}

    def examine(fault, copy, kind):
        assert copy is made_copy
        found = fault.id == "seen"
        return results.get(fault.id, {"found": found, "by": "t.py::t" * found, "seconds": 1})

    [made_copy] = made
    first = runner.Measurement("commit", record)
    assert not first.run("tier", faults, made, examine)  # the time ended before "missed" did
    results = {"seen": None}
    second = runner.Measurement("commit", record)
    assert second.run("tier", faults, made, examine)  # "seen" is in the record
    assert second.table(faults[1:]).endswith("the tier finds 1 of 2 faults, the legs 1")
    assert runner.Measurement("other commit", record).result(faults[1], "tier") is None

    results = {CONTROL: {"found": True, "by": "bad", "seconds": 1}}
    with pytest.raises(SystemExit, match="fails without a fault: bad"):
        second.run("legs", faults, made, examine)
    assert second.result(faults[0], "legs") is None


@pytest.mark.parametrize(
    ("setup", "test", "found", "by"),
    [
        ((0, ""), (0, "5 passed"), False, ""),
        ((0, ""), (1, "x\nFAILED a.py::test_b - assert 1\nFAILED c.py::d"), True, "a.py::test_b"),
        ((0, ""), (None, ""), True, "no end within 9 s"),
        ((2, "error: a.cpp\nninja: stopped"), None, None, "ninja: stopped"),
    ],
)
def test_a_fault_is_found_if_a_test_fails_and_not_if_the_build_does(setup, test, found, by):
    class FakeCopy:
        jobs = 3

        def apply(self, fault):
            self.state = "applied"

        def run(self, arguments, limit):
            return {"setup": setup, "test": test}[arguments[0]]

        def reset(self):
            self.state = "reset"

    copy = FakeCopy()
    result = runner.examine(load()[1], copy, "tier", [], limit=9, deadline=float("inf"))
    assert (result["found"], result["by"], copy.state) == (found, by, "reset")
