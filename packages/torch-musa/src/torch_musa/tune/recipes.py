# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The operators whose operands can be made, and arguments by name for each family.

A recipe gives some arguments; `inputs.py` takes defaults of the schema or values by type for the others.
Names that an overload lacks are ignored, so that one recipe serves an operator and its gradient. Operators
that are neither elementwise nor listed here get no operands: kernels of internal operators trust theirs, and
end the process if they are wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .maker import Maker

    Recipe = Callable[[Maker], dict[str, Any]]

_RECIPES: dict[str, Recipe] = {}
_TABLE_ORDER: list[str] = []
# Operators on matrices of one shape, besides those that torch tags as elementwise or reductions.
_OF_MATRICES = frozenset((
    "all", "any", "amax", "amin", "aminmax", "argmax", "argmin", "argsort", "cat", "count_nonzero",
    "cumprod", "cumsum", "cummax", "cummin", "constant_pad_nd", "dist", "diff", "diag_embed", "flip",
    "floor_divide", "fmod", "frexp", "glu", "hardshrink_backward", "hardsigmoid_backward", "hardswish",
    "hardswish_backward",  "huber_loss", "huber_loss_backward", "isin", "kthvalue",
    "linalg_vector_norm", "log_sigmoid_forward",  "logcumsumexp", "logsumexp",
    "max", "mean", "median", "min", "mode", "mse_loss", "mse_loss_backward", "nanmedian", "nansum",
    "nonzero", "norm", "prod", "_prelu_kernel", "_prelu_kernel_backward", "renorm", "remainder", "roll",
    "rsub", "smooth_l1_loss", "smooth_l1_loss_backward", "softplus_backward", "softshrink_backward",
    "sort", "stack", "std", "std_mean", "sum", "topk", "trace", "tril", "triu", "_unique", "_unique2",
    "var", "var_mean", "zero", "swiglu",
))  # fmt: skip


def find(op: str) -> Recipe | None:
    """Returns the recipe of an operator such as `"aten::mm.out"`, or None."""
    return _RECIPES.get(_base(op))


def is_known(op: str, tags: Sequence[torch.Tag]) -> bool:
    """Whether operands can be made for an operator with these tags."""
    name = _base(op)
    elementwise = torch.Tag.pointwise in tags or torch.Tag.reduction in tags
    return name in _RECIPES or name in _OF_MATRICES or elementwise or name.startswith("_foreach_")


def importance(op: str) -> int:
    """Returns the position of an operator: those of the table first, in its order."""
    base = _base(op)
    return _TABLE_ORDER.index(base) if base in _TABLE_ORDER else len(_TABLE_ORDER)


def _base(op: str) -> str:
    name = op.partition("::")[2].partition(".")[0]
    return name if name in _RECIPES or name.endswith("__") else name.removesuffix("_")


def _recipe(names: str) -> Callable[[Recipe], Recipe]:
    def register(recipe: Recipe) -> Recipe:
        for name in names.split():
            _RECIPES[name] = recipe
            _TABLE_ORDER.append(name)
        return recipe

    return register


# ---- products


@_recipe("mm addmm _addmm_activation linear")
def _matrices(m: Maker) -> dict[str, Any]:
    s = m.side(3)
    left, right = m.values(s, s), m.values(s, s)
    return {
        "self": left, "mat1": left, "mat2": right, "input": left, "weight": right, "bias": m.values(s),
    }  # fmt: skip


_RECIPES["addmm"] = _RECIPES["_addmm_activation"] = lambda m: {**_matrices(m), "self": m.values(m.side(3))}


@_recipe("bmm baddbmm addbmm")
def _batches(m: Maker) -> dict[str, Any]:
    s = m.side(12)
    left, right = m.values(4, s, s), m.values(4, s, s)
    return {"self": left, "mat2": right, "batch1": left, "batch2": right}


_RECIPES["addbmm"] = lambda m: {**_batches(m), "self": m.values(m.side(12), m.side(12))}


