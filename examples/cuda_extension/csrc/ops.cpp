// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <torch/extension.h>

#include "extensions.h"

TORCH_LIBRARY(dot_extension, m) { m.def("dot(Tensor a, Tensor b) -> Tensor"); }

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.attr("with_device") = kWithDevice; }
