# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Measures each provider's share of a network on musa, its accuracy, and the time of a step.

python -m benchmarks.mudnn_share [--quick]
"""

import argparse
import copy
import dataclasses
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import nn
from torch.profiler import ProfilerActivity
from tqdm import tqdm

from tests.harness import records

from . import providers, report, training
from .measure import Effort, Pair, in_own_process, interleaved
from .training import BATCH, Job

CPU = torch.device("cpu")
MUSA = torch.device("musa")
IMAGE = 64
STEPS = 3

# Maximum difference from the CPU's results for a valid measurement. Gradients jump if a rectifier's
# argument rounds to the other side of 0, and so do losses after a step.
TOLERANCES = {"outputs": 1e-4, "gradients": 5e-2, "losses": 1e-2}
# Maps prefixes of device-side names in a trace to providers.
KERNELS = {"musa::dnn::": "mudnn", "Memcpy": "runtime", "Memset": "runtime"}


def images() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(BATCH, 3, IMAGE, IMAGE), torch.randint(1000, (BATCH,))


@dataclass(frozen=True)
class Workload:
    name: str
    job: Job
    trains: bool = True


WORKLOADS = (
    Workload("ResNet-50, inference", Job("ResNet-50", training.resnet50, images, training.sgd), trains=False),
    Workload("ResNet-50, training, SGD", Job("ResNet-50", training.resnet50, images, training.sgd)),
    *(
        Workload(f"GPT block, training, {name}", Job("GPT", training.SmallGPT, training.text, optimizer))
        for name, optimizer in (("SGD", training.sgd), ("AdamW", training.adamw))
    ),
)


@dataclass(frozen=True)
class Share:
    """Results of a workload. Times are milliseconds per step; see `errors` for errors."""

    name: str
    calls: dict[str, int]  # per step, by provider
    kernel_ms: dict[str, float]  # on the device, by provider
    left: dict[str, tuple[int, float]]  # operators not served by muDNN: calls, and time on the device
    errors: dict[str, float]  # of musa against the CPU
    float32_errors: dict[str, float]  # of the CPU against itself in float64
    musa_ms: float
    cpu_ms: float
    ratio: float
    spread: tuple[float, float]

    def call_share(self, provider: str) -> float:
        return self.calls.get(provider, 0) / sum(self.calls.values())

    def time_share(self, provider: str) -> float:
        return self.kernel_ms.get(provider, 0.0) / sum(self.kernel_ms.values())


def stepper(
    workload: Workload, model: nn.Module, data: tuple[torch.Tensor, ...], device: torch.device
) -> Callable[[], torch.Tensor]:
    """Returns a function that runs one step on ``device`` and returns its result on the device."""
    if workload.trains:
        return training.stepper(model, workload.job, data, device)
    model = copy.deepcopy(model).to(device).eval()
    inputs = data[0].to(device)

    @torch.inference_mode()
    def step() -> torch.Tensor:
        return model(inputs)

    return step


Results = dict[str, list[torch.Tensor]]


def results(
    workload: Workload, model: nn.Module, data, device: torch.device, dtype: torch.dtype = torch.float32
) -> Results:
    """Returns outputs; for training also the first step's gradients and the losses of some steps."""
    if not workload.trains:
        floating = tuple(tensor.to(dtype) if tensor.is_floating_point() else tensor for tensor in data)
        return {"outputs": [stepper(workload, copy.deepcopy(model).to(dtype), floating, device)().cpu()]}
    model = copy.deepcopy(model).to(device, dtype)
    optimizer = workload.job.optimizer(model.parameters())
    inputs, targets = (tensor.to(device) for tensor in data)
    if inputs.is_floating_point():
        inputs = inputs.to(dtype)
    found: Results = {"outputs": [], "gradients": [], "losses": []}
    for _ in range(STEPS):
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = F.cross_entropy(outputs, targets)
        loss.backward()
        if not found["losses"]:
            found["outputs"] = [outputs.detach().cpu()]
            found["gradients"] = [parameter.grad.cpu() for parameter in model.parameters()]
        found["losses"].append(loss.detach().cpu())
        optimizer.step()
    return found


