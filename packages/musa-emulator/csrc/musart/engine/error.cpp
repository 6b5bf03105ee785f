// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engine/error.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace musa_emulator {
namespace {

struct ErrorText {
  musaError_t code;
  const char* name;
  const char* text;
};

// Sorted by code.
constexpr ErrorText kErrors[] = {
    {musaSuccess, "musaSuccess", "no error"},
    {musaErrorInvalidValue, "musaErrorInvalidValue", "invalid argument"},
    {musaErrorMemoryAllocation, "musaErrorMemoryAllocation", "out of memory"},
    {musaErrorInitializationError, "musaErrorInitializationError", "initialization error"},
    {musaErrorMusartUnloading, "musaErrorMusartUnloading", "driver shutting down"},
    {musaErrorProfilerDisabled, "musaErrorProfilerDisabled", "profiler disabled"},
    {musaErrorProfilerNotInitialized, "musaErrorProfilerNotInitialized", "profiler not initialized"},
    {musaErrorProfilerAlreadyStarted, "musaErrorProfilerAlreadyStarted", "profiler already started"},
    {musaErrorProfilerAlreadyStopped, "musaErrorProfilerAlreadyStopped", "profiler already stopped"},
    {musaErrorInvalidConfiguration, "musaErrorInvalidConfiguration", "invalid configuration argument"},
    {musaErrorInvalidPitchValue, "musaErrorInvalidPitchValue", "invalid pitch value"},
    {musaErrorInvalidSymbol, "musaErrorInvalidSymbol", "invalid symbol"},
    {musaErrorInvalidHostPointer, "musaErrorInvalidHostPointer", "invalid host pointer"},
    {musaErrorInvalidDevicePointer, "musaErrorInvalidDevicePointer", "invalid device pointer"},
    {musaErrorInvalidTexture, "musaErrorInvalidTexture", "invalid texture"},
    {musaErrorInvalidTextureBinding, "musaErrorInvalidTextureBinding", "invalid texture binding"},
    {musaErrorInvalidChannelDescriptor, "musaErrorInvalidChannelDescriptor", "invalid channel descriptor"},
    {musaErrorInvalidMemcpyDirection, "musaErrorInvalidMemcpyDirection", "invalid copy direction"},
    {musaErrorAddressOfConstant, "musaErrorAddressOfConstant", "address of constant"},
    {musaErrorTextureFetchFailed, "musaErrorTextureFetchFailed", "texture fetch failed"},
    {musaErrorTextureNotBound, "musaErrorTextureNotBound", "texture not bound"},
    {musaErrorSynchronizationError, "musaErrorSynchronizationError", "synchronization error"},
    {musaErrorInvalidFilterSetting, "musaErrorInvalidFilterSetting", "invalid filter setting"},
    {musaErrorInvalidNormSetting, "musaErrorInvalidNormSetting", "invalid norm setting"},
    {musaErrorMixedDeviceExecution, "musaErrorMixedDeviceExecution", "mixed device execution"},
    {musaErrorNotYetImplemented, "musaErrorNotYetImplemented", "not yet implemented"},
    {musaErrorMemoryValueTooLarge, "musaErrorMemoryValueTooLarge", "memory value too large"},
    {musaErrorStubLibrary, "musaErrorStubLibrary", "stub library"},
    {musaErrorInsufficientDriver, "musaErrorInsufficientDriver", "driver version is insufficient for runtime version"},
    {musaErrorCallRequiresNewerDriver, "musaErrorCallRequiresNewerDriver", "call requires newer driver"},
    {musaErrorInvalidSurface, "musaErrorInvalidSurface", "invalid surface"},
    {musaErrorDuplicateVariableName, "musaErrorDuplicateVariableName", "duplicate variable name"},
    {musaErrorDuplicateTextureName, "musaErrorDuplicateTextureName", "duplicate texture name"},
    {musaErrorDuplicateSurfaceName, "musaErrorDuplicateSurfaceName", "duplicate surface name"},
    {musaErrorDevicesUnavailable, "musaErrorDevicesUnavailable", "all devices are busy or unavailable"},
    {musaErrorIncompatibleDriverContext, "musaErrorIncompatibleDriverContext", "incompatible driver context"},
    {musaErrorMissingConfiguration, "musaErrorMissingConfiguration", "missing configuration"},
    {musaErrorPriorLaunchFailure, "musaErrorPriorLaunchFailure", "unspecified launch failure in prior launch"},
    {musaErrorLaunchMaxDepthExceeded, "musaErrorLaunchMaxDepthExceeded", "launch max depth exceeded"},
    {musaErrorLaunchFileScopedTex, "musaErrorLaunchFileScopedTex", "launch file scoped tex"},
    {musaErrorLaunchFileScopedSurf, "musaErrorLaunchFileScopedSurf", "launch file scoped surf"},
    {musaErrorSyncDepthExceeded, "musaErrorSyncDepthExceeded", "sync depth exceeded"},
    {musaErrorLaunchPendingCountExceeded, "musaErrorLaunchPendingCountExceeded", "launch pending count exceeded"},
    {musaErrorInvalidDeviceFunction, "musaErrorInvalidDeviceFunction", "invalid device function"},
    {musaErrorNoDevice, "musaErrorNoDevice", "no MUSA-capable device is detected"},
    {musaErrorInvalidDevice, "musaErrorInvalidDevice", "invalid device ordinal"},
    {musaErrorDeviceNotLicensed, "musaErrorDeviceNotLicensed", "device not licensed"},
    {musaErrorSoftwareValidityNotEstablished, "musaErrorSoftwareValidityNotEstablished",
     "software validity not established"},
    {musaErrorStartupFailure, "musaErrorStartupFailure", "startup failure"},
    {musaErrorInvalidKernelImage, "musaErrorInvalidKernelImage", "invalid kernel image"},
    {musaErrorDeviceUninitialized, "musaErrorDeviceUninitialized", "invalid device context"},
    {musaErrorMapBufferObjectFailed, "musaErrorMapBufferObjectFailed", "map buffer object failed"},
    {musaErrorUnmapBufferObjectFailed, "musaErrorUnmapBufferObjectFailed", "unmap buffer object failed"},
    {musaErrorArrayIsMapped, "musaErrorArrayIsMapped", "array is mapped"},
    {musaErrorAlreadyMapped, "musaErrorAlreadyMapped", "already mapped"},
    {musaErrorNoKernelImageForDevice, "musaErrorNoKernelImageForDevice", "no kernel image for device"},
    {musaErrorAlreadyAcquired, "musaErrorAlreadyAcquired", "already acquired"},
    {musaErrorNotMapped, "musaErrorNotMapped", "not mapped"},
    {musaErrorNotMappedAsArray, "musaErrorNotMappedAsArray", "not mapped as array"},
    {musaErrorNotMappedAsPointer, "musaErrorNotMappedAsPointer", "not mapped as pointer"},
    {musaErrorECCUncorrectable, "musaErrorECCUncorrectable", "uncorrectable ECC error encountered"},
    {musaErrorUnsupportedLimit, "musaErrorUnsupportedLimit", "unsupported limit"},
    {musaErrorDeviceAlreadyInUse, "musaErrorDeviceAlreadyInUse", "device already in use"},
    {musaErrorPeerAccessUnsupported, "musaErrorPeerAccessUnsupported",
     "peer access is not supported between these two devices"},
    {musaErrorInvalidPtx, "musaErrorInvalidPtx", "invalid ptx"},
    {musaErrorInvalidGraphicsContext, "musaErrorInvalidGraphicsContext", "invalid graphics context"},
    {musaErrorMtlinkUncorrectable, "musaErrorMtlinkUncorrectable", "mtlink uncorrectable"},
    {musaErrorJitCompilerNotFound, "musaErrorJitCompilerNotFound", "jit compiler not found"},
    {musaErrorUnsupportedPtxVersion, "musaErrorUnsupportedPtxVersion", "unsupported ptx version"},
    {musaErrorJitCompilationDisabled, "musaErrorJitCompilationDisabled", "jit compilation disabled"},
    {musaErrorUnsupportedExecAffinity, "musaErrorUnsupportedExecAffinity", "unsupported exec affinity"},
    {musaErrorInvalidSource, "musaErrorInvalidSource", "invalid source"},
    {musaErrorFileNotFound, "musaErrorFileNotFound", "file not found"},
    {musaErrorSharedObjectSymbolNotFound, "musaErrorSharedObjectSymbolNotFound", "shared object symbol not found"},
    {musaErrorSharedObjectInitFailed, "musaErrorSharedObjectInitFailed", "shared object init failed"},
    {musaErrorOperatingSystem, "musaErrorOperatingSystem", "OS call failed or operation not supported on this OS"},
    {musaErrorInvalidResourceHandle, "musaErrorInvalidResourceHandle", "invalid resource handle"},
    {musaErrorIllegalState, "musaErrorIllegalState", "illegal state"},
    {musaErrorSymbolNotFound, "musaErrorSymbolNotFound", "symbol not found"},
    {musaErrorNotReady, "musaErrorNotReady", "device not ready"},
    {musaErrorIllegalAddress, "musaErrorIllegalAddress", "an illegal memory access was encountered"},
    {musaErrorLaunchOutOfResources, "musaErrorLaunchOutOfResources", "too many resources requested for launch"},
    {musaErrorLaunchTimeout, "musaErrorLaunchTimeout", "the launch timed out and was terminated"},
    {musaErrorLaunchIncompatibleTexturing, "musaErrorLaunchIncompatibleTexturing", "launch incompatible texturing"},
    {musaErrorPeerAccessAlreadyEnabled, "musaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
    {musaErrorPeerAccessNotEnabled, "musaErrorPeerAccessNotEnabled", "peer access has not been enabled"},
    {musaErrorSetOnActiveProcess, "musaErrorSetOnActiveProcess", "set on active process"},
    {musaErrorContextIsDestroyed, "musaErrorContextIsDestroyed", "context is destroyed"},
    {musaErrorAssert, "musaErrorAssert", "device-side assert triggered"},
    {musaErrorTooManyPeers, "musaErrorTooManyPeers", "too many peers"},
    {musaErrorHostMemoryAlreadyRegistered, "musaErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {musaErrorHostMemoryNotRegistered, "musaErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {musaErrorHardwareStackError, "musaErrorHardwareStackError", "hardware stack error"},
    {musaErrorIllegalInstruction, "musaErrorIllegalInstruction", "illegal instruction"},
    {musaErrorMisalignedAddress, "musaErrorMisalignedAddress", "misaligned address"},
    {musaErrorInvalidAddressSpace, "musaErrorInvalidAddressSpace", "invalid address space"},
    {musaErrorInvalidPc, "musaErrorInvalidPc", "invalid pc"},
    {musaErrorLaunchFailure, "musaErrorLaunchFailure", "unspecified launch failure"},
    {musaErrorCooperativeLaunchTooLarge, "musaErrorCooperativeLaunchTooLarge", "cooperative launch too large"},
    {musaErrorNotPermitted, "musaErrorNotPermitted", "operation not permitted"},
    {musaErrorNotSupported, "musaErrorNotSupported", "operation not supported"},
    {musaErrorSystemNotReady, "musaErrorSystemNotReady", "system not ready"},
    {musaErrorSystemDriverMismatch, "musaErrorSystemDriverMismatch", "system driver mismatch"},
    {musaErrorCompatNotSupportedOnDevice, "musaErrorCompatNotSupportedOnDevice", "compat not supported on device"},
    {musaErrorStreamCaptureUnsupported, "musaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {musaErrorStreamCaptureInvalidated, "musaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {musaErrorStreamCaptureMerge, "musaErrorStreamCaptureMerge",
     "operation would result in a merge of separate capture sequences"},
    {musaErrorStreamCaptureUnmatched, "musaErrorStreamCaptureUnmatched",
     "capture was not ended in the same stream as it began"},
    {musaErrorStreamCaptureUnjoined, "musaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
    {musaErrorStreamCaptureIsolation, "musaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {musaErrorStreamCaptureImplicit, "musaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {musaErrorCapturedEvent, "musaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {musaErrorStreamCaptureWrongThread, "musaErrorStreamCaptureWrongThread",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {musaErrorTimeout, "musaErrorTimeout", "timeout"},
    {musaErrorGraphExecUpdateFailure, "musaErrorGraphExecUpdateFailure",
     "the graph update was not performed because it included changes which violated constraints specific to instantiated graph update"},
    {musaErrorExternalDevice, "musaErrorExternalDevice", "external device"},
    {musaErrorInvalidClusterSize, "musaErrorInvalidClusterSize", "invalid cluster size"},
    {musaErrorUnknown, "musaErrorUnknown", "unknown error"},
    {musaErrorApiFailureBase, "musaErrorApiFailureBase", "api failure base"},
};

const ErrorText* find(musaError_t error) {
  const auto* found = std::lower_bound(
      std::begin(kErrors), std::end(kErrors), error,
      [](const ErrorText& entry, musaError_t code) { return entry.code < code; });
  return found != std::end(kErrors) && found->code == error ? found : nullptr;
}

} // namespace

const char* error_name(musaError_t error) {
  const ErrorText* entry = find(error);
  return entry != nullptr ? entry->name : "unrecognized error code";
}

const char* error_string(musaError_t error) {
  const ErrorText* entry = find(error);
  return entry != nullptr ? entry->text : "unrecognized error code";
}

bool error_from_name(const char* name, musaError_t* error) {
  for (const ErrorText& entry : kErrors) {
    if (std::strcmp(entry.name, name) == 0) {
      *error = entry.code;
      return true;
    }
  }
  return false;
}

} // namespace musa_emulator
