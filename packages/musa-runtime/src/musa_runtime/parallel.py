# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Data parallelism over the musa devices of one process, like torch.nn.parallel.

torch.nn.DataParallel itself does not support musa: it moves tensors with `torch._C._scatter`, `_gather` and
`_broadcast_coalesced`, which exist only in torch's CUDA builds and accept only CUDA devices. The class here
is a torch.nn.DataParallel with these steps replaced; everything else, including `parallel_apply`, is torch's.

    model = torch.musa.parallel.DataParallel(model.to("musa:0"))

For training over processes use torch.nn.parallel.DistributedDataParallel, which is faster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.autograd import Function
from torch.nn.parallel import parallel_apply

from . import comm
from . import device as _device

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ._types import Device


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, devices: Sequence[Device], *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.source = tensors[0].device
        ctx.count = len(tensors)
        outputs = comm.broadcast_coalesced(tensors, devices)
        constant = [i for i, needed in enumerate(ctx.needs_input_grad[1:]) if not needed]
        ctx.mark_non_differentiable(*[output[i] for output in outputs for i in constant])
        return tuple(tensor for output in outputs for tensor in output)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[Any, ...]:
        return None, *_ReduceAdd.apply(ctx.source, ctx.count, *grads)


class _ReduceAdd(Function):
    @staticmethod
    def forward(ctx: Any, destination: Device, count: int, *grads: torch.Tensor) -> tuple[torch.Tensor, ...]:
        rows = [grads[start : start + count] for start in range(0, len(grads), count)]
        ctx.devices = [row[0].device for row in rows]
        return comm.reduce_add_coalesced(rows, destination)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[Any, ...]:
        return None, None, *_Broadcast.apply(ctx.devices, *grads)


class _Scatter(Function):
    @staticmethod
    def forward(
        ctx: Any, devices: Sequence[Device], chunk_sizes: Sequence[int] | None, dim: int, tensor: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        ctx.dim, ctx.source = dim, tensor.device
        return comm.scatter(tensor, devices, chunk_sizes, dim)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[Any, ...]:
        return None, None, None, _Gather.apply(ctx.source, ctx.dim, *grads)


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, destination: Device, dim: int, *tensors: torch.Tensor) -> torch.Tensor:
        ctx.dim = dim
        ctx.devices = [tensor.device for tensor in tensors]
        ctx.scalars = tensors[0].dim() == 0
        ctx.sizes = [1 if ctx.scalars else tensor.size(dim) for tensor in tensors]
        return comm.gather(tensors, dim, destination)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
        grads = _Scatter.apply(ctx.devices, ctx.sizes, ctx.dim, grad)
        return None, None, *([part[0] for part in grads] if ctx.scalars else grads)


def scatter(inputs: Any, devices: Sequence[Device], dim: int = 0) -> list[Any]:
    """Split the tensors in nested tuples, lists and dicts into a chunk for each device.

    Args:
        inputs: the nested inputs; objects that are not tensors are passed to every device unchanged.
        devices (sequence of devices): the targets.
        dim (int): the dimension to split.

    Returns:
        list: the inputs of each device; fewer than devices if the tensors are too small to split.

    Raises:
        ValueError: the tensors do not give equally many chunks.
    """
    tensors = list(_tensors_in(inputs))
    pieces = [_Scatter.apply(devices, None, dim, tensor) for tensor in tensors]
    counts = {len(piece) for piece in pieces}
    if len(counts) > 1:
        sizes = [tuple(tensor.shape) for tensor in tensors]
        raise ValueError(
            f"scatter over {len(devices)} devices along dimension {dim}: tensors of shapes {sizes} give "
            f"{sorted(counts)} chunks, so some device would go without.\n"
            "Fix: give all of them the same batch size; pass other data as something else than "
            "a tensor"
        )
    results = []
    for position in range(counts.pop() if counts else len(devices)):
        chosen = iter([piece[position] for piece in pieces])
        results.append(_rebuilt(inputs, lambda _, chosen=chosen: next(chosen)))  # type: ignore[misc]
    return results


def gather(outputs: Sequence[Any], destination: Device, dim: int = 0) -> Any:
    """Concatenate the tensors in the nested outputs of each device, which have one structure.

    Args:
        outputs (sequence): the outputs of the devices.
        destination (device): a musa device or "cpu".
        dim (int): the dimension to concatenate; 0-dim tensors become elements of a vector.

    Returns:
        Outputs of the same structure. Objects that are not tensors are taken from the first.
    """
    first = outputs[0]
    if isinstance(first, torch.Tensor):
        return _Gather.apply(destination, dim, *outputs)
    if isinstance(first, dict):
        if any(output.keys() != first.keys() for output in outputs):
            raise ValueError("gather: the replicas returned dicts of different keys")
        return type(first)(
            (key, gather([output[key] for output in outputs], destination, dim)) for key in first
        )
    if isinstance(first, (list, tuple)):
        parts = [gather(column, destination, dim) for column in zip(*outputs, strict=True)]
        return type(first)._make(parts) if hasattr(first, "_make") else type(first)(parts)
    return first