def largest(difference: torch.Tensor, expected: torch.Tensor) -> float:
    return (difference.abs().max() / expected.abs().max()).item()


def length(difference: torch.Tensor, expected: torch.Tensor) -> float:
    return (difference.norm() / expected.norm()).item()


def errors(values: Results, expected: Results) -> dict[str, float]:
    """Returns the largest relative error among the tensors of each kind.

    For outputs and losses: the largest difference relative to the largest expected element. For a parameter's
    gradient: the norm of the difference relative to the expected norm.
    """
    found = {}
    for kind, tensors in expected.items():
        measure_of = length if kind == "gradients" else largest
        found[kind] = max(
            measure_of(value.double() - right.double(), right.double())
            for value, right in zip(values[kind], tensors)
        )
    return found


def check_agreement(name: str, found: Mapping[str, float]) -> None:
    """Raises if results differ, because the time would be meaningless."""
    for kind, error in found.items():
        if not error <= TOLERANCES[kind]:
            raise AssertionError(
                f"{name}: {kind} on musa differ from the CPU's by {error:.1e} of their size, and "
                f"{TOLERANCES[kind]:g} is allowed; there is nothing to time"
            )


def provider_of(kernel: str, host: set[str]) -> str:
    """Returns the provider of a device-side trace row. ``host``: operators served by torch's kernels."""
    operator = kernel.removeprefix("native::")
    if operator != kernel:
        # The runtime copies with torch's kernels, which the registry does not count.
        return "host" if f"aten::{operator}" in host else "runtime"
    return next((whose for start, whose in KERNELS.items() if kernel.startswith(start)), "other")


def profiled(step: Callable[[], object], host: set[str]) -> tuple[dict[str, float], dict[str, float]]:
    """Returns milliseconds on the device per step: by provider, and by kernel outside muDNN."""
    with torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.MUSA]) as profile:
        for _ in range(STEPS):
            step()
        torch.musa.synchronize()
    whole: dict[str, float] = defaultdict(float)
    others: dict[str, float] = {}
    for row in profile.key_averages():
        if row.device_type == torch.autograd.DeviceType.PrivateUse1 and not row.is_user_annotation:
            milliseconds = row.self_device_time_total / 1e3 / STEPS
            whose = provider_of(row.key, host)
            whole[whose] += milliseconds
            if whose != "mudnn":
                others[row.key] = milliseconds
    return dict(sorted(whole.items(), key=lambda item: -item[1])), others


def timed(workload: Workload, effort: Effort) -> Pair:
    """Measures steps on musa against steps on the CPU. Must run first: see `in_own_process`."""
    torch.manual_seed(0)
    model, data = workload.job.model(), workload.job.data()
    here, there = (stepper(workload, model, data, device) for device in (MUSA, CPU))
    for _ in range(STEPS):
        here(), there()  # the first step creates the optimizer's state
    return interleaved(here, MUSA, there, CPU, effort)


def measure(workload: Workload, pair: Pair) -> Share:
    torch.manual_seed(0)
    model, data = workload.job.model(), workload.job.data()
    expected = results(workload, model, data, CPU)
    found = errors(results(workload, model, data, MUSA), expected)
    check_agreement(workload.name, found)
    float32 = errors(expected, results(workload, model, data, CPU, torch.float64))

    here = stepper(workload, model, data, MUSA)
    here()  # creates the optimizer's state
    calls = providers.calls_of(here)
    host = {op for op, provider in calls if provider == "host"}
    kernel_ms, others = profiled(here, host)
    left = {op: (count, 0.0) for (op, provider), count in calls.items() if provider != "mudnn"}
    for kernel, milliseconds in others.items():
        op = kernel.replace("native::", "aten::")
        left[op] = (left.get(op, (0, 0.0))[0], milliseconds)
    return Share(
        workload.name,
        providers.by_provider(calls),
        kernel_ms,
        dict(sorted(left.items(), key=lambda item: item[1][1], reverse=True)),
        found,
        float32,
        pair.value * 1e3,
        pair.baseline * 1e3,
        pair.ratio,
        pair.spread,
    )


