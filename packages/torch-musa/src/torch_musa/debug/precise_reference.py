# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Distinguishes rounding from wrong results by recomputing a call in float64.

A second computation, with inputs perturbed by a rounding error, shows how much rounding can change the
result: if terms cancel, every digit.
"""

import torch

from .call import tensors_of

# How much larger the device's error may be than the CPU's, and than the effect of rounding the
# inputs.
FACTOR = 10.0
EPSILONS = 4.0  # rounding errors of the largest element that the device is always allowed

_WIDER = {torch.complex64: torch.complex128, torch.complex32: torch.complex128}


class PreciseReference:
    """Results of a call in float64, computed when first needed.

    Args:
        call (OperatorCall): the call.
        arguments (HostArguments): unmodified copies of its arguments; not changed.
        run (callable): runs the operator on the CPU with `args` and `kwargs`.
    """

    def __init__(self, call, arguments, run):
        self._call, self._arguments, self._run = call, arguments, run
        self._results = {}

    def is_rounding(self, name, actual, reference):
        """Whether rounding alone can explain the error of an output.

        Args:
            name (str): name of the output, as in `OperatorCall.outputs`.
            actual, reference (Tensor): results of the device and of the CPU, in the same dtype, both on
                the CPU.
        """
        if not (actual.is_floating_point() or actual.is_complex()):
            return False
        epsilon = torch.finfo(actual.dtype).eps
        exact = self._output(name, 0.0)
        if exact is None or exact.shape != actual.shape or not exact.isfinite().all():
            return False
        disturbed = self._output(name, epsilon)
        ours, theirs, effect = (
            float((t.to(exact.dtype) - exact).abs().max()) for t in (actual, reference, disturbed)
        )
        bound = epsilon * EPSILONS * float(exact.abs().max())
        return ours <= FACTOR * max(theirs, effect) + bound

    def _output(self, name, noise):
        """Returns an output in float64 for inputs perturbed by up to `noise` times their value."""
        if noise not in self._results:
            self._results[noise] = self._compute(noise)
        return self._results[noise].get(name)

    def _compute(self, noise):
        wide = {}
        generator = torch.Generator().manual_seed(0)  # does not advance the program's generator

        def widen(value):
            if isinstance(value, torch.Tensor):
                if id(value) not in wide:
                    copy = value.to(_wide_dtype(value.dtype), copy=True)
                    if noise and copy.is_floating_point():
                        share = torch.rand(copy.shape, generator=generator, dtype=torch.float64)
                        copy = copy * (1 + noise * (2 * share - 1))
                    wide[id(value)] = copy
                return wide[id(value)]
            if isinstance(value, torch.dtype):
                return _wide_dtype(value)
            if isinstance(value, (list, tuple)):
                return type(value)(widen(item) for item in value)
            return value

        if _share_storage(self._arguments.named().values()):
            return {}
        args = tuple(widen(value) for value in self._arguments.args)
        kwargs = {name: widen(value) for name, value in self._arguments.kwargs.items()}
        try:
            result = self._run(args, kwargs)
        except (RuntimeError, TypeError, ValueError, IndexError):
            # The operator has no float64 kernel on the CPU, or fixes its dtypes: the call remains
            # suspect.
            return {}
        outputs = dict(tensors_of("result", result))
        for name, tensor in self._call.written:
            outputs.setdefault(name, widen(self._arguments.on_host(tensor)))
        return outputs


def _wide_dtype(dtype):
    return _WIDER.get(dtype, torch.float64 if dtype.is_floating_point else dtype)


def _share_storage(tensors):
    """Whether tensors share memory, which conversion to another dtype would break."""
    owners = {}
    return any(
        owners.setdefault(tensor.untyped_storage()._cdata, id(tensor)) != id(tensor) for tensor in tensors
    )
