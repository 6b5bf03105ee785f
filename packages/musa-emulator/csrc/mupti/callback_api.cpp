// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "delivery.h"
#include "mupti.h"

using namespace musa_emulator;

struct MUpti_Subscriber_st {
  MUpti_CallbackFunc callback;
  void* userdata;
};

namespace {

struct State {
  std::mutex mutex; // guards the fields below; callbacks are called without it
  MUpti_SubscriberHandle subscriber = nullptr;
  std::set<std::pair<MUpti_CallbackDomain, MUpti_CallbackId>> enabled;
  std::map<uint32_t, uint64_t> words; // correlationData of running calls
};

State& state() {
  static State* instance = new State;
  return *instance;
}

// Returns the largest callback id of a domain, or 0 if `domain` is invalid.
uint32_t last_callback(MUpti_CallbackDomain domain) {
  switch (domain) {
    case MUPTI_CB_DOMAIN_RUNTIME_API: return MUPTI_RUNTIME_TRACE_CBID_SIZE - 1;
    case MUPTI_CB_DOMAIN_DRIVER_API: return MUPTI_DRIVER_TRACE_CBID_SIZE - 1;
    default: return 0;
  }
}

void observe(const char* name, bool ended, uint32_t correlation, musaError_t status) {
  const MUpti_CallbackDomain domain = is_driver_call(name) ? MUPTI_CB_DOMAIN_DRIVER_API : MUPTI_CB_DOMAIN_RUNTIME_API;
  const MUpti_CallbackId id = mupti::callback_id(name);
  MUpti_Subscriber_st subscriber = {};
  uint64_t word = 0;
  {
    std::lock_guard lock(state().mutex);
    if (state().subscriber == nullptr || state().enabled.count({domain, id}) == 0) {
      return;
    }
    subscriber = *state().subscriber;
    word = state().words[correlation];
  }
  MUpti_CallbackData data = {};
  data.callbackSite = ended ? MUPTI_API_EXIT : MUPTI_API_ENTER;
  data.functionName = name;
  data.functionReturnValue = ended ? &status : nullptr;
  data.correlationData = &word;
  data.correlationId = correlation;
  subscriber.callback(subscriber.userdata, domain, id, &data);
  std::lock_guard lock(state().mutex);
  if (ended) {
    state().words.erase(correlation);
  } else {
    state().words[correlation] = word;
  }
}

// The lock must be held.
void apply() {
  const bool any = !state().enabled.empty();
  set_call_observer(any ? observe : nullptr);
  const uint32_t others = traced_kinds.load() & ~uint32_t{kCallObserver};
  set_traced_kinds(any ? others | kCallObserver : others);
}

} // namespace

MUptiResult muptiSubscribe(MUpti_SubscriberHandle* subscriber, MUpti_CallbackFunc callback, void* userdata) {
  if (subscriber == nullptr || callback == nullptr) {
    return MUPTI_ERROR_INVALID_PARAMETER;
  }
  std::lock_guard lock(state().mutex);
  if (state().subscriber != nullptr) {
    return MUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  *subscriber = state().subscriber = new MUpti_Subscriber_st{callback, userdata};
  return MUPTI_SUCCESS;
}

MUptiResult muptiUnsubscribe(MUpti_SubscriberHandle subscriber) {
  std::lock_guard lock(state().mutex);
  if (subscriber == nullptr || subscriber != state().subscriber) {
    return MUPTI_ERROR_INVALID_PARAMETER;
  }
  delete std::exchange(state().subscriber, nullptr);
  state().enabled.clear();
  state().words.clear();
  apply();
  return MUPTI_SUCCESS;
}

MUptiResult muptiEnableCallback(
    uint32_t enable, MUpti_SubscriberHandle subscriber, MUpti_CallbackDomain domain, MUpti_CallbackId callback) {
  std::lock_guard lock(state().mutex);
  if (enable > 1 || subscriber == nullptr || subscriber != state().subscriber || callback == 0 ||
      callback > last_callback(domain)) {
    return MUPTI_ERROR_INVALID_PARAMETER;
  }
  if (enable != 0) {
    state().enabled.insert({domain, callback});
  } else {
    state().enabled.erase({domain, callback});
  }
  apply();
  return MUPTI_SUCCESS;
}

MUptiResult muptiEnableDomain(uint32_t enable, MUpti_SubscriberHandle subscriber, MUpti_CallbackDomain domain) {
  std::lock_guard lock(state().mutex);
  if (enable > 1 || subscriber == nullptr || subscriber != state().subscriber || last_callback(domain) == 0) {
    return MUPTI_ERROR_INVALID_PARAMETER;
  }
  for (MUpti_CallbackId callback = 1; callback <= last_callback(domain); ++callback) {
    if (enable != 0) {
      state().enabled.insert({domain, callback});
    } else {
      state().enabled.erase({domain, callback});
    }
  }
  apply();
  return MUPTI_SUCCESS;
}
