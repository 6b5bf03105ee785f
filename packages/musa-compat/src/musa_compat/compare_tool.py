# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.utils.compare_tool`: tools of `torch_musa.debug` with the vendor's arguments.

The arguments are those of the vendor's manual. Operators are named as there, "torch.ops.aten.addmm" or
"torch.ops.aten.addmm.default", or as in `torch_musa.debug`.
"""

import shutil
import threading
from pathlib import Path

import torch

from torch_musa import debug
from torch_musa.debug import call_file
from torch_musa.debug.reproducer import rank_of_process
from torch_musa.debug.selection import Selection

from .deprecation import warn_once

__all__ = [
    "CompareWithCPU",
    "ModuleInfo",
    "NanInfTracker",
    "compare_for_single_op",
    "nan_inf_track_for_single_op",
    "open_module_tracker",
]

_MODULE = "torch_musa.utils.compare_tool"
_INEXACT = (
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
    *(torch.complex128, torch.complex64),
)


class _Controlled:
    """The arguments that both tools have, over an observer of `torch_musa.debug`."""

    def __init__(self, observer, enabled, verbose, target_op, white_list, should_log_to_file, output_dir,
                 enable_ranks, start_step, end_step):  # fmt: skip
        super().__init__(**observer)
        rank = rank_of_process() or 0
        self._enabled = enabled and (enable_ranks is None or rank in enable_ranks)
        self._verbose = verbose
        self._targets = Selection(_patterns(target_op))
        self._accepted = Selection(_patterns(white_list)) if white_list else None
        self._output_dir = Path(output_dir)
        log = self._output_dir / f"{type(self).__name__}_rank{rank}.log"
        self._log = log if should_log_to_file else None
        self._start_step, self._end_step = start_step, end_step
        self._running, self._reported = set(), 0
        self._reporting = threading.Lock()
        self.step_cnt = 0

    def __enter__(self):
        return super().__enter__() if self._enabled else self

    def __exit__(self, *exc_info):
        if self._enabled:
            super().__exit__(*exc_info)

    def step(self):
        """Ends a step: operators count as those of step `step_cnt`, which starts at 0."""
        self.step_cnt += 1

    def before(self, call):
        if not self._includes(call):
            return
        self._running.add(call.index)
        if self._verbose:
            self._write(f"{call.where()}: runs")
        super().before(call)

    def after(self, call):
        if call.index not in self._running:
            return
        self._running.discard(call.index)
        super().after(call)
        with self._reporting:
            found = self._found()
            new, self._reported = found[self._reported :], len(found)
        for one in new:
            self._report(one)

    def _includes(self, call):
        is_over = self._end_step is not None and self.step_cnt >= self._end_step
        if self.step_cnt < self._start_step or is_over:
            return False
        return self._targets.includes(call) and not (self._accepted and self._accepted.includes(call))

    def _write(self, line):
        if self._log is None:
            print(line, flush=True)
            return
        with self._reporting:
            self._log.parent.mkdir(parents=True, exist_ok=True)
            with self._log.open("a", encoding="utf-8") as log:
                print(line, file=log)


class CompareWithCPU(_Controlled, debug.Comparison):
    """Also runs each operator of a `with` block on the CPU: `torch_musa.debug.compare`.

    Args:
        enabled (bool): False compares nothing.
        atol, rtol (float): tolerances of floating-point and complex results. Default: those of
            `torch_musa.debug.compare`. Integers and booleans must be equal.
        verbose (bool): also prints each operator before it runs.
        target_op (list of str): the operators to compare; default: all.
        white_list (list of str): operators that are not compared.
        dump_error_data (bool): saves the arguments of differing calls: the first call of each operator to
            `<output_dir>/torch.ops.aten.NAME_inputs.pkl`, and up to ten calls in folders beside it. Ranks of
            a distributed program use subfolders of `output_dir`.
        should_log_to_file (bool): writes `<output_dir>/CompareWithCPU_rankN.log` instead of printing.
        output_dir (path)
        enable_ranks (list of int): the ranks of a distributed program that compare; default: all.
        start_step, end_step (int): compares while start_step <= step_cnt < end_step; see `step`.

    Attributes:
        differences (list of torch_musa.debug.Difference): printed with the label [ERROR] when they are found.
        step_cnt (int): number of calls of `step`.
    """

    def __init__(self, *, enabled=True, atol=None, rtol=None, verbose=False, target_op=None, white_list=None,
                 dump_error_data=False, should_log_to_file=False, output_dir="compare_with_cpu",
                 enable_ranks=None, start_step=0, end_step=None):  # fmt: skip
        warn_once(f"{_MODULE}.CompareWithCPU", "torch_musa.debug.compare")
        self._dumps = dump_error_data
        observer = {"folder": output_dir if dump_error_data else None, "tolerances": _tolerances(rtol, atol)}
        super().__init__(observer, enabled, verbose, target_op, white_list, should_log_to_file, output_dir,
                         enable_ranks, start_step, end_step)  # fmt: skip

    def _found(self):
        return self.differences

    def _report(self, difference):
        self._write(f"[ERROR] {difference}")
        if not difference.folder:
            return
        folder = Path(difference.folder)
        target = folder.with_name(f"{_vendor_name(difference.operator)}_inputs.pkl")
        if not target.exists():
            shutil.copyfile(folder / "call.pt", target)


class NanInfTracker(_Controlled, debug.NonFiniteTracker):
    """Finds operators of a `with` block that first return NaN or infinity.

    See `torch_musa.debug.track_nonfinite`.

    Args: those of `CompareWithCPU`, without tolerances and `dump_error_data`.

    Attributes:
        findings (list of torch_musa.debug.NonFinite): printed with the label [WARNING] when they are found.
        step_cnt (int): number of calls of `step`.
    """

    def __init__(self, *, enabled=True, verbose=False, target_op=None, white_list=None,
                 should_log_to_file=False, output_dir="nan_inf_tracker", enable_ranks=None, start_step=0,
                 end_step=None):  # fmt: skip
        warn_once(f"{_MODULE}.NanInfTracker", "torch_musa.debug.track_nonfinite")
        super().__init__({}, enabled, verbose, target_op, white_list, should_log_to_file, output_dir,
                         enable_ranks, start_step, end_step)  # fmt: skip

    def _found(self):
        return self.findings

    def _report(self, finding):
        self._write(f"[WARNING] {finding}")


class ModuleInfo:
    """Programs import this name; its interface is not public knowledge, so it cannot be used.

    Raises:
        NotImplementedError: when it is called.
    """

    def __init__(self, *args, **kwargs):
        raise NotImplementedError(
            f"{_MODULE}.ModuleInfo has no documented interface.\n"
            "Fix: read the module of a difference from torch_musa.debug.Difference.module"
        )


def open_module_tracker(model):
    """Does nothing: the tools here name modules without it.

    Args:
        model (torch.nn.Module)
    """
    warn_once(f"{_MODULE}.open_module_tracker", "torch_musa.debug, which names modules without it")


def compare_for_single_op(inputs_data_save_path, op_func, atol=None, rtol=None):
    """Repeats a saved call of an operator on the device and on the CPU.

    Args:
        inputs_data_save_path (path): a file that `CompareWithCPU` or `torch_musa.debug` wrote.
        op_func (callable): the operator, such as `torch.ops.aten.addmm`.
        atol, rtol (float): as in `CompareWithCPU`.

    Returns:
        tuple of (bool, list, dict, object): whether the results agree; the arguments and the result, on the
            device.

    Raises:
        torch_musa.debug.CallFileError: if the file contains no call.
    """
    args, kwargs = _saved_arguments(inputs_data_save_path)
    with debug.compare(None, tolerances=_tolerances(rtol, atol)) as comparison:
        result = op_func(*args, **kwargs)
    return not comparison.differences, args, kwargs, result


def nan_inf_track_for_single_op(inputs_data_save_path, op_func):
    """Repeats a saved call of an operator on the device, and tests its result for NaN and infinity.

    Args: those of `compare_for_single_op`, without tolerances.

    Returns:
        tuple of (bool, list, dict, object): whether the result is finite; the arguments and the result.

    Raises:
        torch_musa.debug.CallFileError: if the file contains no call.
    """
    args, kwargs = _saved_arguments(inputs_data_save_path)
    with debug.track_nonfinite() as tracker:
        result = op_func(*args, **kwargs)
    return not tracker.affected, args, kwargs, result


def _saved_arguments(path):
    return call_file.arguments(call_file.load(path), "musa")


def _tolerances(rtol, atol):
    if rtol is None and atol is None:
        return None
    return dict.fromkeys(_INEXACT, (rtol or 0.0, atol or 0.0))


def _patterns(names):
    """Returns names of operators as `torch_musa.debug` writes them."""
    return [_pattern(name) for name in ([names] if isinstance(names, str) else names or ())]


def _pattern(name):
    if not name.startswith("torch.ops."):
        return name
    namespace, _, operator = name.removeprefix("torch.ops.").partition(".")
    return f"{namespace}::{operator.removesuffix('.default')}"


def _vendor_name(name):
    """Returns "torch.ops.aten.add" for "aten::add.Tensor"."""
    namespace, _, operator = name.partition("::")
    return f"torch.ops.{namespace}.{operator.partition('.')[0]}"
