// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <python/bindings.h>

#include <c10/musa/MUSAEvent.h>
#include <c10/musa/ipc/MUSAIpc.h>

#include <pybind11/stl.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Storage.h>

#include <cstring>

namespace py = pybind11;
namespace ipc = c10::musa::ipc;
using c10::musa::MUSAEvent;
using c10::musa::MUSAStream;

namespace musa_runtime::python {
namespace {

template <class Handle>
py::bytes as_bytes(const Handle& handle) {
  return py::bytes(reinterpret_cast<const char*>(&handle), sizeof handle);
}

template <class Handle>
Handle as_handle(const py::bytes& bytes) {
  const auto view = static_cast<std::string_view>(bytes);
  TORCH_CHECK_VALUE(
      view.size() == sizeof(Handle), "An IPC handle of the MUSA SDK has ", sizeof(Handle), " bytes, got ", view.size(),
      ".");
  Handle handle;
  std::memcpy(&handle, view.data(), sizeof handle);
  return handle;
}

// Plain values only: the receiver may unpickle them before it imports this module.
py::tuple pack(const ipc::Message& message) {
  return py::make_tuple(
      py::make_tuple(
          message.counter.process, message.counter.descriptor, message.counter.inode, message.counter.file_system,
          message.counter.slot),
      py::make_tuple(message.device, message.pci[0], message.pci[1], message.pci[2]), as_bytes(message.segment),
      message.offset, message.nbytes, message.event.has_value() ? py::object(as_bytes(*message.event)) : py::none());
}

ipc::Message unpack(
    const std::tuple<int32_t, int32_t, uint64_t, uint64_t, uint32_t>& counter, const std::array<int, 4>& device,
    const py::bytes& segment, size_t offset, size_t nbytes, const std::optional<py::bytes>& event) {
  ipc::Message message;
  message.counter = std::apply([](auto... part) { return ipc::CounterAddress{part...}; }, counter);
  message.device = device[0];
  message.pci = {device[1], device[2], device[3]};
  message.segment = as_handle<musaIpcMemHandle_t>(segment);
  message.offset = offset;
  message.nbytes = nbytes;
  if (event.has_value()) {
    message.event = as_handle<musaIpcEventHandle_t>(*event);
  }
  return message;
}

MUSAStream stream_of(int64_t id, DeviceArgument device) {
  return MUSAStream::unpack3(id, device, c10::DeviceType::PrivateUse1);
}

void bind_events(py::module_& m) {
  py::class_<MUSAEvent>(
      m, "_InterprocessEvent", "An event that other processes can open; the Python class adds the rest.")
      .def(py::init([](bool blocking) {
        return MUSAEvent(
            musaEventInterprocess | musaEventDisableTiming | (blocking ? musaEventBlockingSync : musaEventDefault));
      }))
      .def_static(
          "from_handle",
          [](DeviceArgument device, const py::bytes& bytes) {
            const auto handle = as_handle<musaIpcEventHandle_t>(bytes);
            return MUSAEvent(device, &handle);
          })
      .def_property_readonly("device_index", [](const MUSAEvent& e) { return static_cast<int>(e.device_index()); })
      .def_property_readonly("event_id", [](const MUSAEvent& e) { return reinterpret_cast<uintptr_t>(e.event()); })
      .def("record", [](MUSAEvent& e, int64_t id, DeviceArgument device) { e.record(stream_of(id, device)); })
      .def("wait", [](MUSAEvent& e, int64_t id, DeviceArgument device) { e.block(stream_of(id, device)); })
      .def("query", &MUSAEvent::query)
      .def("synchronize", &MUSAEvent::synchronize, py::call_guard<py::gil_scoped_release>())
      .def("ipc_handle", [](MUSAEvent& e) {
        musaIpcEventHandle_t handle;
        e.ipc_handle(&handle);
        return as_bytes(handle);
      });
}

} // namespace

void bind_processes(py::module_& m) {
  py::register_local_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) {
        std::rethrow_exception(pointer);
      }
    } catch (const ipc::SharingError& error) {
      const char* name = error.kind() == ipc::SharingError::Kind::SenderGone ? "ProducerExitedError" : "SharingError";
      py::set_error(py::module_::import("musa_runtime.errors").attr(name), error.what());
    }
  });
  m.def("ipc_share", [](const py::object& object) {
    TORCH_CHECK_TYPE(THPStorage_Check(object.ptr()), "ipc_share takes an untyped storage.");
    const c10::Storage storage = THPStorage_Unpack(object.ptr());
    ipc::Message message;
    {
      const py::gil_scoped_release released;
      message = ipc::share(storage);
    }
    return pack(message);
  });
  m.def(
      "ipc_open",
      [](const std::tuple<int32_t, int32_t, uint64_t, uint64_t, uint32_t>& counter, const std::array<int, 4>& device,
         const py::bytes& segment, size_t offset, size_t nbytes, const std::optional<py::bytes>& event) {
        const ipc::Message message = unpack(counter, device, segment, offset, nbytes, event);
        c10::Storage storage;
        {
          const py::gil_scoped_release released;
          storage = ipc::open(message);
        }
        return py::reinterpret_steal<py::object>(THPStorage_Wrap(std::move(storage)));
      });
  m.def("ipc_collect", &ipc::collect, py::call_guard<py::gil_scoped_release>());
  m.def("ipc_usage", [] {
    const ipc::Usage usage = ipc::usage();
    py::dict result;
    result["sent"] = usage.sent;
    result["held"] = usage.held;
    result["limbo"] = usage.limbo;
    result["received"] = usage.received;
    result["ended"] = usage.ended;
    return result;
  });
  bind_events(m);
}

} // namespace musa_runtime::python
