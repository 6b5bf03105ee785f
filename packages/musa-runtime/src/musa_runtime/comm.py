# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Copies tensors between the devices of one process: broadcast, scatter, gather, reduce_add. The names and
meanings are those of torch.cuda.comm, except that complex tensors stay complex.

Copies are queued on the current streams of the devices. The host does not wait for them, except if the
target is in host memory. Devices are int, str or `torch.device`. These functions record no gradients: for
gradients see `torch.musa.parallel`.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torch

from . import device as _device
from .errors import InvalidDeviceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ._types import Device
    from .streams import StreamContext

_BUFFER_SIZE = 10 << 20


def broadcast(
    tensor: torch.Tensor,
    devices: Iterable[Device] | None = None,
    *,
    out: Sequence[torch.Tensor] | None = None,
) -> tuple[torch.Tensor, ...]:
    """Copy a tensor to several devices.

    Args:
        tensor (Tensor): on the host or any musa device.
        devices (iterable of devices): the targets; a device that already has the tensor gets no copy.
        out (sequence of Tensor): musa tensors of the same shape to copy into, instead of `devices`.

    Returns:
        tuple of Tensor: one for each device, or `out`.
    """
    if (devices is None) == (out is None):
        raise ValueError(f"give either devices or out to broadcast, but got devices={devices} and out={out}")
    if out is None:
        return tuple(_sent(tensor, _musa(device)) for device in devices)  # type: ignore[union-attr]
    for position, target in enumerate(out):
        if target.device.type != "musa":
            raise InvalidDeviceError(
                f"broadcast: out[{position}] is on {target.device}; expected a musa device"
            )
        if target.shape != tensor.shape:
            raise ValueError(
                f"broadcast: out[{position}] has shape {tuple(target.shape)}, but the tensor "
                f"{tuple(tensor.shape)}"
            )
        target.copy_(tensor, non_blocking=True)
    return tuple(out)


def broadcast_coalesced(
    tensors: Iterable[torch.Tensor], devices: Iterable[Device], buffer_size: int = _BUFFER_SIZE
) -> tuple[list[torch.Tensor], ...]:
    """Copy many tensors to several devices; small ones are copied together.

    Args:
        tensors (sequence of Tensor): all on the first of the devices, or all on the host.
        devices (iterable of devices): the targets.
        buffer_size (int): maximum of bytes copied together; larger tensors are copied alone.

    Returns:
        tuple of list of Tensor: for each device the tensors in their order. A device that already has them
        gets the tensors themselves.
    """
    tensors = list(tensors)
    devices = [_musa(device) for device in devices]
    outputs: Any = tuple([None] * len(tensors) for _ in devices)
    places = {tensor.device for tensor in tensors}
    if len(places) > 1:
        raise InvalidDeviceError(
            "broadcast_coalesced expects all tensors on one device, but they are on "
            f"{', '.join(sorted(map(str, places)))}"
        )
    for group in _groups(tensors, buffer_size):
        members = [tensors[position] for position in group]
        flat = _flattened(members) if len(group) > 1 else members[0]
        for device, output in zip(devices, outputs, strict=True):
            if device == flat.device:
                copies = members
            else:
                received = _sent(flat, device)
                copies = _unflattened(received, members) if len(group) > 1 else [received]
            for position, copy in zip(group, copies, strict=True):
                output[position] = copy
    return outputs


def reduce_add(inputs: Iterable[torch.Tensor], destination: Device = None) -> torch.Tensor:
    """Sum of tensors of one shape, from several devices.

    Args:
        inputs (sequence of Tensor): on musa devices.
        destination (device, optional): of the sum; None is the current device.

    Returns:
        Tensor: the sum, added in the order of the inputs. A single input that is already on the destination
        is returned itself.
    """
    inputs = list(inputs)
    target = _musa(destination)
    if not inputs:
        raise ValueError("reduce_add expects at least one tensor")
    for position, tensor in enumerate(inputs):
        if tensor.device.type != "musa":
            raise InvalidDeviceError(
                f"reduce_add expects tensors on musa devices, but input {position} is on {tensor.device}"
            )
        if tensor.shape != inputs[0].shape:
            raise ValueError(
                f"reduce_add: input {position} has shape {tuple(tensor.shape)}, but the first "
                f"{tuple(inputs[0].shape)}"
            )
    total = _sent(inputs[0], target)
    for position, tensor in enumerate(inputs[1:], start=1):
        arrived = _sent(tensor, target)
        # The first sum creates a new tensor: no input may change.
        total = total + arrived if position == 1 else total.add_(arrived)
    return total


