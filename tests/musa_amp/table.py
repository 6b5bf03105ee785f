# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The dtypes in which CUDA computes each operator under autocast, with example operands for each.

The source is torch's "Automatic Mixed Precision package" (its op reference for CUDA) and, for overloads that
the reference groups under one Python function, the registrations for the key AutocastCUDA of torch 2.13. `x`
makes a floating tensor of a given shape, in the dtype under test; `n` makes int64 zeros.
"""

# Operands are cast to the 16-bit dtype, which is also the result's.
LOWER_PRECISION = {
    "_convolution.deprecated": lambda x, n: (
        *(x(1, 2, 5, 5), x(3, 2, 3, 3), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
        *(False, False, True),
    ),
    "_convolution": lambda x, n: (
        *(x(1, 2, 5, 5), x(3, 2, 3, 3), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
        *(False, False, True, True),
    ),
    "conv1d": lambda x, n: (x(1, 2, 5), x(3, 2, 3)),
    "conv2d": lambda x, n: (x(1, 2, 5, 5), x(3, 2, 3, 3)),
    "conv3d": lambda x, n: (x(1, 2, 5, 5, 5), x(3, 2, 3, 3, 3)),
    "conv_tbc": lambda x, n: (x(5, 1, 2), x(3, 2, 4), x(4), 0),
    "conv_transpose1d": lambda x, n: (x(1, 2, 5), x(2, 3, 3)),
    "conv_transpose2d.input": lambda x, n: (x(1, 2, 5, 5), x(2, 3, 3, 3)),
    "conv_transpose3d.input": lambda x, n: (x(1, 2, 5, 5, 5), x(2, 3, 3, 3, 3)),
    "convolution": lambda x, n: (
        *(x(1, 2, 5, 5), x(3, 2, 3, 3), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
    ),
    "prelu": lambda x, n: (x(2, 3), x(3)),
    "addmm": lambda x, n: (x(4, 4), x(4, 4), x(4, 4)),
    "addmv": lambda x, n: (x(4), x(4, 4), x(4)),
    "addr": lambda x, n: (x(4, 4), x(4), x(4)),
    "matmul": lambda x, n: (x(4, 4), x(4, 4)),
    "einsum": lambda x, n: ("ij,jk->ik", [x(4, 4), x(4, 4)]),
    "mm": lambda x, n: (x(4, 4), x(4, 4)),
    "mv": lambda x, n: (x(4, 4), x(4)),
    "linalg_vecdot": lambda x, n: (x(4, 4), x(4, 4)),
    "linear": lambda x, n: (x(4, 4), x(4, 4)),
    "addbmm": lambda x, n: (x(4, 4), x(2, 4, 4), x(2, 4, 4)),
    "baddbmm": lambda x, n: (x(2, 4, 4), x(2, 4, 4), x(2, 4, 4)),
    "bmm": lambda x, n: (x(2, 4, 4), x(2, 4, 4)),
    "chain_matmul": lambda x, n: ([x(4, 4), x(4, 4)],),
    "linalg_multi_dot": lambda x, n: ([x(4, 4), x(4, 4)],),
    "_thnn_fused_lstm_cell": lambda x, n: (x(2, 16), x(2, 16), x(2, 4)),
    "_thnn_fused_gru_cell": lambda x, n: (x(2, 12), x(2, 12), x(2, 4)),
    "lstm_cell": lambda x, n: (x(2, 3), [x(2, 4), x(2, 4)], x(16, 3), x(16, 4)),
    "gru_cell": lambda x, n: (x(2, 3), x(2, 4), x(12, 3), x(12, 4)),
    "rnn_tanh_cell": lambda x, n: (x(2, 3), x(2, 4), x(4, 3), x(4, 4)),
    "rnn_relu_cell": lambda x, n: (x(2, 3), x(2, 4), x(4, 3), x(4, 4)),
    "_scaled_dot_product_flash_attention": lambda x, n: (x(1, 2, 4, 8), x(1, 2, 4, 8), x(1, 2, 4, 8)),
    "scaled_dot_product_attention": lambda x, n: (x(1, 2, 4, 8), x(1, 2, 4, 8), x(1, 2, 4, 8)),
}

# Operands are cast to float32, which is also the result's dtype.
FLOAT32 = {
    **dict.fromkeys(
        ("acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p", "reciprocal"),
        lambda x, n: (x(4),),
    ),
    **dict.fromkeys(("rsqrt", "sinh", "tan", "softplus"), lambda x, n: (x(4),)),
    "pow.Tensor_Scalar": lambda x, n: (x(4), 2.5),
    "pow.Tensor_Tensor": lambda x, n: (x(4), x(4)),
    "pow.Scalar": lambda x, n: (2.5, x(4)),
    "layer_norm": lambda x, n: (x(2, 4), [4]),
    "native_layer_norm": lambda x, n: (x(2, 4), [4], None, None, 1e-5),
    "rms_norm": lambda x, n: (x(2, 4), [4]),
    "group_norm": lambda x, n: (x(2, 4), 2),
    "frobenius_norm.dim": lambda x, n: (x(4, 4), [0, 1]),
    "nuclear_norm": lambda x, n: (x(4, 4),),
    "nuclear_norm.dim": lambda x, n: (x(4, 4), [0, 1]),
    "cosine_similarity": lambda x, n: (x(3, 4), x(3, 4)),
    "poisson_nll_loss": lambda x, n: (x(4), x(4), True, False, 1e-8, 1),
    "cosine_embedding_loss": lambda x, n: (x(3, 4), x(3, 4), n(3) + 1),
    "nll_loss": lambda x, n: (x(3, 4), n(3)),
    "nll_loss2d": lambda x, n: (x(2, 3, 4, 4), n(2, 4, 4)),
    "hinge_embedding_loss": lambda x, n: (x(3), n(3) + 1),
    **dict.fromkeys(
        ("kl_div", "l1_loss", "smooth_l1_loss", "huber_loss", "mse_loss", "soft_margin_loss"),
        lambda x, n: (x(4), x(4)),
    ),
    "margin_ranking_loss": lambda x, n: (x(3), x(3), n(3) + 1),
    "multilabel_margin_loss": lambda x, n: (x(2, 4), n(2, 4)),
    "triplet_margin_loss": lambda x, n: (x(2, 4), x(2, 4), x(2, 4)),
    "multi_margin_loss": lambda x, n: (x(2, 4), n(2)),
    "binary_cross_entropy_with_logits": lambda x, n: (x(4), x(4)),
    "dist": lambda x, n: (x(4), x(4)),
    "pdist": lambda x, n: (x(3, 4),),
    "cdist": lambda x, n: (x(3, 4), x(2, 4)),
    "renorm": lambda x, n: (x(3, 4), 2, 0, 1.0),
    "logsumexp": lambda x, n: (x(3, 4), [0]),
    **dict.fromkeys(("upsample_nearest1d", "_upsample_nearest_exact1d"), lambda x, n: (x(1, 2, 4), [8])),
    **dict.fromkeys(
        ("upsample_nearest2d", "_upsample_nearest_exact2d"), lambda x, n: (x(1, 2, 4, 4), [8, 8])
    ),
    **dict.fromkeys(
        ("upsample_nearest3d", "_upsample_nearest_exact3d"), lambda x, n: (x(1, 2, 4, 4, 4), [8, 8, 8])
    ),
    "upsample_linear1d": lambda x, n: (x(1, 2, 4), [8], False),
    **dict.fromkeys(
        ("upsample_bilinear2d", "_upsample_bilinear2d_aa", "upsample_bicubic2d", "_upsample_bicubic2d_aa"),
        lambda x, n: (x(1, 2, 4, 4), [8, 8], False),
    ),
    "upsample_trilinear3d": lambda x, n: (x(1, 2, 4, 4, 4), [8, 8, 8], False),
}

# The result is float32 unless the caller passes a dtype; operands keep their dtype.
FLOAT32_RESULT = {
    "prod": lambda x, n: (x(4),),
    "prod.dim_int": lambda x, n: (x(3, 4), 0),
    "softmax.int": lambda x, n: (x(3, 4), 0),
    "log_softmax.int": lambda x, n: (x(3, 4), 0),
    "cumprod": lambda x, n: (x(3, 4), 0),
    "cumsum": lambda x, n: (x(3, 4), 0),
    "linalg_vector_norm": lambda x, n: (x(4),),
    "linalg_matrix_norm": lambda x, n: (x(4, 4), 1),
    "linalg_matrix_norm.str_ord": lambda x, n: (x(4, 4), "fro"),
    "sum": lambda x, n: (x(4),),
    "sum.dim_IntList": lambda x, n: (x(3, 4), [0]),
}

# The same, for operators that take the dtype in another overload.
FLOAT32_RESULT_BY_OTHER_OVERLOAD = {
    "norm.Scalar": lambda x, n: (x(4), 2),
    "norm.ScalarOpt_dim": lambda x, n: (x(3, 4), 2, [0], False),
}

# Operands are cast to the widest dtype among them. `w` makes the first floating operand, which is float32 in
# one of the cases where the others are 16-bit.
PROMOTED = {
    "addcdiv": lambda w, x, n: (w(4), x(4), x(4)),
    "addcmul": lambda w, x, n: (w(4), x(4), x(4)),
    "atan2": lambda w, x, n: (w(4), x(4)),
    "bilinear": lambda w, x, n: (w(2, 3), x(2, 4), x(5, 3, 4)),
    "cross": lambda w, x, n: (w(2, 3), x(2, 3)),
    "dot": lambda w, x, n: (w(4), x(4)),
    "vdot": lambda w, x, n: (w(4), x(4)),
    "grid_sampler": lambda w, x, n: (w(1, 1, 4, 4), x(1, 2, 2, 2), 0, 0, False),
    "index_put": lambda w, x, n: (w(4), [n(2)], x(2)),
    "tensordot": lambda w, x, n: (w(4, 4), x(4, 4), [1], [0]),
    "scatter_add": lambda w, x, n: (w(4), 0, n(4), x(4)),
}

REFUSED = ("binary_cross_entropy",)

# cuDNN's operators, which this device does not have.
WITHOUT_COUNTERPART = ("cudnn_convolution", "cudnn_convolution_transpose")

ALL = (
    *LOWER_PRECISION,
    *FLOAT32,
    *FLOAT32_RESULT,
    *FLOAT32_RESULT_BY_OTHER_OVERLOAD,
    *PROMOTED,
    *REFUSED,
    *WITHOUT_COUNTERPART,
)
