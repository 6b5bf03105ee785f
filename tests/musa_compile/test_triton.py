# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Inductor through Triton, with a backend "musa" that interprets kernels (`triton_stub`), and the choice of
the generator.

The tests do not require Triton: tests that compile are skipped if it is not installed. To run them:
`pip install --no-deps --target FOLDER triton==3.7.1`, and `PYTHONPATH=FOLDER` for pytest.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness.skips import needs_torch, skip_permanently
from tests.harness.subprocesses import run_code, run_module
from tests.musa_compile.comparison import ONE_THREAD

pytestmark = pytest.mark.once

STUB = str(Path(__file__).with_name("triton_stub"))
THROUGH_TRITON = (
    ONE_THREAD
    + """
import musa_compile.config
musa_compile.config.generator = "triton"
from triton_musa_stub.driver import LAUNCHES
"""
)


def with_stub(**environment: str | None) -> dict[str, str | None]:
    """The environment of a process whose Triton has the stub."""
    path = os.pathsep.join(filter(None, [STUB, os.environ.get("PYTHONPATH")]))
    return {"PYTHONPATH": path, **environment}


Run = Callable[..., str]


@pytest.fixture(scope="module")
def run(cache_folder: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs code in a process that compiles through Triton."""
    if importlib.util.find_spec("triton") is None:
        skip_permanently("triton")
    folder = str(tmp_path_factory.mktemp("triton"))

    def run(code: str, before: str = THROUGH_TRITON, **environment: str | None) -> str:
        return run_code(before + code, **with_stub(TRITON_CACHE_DIR=folder, **environment))

    return run


# Each case with the number of its kernels, without the launches that measure configurations.
CASES = {
    "pointwise": "lambda x, y: (x * 2 + y).exp() - 1, x, y",
    "integers": "lambda x: (x * 3 - 7) // 2 % 5 + (x >> 1), torch.arange(-50, 50, device='musa')",
    "booleans": "lambda x: (x > 0) & ~(x < 1), x",
    "bfloat16": "lambda x: (x + 1).relu() * 0.5, x.bfloat16()",
    "float16": "lambda x: x.half().sigmoid().float(), x",
    "gelu": "lambda x: torch.nn.functional.gelu(x), x",
    "permuted": "lambda x: x.t().contiguous() + 1, x",
    "sum": "lambda x, y: (x * y).sum(-1), x, y",
    "sum of many": "lambda x: (x * 2).sum(-1), wide",
    "variance of many": "lambda x: x.var(-1), wide",
    "layer norm": "lambda x: torch.nn.functional.layer_norm(x, (33,)), x",
    "softmax": "lambda x: x.softmax(-1), x",
    "argmax": "lambda x: x.argmax(-1), wide",
    "argmax of a permuted tensor": "lambda x: x.t().argmax(), x",
    "cumsum": "lambda x: x.cumsum(-1), x",
    "embedding": "lambda i, x: x[i] + 1, torch.tensor([3, 0, 99], device='musa'), x",
    "concatenation": "lambda x: torch.cat([x, x * 2], 1), x",
    "product with an epilogue": "lambda x: (x @ x.t() + 1).relu(), x",
    "branches": "lambda x: torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,)), x",
    "unaligned": "lambda x: x * 2 + 1, torch.randn(34, device='musa')[1:]",
    "second device": "lambda x, y: (x * 2 + y).exp(), x.to('musa:1'), y.to('musa:1')",
    "two devices": "lambda x, y: (x * 2).sum() + (y * 3).sum().to('musa:0'), x, y.to('musa:1')",
}
ALL_CASES = """
import json
cases = %s
wide = torch.randn(4, 5000, device="musa")
x, y = torch.randn(100, 33, device="musa"), torch.randn(33, device="musa")
found = {}
for name, case in cases.items():
    torch._dynamo.reset()
    LAUNCHES.clear()
    function, *inputs = eval(f"({case})")
    actual, expected = torch.compile(function, fullgraph=True)(*inputs), function(*inputs)
    same = actual.device == expected.device and torch.allclose(actual, expected, rtol=1e-3, atol=1e-4)
    found[name] = same, sorted({launch.device for launch in LAUNCHES}), torch.musa.current_device()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(run: Run) -> dict:
    """For each case: whether the result is right, devices of launches, the current device afterwards."""
    return json.loads(run(ALL_CASES % repr(CASES)).splitlines()[-1])


@pytest.mark.parametrize("name", CASES)
def test_compiled_results_are_those_of_eager_mode(found: dict, name: str) -> None:
    right, devices, current = found[name]
    assert right and current == 0
    assert devices == {"second device": [1], "two devices": [0, 1]}.get(name, [0])


TRAINING = """
torch.manual_seed(0)
from torch import nn
model = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 4)).to("musa")
x = torch.randn(6, 8, device="musa")
gradients = []
for each in (model, torch.compile(model, fullgraph=True)):
    model.zero_grad()
    each(x).square().sum().backward()
    gradients.append([parameter.grad.clone() for parameter in model.parameters()])
print(all(torch.allclose(a, b, atol=1e-4) for a, b in zip(*gradients)))
print(len({launch.kernel for launch in LAUNCHES}) >= 2)

torch._dynamo.reset()
f = torch.compile(lambda x: torch.nn.functional.dropout(x, 0.5) + torch.rand_like(x))
ones = torch.ones(1000, device="musa")
results = []
for seed in (1, 1, 2):
    torch.manual_seed(seed)
    results.append(f(ones))
print(torch.equal(results[0], results[1]), torch.equal(results[0], results[2]))
print(1 < results[0].mean().item() < 2)

torch._dynamo.reset()
g = torch.compile(lambda x: (x * 2).sum(-1), dynamic=True, fullgraph=True)
print(all(torch.allclose(g(t), (t * 2).sum(-1), atol=1e-4) for t in (x, x[:3], x[:, :5])))
"""


def test_training_random_numbers_and_dynamic_shapes(run: Run) -> None:
    assert run(TRAINING).split() == ["True", "True", "True", "False", "True", "True"]


# The head of a language model, with an odd number of tokens. Outputs have the strides of eager mode.
PADDED = """
from torch._inductor.utils import run_and_get_code
with torch._inductor.config.patch(force_shape_pad=True):
    x = torch.randn(6, 8, device="musa", requires_grad=True)
    weight, bias = torch.randn(13, 8, device="musa", requires_grad=True), torch.randn(13, device="musa")
    def head(x):
        logits = torch.nn.functional.linear(torch.tanh(x), weight, bias)
        return logits.view(2, 3, 13)
    expected = head(x)
    gradient = torch.randn_like(expected)
    wanted = torch.autograd.grad(expected, (x, weight), gradient)
    result, codes = run_and_get_code(torch.compile(head, fullgraph=True), x)
    print(torch.allclose(result, expected, atol=1e-4), result.stride() == expected.stride())
    print("(6, 16)" in codes[0])  # the padded product
    found = torch.autograd.grad(result, (x, weight), gradient)
    print(all(torch.allclose(a, b, atol=1e-4) for a, b in zip(found, wanted)))
    print(all(a.stride() == b.stride() for a, b in zip(found, wanted)))

    a, b = torch.randn(6, 7, device="musa"), torch.randn(7, 5, device="musa")
    def spaced(a, b):
        product = torch.mm(a, b)
        return product.as_strided((3, 5), (10, 1)) + 1, *product.split([2, 3], 1), *product.chunk(3)
    with torch.no_grad():
        for got, expected in zip(torch.compile(spaced, fullgraph=True)(a, b), spaced(a, b)):
            print(torch.allclose(got, expected, atol=1e-4) and got.stride() == expected.stride())
    f = torch.compile(lambda x, b: torch.mm(x[:, :7], b), dynamic=True)
    for size in (20, 21):
        x = torch.randn(6, size, device="musa")
        print(torch.allclose(f(x, b), x[:, :7] @ b, atol=1e-4))
"""


def test_padded_products_have_the_results_of_eager_mode(run: Run) -> None:
    assert run(PADDED).split() == ["True"] * 13


# The graph's device is not the current one. The stub refuses launches on a device that is not current.
OTHER_DEVICE = """
f = torch.compile(lambda x: (x * 2 + 1).relu().sum(-1), fullgraph=True)
for current, other in ((0, 1), (1, 0)):
    torch.musa.set_device(current)
    x = torch.randn(4, 40, device=f"musa:{other}")
    result = None
    before = torch.musa.memory_allocated(current)
    LAUNCHES.clear()
    result = f(x)
    print(torch.allclose(result, (x * 2 + 1).relu().sum(-1), atol=1e-4), result.device == x.device)
    print({launch.device for launch in LAUNCHES} == {other}, torch.musa.current_device() == current)
    print(torch.musa.memory_allocated(current) == before)

# An operator that names the type of the device alone stays on the current device.
torch.musa.set_device(0)
h = torch.compile(lambda x: (torch.randperm(5, device="musa"), x + 1))
print(h(torch.ones(3, device="musa:1"))[0].device.index == 0)
"""


def test_kernels_run_on_the_device_of_their_graph(run: Run) -> None:
    assert set(run(OTHER_DEVICE).split()) == {"True"}


# At the end, kernels are launched on another stream than the current one, so that they read old values.
STREAMS = '''
from triton_musa_stub import driver
f = torch.compile(lambda x: x * 2 + 1, fullgraph=True)
x = torch.ones(8, device="musa")
f(x)
side = torch.musa.Stream()
second = int(torch.musa.get_device_properties(0).clock_rate * 1000)
def pending(value):
    """A tensor that has the value in half a second, on the current stream."""
    values = torch.full((8,), value, device="musa")
    torch.musa._sleep(second // 2)
    return torch.empty(8, device="musa").copy_(values, non_blocking=True)
with torch.musa.stream(side):
    result = f(pending(5.0))
    print(LAUNCHES[-1].stream == side.musa_stream)
side.synchronize()
print(result.tolist() == [11.0] * 8)

inner = torch.musa.Stream()
def g(x):
    y = x * 2 + 1
    inner.wait_stream(torch.musa.current_stream())
    with torch.musa.stream(inner):
        z = y.sin() * 3
    torch.musa.current_stream().wait_stream(inner)
    return z + 1
LAUNCHES.clear()
result = torch.compile(g)(x)
torch.musa.synchronize()
print(torch.allclose(result, g(x)), {launch.stream for launch in LAUNCHES} == {0, inner.musa_stream})

launch = driver.launch
driver.launch = lambda function, size, stream, values: launch(function, size, inner.musa_stream, values)
with torch.musa.stream(side):
    result = f(pending(7.0))
side.synchronize()
print(result.tolist() == [15.0] * 8)
'''


def test_kernels_are_launched_on_the_current_stream(run: Run) -> None:
    assert run(STREAMS, MUSA_EMULATOR_MODE="async").split() == ["True"] * 4 + ["False"]


# torch measures configurations with the registered function.
MEASURED = """
import torch._inductor.compile_fx  # registers
from torch._inductor.runtime import benchmarking
from musa_compile import timing
measured = []
def counted(*arguments, **options):
    measured.append(timing.measure(*arguments, **options))
    return measured[-1]
benchmarking.register_benchmarker("musa", counted, override=True)
f = lambda x: (x * 3 + 1).exp()
x = torch.randn(100, 40, device="musa")
print(torch.allclose(torch.compile(f)(x), f(x)), len(measured) > 1, all(ms > 0 for ms in measured))
"""
# Without one it uses CUDA's events.
UNREGISTERED = """
del benchmarking._BENCHMARK_DISPATCH["musa"]
torch._dynamo.reset()
g = lambda x: (x * 5 - 1).exp()
try:
    torch.compile(g)(x)
except Exception as error:
    print("CUDA" in str(error))
"""


def test_configurations_are_measured_with_events_of_the_device(run: Run, tmp_path: Path) -> None:
    # Its own folder: autotuning keeps its choices there.
    assert run(MEASURED + UNREGISTERED, TORCHINDUCTOR_CACHE_DIR=str(tmp_path)).split() == ["True"] * 4


CACHED = """
import sys
from torch._dynamo.utils import counters
%s
x = torch.randn(100, 41, device="musa")
f = torch.compile(lambda x: (x * 7 + 1).exp())
print(torch.allclose(f(x), (x * 7 + 1).exp()), counters["inductor"]["fxgraph_cache_hit"], len(LAUNCHES))
"""
OTHER_TRITON = 'from triton_musa_stub.compiler import StubBackend; StubBackend.hash = lambda self: "another"'


def test_caches_depend_on_the_generator_and_triton(run: Run, tmp_path: Path) -> None:
    def hits(change: str) -> tuple[int, int]:
        right, hit, launches = run(CACHED % change, TORCHINDUCTOR_CACHE_DIR=str(tmp_path)).split()
        assert right == "True"
        return int(hit), int(launches)

    hit, launches = hits("")
    assert hit == 0 and launches > 1  # configurations are measured
    assert hits("") == (1, 1)
    assert hits("musa_compile.config.generator = 'host'") == (0, 0)
    assert hits("musa_compile.config.generator = 'host'") == (1, 0)
    assert hits(OTHER_TRITON)[0] == 0


WORKERS = """
torch._inductor.config.compile_threads = 2
x = torch.randn(100, 42, device="musa")
f = lambda x: (x * 9 + 1).exp().sum(-1)
print(torch.allclose(torch.compile(f)(x), f(x), rtol=1e-4), len(LAUNCHES) > 0)
"""


def test_kernels_are_compiled_in_worker_processes(run: Run, tmp_path: Path) -> None:
    assert run(WORKERS, TORCHINDUCTOR_CACHE_DIR=str(tmp_path)).split() == ["True", "True"]


SWITCHED = """
from torch._inductor.utils import run_and_get_code
x = torch.randn(20, device="musa")
for generator in ("host", "triton", None, "triton"):
    musa_compile.config.generator = generator
    torch._dynamo.reset()
    LAUNCHES.clear()
    result, [code] = run_and_get_code(torch.compile(lambda x: x * 2 + 3), x)
    in_code = "async_compile.triton(" in code, "host_kernel(" in code
    print(torch.allclose(result, x * 2 + 3), *in_code, len(LAUNCHES))
from torch._inductor.utils import GPU_TYPES
print(GPU_TYPES)
"""


def test_the_generator_is_chosen_for_each_compilation(run: Run) -> None:
    *rows, types = run(SWITCHED).splitlines()
    host, triton = "True False True 0", "True True False 1"
    assert rows == [host, triton, host, triton]
    assert types == "['cuda', 'mps', 'xpu', 'mtia']"


# The host cannot address the device's memory, so the stub cannot run kernels: launches are counted.
STRICT = """
import musa_compile.config
from triton_musa_stub import driver
driver.launch = lambda function, size, stream, values: driver.LAUNCHES.append(function.kernel.name)
print(musa_compile.config.generator)
result = torch.compile(lambda x: x * 2 + 3)(torch.randn(20, device="musa"))
print(set(driver.LAUNCHES))
"""


def test_triton_is_chosen_where_the_host_cannot_address_memory(run: Run) -> None:
    output = run(STRICT, before=ONE_THREAD, MUSA_EMULATOR_MEMORY="strict")
    assert output.splitlines() == ["None", "{'triton_poi_fused_add_mul_0'}"]


FORKED = """
import os
import torch._dynamo
import torch._inductor.compile_fx
import triton
print(torch.musa.is_initialized(), triton.runtime.driver._active, triton.runtime.driver._default, flush=True)
if os.fork() == 0:
    x = torch.randn(20, device="musa")
    print(torch.allclose(torch.compile(lambda x: x * 2 + 3)(x), x * 2 + 3), len(LAUNCHES), flush=True)
    os._exit(0)
os.wait()
"""


def test_importing_the_compiler_queries_no_driver(run: Run) -> None:
    """Triton drivers may initialise the device when queried; forked processes could not use it then."""
    assert run(FORKED).splitlines() == ["False None None", "True 1"]


REFUSED = """
from torch._inductor import config
x = torch.randn(8, device="musa")
with config.patch(cpp_wrapper=True):
    try:
        torch.compile(lambda x: x * 2)(x)
    except Exception as error:
        print("C++ wrapper and AOTInductor do not support Triton" in str(error), "Fix: " in str(error))
f = torch.compile(lambda x: (x * 2).relu(), mode="reduce-overhead")
print(all(torch.equal(f(x), (x * 2).relu()) for _ in range(4)))
"""


def test_an_unsupported_feature_is_an_error_or_is_left_out(run: Run) -> None:
    """The stub does not record launches, so `mode="reduce-overhead"` runs without graphs."""
    assert run(REFUSED).split() == ["True"] * 3


# Tests the refusals of the stub with a kernel that copies one number.
GATES = '''
from triton_musa_stub import driver
binary = b"""module {
  tt.func public @copy(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32>) {
    %value = tt.load %from : !tt.ptr<f32>
    tt.store %to, %value : !tt.ptr<f32>
    tt.return
  }
}"""
_, function, *_ = driver.Utils().load_binary("copy", binary, 0, 0)
source, target = torch.arange(8.0, device="musa"), torch.zeros(8, device="musa")

def launch(*values):
    try:
        driver.launch(function, (1, 1, 1), 0, values)
        print(target[1].item())
    except RuntimeError as error:
        print(error)

launch(source[4:], target[1:])
launch(source[1:], target[1:])
launch(source.to("musa:1"), target)
torch.musa.set_device(1)
launch(source, target)
'''


def test_the_stub_refuses_launches_that_a_device_would_not_run(run: Run) -> None:
    assert run(GATES).splitlines() == [
        "4.0",
        "from of copy is no multiple of 16",
        "from of copy is on musa:1, not on 0",
        "copy is loaded on device 0, and the current device is 1",
    ]


# Kernels assume the alignment of inputs, except of one that the graph writes. Inputs at other addresses are
# copied.
ALIGNMENT = """
import torch._inductor.compile_fx
from torch._inductor.utils import run_and_get_code
from triton_musa_stub import driver
torch._inductor.config.force_disable_caches = True
launch, assumed = driver.launch, []
def watched(function, size, stream, values):
    assumed.append([a.divisibility for a in function.kernel.arguments if a.type.is_pointer])
    launch(function, size, stream, values)
driver.launch = watched
x = torch.randn(66, device="musa")
f = torch.compile(lambda x: x * 2 + 1, fullgraph=True)
for given in (x[:34], x[1:35], x.as_strided((3, 4), (2, 7), 1), x[1:35:2]):
    torch._dynamo.reset()
    print(torch.equal(f(given), given * 2 + 1), assumed[-1])
print(all(torch.equal(f(x[at : at + 34]), x[at : at + 34] * 2 + 1) for at in range(5)))

torch._dynamo.reset()
def g(x, y):
    x.add_(y)
    return x * 2
y = torch.ones(34, device="musa")
_, [code] = run_and_get_code(torch.compile(g, fullgraph=True), x[:34], y)
print(code.count(" = aligned_musa("), sorted(assumed[-1]))
torch._dynamo.reset()
expected = x[1:35] + y
print(torch.equal(torch.compile(g)(x[1:35], y), expected * 2), torch.equal(x[1:35], expected))

# The stub refuses a kernel whose operand is less aligned than it assumes.
import musa_compile.kernels
musa_compile.kernels.aligned_musa = lambda tensor: tensor
torch._dynamo.reset()
try:
    torch.compile(lambda x: x * 3 + 1)(x[1:35])
except RuntimeError as error:
    print("no multiple of 16" in str(error))
"""


def test_inputs_may_be_unaligned(run: Run) -> None:
    *rows, many, written, results, refused = run(ALIGNMENT).splitlines()
    assert rows == ["True [16, 16]"] * 4
    assert (many, written, results, refused) == ("True", "1 [1, 1, 16, 16]", "True True", "True")


# Numbers in host memory, which kernels take by value.
HOST_NUMBERS = """
programs = [
    lambda s, x: s * x,
    lambda s, x: x - s,
    lambda s, x: (s * x) @ x.mT,
    lambda s, x: torch.where(s > 0, x, s),
    lambda s, x: s.exp() * x + s,
    lambda s, x: torch.stack([s, s * 2])[1] * x,
    lambda s, x: s.long() * x.half(),
    lambda s, x: s * 2,
    lambda s, x: (s * x).sum(-1),
]
x = torch.randn(5, 7, device="musa")
program = torch.compile(lambda s: [each(s, x) for each in programs], fullgraph=True)
for number in (0.5, 3.25):
    s = torch.tensor(number)
    for actual, each in zip(program(s), programs):
        expected = each(s, x)
        same = actual.device == expected.device and actual.dtype == expected.dtype
        print(same and torch.allclose(actual, expected, rtol=1e-3))
print({launch.device for launch in LAUNCHES} == {0})
"""


def test_numbers_on_the_host_are_operands(run: Run) -> None:
    assert run(HOST_NUMBERS).split() == ["True"] * 19


def triton_row(**environment: str | None) -> dict:
    done = run_module("torch_musa", "doctor", "--json", **environment)
    return next(row for row in json.loads(done.stdout) if row["title"] == "compile: Triton for torch.compile")


def test_the_doctor_names_the_driver(run: Run) -> None:
    row = triton_row(**with_stub(MUSA_EMULATOR_MEMORY=None))
    assert row["status"] == "ok" and "driver 'musa_stub'; not in use" in row["detail"], row
    row = triton_row(**with_stub(MUSA_EMULATOR_MEMORY="strict"))
    assert row["status"] == "ok" and "driver 'musa_stub'; in use" in row["detail"], row


def test_the_doctor_warns_only_where_no_code_can_be_generated(monkeypatch: pytest.MonkeyPatch) -> None:
    from musa_compile import choice, plugin, triton_driver

    monkeypatch.setattr(triton_driver, "find", lambda: triton_driver.Driver(None, "Triton is not installed"))
    monkeypatch.setattr(choice, "_computes_on_host", lambda: True)
    check = dict(plugin.musa_doctor_checks())["Triton for torch.compile"]
    assert check() == "not needed, because kernels are C++; Triton is not installed"
    monkeypatch.setattr(choice, "_computes_on_host", lambda: False)
    monkeypatch.setattr(choice, "_is_host_addressable", lambda: False)
    with pytest.raises(UserWarning, match="Triton is not installed"):
        check()


@pytest.mark.parametrize(
    ("wanted", "device", "driver", "chosen"),
    [
        (None, "emulator", "mthreads", "C++"),
        (None, "emulator", None, "C++"),
        (None, "addressable", "mthreads", "Triton"),
        (None, "addressable", None, "C++"),
        (None, "discrete", "mthreads", "Triton"),
        (None, "discrete", None, "none"),
        ("host", "emulator", "mthreads", "C++"),
        ("host", "addressable", "mthreads", "C++"),
        ("host", "discrete", "mthreads", "none"),
        ("triton", "emulator", "mthreads", "Triton"),
        ("triton", "emulator", None, "none"),
    ],
)
def test_the_choice(
    monkeypatch: pytest.MonkeyPatch, wanted: str | None, device: str, driver: str | None, chosen: str
) -> None:
    from musa_compile import choice, config, triton_driver

    found = triton_driver.Driver(driver, None if driver else "Triton is not installed")
    monkeypatch.setattr(config, "generator", wanted)
    monkeypatch.setattr(choice, "_computes_on_host", lambda: device == "emulator")
    monkeypatch.setattr(choice, "_is_host_addressable", lambda: device != "discrete")
    monkeypatch.setattr(triton_driver, "find", lambda: found)
    assert choice.generator() == chosen
    if chosen == "none":
        text = choice.refusal()
        assert 'Fix: torch.compile(..., backend="aot_eager")' in text
        assert ("install Triton for MUSA" in text) == (wanted != "host")
        assert ("cannot address the device's memory" in text) == (wanted != "triton")


def test_an_unknown_generator_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from musa_compile import choice, config

    monkeypatch.setattr(config, "generator", "Triton")
    with pytest.raises(ValueError, match=r"Fix: .* to one of None, 'host', 'triton'"):
        choice.generator()


def backend(target: str, active: bool) -> types.SimpleNamespace:
    """A backend as in Triton's list."""
    return types.SimpleNamespace(
        compiler=types.SimpleNamespace(supports_target=lambda asked: asked[0] == target),
        driver=types.SimpleNamespace(is_active=lambda: active),
    )


@pytest.mark.parametrize(
    ("backends", "default", "name", "reason"),
    [
        ({"mthreads": ("musa", True)}, None, "mthreads", None),
        ({"nvidia": ("cuda", False), "mthreads": ("musa", True)}, None, "mthreads", None),
        ({"nvidia": ("cuda", True)}, None, None, 'has no backend for the target "musa"'),
        ({"mthreads": ("musa", False)}, None, None, "'mthreads' is not active"),
        ({"nvidia": ("cuda", True), "mthreads": ("musa", True)}, None, None, "uses Triton's driver 'nvidia'"),
        ({"cpu": ("cpu", True), "mthreads": ("musa", True)}, None, None, "several Triton drivers are active"),
        ({"cpu": ("cpu", True), "mthreads": ("musa", True)}, "mthreads", "mthreads", None),
    ],
)
def test_the_driver_is_found_by_its_target(
    monkeypatch: pytest.MonkeyPatch,
    backends: dict,
    default: str | None,
    name: str | None,
    reason: str | None,
) -> None:
    from musa_compile import triton_driver

    package = types.ModuleType("triton.backends")
    package.backends = {name: backend(*each) for name, each in backends.items()}
    compiler = types.ModuleType("triton.backends.compiler")
    compiler.GPUTarget = lambda *target: target
    for module in (types.ModuleType("triton"), package, compiler):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.delenv("TRITON_DEFAULT_BACKEND", raising=False)
    if default:
        monkeypatch.setenv("TRITON_DEFAULT_BACKEND", default)
    driver = triton_driver.find.__wrapped__()
    assert driver.name == name
    assert driver.reason is None if reason is None else reason in driver.reason


def test_a_triton_that_cannot_be_imported_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    from musa_compile import triton_driver

    monkeypatch.setitem(sys.modules, "triton", None)
    monkeypatch.delitem(sys.modules, "triton.backends", raising=False)
    assert "Triton is not installed" in triton_driver.find.__wrapped__().reason


def test_the_key_of_caches_has_the_generator() -> None:
    from musa_compile import cache_key

    keys = [cache_key.key(generator) for generator in ("C++", "Triton a", "Triton b", "none", "C++")]
    assert len(set(keys)) == 4 and keys[0] == keys[4]


def test_a_measured_time_grows_with_the_work(musa: types.ModuleType) -> None:
    needs_torch("2.12", "register_benchmarker")
    from torch._inductor.runtime.benchmarking import benchmarker

    from musa_compile import timing

    millisecond = int(musa.get_device_properties(0).clock_rate)

    def work(milliseconds: int) -> Callable[[], None]:
        return lambda: musa._sleep(milliseconds * millisecond)

    timing.register()
    for milliseconds in (2, 40):
        measured = benchmarker.benchmark(work(milliseconds), device="musa", warmup=1, rep=10)
        assert milliseconds <= measured < milliseconds * 1000  # microseconds would be above


def test_measuring_is_refused_in_deterministic_mode(musa: types.ModuleType) -> None:
    from torch._inductor import config

    from musa_compile import timing

    with config.patch(deterministic=True):
        with pytest.raises(RuntimeError, match="deterministic mode"):
            timing.measure(None, lambda: None)
        assert timing.measure(None, lambda: None, rep=1, warmup=1, is_vetted_benchmarking=True) >= 0
