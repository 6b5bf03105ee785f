// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/musa/MUSAMacros.h>
#include <musa_runtime/host/host_forms.h>

#include <string>

// Calls of operators that no candidate serves, for all layouts. `host-copy`, which is part of the runtime, copies to the host,
// computes and copies back. A pack may provide `host`, which computes in the device's memory.

namespace musa_runtime {

using HostFallback = void(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// Provides `host`, for devices whose memory the host can address. Called in the declaration of a pack, before it declares
// kernels. The function is not called for operators that read only metadata, or that torch cannot compute on the CPU.
C10_MUSA_API void set_host_fallback(HostFallback* kernel);

// Calls the operator with the CPU forms of its arguments, and replaces the arguments by the results. `provider` is named in
// errors. Operators that wait for data are reported to torch.musa.set_sync_debug_mode.
C10_MUSA_API void serve_on_host(
    const c10::OperatorHandle& op, torch::jit::Stack* stack, HostForms& forms, const char* provider);

// Serves a call that a pack's kernel declines, if that kernel is registered for a layout (SparsePrivateUse1) and so has no next
// candidate.
C10_MUSA_API void serve_without_pack(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// Throws the error of a CPU kernel of torch that lacks the dtype, with the operator, the provider and the missing op packs.
[[noreturn]] C10_MUSA_API void throw_unserved(
    const c10::NotImplementedError& error, const std::string& op, const char* provider);

// Dispatch keys that are excluded while torch's CPU kernels run. Autograd is handled above them, and a CPU autocast region
// affects only the program's CPU tensors.
inline c10::DispatchKeySet excluded_from_host_kernels() {
  return c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::DispatchKeySet(c10::DispatchKey::AutocastCPU);
}

} // namespace musa_runtime