def reduce_add_coalesced(
    inputs: Iterable[Iterable[torch.Tensor]], destination: Device = None, buffer_size: int = _BUFFER_SIZE
) -> tuple[torch.Tensor, ...]:
    """:func:`reduce_add` for many tensors; small ones are copied together.

    Args:
        inputs (sequence of sequence of Tensor): for each device its tensors, in the same order everywhere.
        destination (device, optional): of the sums; None is the current device.
        buffer_size (int): maximum of bytes copied together.

    Returns:
        tuple of Tensor: the sums. Tensors that are sparse on some devices only are summed as dense ones.
    """
    inputs = [list(tensors) for tensors in inputs]
    target = _musa(destination)
    columns = list(zip(*inputs, strict=True))
    for position, column in enumerate(columns):
        if any(tensor.is_sparse for tensor in column) and not all(tensor.is_sparse for tensor in column):
            columns[position] = tuple(tensor.to_dense() if tensor.is_sparse else tensor for tensor in column)
    results: list[Any] = [None] * len(columns)
    for group in _groups([column[0] for column in columns], buffer_size):
        if len(group) == 1:
            results[group[0]] = reduce_add(columns[group[0]], target)
            continue
        rows = [[columns[position][source] for position in group] for source in range(len(inputs))]
        total = reduce_add([_flattened(row) for row in rows], target)
        for position, part in zip(group, _unflattened(total, rows[0]), strict=True):
            results[position] = part
    return tuple(results)


def scatter(
    tensor: torch.Tensor,
    devices: Iterable[Device] | None = None,
    chunk_sizes: Sequence[int] | None = None,
    dim: int = 0,
    streams: Sequence[torch.Stream | None] | None = None,
    *,
    out: Sequence[torch.Tensor] | None = None,
) -> tuple[torch.Tensor, ...]:
    """Copy chunks of a tensor to several devices.

    Args:
        tensor (Tensor): on the host or any musa device.
        devices (sequence of devices): the targets; equal chunks as `Tensor.chunk` makes them, possibly fewer
            than devices, unless `chunk_sizes` is given.
        chunk_sizes (sequence of int, optional): size of each chunk along `dim`, one for each device.
        dim (int): the dimension to split.
        streams (sequence of Stream or None, optional): for each device the stream to copy on; None is the
            current one. Other streams must wait for it before they use a chunk.
        out (sequence of Tensor): musa tensors to copy into, instead of `devices`; their sizes give the
            chunks.

    Returns:
        tuple of Tensor: the chunks, or `out`. A chunk whose device already holds the tensor is a view of it.
    """
    if out is not None:
        if devices is not None or chunk_sizes is not None:
            raise ValueError("scatter takes devices and chunk_sizes from out; give them or out, not both")
        return _scatter_out(tensor, list(out), dim, streams)
    if devices is None:
        raise ValueError("scatter needs devices or out")
    devices = [_musa(device) for device in devices]
    if chunk_sizes is None:
        chunks = tensor.chunk(len(devices), dim)
    else:
        if len(chunk_sizes) != len(devices):
            raise ValueError(f"scatter: {len(chunk_sizes)} chunk sizes for {len(devices)} devices")
        chunks = tensor.split(list(chunk_sizes), dim)
    results = []
    for position, (chunk, device) in enumerate(zip(chunks, devices, strict=False)):
        with _on_stream(streams, position):
            results.append(_sent(chunk, device))
    return tuple(results)


def _scatter_out(
    tensor: torch.Tensor, out: list[torch.Tensor], dim: int, streams: Sequence[torch.Stream | None] | None
) -> tuple[torch.Tensor, ...]:
    for position, target in enumerate(out):
        if target.device.type != "musa":
            raise InvalidDeviceError(
                f"scatter: out[{position}] is on {target.device}; expected a musa device"
            )
    sizes = [target.size(dim) for target in out]
    if sum(sizes) != tensor.size(dim):
        raise ValueError(
            f"scatter: the sizes of out along dimension {dim} are {sizes}; they must add up to "
            f"{tensor.size(dim)}"
        )
    for position, (chunk, target) in enumerate(zip(tensor.split(sizes, dim), out, strict=True)):
        if chunk.shape != target.shape:
            raise ValueError(
                f"scatter: out[{position}] has shape {tuple(target.shape)}, but its chunk "
                f"{tuple(chunk.shape)}"
            )
        with _on_stream(streams, position):
            target.copy_(chunk, non_blocking=True)
    return tuple(out)