@_recipe("mv addmv addr dot vdot")
def _vectors(m: Maker) -> dict[str, Any]:
    vector = m.values(m.side())
    return {"mat": m.values(*m.square), "vec": vector, "vec1": vector, "vec2": vector}


_RECIPES["addmv"] = lambda m: {**_vectors(m), "self": m.values(m.side())}
_RECIPES["dot"] = _RECIPES["vdot"] = lambda m: {
    "self": m.values(m.numel), "tensor": m.values(m.numel), "other": m.values(m.numel),
}  # fmt: skip


# ---- attention


@_recipe(
    "_scaled_dot_product_fused_attention_overrideable _scaled_dot_product_flash_attention "
    "_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention"
)
def _attention(m: Maker) -> dict[str, Any]:
    return {**{name: m.values(*m.heads) for name in ("query", "key", "value")}, "compute_log_sumexp": True}


@_recipe("_scaled_dot_product_fused_attention_overrideable_backward")
def _attention_backward(m: Maker) -> dict[str, Any]:
    query, key, value = (m.values(*m.heads) for _ in range(3))
    forward = torch.ops.aten._scaled_dot_product_fused_attention_overrideable(query, key, value)
    out, logsumexp, cum_q, cum_k, max_q, max_k, seed, offset, _ = forward
    return {
        "grad_out": m.values(*m.heads), "query": query, "key": key, "value": value, "attn_bias": None,
        "grad_input_mask": [True, True, True, False], "out": out, "logsumexp": logsumexp, "cum_seq_q": cum_q,
        "cum_seq_k": cum_k, "max_q": max_q, "max_k": max_k, "dropout_p": 0.0, "is_causal": False,
        "philox_seed": seed, "philox_offset": offset,
    }  # fmt: skip


# ---- convolutions


@_recipe(
    "convolution convolution_backward _convolution convolution_overrideable "
    "convolution_backward_overrideable _slow_conv2d_forward"
)
def _convolution(m: Maker) -> dict[str, Any]:
    channels = m.image[1]
    image = m.values(*m.image)
    return {
        "input": image, "self": image, "grad_output": m.values(*m.image),
        "weight": m.values(channels, channels, 3, 3), "bias": m.values(channels), "bias_sizes": [channels],
        "kernel_size": [3, 3], "stride": [1, 1], "padding": [1, 1], "dilation": [1, 1], "transposed": False,
        "output_padding": [0, 0], "groups": 1, "output_mask": [True, True, True],
    }  # fmt: skip


@_recipe("_conv_depthwise2d conv_depthwise2d")
def _depthwise(m: Maker) -> dict[str, Any]:
    return {**_convolution(m), "weight": m.values(m.image[1], 1, 3, 3)}


# ---- norms and softmax


@_recipe("native_layer_norm native_layer_norm_backward _fused_rms_norm _fused_rms_norm_backward")
def _layer_norm(m: Maker) -> dict[str, Any]:
    s = m.side()
    return {
        "input": m.values(s, s), "grad_out": m.values(s, s), "normalized_shape": [s],
        "mean": m.statistics(s, 1), "rstd": m.statistics(s, 1), "weight": m.values(s), "bias": m.values(s),
        "eps": 1e-5, "output_mask": [True, True, True],
    }  # fmt: skip


_RECIPES["_fused_rms_norm_backward"] = lambda m: {**_layer_norm(m), "output_mask": [True, True]}


@_recipe(
    "native_batch_norm native_batch_norm_backward _native_batch_norm_legit _batch_norm_with_update "
    "_native_batch_norm_legit_no_training"
)
def _batch_norm(m: Maker) -> dict[str, Any]:
    channels = m.image[1]
    return {
        "input": m.values(*m.image), "grad_out": m.values(*m.image), "weight": m.values(channels),
        "bias": m.values(channels), "running_mean": m.values(channels), "running_var": m.unit(channels),
        "save_mean": m.statistics(channels), "save_invstd": m.statistics(channels), "training": True,
        "train": True, "momentum": 0.1, "eps": 1e-5, "output_mask": [True, True, True],
    }  # fmt: skip


