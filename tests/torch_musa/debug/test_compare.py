# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.debug.compare` reports wrong operators with their modules, and no right ones."""

import itertools
import math

import pytest
import torch

from tests.harness.subprocesses import run_code
from tests.torch_musa.debug.planted import planted, wrong
from tests.torch_musa.debug.programs import GPT, ResNet, Training
from torch_musa import debug

pytestmark = pytest.mark.usefixtures("musa")


def compared(function, **options):
    with debug.compare(None, **options) as comparison:
        function()
    return comparison


def reasons(comparison):
    return {reason for _, reason in comparison.not_compared}


@pytest.mark.parametrize("amp", [None, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("model", [ResNet, GPT])
def test_a_right_program_has_no_difference(model, amp):
    comparison = compared(Training(model(), amp))
    assert comparison.differences == [] and comparison.compared > 90
    assert reasons(comparison) <= {"its result is uninitialised memory"}


CASES = [
    (ResNet, "relu", "ResNet.layer1.act", "forward"),
    (ResNet, "max_pool2d_with_indices", "ResNet.pool", "forward"),
    (ResNet, "native_batch_norm_backward", "ResNet.layer2.bn2", "backward"),
    (ResNet, "threshold_backward", "ResNet.layer2.act", "backward"),
    (GPT, "gelu", "GPT.layers.0.mlp.1", "forward"),
    (GPT, "native_layer_norm", "GPT.layers.0.ln1", "forward"),
    (GPT, "gelu_backward", "GPT.layers.1.mlp.1", "backward"),
    (GPT, "_log_softmax", "", "forward"),
]


@pytest.mark.parametrize(("model", "operator", "module", "phase"), CASES, ids=lambda value: str(value))
def test_the_first_difference_is_the_planted_operator_in_its_module(model, operator, module, phase):
    step = Training(model())
    with planted(operator, wrong(operator)):
        comparison = compared(step)
    first = comparison.first
    assert (first.operator, first.module, first.phase) == (f"aten::{operator}", module, phase)
    # Later operators are right for their inputs, which follow from the wrong result.
    assert {difference.operator for difference in comparison.differences} == {f"aten::{operator}"}
    assert first.max_rel == pytest.approx(0.05, rel=0.1)
    assert "float32[" in str(first) and f"call {first.call}" in str(first)


@pytest.mark.parametrize("amp", [torch.bfloat16, torch.float16], ids=str)
def test_a_wrong_operator_under_autocast_is_found(amp):
    step = Training(GPT(), amp)
    with planted("gelu", wrong("gelu", 1.2)):
        comparison = compared(step)
    assert comparison.first.module == "GPT.layers.0.mlp.1"
    assert str(amp).removeprefix("torch.") in comparison.first.arguments[0]


@pytest.mark.parametrize("reentrant", [True, False])
def test_modules_have_their_names_under_checkpointing(reentrant):
    step = Training(GPT(reentrant))
    with planted("gelu_backward", wrong("gelu_backward")):
        comparison = compared(step)
    assert [difference.module for difference in comparison.differences] == [
        "GPT.layers.1.mlp.1",
        "GPT.layers.0.mlp.1",
    ]
    runs = [(row.module, row.phase) for row in comparison.timeline.rows if row.operator == "aten::gelu"]
    assert runs == [
        ("GPT.layers.0.mlp.1", "forward"),
        ("GPT.layers.1.mlp.1", "forward"),
        ("GPT.layers.1.mlp.1", "recompute"),
        ("GPT.layers.0.mlp.1", "recompute"),
    ]


def test_backward_passes_on_engine_threads_are_seen():
    out = run_code(
        """
        import torch
        from tests.torch_musa.debug.planted import planted, wrong
        from tests.torch_musa.debug.programs import GPT, Training
        from torch_musa import debug

        step = Training(GPT())
        with planted("gelu_backward", wrong("gelu_backward")), debug.compare(None) as comparison:
            step()
        threads = {phase: {row.thread for row in comparison.timeline.rows if row.phase == phase}
                   for phase in ("forward", "backward")}
        assert not threads["forward"] & threads["backward"], threads
        print(comparison.first.module, comparison.first.phase, len(comparison.differences))
        """,
        TORCH_MUSA_BACKWARD_THREADS="1",
    )
    assert out == "GPT.layers.1.mlp.1 backward 2\n"


def test_it_stops_at_the_first_difference_if_requested():
    step = Training(GPT())
    with (
        planted("gelu_backward", wrong("gelu_backward")),
        pytest.raises(debug.DifferenceError, match=r"gelu_backward in GPT\.layers\.1\.mlp\.1") as caught,
    ):
        compared(step, stop=True)
    assert caught.value.difference.phase == "backward"
    assert compared(Training(GPT())).differences == [], "the mode is still in place"


def test_a_wrong_result_in_place_and_in_out_is_found():
    x = torch.ones(4, 4, device="musa")

    def add_(self, other, *, alpha=1):
        return self.copy_((self.cpu() + other.cpu() * alpha) * 1.1)

    with planted("add_.Tensor", add_):
        comparison = compared(lambda: x.t().add_(torch.ones(4, 4, device="musa")))
    assert [d.operator for d in comparison.differences] == ["aten::add_.Tensor"]

    out = torch.empty(4, 4, device="musa")
    with planted("mul.out", lambda self, other, *, out: out.fill_(3.0)):
        comparison = compared(lambda: torch.mul(x, x, out=out))
    assert [d.operator for d in comparison.differences] == ["aten::mul.out"]


def test_arguments_that_share_memory_share_it_on_the_cpu_too():
    base = torch.arange(12.0, device="musa")

    def program():
        base[4:8].add_(base[4:8])  # the same memory twice
        torch.mul(base[:3], 2, out=base[9:12])
        base.view(3, 4)[:, ::2].sub_(base.view(3, 4)[1:2, ::2].clone())
        base.expand(2, 12).sum(0)
        torch.add(base[0:4], base[4:8], out=base[4:8])
        torch._foreach_add_([base[:6], base[6:]], 1.0)

    comparison = compared(program)
    assert comparison.differences == [] and reasons(comparison) <= {"its result is uninitialised memory"}


def test_every_kind_of_call_is_right_or_listed():
    def program():
        z = torch.randn(6, 6, device="musa")
        z.index_put_((torch.tensor([0, 1], device="musa"),), torch.ones(6, device="musa"))
        w = torch.randn(3, 4, device="musa", dtype=torch.complex64)
        (w.conj() @ w.t()).abs()
        w.imag.add_(1)
        z.view(torch.int32).bitwise_and_(-1)
        torch.linalg.svd(z), torch.linalg.qr(z), z.unique(), z.nonzero(), torch.equal(z, z), z.max().item()
        nn = torch.nn
        nn.LSTM(8, 8, device="musa")(torch.randn(3, 2, 8, device="musa"))
        nn.RMSNorm(8, device="musa")(torch.randn(3, 2, 8, device="musa")).sum().backward()
        nn.BatchNorm1d(4, device="musa").eval()(torch.randn(3, 4, 8, device="musa"))
        with torch.inference_mode():
            nn.Linear(4, 4, device="musa")(torch.randn(2, 4, device="musa"))
        q = torch.randn(1, 4, 8, 4, device="musa", requires_grad=True)
        k = torch.randn(1, 2, 8, 4, device="musa", requires_grad=True)
        mask = torch.randn(8, 8, device="musa")
        nn.functional.scaled_dot_product_attention(q, k, k, mask, enable_gqa=True).sum().backward()
        q, k = torch.randn(2, 3, 4, device="musa"), torch.randn(2, 6, 4, device="musa")
        nn.functional.scaled_dot_product_attention(q, k, k, is_causal=True)
        nn.functional.ctc_loss(
            torch.randn(9, 2, 5, device="musa").log_softmax(-1),
            torch.randint(1, 5, (2, 4), device="musa"),
            torch.tensor([9, 9]),
            torch.tensor([4, 2]),
            reduction="sum",
        )
        (z.to_sparse() @ z).sum()
        torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], device="musa")

    comparison = compared(program)
    assert [str(difference) for difference in comparison.differences] == []
    assert {op for op, reason in comparison.not_compared if "layout" not in reason} == {
        "aten::empty.memory_format"
    }
    assert ("aten::_to_sparse", "a result with layout sparse_coo") in comparison.not_compared


