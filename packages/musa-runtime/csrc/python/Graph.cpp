// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/musa/MUSAGraph.h>
#include <c10/musa/MUSAGraphsC10Utils.h>
#include <python/bindings.h>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

namespace py = pybind11;
using at::musa::MUSAGraph;

namespace musa_runtime::python {
namespace {

musaStreamCaptureMode capture_mode(const std::string& name) {
  if (name == "global") {
    return musaStreamCaptureModeGlobal;
  }
  if (name == "thread_local") {
    return musaStreamCaptureModeThreadLocal;
  }
  TORCH_CHECK_VALUE(
      name == "relaxed", "capture_error_mode is '", name, "'; expected 'global', 'thread_local' or 'relaxed'.");
  return musaStreamCaptureModeRelaxed;
}

} // namespace

void bind_graph(py::module_& m) {
  m.def("graph_pool_handle", &at::musa::graph_pool_handle);
  m.def("is_current_stream_capturing", &c10::musa::current_stream_is_capturing);
  // Without the GIL: captures and replays run kernels, which may be written in Python, on this or another thread. torch's
  // wrapper around them forwards warnings to Python.
  py::class_<MUSAGraph>(m, "_MUSAGraph")
      .def(py::init<bool>(), py::arg("keep_graph"))
      .def(
          "capture_begin",
          torch::wrap_pybind_function_no_gil(
              [](MUSAGraph& self, std::optional<c10::MempoolId_t> pool, const std::string& mode) {
                self.capture_begin(pool.value_or(c10::MempoolId_t{0, 0}), capture_mode(mode));
              }),
          py::arg("pool"), py::arg("capture_error_mode"))
      .def("capture_end", torch::wrap_pybind_function_no_gil(&MUSAGraph::capture_end))
      .def("instantiate", torch::wrap_pybind_function_no_gil(&MUSAGraph::instantiate))
      .def("replay", torch::wrap_pybind_function_no_gil(&MUSAGraph::replay))
      .def("reset", torch::wrap_pybind_function_no_gil(&MUSAGraph::reset))
      .def("pool", &MUSAGraph::pool)
      .def("register_generator_state", &MUSAGraph::register_generator_state)
      .def("enable_debug_mode", &MUSAGraph::enable_debug_mode)
      .def("debug_dump", torch::wrap_pybind_function_no_gil(&MUSAGraph::debug_dump))
      .def("raw_musa_graph", [](const MUSAGraph& self) { return reinterpret_cast<uintptr_t>(self.raw_musa_graph()); })
      .def("raw_musa_graph_exec", [](const MUSAGraph& self) {
        return reinterpret_cast<uintptr_t>(self.raw_musa_graph_exec());
      });
}

} // namespace musa_runtime::python