@_recipe("native_group_norm native_group_norm_backward")
def _group_norm(m: Maker) -> dict[str, Any]:
    count, channels, height, width = m.image
    return {
        "input": m.values(*m.image), "grad_out": m.values(*m.image), "weight": m.values(channels),
        "bias": m.values(channels), "mean": m.statistics(count, 2), "rstd": m.statistics(count, 2),
        "N": count, "C": channels, "HxW": height * width, "group": 2, "eps": 1e-5,
        "output_mask": [True, True, True],
    }  # fmt: skip


@_recipe("_softmax _softmax_backward_data _log_softmax _log_softmax_backward_data")
def _softmax(m: Maker) -> dict[str, Any]:
    return {"output": m.unit(*m.square), "dim": -1, "half_to_float": False, "input_dtype": m.dtype}


# ---- losses


@_recipe("nll_loss_forward nll_loss_backward")
def _nll_loss(m: Maker) -> dict[str, Any]:
    s = m.side()
    return {
        "self": m.values(s, s), "target": m.index(s, high=s), "reduction": 1, "ignore_index": -100,
        "grad_output": m.values(), "total_weight": torch.tensor(float(s), dtype=m.dtype, device=m.device),
    }  # fmt: skip


@_recipe("nll_loss2d_forward nll_loss2d_backward")
def _nll_loss2d(m: Maker) -> dict[str, Any]:
    count, channels, height, width = m.image
    total = torch.tensor(float(count * height * width), dtype=m.dtype, device=m.device)
    return {
        "self": m.values(*m.image), "target": m.index(count, height, width, high=channels), "reduction": 1,
        "ignore_index": -100, "grad_output": m.values(), "total_weight": total,
    }  # fmt: skip


@_recipe("binary_cross_entropy binary_cross_entropy_backward")
def _cross_entropy(m: Maker) -> dict[str, Any]:
    return {
        "self": m.unit(*m.square), "target": m.unit(*m.square), "grad_output": m.values(*m.square),
        "reduction": 0,
    }  # fmt: skip


# ---- embeddings, indices


