// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <python/bindings.h>

#include <c10/musa/MUSAException.h>
#include <musa_profiler_api.h>
#include <profiler/markers.h>
#include <profiler/problem.h>

namespace py = pybind11;

namespace musa_runtime::python {

void bind_profiler(py::module_& m) {
  m.def("profiler_start", [] { C10_MUSA_CHECK(musaProfilerStart()); });
  m.def("profiler_stop", [] { C10_MUSA_CHECK(musaProfilerStop()); });
  m.def("profiler_problem", &profiler_problem, "Why the device's activity cannot be profiled; empty if it can.");
  m.def("range_push", &markers::range_push);
  m.def("range_pop", &markers::range_pop);
  m.def("range_start", &markers::range_start);
  m.def("range_end", &markers::range_end);
  m.def("mark", &markers::mark);
}

} // namespace musa_runtime::python