def test_two_devices_in_one_program():
    first = torch.nn.Linear(8, 8).to("musa:0")
    second = torch.nn.Linear(8, 8).to("musa:1")

    def program():
        second(torch.relu(first(torch.randn(4, 8, device="musa:0"))).to("musa:1")).sum().backward()

    assert compared(program).differences == []


# ---- random operators, ties, rounding

RANDOM = {
    "bernoulli.p": (lambda self, p, generator=None: torch.ones_like(self), lambda x: torch.bernoulli(x, 0.3)),
    "normal_": (lambda self, mean=0.0, std=1.0, generator=None: self.fill_(0.5), lambda x: x.normal_()),
    "uniform_": (lambda self, *limits, generator=None: self.fill_(1.5), lambda x: x.uniform_()),
    "randperm.generator_out": (
        lambda n, *, generator=None, out: out.fill_(3),
        lambda x: torch.randperm(9, device="musa"),
    ),
    "native_dropout": (
        lambda x, p, train: (x.clone(), torch.ones_like(x, dtype=torch.bool)),
        lambda x: torch.nn.functional.dropout(x, 0.4),
    ),
}


@pytest.mark.parametrize("operator", RANDOM)
def test_random_operators_are_judged_by_their_properties(operator):
    kernel, program = RANDOM[operator]
    x = torch.ones(4000, device="musa")
    assert compared(lambda: program(x)).differences == []
    with planted(operator, kernel):
        assert compared(lambda: program(x)).first is not None


