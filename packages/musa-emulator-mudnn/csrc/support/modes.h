// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// torch's thread-local modes during a task.
#pragma once

#include <c10/core/AutogradState.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace musa_emulator::dnn {

// All dispatch keys except the backends' kernels: the caller's modes, autograd, autocast, functionalization.
inline const c10::DispatchKeySet above_backends = c10::DispatchKeySet(c10::DispatchKeySet::FULL)
                                                      .remove(c10::DispatchKey::Dense)
                                                      .remove(c10::DispatchKey::BackendSelect);

// Like torch's guard, but reads the thread's state once instead of three times.
class NoGrad {
 public:
  NoGrad() : state_(c10::AutogradState::get_tls_state()), before_(state_.get_grad_mode()) {
    state_.set_grad_mode(false);
  }
  ~NoGrad() { state_.set_grad_mode(before_); }
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  c10::AutogradState& state_;
  const bool before_;
};

} // namespace musa_emulator::dnn