def table(shares: list[Share]) -> Table:
    result = Table(
        title=f"operators on musa by provider; batch {BATCH}, {torch.get_num_threads()} threads",
        caption="Calls: no allocations, no views. Errors: from the CPU; in brackets its own from float64.",
    )
    result.add_column("of a step")
    for share in shares:
        result.add_column(share.name, justify="right")

    def add(title: str, cell: Callable[[Share], str]) -> None:
        result.add_row(title, *map(cell, shares))

    for provider in names(share.calls for share in shares):
        add(
            f"calls, {provider}",
            lambda share, which=provider: f"{share.calls.get(which, 0)}  {share.call_share(which):6.1%}",
        )
    result.add_section()
    for provider in names(share.kernel_ms for share in shares):
        add(
            f"time on the device, {provider}",
            lambda share, which=provider: (
                f"{share.kernel_ms.get(which, 0.0):.2f} ms  {share.time_share(which):6.1%}"
            ),
        )
    result.add_section()
    for kind in names(share.errors for share in shares):
        add(
            f"error of {kind}",
            lambda share, which=kind: (
                f"{share.errors[which]:.1e} ({share.float32_errors[which]:.1e})"
                if which in share.errors
                else ""
            ),
        )
    result.add_section()
    add("musa", lambda share: f"{share.musa_ms:.4g} ms")
    add("cpu", lambda share: f"{share.cpu_ms:.4g} ms")
    add(
        "musa / cpu (quartiles)",
        lambda share: f"{share.ratio:.2f}x ({share.spread[0]:.2f} to {share.spread[1]:.2f})",
    )
    return result


def names(dicts: Iterator[Mapping[str, object]]) -> list[str]:
    """Returns the distinct keys of all dicts, in order of appearance."""
    return list(dict.fromkeys(key for each in dicts for key in each))


def write(shares: list[Share], name: str) -> None:
    """Prints the table and writes the record of this name."""
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else 140)
    console.print(table(shares))
    for share in shares:
        listed = [
            f"{op}{f' {count}x' if count else ''} {ms:.2f} ms" for op, (count, ms) in share.left.items()
        ]
        console.print(f"{share.name}, not muDNN: {', '.join(listed) or 'nothing'}")
    policy = providers.policy()
    console.print(providers.policy_text(policy))
    path = records.write(
        name,
        "python -m benchmarks.mudnn_share",
        "; ".join(
            f"{one.name}: {one.call_share('mudnn'):.0%} of calls by muDNN, {one.ratio:.2f} of the CPU's time"
            for one in shares
        ),
        machine=report.machine(),
        operators=policy,
        batch=BATCH,
        image=IMAGE,
        workloads=[dataclasses.asdict(share) for share in shares],
    )
    console.print(f"written: {path}")


def main(argv: list[str] | None = None, workloads: tuple[Workload, ...] = WORKLOADS) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.mudnn_share", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few and short samples, as a smoke test only")
    parser.add_argument("--threads", type=int, help="threads of each side (default: torch's)")
    arguments = parser.parse_args(argv)
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    shares = []
    for workload in tqdm(workloads, unit="workload", leave=False, disable=None):
        if arguments.quick:
            shares.append(measure(workload, timed(workload, Effort(2, 1e-3))))
        else:
            pair = in_own_process(timed, workload, Effort(21, 0.5))
            shares.append(in_own_process(measure, workload, pair))
    write(shares, "mudnn_share_quick" if arguments.quick else "mudnn_share")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