def test_indices_of_ties_are_right_and_other_indices_are_not():
    x = torch.tensor([2.0, 5.0, 5.0, 1.0], device="musa")

    def other_tie(self, dim, keepdim=False):
        return torch.tensor(5.0, device="musa"), torch.tensor(2, device="musa")

    def no_tie(self, dim, keepdim=False):
        return torch.tensor(5.0, device="musa"), torch.tensor(3, device="musa")

    assert int(x.cpu().max(0).indices) == 1
    with planted("max.dim", other_tie):
        assert compared(lambda: x.max(0)).differences == []
    with planted("max.dim", no_tie):
        assert compared(lambda: x.max(0)).first.output == "result[1]"


def test_an_index_that_is_repeated_is_no_tie():
    x = torch.tensor([5.0, 5.0], device="musa")

    def twice_the_first(self, stable, dim=-1, descending=False):
        return self.clone(), torch.zeros(2, dtype=torch.int64, device="musa")

    with planted("sort.stable", twice_the_first):
        assert compared(lambda: x.sort()).first.output == "result[1]"


def test_rounding_is_no_difference_and_an_error_of_its_size_elsewhere_is():
    # The terms cancel, so that every digit of the result depends on the order of the sum.
    terms = torch.tensor([1e8, 3.0, -1e8, 1e4, 0.1, -1e4]).repeat(50).to("musa")

    def reversed_sum(self, *, dtype=None):
        total = 0.0
        for value in self.cpu().flip(0).tolist():
            total = float(torch.tensor(total) + torch.tensor(value))
        return torch.tensor(total).to("musa")

    with planted("sum", reversed_sum):
        comparison = compared(lambda: terms.sum())
        assert comparison.differences == [] and comparison.rounding == 1
        assert compared(lambda: torch.arange(5.0, device="musa").sum()).rounding == 0
    with planted("sum", lambda self, *, dtype=None: reversed_sum(self) + 1e4):
        assert compared(lambda: terms.sum()).first is not None


@pytest.mark.parametrize("where", ["shape", "dtype", "strides"])
def test_geometry_is_compared(where):
    x = torch.ones(2, 3, device="musa")
    kernels = {
        "shape": ("relu", lambda self: self[:1].clone()),
        "dtype": ("relu", lambda self: self.to(torch.float16)),
        "strides": ("t", lambda self: self.view(3, 2)),
    }
    operator, kernel = kernels[where]
    with planted(operator, kernel):
        comparison = compared(lambda: x.t() if operator == "t" else torch.relu(x))
    assert where in comparison.first.reason


def test_nan_and_infinities_count_as_values():
    x = torch.tensor([math.nan, math.inf, -math.inf, 1.0], device="musa")
    assert compared(lambda: x + 1).differences == []
    with planted("neg", lambda self: self.clone()):
        first = compared(lambda: -x).first
    assert math.isinf(first.max_abs) and "3 of 4 elements" in first.reason


def test_an_operator_that_changes_an_input_is_found_on_request(tmp_path):
    def careless(self):
        result = torch.clamp(self, min=0)
        self.view(-1)[0] = 7.0
        return result

    x = torch.ones(2, 3, device="musa")
    with planted("relu", careless):
        assert compared(lambda: torch.relu(x)).first is None
        with debug.compare(tmp_path, check_inputs=True) as comparison:
            torch.relu(x.fill_(1))
        first = comparison.first
        assert debug.replay(f"{first.folder}/call.pt").status == 1
    assert debug.replay(f"{first.folder}/call.pt").status == 0
    assert (first.operator, first.output) == ("aten::relu", "self") and "may only read" in first.reason
    assert compared(Training(GPT()), check_inputs=True).differences == []


