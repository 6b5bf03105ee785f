# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack's hooks for reports. It registers no kernels."""

import musa_as_cuda
from musa_runtime.hookspecs import hookimpl


@hookimpl
def musa_pack_info():
    return {"summary": "runs programs for cuda on musa; off by default"}


@hookimpl
def musa_env_report():
    return {"device cuda is musa": "yes" if musa_as_cuda.is_enabled() else "no"}
