// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <pybind11/pybind11.h>

// The parts of the private extension musa_runtime._C, one file per topic; Module.cpp calls them.
namespace musa_runtime::python {

void bind_graph(pybind11::module_& m);
void bind_memory(pybind11::module_& m);
void bind_memory_pools(pybind11::module_& m);
void bind_memory_history(pybind11::module_& m);
void bind_profiler(pybind11::module_& m);
void bind_processes(pybind11::module_& m);
void bind_sdk_calls(pybind11::module_& m);

} // namespace musa_runtime::python
