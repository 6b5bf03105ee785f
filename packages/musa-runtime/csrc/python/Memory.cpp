// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <python/bindings.h>

#include <ATen/musa/MUSAGeneratorImpl.h>
#include <c10/musa/MUSACachingAllocator.h>
#include <c10/musa/MUSAGuard.h>

#include <pybind11/stl.h>
#include <torch/csrc/Generator.h>

namespace py = pybind11;
using c10::musa::MUSAGuard;

namespace musa_runtime::python {

void bind_memory(py::module_& m) {
  namespace allocator = c10::musa::MUSACachingAllocator;
  m.def("default_generator", [](DeviceArgument device) {
    return py::reinterpret_steal<py::object>(
        THPGenerator_initDefaultGenerator(at::musa::detail::getDefaultMUSAGenerator(device)));
  });
  m.def("mem_get_info", [](DeviceArgument device) {
    MUSAGuard guard(c10::musa::resolve_device_index(device));
    size_t free = 0, total = 0;
    C10_MUSA_CHECK(musaMemGetInfo(&free, &total));
    return std::make_pair(free, total);
  });
  m.def("set_per_process_memory_fraction", [](double fraction, DeviceArgument device) {
    allocator::setMemoryFraction(fraction, c10::musa::resolve_device_index(device));
  });
  m.def("get_per_process_memory_fraction", [](DeviceArgument device) {
    return allocator::getMemoryFraction(c10::musa::resolve_device_index(device));
  });
  m.def("raw_alloc", [](size_t nbytes, uintptr_t stream) {
    return reinterpret_cast<uintptr_t>(
        allocator::raw_alloc_with_stream(nbytes, reinterpret_cast<musaStream_t>(stream)));
  });
  m.def("raw_delete", [](uintptr_t address) { allocator::raw_delete(reinterpret_cast<void*>(address)); });
  m.def("base_allocation", [](uintptr_t address) {
    size_t size = 0;
    void* base = allocator::getBaseAllocation(reinterpret_cast<void*>(address), &size);
    return std::make_pair(reinterpret_cast<uintptr_t>(base), size);
  });
  m.def("bench_allocator", &allocator::bench, "Nanoseconds per pair of allocate and free of a cached block.");
}

} // namespace musa_runtime::python