def test_an_error_that_only_the_device_raises_is_a_difference():
    def refuses(self):
        raise RuntimeError("no such kernel")

    x = torch.ones(3, device="musa")
    with planted("relu", refuses), debug.compare(None) as comparison:
        with pytest.raises(RuntimeError, match="no such kernel"):
            torch.relu(x)
        with pytest.raises(RuntimeError):
            x @ torch.ones(5, device="musa")  # the CPU refuses it too
    assert [d.operator for d in comparison.differences] == ["aten::relu"]
    assert "only on the device: no such kernel" in comparison.first.reason


def test_calls_of_a_graph_capture_are_listed():
    x, graph = torch.ones(4, device="musa"), torch.musa.MUSAGraph()
    torch.relu(x)
    with debug.compare(None) as comparison, torch.musa.graph(graph):
        y = torch.relu(x)
    graph.replay()
    assert y.cpu().tolist() == [1.0] * 4 and comparison.differences == []
    assert comparison.not_compared["aten::relu", "the stream is being captured into a graph"] == 1


@pytest.mark.once
def test_a_compiled_function_runs_uncompiled_and_is_compared():
    function = torch.compile(lambda x: torch.relu(x) * 2, backend="eager")
    x = torch.ones(4, device="musa")
    function(x)
    with planted("relu", wrong("relu")):
        comparison = compared(lambda: function(x))
    assert comparison.first.operator == "aten::relu"


# ---- options of the program


def test_operators_and_modules_can_be_selected():
    step = Training(GPT())
    with planted("gelu", wrong("gelu")):
        modules = {d.module for d in compared(step, modules="GPT.layers.1").differences}
        others = compared(step, operators=["native_layer_norm*", "aten::mm"])
    assert modules == {"GPT.layers.1.mlp.1"}
    assert others.differences == [] and 0 < others.compared < 60 and not others.not_compared


def test_tolerances_and_limit_are_the_programs():
    x = torch.ones(1000, device="musa")
    with planted("relu", wrong("relu", 1.01)):
        assert compared(lambda: torch.relu(x)).first is not None
        assert compared(lambda: torch.relu(x), tolerances={torch.float32: (0.1, 0)}).first is None
        limited = compared(lambda: torch.relu(x), limit=3999)
    assert limited.first is None and "limit of 3999 bytes" in next(iter(reasons(limited)))


@pytest.mark.parametrize("bad", [{"float32": (1, 1)}, {torch.float32: 1e-3}, {torch.float32: (1, 2, 3)}])
def test_bad_tolerances_are_refused(bad):
    with pytest.raises(TypeError, match="Fix: tolerances="):
        debug.compare(tolerances=bad)


# ---- cost


def test_copies_are_freed():
    x = torch.ones(1 << 20, device="musa")
    before = torch.musa.memory_allocated()
    with debug.compare(None):
        for _ in range(3):
            x.add_(1)
            y = x * 2
    del y
    assert torch.musa.memory_allocated() == before


def test_host_memory_stays_within_some_copies_of_the_largest_tensor():
    out = run_code(
        """
        import resource, torch
        from torch_musa import debug

        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

        big = torch.ones(16 << 20, device="musa")  # 64 MiB
        with debug.compare(None):
            torch.ones(1000, device="musa").add_(1)
            before = peak()
            for _ in range(4):
                big.add_(1)
                y = big * 2
                del y
        print(int((peak() - before) / 64))
        """
    )
    assert int(out) <= 6, "results, references and copies of several calls were alive together"


def test_modes_of_the_program_do_not_see_the_calls_of_the_tool():
    from torch.utils._python_dispatch import TorchDispatchMode

    class Names(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.names = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.names.append(str(func))
            return func(*args, **(kwargs or {}))

    x = torch.ones(3, device="musa")
    with Names() as outside, debug.compare(None) as comparison, Names() as inside:
        torch.relu(x)
        x.add_(1)
    assert outside.names == inside.names == ["aten.relu.default", "aten.add_.Tensor"]
    assert comparison.compared == 2


def test_tools_may_end_in_any_order():
    x = torch.ones(3, device="musa")
    one, two = debug.compare(None), debug.compare(None)
    one.__enter__()
    two.__enter__()
    torch.relu(x)
    one.__exit__(None, None, None)
    torch.neg(x)
    two.__exit__(None, None, None)
    torch.abs(x)
    assert (one.compared, two.compared) == (1, 2)


def test_calls_have_numbers_without_gaps():
    comparison = compared(Training(ResNet()))
    numbers = sorted(row.call for row in comparison.timeline.rows)
    assert numbers == list(itertools.islice(itertools.count(), len(numbers)))