def gather(
    tensors: Iterable[torch.Tensor],
    dim: int = 0,
    destination: Device = None,
    *,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Concatenate tensors of several devices on one device.

    Args:
        tensors (sequence of Tensor): on musa devices, with equal shapes except for `dim`. 0-dim tensors count
            as having one element.
        dim (int): the dimension to concatenate.
        destination (device, optional): a musa device or "cpu"; None is the current musa device.
        out (Tensor): on a musa device or the host, of the right shape, to copy into instead of `destination`.

    Returns:
        Tensor: the concatenation, or `out`.
    """
    tensors = [tensor.view(1) if tensor.dim() == 0 else tensor for tensor in tensors]
    if not tensors:
        raise ValueError("gather expects at least one tensor")
    for position, tensor in enumerate(tensors):
        if tensor.device.type != "musa":
            raise InvalidDeviceError(
                f"gather expects tensors on musa devices, but input {position} is on {tensor.device}"
            )
        if _without(tensor.shape, dim) != _without(tensors[0].shape, dim):
            raise ValueError(
                f"gather along dimension {dim}: input {position} has shape {tuple(tensor.shape)}, but the "
                f"first {tuple(tensors[0].shape)}"
            )
    shape = list(tensors[0].shape)
    shape[dim] = sum(tensor.size(dim) for tensor in tensors)
    if out is None:
        out = torch.empty(
            shape,
            dtype=tensors[0].dtype,
            device=_destination(destination),
            memory_format=_common_format(tensors),
        )
    elif destination is not None:
        raise ValueError("gather takes the destination from out; give one of them, not both")
    elif list(out.shape) != shape:
        raise ValueError(f"gather: out has shape {tuple(out.shape)}, but the result has {tuple(shape)}")
    for tensor, part in zip(tensors, out.split([tensor.size(dim) for tensor in tensors], dim), strict=True):
        part.copy_(tensor, non_blocking=part.device.type == "musa")
    return out


def _musa(device: Device) -> torch.device:
    return torch.device("musa", _device.device_index(device))


def _destination(device: Device) -> torch.device:
    if device == -1:
        warnings.warn(
            "-1 for host memory is deprecated in torch.cuda.comm.gather, and so it is here; give 'cpu'",
            FutureWarning,
            stacklevel=3,
        )
        return torch.device("cpu")
    index = _device.device_index(device, allow_cpu=True)
    return torch.device("cpu") if index < 0 else torch.device("musa", index)


def _sent(tensor: torch.Tensor, device: Device) -> torch.Tensor:
    return tensor if tensor.device == device else tensor.to(device, non_blocking=True)


def _on_stream(streams: Sequence[torch.Stream | None] | None, position: int) -> StreamContext:
    from .streams import StreamContext

    return StreamContext(None if streams is None else streams[position])


def _without(shape: Iterable[int], dim: int) -> list[int]:
    rest = list(shape)
    del rest[dim]
    return rest


def _common_format(tensors: Sequence[torch.Tensor]) -> torch.memory_format:
    for layout in (torch.channels_last, torch.channels_last_3d):
        dimensions = 4 if layout == torch.channels_last else 5
        if all(t.dim() == dimensions and t.is_contiguous(memory_format=layout) for t in tensors) and not all(
            t.is_contiguous() for t in tensors
        ):
            return layout
    return torch.contiguous_format


def _groups(tensors: Sequence[torch.Tensor], buffer_size: int) -> list[list[int]]:
    """Positions of tensors that are copied together: dense, of one dtype, up to `buffer_size` bytes; in the
    order of each group's first tensor."""
    groups: list[list[int]] = []
    open_groups: dict[torch.dtype, tuple[list[int], int]] = {}
    for position, tensor in enumerate(tensors):
        nbytes = tensor.numel() * tensor.element_size()
        if tensor.layout != torch.strided or nbytes >= buffer_size:
            groups.append([position])
            continue
        group, size = open_groups.get(tensor.dtype, (None, 0))
        if group is None or size + nbytes > buffer_size:
            group, size = [], 0
            groups.append(group)
        group.append(position)
        open_groups[tensor.dtype] = (group, size + nbytes)
    return groups


def _flattened(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def _unflattened(flat: torch.Tensor, like: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    parts = flat.split([tensor.numel() for tensor in like])
    # `.data`: parts of one buffer would share a version counter, and an in-place change of one (a running
    # mean) would forbid the backward pass of all.
    return [part.view(tensor.shape).data for part, tensor in zip(parts, like, strict=True)]


__all__ = ["broadcast", "broadcast_coalesced", "gather", "reduce_add", "reduce_add_coalesced", "scatter"]
