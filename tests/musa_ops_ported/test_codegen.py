# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""ops.yaml and the code generated from it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from musa_ops_ported.codegen import emit
from musa_ops_ported.codegen.__main__ import main
from musa_ops_ported.codegen.catalog import Catalog, CatalogError

pytestmark = pytest.mark.once

PACK = Path(__file__).resolve().parents[2] / "packages" / "musa-ops-ported"


def catalog(tmp_path: Path, text: str) -> Catalog:
    path = tmp_path / "ops.yaml"
    path.write_text(text)
    return Catalog(path)


@pytest.fixture(scope="module")
def of_the_pack() -> Catalog:
    return Catalog()


def test_a_structured_operator_has_all_its_forms(tmp_path: Path) -> None:
    (tril,) = catalog(tmp_path, "matrix: {Tril.mu: {kernel: [tril]}}").operators
    assert [str(form.func.name) for form in tril.forms()] == ["tril", "tril_", "tril.out"] or {
        str(form.func.name) for form in tril.forms()
    } == {"tril", "tril_", "tril.out"}
    assert (
        emit.declaration(tril)
        == "void tril(const at::Tensor & self, int64_t diagonal, const at::Tensor & out);"
    )
    text = emit.registration([tril], 0)
    assert (
        text.count("pack.impl(") == 3
        and "musa_ops_ported::tril(self, diagonal, op.maybe_get_output(0));" in text
    )


def test_operators_with_stubs_use_host_code_of_torch(tmp_path: Path) -> None:
    (add,) = catalog(tmp_path, "binary: {Add.mu: {stub: [add.Tensor]}}").operators
    assert "at::native::structured_ufunc_add_CPU" in emit.registration([add], 0)


def test_compositions_of_torch_are_called(tmp_path: Path) -> None:
    operators = catalog(tmp_path, "logic: {L.mu: {composed: [logical_and, logsumexp.out]}}").operators
    text = emit.registration(operators, 0)
    assert "return at::native::logical_and(self, other);" in text
    assert "return at::native::logsumexp_out(self, dim, keepdim, out);" in text


def test_each_form_tries_the_setup_for_plain_tensors(of_the_pack: Catalog) -> None:
    structured = [one for one in of_the_pack.operators if one.structured]
    plain = [one for one in structured if str(one.native.functional.func.name) in emit.PLAIN]
    assert len(plain) == len(emit.PLAIN)
    text = emit.registration(plain, 0)
    assert text.count("op.set_up_plain<") == text.count("op.meta(") == text.count("pack.impl(")
    assert "if (!(is_real(alpha) && op.set_up_plain<true>(self, other))) {" in text
    assert "if (!(op.set_up_plain<false>(grad_output, output))) {" in text


def test_arguments_that_torch_precomputes_are_passed(tmp_path: Path) -> None:
    (pool,) = catalog(tmp_path, "pooling: {Pool.mu: {kernel: [avg_pool2d]}}").operators
    text = emit.registration([pool], 0)
    assert "const auto precomputed = op.meta(" in text and "precomputed.kH, precomputed.kW" in text


def test_each_form_checks_the_predicate_first(tmp_path: Path) -> None:
    (dropout,) = catalog(tmp_path, "random: {D.mu: {kernel: [native_dropout_backward: floating]}}").operators
    text = emit.registration([dropout], 0)
    assert "return floating(grad_output, mask, scale);" in text
    assert "TORCH_FN(call_native_dropout_backward), TORCH_FN(serves_native_dropout_backward)" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: {A.mu: {kernel: [trill]}}", "no operator trill. Did you mean .*tril"),
        ("a: {A.mu: {kernel: [tril, tril_]}}", "listed twice"),
        ("a: {A.mu: {magic: [tril]}}", "'magic' is none of stub, kernel, composed"),
        ("a: {A.mu: {composed: [dot]}}", "does not compose dot for every device"),
        ("a: {A.mu: {composed: [add.Tensor]}}", "does not compose add.Tensor for every device"),
        ("a: {A.mu: {kernel: [tril]}}\na: {A.mu: {kernel: [triu]}}", "the family a is defined 2 times"),
        ("a: {A.mu: {stub: [abs]}}", "no CPU kernel for abs"),
        ("removed: {'2.0': [tril]}\na: {A.mu: {kernel: [tril]}}", "removed: torch .* has the operator tril"),
        ("removed: {2.10: [trill]}", "the version 2.1 must be quoted"),
        ("removed: {'2.99': [trill]}\na: {A.mu: {kernel: [trill]}}", "no operator trill"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(CatalogError, match=message):
        catalog(tmp_path, text)


def test_an_operator_that_torch_removed_is_left_out(tmp_path: Path) -> None:
    text = "removed: {'2.0': [trill]}\na: {A.mu: {kernel: [trill, tril], stub: [gone.out: floating]}}"
    operators = catalog(tmp_path, text.replace("[trill]}", "[trill, gone.out]}")).operators
    assert [operator.name for operator in operators] == ["tril"]


def test_the_command_fails_with_the_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ops.yaml").write_text("a: {A.mu: {kernel: [trill]}}")
    assert main(["--ops", str(tmp_path / "ops.yaml"), "--out", str(tmp_path / "out"), "--shards", "1"]) == 1
    assert "trill" in capsys.readouterr().err


def test_every_file_of_kernels_is_built_and_named(of_the_pack: Catalog) -> None:
    built = set(re.findall(r"csrc/kernels/(\w+\.mu)\b", (PACK / "CMakeLists.txt").read_text()))
    lying = {path.name for path in (PACK / "csrc" / "kernels").glob("*.mu")}
    included = re.findall(r'"kernels/(\w+)\.h"', (PACK / "csrc/pack.cpp").read_text())
    by_hand = {f"{name}.mu" for name in included}
    assert built == lying == set(of_the_pack.sources()) | by_hand


def test_every_registered_stub_is_reached(of_the_pack: Catalog) -> None:
    """ops.yaml lists a stub for each file that registers stubs."""
    by_stub = {operator.source for operator in of_the_pack.operators if operator.way == "stub"}
    registering = {
        path.name
        for path in (PACK / "csrc" / "kernels").glob("*.mu")
        if "REGISTER_PRIVATEUSE1_DISPATCH(" in path.read_text()
    }
    assert registering <= by_stub


def test_operators_of_equal_signatures_are_registered_in_one_file(of_the_pack: Catalog) -> None:
    operators = of_the_pack.operators
    files = emit.shards(operators, 8)
    assert sorted(operator.name for file in files for operator in file) == sorted(
        operator.name for operator in operators
    )
    sizes = [sum(len(operator.forms()) for operator in file) for file in files]
    assert min(sizes) > 0.3 * sum(sizes) / 8

    def instances(files: list[list]) -> int:
        return sum(len(set().union(*map(emit.signatures, file))) for file in files)

    assert instances(files) < 0.75 * instances([operators[shard::8] for shard in range(8)])
