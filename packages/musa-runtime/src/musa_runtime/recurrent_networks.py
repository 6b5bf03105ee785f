# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Makes torch.compile and torch.export trace recurrent networks by torch's own decompositions."""

from __future__ import annotations

import torch

from .initialization import call_when_initialized


def register() -> None:
    """Queues the registration for the first use of the device, when the runtime's kernels are installed."""
    call_when_initialized(_trace_by_composition, ("recurrent networks",))


def _trace_by_composition() -> None:
    # The runtime's kernels of these operators would hide torch's Python decompositions from the Python
    # dispatcher, which torch.compile and torch.export trace with.
    aten = torch.ops.aten
    for packet in (aten.lstm, aten.gru, aten.rnn_tanh, aten.rnn_relu):
        for overload in (packet.input, packet.data):
            for key in (torch._C.DispatchKey.AutogradPrivateUse1, torch._C.DispatchKey.PrivateUse1):
                if key not in overload.py_kernels:  # a failed initialisation may be repeated
                    overload.py_impl(key)(overload.decompose)
