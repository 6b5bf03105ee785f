// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors

// The private extension behind musa_runtime's Python modules. It is thin: argument checks and documentation are in Python,
// behaviour is in libmusa_runtime.so.

#include <ATen/Context.h>
#include <c10/musa/MUSACapabilities.h>
#include <c10/musa/MUSAGuard.h>
#include <musa_runtime/compat.h>
#include <host_copy/fallback.h>
#include <registry/op_policy.h>
#include <registry/op_registry.h>
#include <python/bindings.h>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/device_lazy_init.h>

namespace py = pybind11;
using c10::musa::MUSAGuard;
using c10::musa::MUSAStream;
using musa_runtime::OpRegistry;
using musa_runtime::python::DeviceArgument;

namespace {

// Some SDKs have no identifier in the properties; in the others it has 16 bytes.
template <typename Properties>
py::object uuid_of(const Properties& properties) {
  if constexpr (requires { properties.uuid.bytes; }) {
    return py::module_::import("uuid").attr("UUID")(
        py::arg("bytes") = py::bytes(properties.uuid.bytes, sizeof(properties.uuid.bytes)));
  } else {
    return py::none();
  }
}

py::tuple pack(const MUSAStream& stream) {
  const c10::StreamData3 data = stream.pack3();
  return py::make_tuple(data.stream_id, static_cast<int>(data.device_index), static_cast<int>(data.device_type));
}

bool is_in_bad_fork() {
  return torch::utils::is_device_in_bad_fork(c10::DeviceType::PrivateUse1) || c10::musa::counted_before_fork();
}

void bind_capabilities(py::module_& m) {
  m.def("host_addressable", &c10::musa::host_addressable);
  m.def("computes_on_host", &c10::musa::computes_on_host);
  m.def("computes_float64", &c10::musa::computes_float64);
}

void bind_state(py::module_& m) {
  m.def("init", [] {
    TORCH_CHECK(
        !is_in_bad_fork(),
        "Cannot use the musa device in a forked subprocess. Fix: start workers with the 'spawn' method.");
    c10::musa::warn_if_visible_devices_changed();
    torch::utils::register_fork_handler_for_device_init(c10::DeviceType::PrivateUse1);
    OpRegistry::get().packs_are_loaded();
    at::globalContext().lazyInitDevice(c10::DeviceType::PrivateUse1);
    OpRegistry::get().install(); // again, if the device was used before the packs were loaded
  });
  m.def("is_in_bad_fork", &is_in_bad_fork);
  m.def("runtime_version", [] {
    int version = 0;
    C10_MUSA_CHECK(musaRuntimeGetVersion(&version));
    return version;
  });
  m.def("driver_version", [] {
    int version = 0;
    C10_MUSA_CHECK(musaDriverGetVersion(&version));
    return version;
  });
  m.attr("ABI") = MUSA_RUNTIME_ABI;
}

void bind_device(py::module_& m) {
  m.def("device_count", [] { return static_cast<int>(c10::musa::device_count()); });
  m.def("device_count_error", [] {
    const musaError_t error = c10::musa::device_count_error();
    return error == musaSuccess ? std::optional<std::string>() : std::optional<std::string>(musaGetErrorName(error));
  });
  m.def("current_device", [] { return static_cast<int>(c10::musa::current_device()); });
  m.def("set_device", [](DeviceArgument device) { c10::musa::set_device(device); });
  m.def("exchange_device", [](DeviceArgument device) { return static_cast<int>(c10::musa::ExchangeDevice(device)); });
  m.def("maybe_exchange_device", [](DeviceArgument device) {
    return static_cast<int>(c10::musa::MaybeExchangeDevice(device));
  });
  m.def("can_device_access_peer", [](DeviceArgument device, DeviceArgument peer) {
    int answer = 0;
    C10_MUSA_CHECK(musaDeviceCanAccessPeer(&answer, device, peer));
    return answer != 0;
  });
  m.def(
      "synchronize",
      [](DeviceArgument device) {
        MUSAGuard guard(c10::musa::resolve_device_index(device));
        c10::musa::device_synchronize();
      },
      py::call_guard<py::gil_scoped_release>());

  using P = musaDeviceProp;
  py::class_<P>(m, "_MusaDeviceProperties", "Properties of one musa device, as the SDK reports them.")
      .def_property_readonly("name", [](const P& p) { return std::string(p.name); })
      // In torch's CUDA build this is the name too. Programs for which torch.cuda is torch.musa run with a CPU build, where
      // Inductor reads it for the key of its cache.
      .def_property_readonly("gcnArchName", [](const P& p) { return std::string(p.name); })
      .def_readonly("major", &P::major)
      .def_readonly("minor", &P::minor)
      .def_readonly("total_memory", &P::totalGlobalMem)
      .def_readonly("multi_processor_count", &P::multiProcessorCount)
      .def_readonly("warp_size", &P::warpSize)
      .def_property_readonly("is_integrated", [](const P& p) { return p.integrated != 0; })
      .def_property_readonly("is_multi_gpu_board", [](const P& p) { return p.isMultiGpuBoard != 0; })
      .def_readonly("max_threads_per_block", &P::maxThreadsPerBlock)
      .def_readonly("max_threads_per_multi_processor", &P::maxThreadsPerMultiProcessor)
      .def_readonly("shared_memory_per_block", &P::sharedMemPerBlock)
      .def_readonly("shared_memory_per_block_optin", &P::sharedMemPerBlockOptin)
      .def_readonly("shared_memory_per_multiprocessor", &P::sharedMemPerMultiprocessor)
      .def_readonly("regs_per_multiprocessor", &P::regsPerMultiprocessor)
      .def_readonly("L2_cache_size", &P::l2CacheSize)
      .def_readonly("clock_rate", &P::clockRate)
      .def_readonly("memory_clock_rate", &P::memoryClockRate)
      .def_readonly("memory_bus_width", &P::memoryBusWidth)
      .def_readonly("pci_bus_id", &P::pciBusID)
      .def_readonly("pci_device_id", &P::pciDeviceID)
      .def_readonly("pci_domain_id", &P::pciDomainID)
      .def_readonly("regs_per_block", &P::regsPerBlock)
      .def_readonly("multi_gpu_board_group_id", &P::multiGpuBoardGroupID)
      .def_property_readonly("ecc_enabled", [](const P& p) { return p.ECCEnabled != 0; })
      .def_property_readonly("uuid", [](const P& p) { return uuid_of(p); })
      .def("__repr__", [](const P& p) {
        return c10::str(
            "_MusaDeviceProperties(name='", p.name, "', major=", p.major, ", minor=", p.minor,
            ", total_memory=", p.totalGlobalMem / (1024 * 1024), "MB, multi_processor_count=", p.multiProcessorCount,
            ", warp_size=", p.warpSize, ", is_integrated=", p.integrated != 0, ")");
      });
  m.def(
      "get_device_properties", [](DeviceArgument device) -> const P& { return c10::musa::device_properties(device); },
      py::return_value_policy::reference);
}

void bind_stream(py::module_& m) {
  m.def("current_stream", [](DeviceArgument device) { return pack(c10::musa::getCurrentMUSAStream(device)); });
  m.def("default_stream", [](DeviceArgument device) { return pack(c10::musa::getDefaultMUSAStream(device)); });
  m.def("external_stream", [](uintptr_t pointer, DeviceArgument device) {
    return pack(c10::musa::getStreamFromExternal(reinterpret_cast<musaStream_t>(pointer), device));
  });
  m.def("set_stream", [](int64_t id, DeviceArgument device) {
    const auto stream = MUSAStream::unpack3(id, device, c10::DeviceType::PrivateUse1);
    // In this order: setting the stream cannot fail, so a context manager that leaves a failed region still restores it.
    c10::musa::setCurrentMUSAStream(stream);
    // Not set_device(), which records a choice of the program: a context manager restores the device with this call.
    (void)c10::musa::ExchangeDevice(stream.device_index());
  });
  m.def("stream_priority", [](int64_t id, DeviceArgument device) {
    return MUSAStream::unpack3(id, device, c10::DeviceType::PrivateUse1).priority();
  });
  m.def("stream_priority_range", [] { return MUSAStream::priority_range(); });
  m.def("stream_native_handle", [](int64_t id, DeviceArgument device) {
    return reinterpret_cast<uintptr_t>(MUSAStream::unpack3(id, device, c10::DeviceType::PrivateUse1).stream());
  });
}

py::dict as_dict(const musa_runtime::OpInfo& info) {
  py::list candidates;
  for (const auto& candidate : info.candidates) {
    py::dict row;
    row["provider"] = candidate.provider;
    row["conditional"] = candidate.conditional;
    row["calls"] = candidate.calls;
    row["rank"] = candidate.rank < 0 ? py::object(py::none()) : py::object(py::int_(candidate.rank));
    candidates.append(row);
  }
  py::dict result;
  result["op"] = info.op;
  result["provider"] = info.provider;
  result["reason"] = info.reason;
  result["origin"] = info.origin;
  result["candidates"] = candidates;
  result["calls"] = info.calls;
  return result;
}

void bind_registry(py::module_& m) {
  m.def("ops_table", [] {
    py::list rows;
    for (const auto& info : OpRegistry::get().table()) {
      rows.append(as_dict(info));
    }
    return rows;
  });
  m.def("ops_explain", [](const std::string& op) { return as_dict(OpRegistry::get().explain(op)); });
  m.def("ops_prefer", [](const std::string& pattern, const std::vector<std::string>& providers) {
    OpRegistry::get().prefer(pattern, providers);
  });
  m.def("ops_set_policy", [](const std::string& spec) { OpRegistry::get().set_policy(spec); });
  m.def("ops_set_measured", [](const std::string& file, std::map<std::string, std::vector<std::string>> by_op) {
    OpRegistry::get().set_measured({file, std::move(by_op)});
  });
  m.def("ops_reset_policy", [] { OpRegistry::get().reset_policy(); });
  m.def("ops_add_provider", [](const std::string& name, int rank) {
    OpRegistry::get().add(name, {});
    musa_runtime::set_provider_rank(name, rank);
  });
  m.def("ops_await_packs", [] { OpRegistry::get().await_packs(); });
  m.def("ops_declared", [] { return OpRegistry::get().declared(); });
  m.def("ops_providers", [] { return OpRegistry::get().providers(); });
  m.def("take_pack_failures", [] {
    py::list failures;
    for (const musa_runtime::PackFailure& failure : musa_runtime::take_pack_failures()) {
      py::dict row;
      row["provider"] = failure.provider;
      row["op"] = failure.op;
      row["message"] = failure.message;
      failures.append(row);
    }
    return failures;
  });
  m.def("ops_has", [](const std::string& op) { return OpRegistry::get().has(op); });
  m.def("set_fallback_mode", &musa_runtime::set_fallback_mode);
  m.def("set_pack_advice", [](py::function function) {
    // Never destroyed, because errors may be raised while Python ends.
    const py::function& advice = *new py::function(std::move(function));
    musa_runtime::set_pack_advice([&advice](const std::string& op) -> std::string {
      if (!Py_IsInitialized()) {
        return "";
      }
      const py::gil_scoped_acquire gil;
      return py::cast<std::string>(advice(op));
    });
  });
  m.def("fallback_report", [] {
    py::list rows;
    for (const auto& row : musa_runtime::fallback_report()) {
      py::dict entry;
      entry["op"] = row.op;
      entry["count"] = row.count;
      entry["bytes"] = row.bytes;
      rows.append(entry);
    }
    return rows;
  });
}

} // namespace

PYBIND11_MODULE(_C, m) {
  OpRegistry::get().await_packs();
  // torch's own translation, so that an SDK failure is raised as torch.AcceleratorError and exhausted memory as
  // torch.OutOfMemoryError. pybind11 translates other exceptions.
  py::register_local_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) {
        std::rethrow_exception(pointer);
      }
    } catch (const c10::Error&) {
      torch::translate_exception_to_python(pointer);
    }
  });
  bind_capabilities(m);
  bind_state(m);
  bind_device(m);
  bind_stream(m);
  musa_runtime::python::bind_graph(m);
  musa_runtime::python::bind_memory(m);
  musa_runtime::python::bind_memory_pools(m);
  musa_runtime::python::bind_memory_history(m);
  musa_runtime::python::bind_profiler(m);
  musa_runtime::python::bind_processes(m);
  musa_runtime::python::bind_sdk_calls(m);
  bind_registry(m);
}