def replicate(
    network: torch.nn.Module, devices: Sequence[Device], detach: bool = False
) -> list[torch.nn.Module]:
    """Copies of a module that share its parameters: all gradients are added to the parameters of `network`.

    Args:
        network (torch.nn.Module): on the first of the devices.
        devices (sequence of devices): devices of the copies; the first shares memory with `network`.
        detach (bool): copy without recording gradients.

    Returns:
        list of Module: one for each device.
    """
    devices = [torch.device("musa", _device.device_index(device)) for device in devices]
    recorded: list[torch.Tensor] = list(network.parameters())
    constant: list[torch.Tensor] = []
    for buffer in network.buffers():
        (recorded if buffer.requires_grad and not detach else constant).append(buffer)
    copies: list[dict[torch.Tensor, torch.Tensor]] = [{} for _ in devices]
    _spread(recorded, devices, copies, detach)
    _spread(constant, devices, copies, True)

    modules = list(network.modules())
    replicas = []
    for own in copies:
        made = {module: module._replicate_for_data_parallel() for module in modules}
        for module, replica in made.items():
            # Plain attributes: a replica's copies are results of the broadcast, not parameters.
            replica._former_parameters = {}
            for name, child in module._modules.items():
                replica._modules[name] = None if child is None else made[child]
            for name, parameter in module._parameters.items():
                if parameter is None:
                    replica._parameters[name] = None
                else:
                    replica._former_parameters[name] = own[parameter]
                    setattr(replica, name, own[parameter])
            for name, buffer in module._buffers.items():
                replica._buffers[name] = None if buffer is None else own[buffer]
        replicas.append(made[network])
    return replicas


def _spread(
    tensors: Sequence[torch.Tensor],
    devices: Sequence[Device],
    copies: Sequence[dict[torch.Tensor, torch.Tensor]],
    detach: bool,
) -> None:
    if not tensors:
        return
    if detach:
        outputs = comm.broadcast_coalesced(tensors, devices)
    else:
        flat = _Broadcast.apply(devices, *tensors)
        outputs = [flat[start : start + len(tensors)] for start in range(0, len(flat), len(tensors))]
    for own, output in zip(copies, outputs, strict=True):
        own.update(zip(tensors, output, strict=True))


class DataParallel(torch.nn.DataParallel):
    """torch.nn.DataParallel over musa devices: each forward pass copies the module to every device, gives
    each a part of the batch, and gathers the results.

    Args:
        module (Module): with parameters and buffers on the first of the devices.
        device_ids (sequence of devices, optional): None means all visible devices.
        output_device (device, optional): device of the results; None is the first of the devices.
        dim (int): the batch's dimension.
    """

    def replicate(self, module: torch.nn.Module, device_ids: Sequence[Device]) -> list[torch.nn.Module]:
        """:func:`replicate`, recording gradients where they are enabled."""
        return replicate(module, device_ids, detach=not torch.is_grad_enabled())

    def scatter(
        self, inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, device_ids: Sequence[Device]
    ) -> tuple[list[Any], list[Any]]:
        """:func:`scatter` for positional and keyword arguments."""
        if not inputs and not kwargs:
            return [], []
        parts = scatter((inputs, kwargs or {}), device_ids, self.dim)
        return [part[0] for part in parts], [part[1] for part in parts]

    def gather(self, outputs: Sequence[Any], output_device: Device) -> Any:
        """:func:`gather` along the batch's dimension."""
        return gather(outputs, output_device, self.dim)


def data_parallel(
    module: torch.nn.Module,
    inputs: Any,
    device_ids: Sequence[Device] | None = None,
    output_device: Device = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """One forward pass of :class:`DataParallel` without a wrapper object.

    Args:
        inputs: a tensor, or a tuple of positional arguments.
        module_kwargs (dict, optional): keyword arguments.
    """
    if not isinstance(inputs, tuple):
        inputs = () if inputs is None else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(  # type: ignore[arg-type]
        *inputs, **(module_kwargs or {})
    )


def _tensors_in(nest: Any) -> Iterator[torch.Tensor]:
    if isinstance(nest, torch.Tensor):
        yield nest
    elif isinstance(nest, dict):
        for value in nest.values():
            yield from _tensors_in(value)
    elif isinstance(nest, (list, tuple)):
        for value in nest:
            yield from _tensors_in(value)


def _rebuilt(nest: Any, replace: Callable[[torch.Tensor], Any]) -> Any:
    if isinstance(nest, torch.Tensor):
        return replace(nest)
    if isinstance(nest, dict):
        return type(nest)((key, _rebuilt(value, replace)) for key, value in nest.items())
    if isinstance(nest, (list, tuple)):
        parts = [_rebuilt(value, replace) for value in nest]
        return type(nest)._make(parts) if hasattr(nest, "_make") else type(nest)(parts)
    return nest


__all__ = ["DataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter"]
