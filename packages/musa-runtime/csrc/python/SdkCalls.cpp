// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors

// SDK calls made directly by Python code (torch.musa.musart()), and functions that control or cause waiting. The functions
// of `musart` return the SDK's code and raise nothing; torch.musa.check_error() turns a code into an exception.

#include <c10/musa/MUSAGuard.h>
#include <c10/musa/MUSAStream.h>
#include <python/bindings.h>

#include <pybind11/stl.h>

#include <chrono>
#include <memory>
#include <thread>

namespace py = pybind11;
using c10::musa::MUSAGuard;
using musa_runtime::python::DeviceArgument;

namespace {

// The SDK stores a failed call's code as the thread's last error; the next checked launch would report it as its own.
musaError_t returned(musaError_t error) {
  if (error != musaSuccess) {
    C10_MUSA_CLEAR_ERROR();
  }
  return error;
}

template <typename Pointer>
Pointer as_pointer(uintptr_t address) {
  return reinterpret_cast<Pointer>(address);
}

void bind_musart(py::module_& m) {
  auto musart = m.def_submodule("_musart", "SDK calls for Python: each returns a musaError.");
  py::enum_<musaError_t>(musart, "musaError", "Code of an SDK call; any int can be given.")
      .value("success", musaSuccess)
      .value("errorInvalidValue", musaErrorInvalidValue)
      .value("errorMemoryAllocation", musaErrorMemoryAllocation)
      .value("errorInvalidDevice", musaErrorInvalidDevice)
      .value("errorInvalidResourceHandle", musaErrorInvalidResourceHandle)
      .value("errorNotReady", musaErrorNotReady)
      .value("errorLaunchFailure", musaErrorLaunchFailure)
      .value("errorNotSupported", musaErrorNotSupported)
      .value("errorUnknown", musaErrorUnknown);
  const auto no_gil = py::call_guard<py::gil_scoped_release>();
  musart.def("musaGetErrorString", [](musaError_t error) { return std::string(musaGetErrorString(error)); });
  musart.def("musaGetErrorName", [](musaError_t error) { return std::string(musaGetErrorName(error)); });
  musart.def("musaProfilerStart", [] { return returned(musaProfilerStart()); }, no_gil);
  musart.def("musaProfilerStop", [] { return returned(musaProfilerStop()); }, no_gil);
  musart.def(
      "musaHostRegister",
      [](uintptr_t address, size_t nbytes, unsigned int flags) {
        return returned(musaHostRegister(as_pointer<void*>(address), nbytes, flags));
      },
      no_gil);
  musart.def(
      "musaHostUnregister", [](uintptr_t address) { return returned(musaHostUnregister(as_pointer<void*>(address))); },
      no_gil);
  musart.def(
      "musaStreamCreate", [](uintptr_t where) { return returned(musaStreamCreate(as_pointer<musaStream_t*>(where))); },
      no_gil);
  musart.def(
      "musaStreamDestroy",
      [](uintptr_t stream) { return returned(musaStreamDestroy(as_pointer<musaStream_t>(stream))); }, no_gil);
  musart.def(
      "musaMemGetInfo",
      [](DeviceArgument device) {
        MUSAGuard guard(c10::musa::resolve_device_index(device));
        size_t free = 0, total = 0;
        C10_MUSA_CHECK(musaMemGetInfo(&free, &total));
        return std::make_pair(free, total);
      },
      no_gil);
}

// Keeps the current stream busy. The callback runs on a thread of the SDK and calls no code of ours.
void sleep_on_stream(double seconds) {
  auto duration = std::make_unique<std::chrono::duration<double>>(seconds);
  C10_MUSA_CHECK(musaLaunchHostFunc(
      c10::musa::getCurrentMUSAStream().stream(),
      [](void* data) {
        const std::unique_ptr<std::chrono::duration<double>> time(static_cast<std::chrono::duration<double>*>(data));
        std::this_thread::sleep_for(*time);
      },
      duration.get()));
  (void)duration.release(); // now owned by the callback, which is certain to run
}

} // namespace

namespace musa_runtime::python {

void bind_sdk_calls(py::module_& m) {
  bind_musart(m);
  m.def("set_sync_debug_mode", [](int mode) {
    c10::musa::warning_state().set_sync_debug_mode(static_cast<c10::musa::SyncDebugMode>(mode));
  });
  m.def("get_sync_debug_mode", [] { return static_cast<int>(c10::musa::warning_state().get_sync_debug_mode()); });
  m.def("sleep_on_stream", &sleep_on_stream, py::call_guard<py::gil_scoped_release>());
}

} // namespace musa_runtime::python
