// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The private extension module behind musa_distributed's Python modules.
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/utils/pybind.h>

#include <pybind11/chrono.h>

#include "errors.h"
#include "process_group.h"
#include "python_use.h"
#include "recorder.h"

namespace py = pybind11;
using c10d::ProcessGroupMCCL;
using c10d::mccl::Recorder;

PYBIND11_MODULE(_C, m) {
  py::module_::import("torch._C._distributed_c10d"); // registers the base classes

  // The destructor waits for the watchdog, which may be running a Python hook of the program.
  py::class_<ProcessGroupMCCL, c10d::Backend, c10::intrusive_ptr<ProcessGroupMCCL>> group(
      m, "ProcessGroupMCCL", py::release_gil_before_calling_cpp_dtor());

  py::class_<ProcessGroupMCCL::Options, c10d::Backend::Options, c10::intrusive_ptr<ProcessGroupMCCL::Options>> options(
      group, "Options",
      R"(Options of a process group: `init_process_group(..., pg_options=Options(...))`.

Attributes:
    is_high_priority_stream (bool): run its communicators on high-priority streams.)");
  options.def(py::init(&ProcessGroupMCCL::Options::create), py::arg("is_high_priority_stream") = false)
      .def_readwrite("is_high_priority_stream", &ProcessGroupMCCL::Options::is_high_priority_stream);
  const auto copy = [](const ProcessGroupMCCL::Options& self) {
    return c10::make_intrusive<ProcessGroupMCCL::Options>(self);
  };
  options.def("__copy__", copy).def("__deepcopy__", [copy](const ProcessGroupMCCL::Options& self, const py::dict&) {
    return copy(self);
  });

  group
      .def(
          py::init<c10::intrusive_ptr<c10d::Store>, int, int, c10::intrusive_ptr<ProcessGroupMCCL::Options>>(),
          py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("options"),
          py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("options", &ProcessGroupMCCL::getBackendOptions)
      .def_property_readonly("uid", &ProcessGroupMCCL::getGroupUid)
      .def(
          "comm_split_count", [](const ProcessGroupMCCL& self) { return self.splits; },
          "Number of groups that were split from this one: torch numbers them in their descriptions.")
      .def(
          "communicator_count", [](const ProcessGroupMCCL& self) { return self.communicators->created(); },
          "Number of communicators that this rank has created.")
      .def(
          "perform_nocolor_split", [](const ProcessGroupMCCL&, const at::Device&) {}, py::arg("device"),
          "Called by new_group() on ranks outside the new group of a bound group. Does nothing, because only the members "
          "of a group start its communicators.");

  m.def("version", [] {
    int version = 0;
    MCCL_CHECK(mcclGetVersion(&version));
    return py::make_tuple(version / 10000, version / 100 % 100, version % 100);
  });
  m.def(
      "dump_flight_record",
      [](bool collectives, bool stacks, bool only_active) {
        std::string text;
        {
          const py::gil_scoped_release no_gil;
          text = Recorder::instance().dump(collectives, stacks, only_active);
        }
        return py::bytes(text);
      },
      py::arg("collectives"), py::arg("stacks"), py::arg("only_active"));
  m.def("reset_flight_record", [] { Recorder::instance().reset(); }, py::call_guard<py::gil_scoped_release>());
  m.def("end_python_use", &c10d::mccl::end_python_use, py::call_guard<py::gil_scoped_release>());
}
