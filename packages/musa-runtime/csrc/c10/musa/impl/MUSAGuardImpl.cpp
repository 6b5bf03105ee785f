// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/impl/MUSAGuardImpl.h>

#include <c10/musa/MUSACachingAllocator.h>
#include <c10/musa/MUSADeferredError.h>
#include <c10/musa/MUSAKernelGuard.h>

namespace c10::musa::impl {
namespace {

Device musa_device(DeviceIndex index) { return Device(DeviceType::PrivateUse1, index); }

musaEvent_t as_event(void* event) { return static_cast<musaEvent_t>(event); }

} // namespace

Device MUSAGuardImpl::exchangeDevice(Device device) const {
  TORCH_INTERNAL_ASSERT(device.type() == DeviceType::PrivateUse1);
  return musa_device(MaybeExchangeDevice(device.index()));
}

Device MUSAGuardImpl::getDevice() const { return musa_device(current_device()); }

void MUSAGuardImpl::setDevice(Device device) const {
  TORCH_INTERNAL_ASSERT(device.type() == DeviceType::PrivateUse1);
  (void)MaybeExchangeDevice(device.index());
}

void MUSAGuardImpl::uncheckedSetDevice(Device device) const noexcept {
  if (device.index() >= 0) {
    restore_device(device.index());
  }
}

DeviceIndex MUSAGuardImpl::deviceCount() const noexcept { return device_count(); }

DeviceCapability MUSAGuardImpl::getDeviceCapability(Device /*device*/) const {
  // The dtypes that support arithmetic. torch's default adds those that can only be stored and converted: float8, quantized
  // and sub-byte types.
  DeviceCapability result;
  result.capability_data.capability_bits = 0;
  auto& types = result.capability_data.supported_scalar_types;
  types.has_Bool = types.has_Byte = types.has_Char = types.has_Short = types.has_Int = types.has_Long = 1;
  types.has_UInt16 = types.has_UInt32 = types.has_UInt64 = 1;
  types.has_Half = types.has_BFloat16 = types.has_Float = types.has_Double = 1;
  types.has_ComplexHalf = types.has_ComplexFloat = types.has_ComplexDouble = 1;
  return result;
}

void MUSAGuardImpl::synchronizeDevice(DeviceIndex device) const {
  const MUSAKernelGuard guard(resolve_device_index(device));
  device_synchronize();
}

Stream MUSAGuardImpl::getStream(Device device) const { return getCurrentMUSAStream(device.index()).unwrap(); }

Stream MUSAGuardImpl::getDefaultStream(Device device) const { return getDefaultMUSAStream(device.index()).unwrap(); }

Stream MUSAGuardImpl::getStreamFromGlobalPool(Device device, bool is_high_priority) const {
  return getStreamFromPool(is_high_priority, device.index()).unwrap();
}

Stream MUSAGuardImpl::getNewStream(Device device, int priority) const {
  return getStreamFromPool(priority, device.index()).unwrap();
}

Stream MUSAGuardImpl::exchangeStream(Stream stream) const {
  MUSAStream next(stream);
  const MUSAStream before = getCurrentMUSAStream(next.device_index());
  setCurrentMUSAStream(next);
  return before.unwrap();
}

void* MUSAGuardImpl::getStreamNativeHandle(const Stream stream) const {
  return static_cast<void*>(MUSAStream(stream).stream());
}

bool MUSAGuardImpl::queryStream(const Stream& stream) const { return MUSAStream(stream).query(); }

void MUSAGuardImpl::synchronizeStream(const Stream& stream) const { MUSAStream(stream).synchronize(); }

bool MUSAGuardImpl::isStreamCapturing(const Stream& stream) const {
  musaStreamCaptureStatus status = musaStreamCaptureStatusNone;
  C10_MUSA_CHECK(musaStreamIsCapturing(MUSAStream(stream).stream(), &status));
  return status != musaStreamCaptureStatusNone;
}

void MUSAGuardImpl::recordDataPtrOnStream(const DataPtr& data, const Stream& stream) const {
  MUSACachingAllocator::recordStream(data, MUSAStream(stream));
}

void MUSAGuardImpl::record(void** event, const Stream& stream, const DeviceIndex device, const EventFlag flag) const {
  TORCH_CHECK(
      device == -1 || device == stream.device_index(), "An event of musa:", static_cast<int>(device),
      " cannot be recorded on ", stream,
      ": an event belongs to one device. Fix: create the event on the stream's device.");
  const MUSAKernelGuard guard(stream.device_index());
  musaEvent_t handle = as_event(*event);
  if (handle == nullptr) {
    const unsigned flags = flag == EventFlag::BACKEND_DEFAULT ? musaEventDefault : musaEventDisableTiming;
    C10_MUSA_CHECK(musaEventCreateWithFlags(&handle, flags));
    *event = handle;
  }
  C10_MUSA_CHECK(musaEventRecord(handle, MUSAStream(stream).stream()));
}

void MUSAGuardImpl::block(void* event, const Stream& stream) const {
  if (event == nullptr) {
    return; // never recorded: nothing to wait for
  }
  const MUSAKernelGuard guard(stream.device_index());
  C10_MUSA_CHECK(musaStreamWaitEvent(MUSAStream(stream).stream(), as_event(event), 0));
}

bool MUSAGuardImpl::queryEvent(void* event) const {
  if (event == nullptr) {
    return true;
  }
  const musaError_t error = musaEventQuery(as_event(event));
  if (error == musaErrorNotReady) {
    C10_MUSA_CLEAR_ERROR();
    return false;
  }
  if (C10_UNLIKELY(error != musaSuccess)) {
    throw_musa_error(error, "musaEventQuery(event)", __func__, __FILE__, __LINE__);
  }
  return true;
}

void MUSAGuardImpl::synchronizeEvent(void* event) const {
  if (event != nullptr) {
    C10_MUSA_CHECK(musaEventSynchronize(as_event(event)));
    check_deferred_error();
  }
}

void MUSAGuardImpl::destroyEvent(void* event, const DeviceIndex /*device*/) const noexcept {
  // Called from destructors, possibly after the SDK has shut down: a failure cannot be reported.
  if (event != nullptr) {
    C10_MUSA_IGNORE_ERROR(musaEventDestroy(as_event(event)));
  }
}

double MUSAGuardImpl::elapsedTime(void* start, void* end, const DeviceIndex device) const {
  TORCH_CHECK(
      start != nullptr && end != nullptr,
      "Both events must have been recorded before the time between them can be queried.");
  const MUSAKernelGuard guard(resolve_device_index(device));
  float milliseconds = 0.0f;
  C10_MUSA_CHECK(musaEventElapsedTime(&milliseconds, as_event(start), as_event(end)));
  return static_cast<double>(milliseconds);
}

C10_REGISTER_GUARD_IMPL(PrivateUse1, MUSAGuardImpl);

} // namespace c10::musa::impl
