// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/Context.h>
#include <c10/musa/MUSACachingAllocator.h>
#include <c10/musa/MUSADeviceArgument.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAGraphsC10Utils.h>
#include <c10/musa/MUSAGuard.h>
#include <c10/musa/MUSAStream.h>
#include <musa_runtime/kernel_trace.h>
#include <musa_compile/device_shims.h>
#include <torch/csrc/inductor/aoti_torch/utils.h>

AOTITorchError aoti_torch_musa_begin_host_kernel(int32_t device, int64_t* start) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE({
    TORCH_CHECK(
        !c10::musa::capturing(),
        "A kernel of a C++ wrapper of torch.compile cannot be captured into a MUSAGraph: it is called from C++, where no graph "
        "records it.\nFix: compile the function without config.cpp_wrapper, or call it outside of the capture");
    const c10::musa::MUSAStream stream = c10::musa::getCurrentMUSAStream(c10::musa::to_device_index(device));
    if (!stream.query()) [[unlikely]] {
      stream.synchronize();
    }
    *start = musa_runtime::kernel_tracing() ? musa_runtime::begin_traced_kernel() : -1;
  });
}

AOTITorchError aoti_torch_musa_end_host_kernel(int64_t start, const char* name, int32_t device) {
  musa_runtime::end_traced_kernel(start, nullptr, name, static_cast<c10::DeviceIndex>(device));
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError aoti_torch_musa_malloc(void** pointer, size_t bytes, int32_t device) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE({
    const c10::musa::MUSAGuard guard(c10::musa::to_device_index(device));
    *pointer = c10::musa::MUSACachingAllocator::raw_alloc(bytes);
  });
}

AOTITorchError aoti_torch_musa_free(void* pointer) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE({
    if (pointer != nullptr) {
      // Other streams than the one that the memory was allocated on may still read it.
      const c10::Device device =
          at::globalContext().getAcceleratorHooksInterface(c10::DeviceType::PrivateUse1).getDeviceFromPtr(pointer);
      const c10::musa::MUSAGuard guard(device.index());
      C10_MUSA_CHECK(musaDeviceSynchronize());
      c10::musa::MUSACachingAllocator::raw_delete(pointer);
    }
  });
}

AOTITorchError aoti_torch_musa_memcpy(void* target, const void* source, size_t bytes) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE({ C10_MUSA_CHECK(musaMemcpy(target, source, bytes, musaMemcpyDefault)); });
}

AOTITorchError aoti_torch_musa_current_device(int32_t* device) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE({ *device = c10::musa::current_device(); });
}

AOTITorchError aoti_torch_musa_set_device(int32_t device) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE({ c10::musa::set_device(c10::musa::to_device_index(device)); });
}

AOTITorchError aoti_torch_musa_event_create(void** event) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE({
    musaEvent_t created = nullptr;
    C10_MUSA_CHECK(musaEventCreateWithFlags(&created, musaEventDisableTiming));
    *event = created;
  });
}

AOTITorchError aoti_torch_musa_event_destroy(void* event) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE({ C10_MUSA_CHECK(musaEventDestroy(static_cast<musaEvent_t>(event))); });
}

AOTITorchError aoti_torch_musa_event_record(void* event, void* stream) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE({
    auto target = static_cast<musaStream_t>(stream);
    if (target == nullptr) {
      target = c10::musa::getCurrentMUSAStream().stream();
    }
    C10_MUSA_CHECK(musaEventRecord(static_cast<musaEvent_t>(event), target));
  });
}

AOTITorchError aoti_torch_musa_event_query(void* event, int32_t* done) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE({
    const musaError_t status = musaEventQuery(static_cast<musaEvent_t>(event));
    if (status == musaErrorNotReady) {
      C10_MUSA_CLEAR_ERROR();
      *done = 0;
    } else {
      if (status != musaSuccess) {
        c10::musa::throw_musa_error(status, "musaEventQuery(event)", __func__, __FILE__, __LINE__);
      }
      *done = 1;
    }
  });
}

AOTITorchError aoti_torch_musa_event_synchronize(void* event) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE(
      { C10_MUSA_CHECK(musaEventSynchronize(static_cast<musaEvent_t>(event))); });
}
