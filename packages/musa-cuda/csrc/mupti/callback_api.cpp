// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Callbacks around calls. CUPTI has one subscriber in a process; torch's own profiler is one from its first use on, and then
// muptiSubscribe returns MUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED.
#include "mupti/calls.h"

#include <mutex>

struct MUpti_Subscriber_st {
  MUpti_CallbackFunc callback;
  void* userdata;
  CUpti_SubscriberHandle handle; // nullptr: not subscribed
};

namespace musa_cuda {
namespace {

static_assert((int)MUPTI_API_ENTER == (int)CUPTI_API_ENTER && (int)MUPTI_API_EXIT == (int)CUPTI_API_EXIT);

// The only one, and never freed: a callback may run on another thread while it is unsubscribed.
MUpti_Subscriber_st subscriber{};
std::mutex mutex; // guards subscriber.handle

void CUPTIAPI call_back(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* raw) {
  thread_local bool inside = false; // calls from a callback are not reported
  const auto& from = *static_cast<const CUpti_CallbackData*>(raw);
  const Call* const call = find_call(static_cast<MUpti_CallbackDomain>(domain), id);
  if (inside || call == nullptr || call->id == 0) {
    return;
  }
  MUpti_CallbackData data{};
  data.callbackSite = static_cast<MUpti_ApiCallbackSite>(from.callbackSite);
  data.functionName = call->name;
  data.functionReturnValue = from.callbackSite == CUPTI_API_EXIT ? from.functionReturnValue : nullptr;
  data.correlationData = from.correlationData;
  data.correlationId = from.correlationId;
  inside = true;
  subscriber.callback(subscriber.userdata, static_cast<MUpti_CallbackDomain>(domain), call->id, &data);
  inside = false;
}

// The caller holds the lock.
bool is_subscribed(MUpti_SubscriberHandle handle) { return handle == &subscriber && subscriber.handle != nullptr; }

} // namespace
} // namespace musa_cuda

namespace musa_cuda::by_hand {

MUptiResult muptiSubscribe(MUpti_SubscriberHandle* handle, MUpti_CallbackFunc callback, void* userdata) {
  if (handle == nullptr || callback == nullptr) {
    return MUPTI_ERROR_INVALID_PARAMETER;
  }
  const std::lock_guard lock(mutex);
  if (subscriber.handle != nullptr) {
    return MUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  CUpti_SubscriberHandle made = nullptr;
  const MUptiResult result = status(cuptiSubscribe(&made, call_back, nullptr));
  if (result == MUPTI_SUCCESS) {
    subscriber = {callback, userdata, made};
    *handle = &subscriber;
  }
  return result;
}

MUptiResult muptiUnsubscribe(MUpti_SubscriberHandle handle) {
  const std::lock_guard lock(mutex);
  if (!is_subscribed(handle)) {
    return MUPTI_ERROR_INVALID_PARAMETER;
  }
  const CUpti_SubscriberHandle made = subscriber.handle;
  subscriber.handle = nullptr;
  return status(cuptiUnsubscribe(made));
}

MUptiResult muptiEnableCallback(
    uint32_t enable, MUpti_SubscriberHandle handle, MUpti_CallbackDomain domain, MUpti_CallbackId callback) {
  const std::lock_guard lock(mutex);
  const auto numbers = numbers_of(domain, callback);
  if (enable > 1 || !is_subscribed(handle) || numbers.empty()) {
    return MUPTI_ERROR_INVALID_PARAMETER;
  }
  for (const CUpti_CallbackId number : numbers) {
    const MUptiResult result =
        status(cuptiEnableCallback(enable, subscriber.handle, static_cast<CUpti_CallbackDomain>(domain), number));
    if (result != MUPTI_SUCCESS) {
      return result;
    }
  }
  return MUPTI_SUCCESS;
}

MUptiResult muptiEnableDomain(uint32_t enable, MUpti_SubscriberHandle handle, MUpti_CallbackDomain domain) {
  const std::lock_guard lock(mutex);
  const bool known = domain == MUPTI_CB_DOMAIN_RUNTIME_API || domain == MUPTI_CB_DOMAIN_DRIVER_API;
  if (enable > 1 || !is_subscribed(handle) || !known) {
    return MUPTI_ERROR_INVALID_PARAMETER;
  }
  return status(cuptiEnableDomain(enable, subscriber.handle, static_cast<CUpti_CallbackDomain>(domain)));
}

} // namespace musa_cuda::by_hand
