// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <python/bindings.h>

#include <c10/musa/MUSAAllocatorConfig.h>
#include <c10/musa/MUSAMemPool.h>
#include <c10/musa/MUSAPluggableAllocator.h>

#include <pybind11/stl.h>

namespace py = pybind11;
using c10::MempoolId_t;

namespace musa_runtime::python {
namespace {

namespace allocator = c10::musa::MUSACachingAllocator;
using c10::musa::MemPool;

// Emptying a pool waits for the device, whose queued work may need the GIL.
struct DeleteWithoutGil {
  void operator()(MemPool* pool) const {
    const py::gil_scoped_release release;
    delete pool;
  }
};

void bind_allocators(py::module_& m) {
  py::class_<allocator::MUSAAllocator, std::shared_ptr<allocator::MUSAAllocator>>(m, "_MUSAAllocator")
      .def_property_readonly("name", &allocator::MUSAAllocator::name);
  m.def("custom_allocator", [](uintptr_t alloc, uintptr_t free) -> std::shared_ptr<allocator::MUSAAllocator> {
    using Pluggable = allocator::MUSAPluggableAllocator;
    return std::make_shared<Pluggable>(
        reinterpret_cast<Pluggable::AllocFn>(alloc), reinterpret_cast<Pluggable::FreeFn>(free));
  });
  m.def("change_current_allocator", &allocator::changeCurrentAllocator);
  m.def("allocator_name", [] { return allocator::get()->name(); });
  m.def("allocator_enable", &allocator::enable);
  m.def("allocator_is_enabled", &allocator::isEnabled);
  m.def("load_allocator_environment", &allocator::MUSAAllocatorConfig::load_environment);
  m.def("check_allocator_settings", &allocator::MUSAAllocatorConfig::check);
  m.def("set_allocator_settings", &allocator::MUSAAllocatorConfig::set);
}

} // namespace

void bind_memory_pools(py::module_& m) {
  bind_allocators(m);
  py::class_<MemPool, std::unique_ptr<MemPool, DeleteWithoutGil>>(m, "_MemPool")
      .def(
          py::init<std::shared_ptr<allocator::MUSAAllocator>, bool, bool, bool>(), py::arg("allocator") = py::none(),
          py::arg("is_user_created") = true, py::arg("use_on_oom") = false, py::arg("no_split") = false)
      .def_property_readonly("id", &MemPool::id)
      .def_property_readonly("device", [](const MemPool& pool) { return static_cast<int>(pool.device()); })
      .def("use_count", &MemPool::use_count);

  m.def("graph_pool_handle", &MemPool::graph_pool_handle, py::arg("is_user_created") = true);
  m.def("begin_allocate_current_thread_to_pool", [](DeviceArgument device, MempoolId_t id) {
    c10::musa::beginAllocateCurrentThreadToPool(device, id);
  });
  m.def("begin_allocate_current_stream_to_pool", [](DeviceArgument device, MempoolId_t id) {
    c10::musa::beginAllocateCurrentStreamToPool(device, id);
  });
  m.def(
      "end_allocate_to_pool", [](DeviceArgument device, MempoolId_t id) { allocator::endAllocateToPool(device, id); });
  m.def("create_or_incref_pool", [](DeviceArgument device, MempoolId_t id) {
    allocator::createOrIncrefPool(device, id);
  });
  m.def("release_pool", [](DeviceArgument device, MempoolId_t id) { allocator::releasePool(device, id); });
  m.def("pool_use_count", [](DeviceArgument device, MempoolId_t id) { return allocator::getPoolUseCount(device, id); });
  m.def("empty_pool", &allocator::emptyCache, py::call_guard<py::gil_scoped_release>());
  // For programs that capture by calling the SDK directly.
  m.def(
      "mark_capture_begin", [](DeviceArgument device) { allocator::markCaptureBegin(device); },
      py::call_guard<py::gil_scoped_release>());
  m.def("mark_capture_end", [](DeviceArgument device) { allocator::markCaptureEnd(device); });
}

} // namespace musa_runtime::python
