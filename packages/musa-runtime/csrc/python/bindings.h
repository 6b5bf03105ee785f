// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSAFunctions.h>

#include <pybind11/pybind11.h>

// The parts of the private extension musa_runtime._C, one file per topic; Module.cpp calls them.
namespace musa_runtime::python {

// The parameter type of every function that takes a device index. The conversion from Python raises for an int that is no
// index, instead of narrowing 256 to 0. Whether the device exists is checked by the function that uses it.
struct DeviceArgument {
  c10::DeviceIndex index = -1;

  operator c10::DeviceIndex() const {
    return index;
  }
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
    value.index = static_cast<c10::DeviceIndex>(wide);
    TORCH_CHECK(
        overflow == 0 && value.index == wide, "Invalid device musa:", std::string(str(source)), ": this process sees ",
        static_cast<int>(c10::musa::device_count()), " musa device(s), numbered from 0.\n",
        "Fix: use an index below torch.musa.device_count().");
    return true;
  }
};