@_recipe("embedding embedding_dense_backward")
def _embedding(m: Maker) -> dict[str, Any]:
    rows = max(16, m.numel // 64)
    return {
        "weight": m.values(rows, 64), "indices": m.index(rows, high=rows), "grad_output": m.values(rows, 64),
        "num_weights": rows, "padding_idx": -1, "scale_grad_by_freq": False,
    }  # fmt: skip


@_recipe("_embedding_bag _embedding_bag_forward_only")
def _embedding_bag(m: Maker) -> dict[str, Any]:
    rows = max(16, m.numel // 64)
    offsets = torch.arange(0, rows, 4, device=m.device)
    return {"weight": m.values(rows, 64), "indices": m.index(rows, high=rows), "offsets": offsets}


@_recipe("index_put _index_put_impl")
def _accumulated_rows(m: Maker) -> dict[str, Any]:
    s = m.side()
    rows = max(4, s // 16)  # each row gets many values, as in the gradient of an index
    return {
        "self": m.values(rows, s), "indices": [m.index(s, high=rows)], "values": m.values(s, s),
        "accumulate": True,
    }  # fmt: skip


@_recipe("index index_select index_add index_copy index_fill index_reduce")
def _indexed_rows(m: Maker) -> dict[str, Any]:
    s = m.side()
    rows = m.permutation(s)  # each row once, so that the order of writes does not matter
    return {
        "self": m.values(s, s), "indices": [rows], "index": rows, "dim": 0, "source": m.values(s, s),
        "reduce": "amax",
    }  # fmt: skip


@_recipe("gather scatter_add scatter_reduce scatter")
def _gathered(m: Maker) -> dict[str, Any]:
    s = m.side()
    index = m.permutation(s).expand(s, s).contiguous()
    return {"dim": 1, "index": index, "src": m.values(s, s), "reduce": "sum"}


_RECIPES["scatter"] = lambda m: {**_gathered(m), "reduce": "add"}


@_recipe("take put")
def _taken(m: Maker) -> dict[str, Any]:
    return {"index": m.permutation(m.side() ** 2).reshape(m.square), "source": m.values(*m.square)}


@_recipe("masked_fill masked_select masked_scatter where")
def _masked(m: Maker) -> dict[str, Any]:
    return {
        "mask": m.mask(*m.square), "condition": m.mask(*m.square), "value": m.values(),
        "source": m.values(*m.square),
    }  # fmt: skip


@_recipe("fill")
def _filled(m: Maker) -> dict[str, Any]:
    return {"value": m.values()}


@_recipe("bucketize searchsorted")
def _sorted(m: Maker) -> dict[str, Any]:
    boundaries = torch.linspace(-1, 1, 1024, device=m.device).to(m.dtype)
    return {"boundaries": boundaries, "sorted_sequence": boundaries}


@_recipe("bincount")
def _counted(m: Maker) -> dict[str, Any]:
    return {"self": m.index(m.numel, high=256)}


# ---- pooling and resizing


@_recipe(
    "max_pool2d_with_indices max_pool2d_with_indices_backward avg_pool2d avg_pool2d_backward "
    "_adaptive_avg_pool2d _adaptive_avg_pool2d_backward adaptive_avg_pool2d adaptive_max_pool2d"
)
def _pooling(m: Maker) -> dict[str, Any]:
    count, channels, height, width = m.image
    pooled = (count, channels, height // 2, width // 2)
    rows, columns = (torch.arange(0, side, 2, device=m.device) for side in (height, width))
    first = (rows[:, None] * width + columns).expand(pooled).contiguous()  # of each window
    return {
        "self": m.values(*m.image), "grad_output": m.values(*pooled), "kernel_size": [2, 2], "stride": [2, 2],
        "padding": [0, 0], "dilation": [1, 1], "ceil_mode": False, "indices": first,
        "count_include_pad": True, "divisor_override": None, "output_size": list(pooled[2:]),
    }  # fmt: skip


@_recipe(
    "upsample_nearest2d upsample_nearest2d_backward upsample_bilinear2d upsample_bilinear2d_backward "
    "upsample_bicubic2d upsample_bicubic2d_backward "
    "_upsample_nearest_exact2d _upsample_nearest_exact2d_backward "
    "_upsample_bilinear2d_aa _upsample_bicubic2d_aa"
)
def _resizing(m: Maker) -> dict[str, Any]:
    count, channels, height, width = m.image
    size = [height * 2, width * 2]
    return {
        "self": m.values(*m.image), "output_size": size, "input_size": list(m.image), "align_corners": False,
        "grad_output": m.values(count, channels, *size),
    }  # fmt: skip


@_recipe("grid_sampler_2d")
def _sampling(m: Maker) -> dict[str, Any]:
    count, _, height, width = m.image
    return {
        "input": m.values(*m.image), "grid": m.values(count, height, width, 2), "interpolation_mode": 0,
        "padding_mode": 0, "align_corners": False,
    }  # fmt: skip


@_recipe("im2col reflection_pad2d replication_pad2d")
def _padded(m: Maker) -> dict[str, Any]:
    return {
        "self": m.values(*m.image), "kernel_size": [3, 3], "dilation": [1, 1], "padding": [1, 1, 1, 1],
        "stride": [1, 1],
    }  # fmt: skip


_RECIPES["im2col"] = lambda m: {**_padded(m), "padding": [1, 1]}

# ---- elements


@_recipe("clamp clamp_min clamp_max")
def _clamped(m: Maker) -> dict[str, Any]:
    return {"min": -0.5, "max": 0.5}


@_recipe("glu_backward")
def _gated(m: Maker) -> dict[str, Any]:
    s = m.side()
    return {"grad_output": m.values(s, s // 2), "self": m.values(s, s), "dim": -1}


@_recipe("threshold_backward hardtanh_backward elu_backward leaky_relu_backward")
def _activation_backward(m: Maker) -> dict[str, Any]:
    return {"self_is_result": False, "is_result": False, "min_val": -0.5, "max_val": 0.5, "threshold": 0.0}


@_recipe("log_sigmoid_backward")
def _log_sigmoid_backward(m: Maker) -> dict[str, Any]:
    values = m.values(*m.square)
    return {"self": values, "buffer": torch.exp(-values.abs())}  # the CPU's kernel reads the buffer


@_recipe("_cdist_forward")
def _distances(m: Maker) -> dict[str, Any]:
    return {"x1": m.values(m.side(), 16), "x2": m.values(m.side(), 16), "p": 2.0}


# ---- recurrent cells and optimizers


def _cell(m: Maker, gates: int, state: str) -> dict[str, Any]:
    h = m.side(4)
    return {
        "input_gates": m.values(h, gates * h), "hidden_gates": m.values(h, gates * h), state: m.values(h, h),
        "input_bias": m.values(gates * h), "hidden_bias": m.values(gates * h),
    }  # fmt: skip


@_recipe("_thnn_fused_lstm_cell")
def _lstm(m: Maker) -> dict[str, Any]:
    return _cell(m, 4, "cx")


@_recipe("_thnn_fused_gru_cell")
def _gru(m: Maker) -> dict[str, Any]:
    return _cell(m, 3, "hx")


@_recipe("_fused_adam _fused_adamw _fused_sgd _fused_adagrad")
def _optimizer(m: Maker) -> dict[str, Any]:
    def tensors() -> list[torch.Tensor]:
        return [m.unit(m.numel // 4) for _ in range(4)]

    return {
        "self": tensors(), "grads": tensors(), "exp_avgs": tensors(), "exp_avg_sqs": tensors(),
        "max_exp_avg_sqs": [], "state_sums": tensors(), "momentum_buffer_list": [], "weight_decay": 0.01,
        "state_steps": [torch.ones((), device=m.device) for _ in range(4)], "lr": 1e-3, "beta1": 0.9,
        "beta2": 0.999, "eps": 1e-8, "amsgrad": False, "maximize": False, "momentum": 0.0, "dampening": 0.0,
        "nesterov": False, "is_first_step": False, "lr_decay": 0.0,
    }  # fmt: skip


@_recipe("_amp_foreach_non_finite_check_and_unscale")
def _unscaled(m: Maker) -> dict[str, Any]:
    return {
        "self": [m.unit(m.numel // 4) for _ in range(4)], "found_inf": torch.zeros(1, device=m.device),
        "inv_scale": torch.ones(1, device=m.device),
    }  # fmt: skip


# ---- transforms and matrices


@_recipe("_fft_r2c _fft_c2r _fft_c2c")
def _transform(m: Maker) -> dict[str, Any]:
    return {"dim": [1], "normalization": 0, "onesided": True, "forward": True, "last_dim_size": m.side()}


_RECIPES["_fft_c2r"] = lambda m: {
    **_transform(m), "self": m.values(m.side(), m.side() // 2 + 1),
}  # fmt: skip


@_recipe(
    "linalg_cholesky_ex linalg_inv_ex linalg_lu_factor_ex _linalg_solve_ex _linalg_det _linalg_slogdet "
    "linalg_qr _linalg_eigh _linalg_svd linalg_solve_triangular triangular_solve cholesky_solve "
    "cholesky_inverse"
)
def _definite(m: Maker) -> dict[str, Any]:
    a = m.definite()
    return {"self": a, "A": a, "B": m.values(*a.shape), "input2": a, "upper": True, "LU": a}


@_recipe("linalg_matrix_exp")
def _small_matrices(m: Maker) -> dict[str, Any]:
    return {"self": m.values(max(1, m.numel // 1024), 32, 32, low=-0.1, high=0.1)}


# Outputs that are compared, where others are determined only up to a sign.
_DETERMINED = {"_linalg_svd": ("S",), "_linalg_eigh": ("eigenvalues",)}


def determined(op: str) -> tuple[str, ...] | None:
    """Returns the names of the outputs that the operands determine, or None for all."""
    return _DETERMINED.get(_base(op))


__all__ = ["determined", "find", "importance", "is_known"]
