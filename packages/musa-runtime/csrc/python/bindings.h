// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSADeviceArgument.h>

#include <pybind11/pybind11.h>

// The parts of the private extension musa_runtime._C, one file per topic; Module.cpp calls them.
namespace musa_runtime::python {

// The parameter type of every function that takes a device index. The conversion from Python raises for an int that is no
// index, instead of narrowing 256 to 0. Whether the device exists is checked by the function that uses it.
struct DeviceArgument {
  c10::DeviceIndex index = -1;

  operator c10::DeviceIndex() const { return index; }
};

void bind_graph(pybind11::module_& m);
void bind_memory(pybind11::module_& m);
void bind_memory_pools(pybind11::module_& m);
void bind_memory_history(pybind11::module_& m);
void bind_profiler(pybind11::module_& m);
void bind_processes(pybind11::module_& m);
void bind_sdk_calls(pybind11::module_& m);

} // namespace musa_runtime::python

template <>
struct pybind11::detail::type_caster<musa_runtime::python::DeviceArgument> {
  PYBIND11_TYPE_CASTER(musa_runtime::python::DeviceArgument, const_name("DeviceIndex"));

  bool load(handle source, bool /*convert*/) {
    if (!PyLong_Check(source.ptr())) {
      return false;
    }
    int overflow = 0;
    const long long wide = PyLong_AsLongLongAndOverflow(source.ptr(), &overflow);
    if (overflow != 0) {
      c10::musa::fail_device_argument(std::string(str(source)));
    }
    value.index = c10::musa::to_device_index(wide);
    return true;
  }
};
