// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "mupti/calls.h"

#include <unordered_map>

namespace musa_cuda {
namespace {

using Calls = std::unordered_map<CUpti_CallbackId, Call>;

static_assert((int)MUPTI_CB_DOMAIN_DRIVER_API == (int)CUPTI_CB_DOMAIN_DRIVER_API);
static_assert((int)MUPTI_CB_DOMAIN_RUNTIME_API == (int)CUPTI_CB_DOMAIN_RUNTIME_API);

// Empty for a number that is no domain.
const Calls& calls_of(MUpti_CallbackDomain domain) {
  struct Table {
    Calls RUNTIME, DRIVER, none;
    Table() {
#define MUPTI_CUDA_CALL(domain, cuda, musa) \
  domain[CUPTI_##domain##_TRACE_CBID_##cuda] = {MUPTI_##domain##_TRACE_CBID_##musa, #musa};
#define MUPTI_CUDA_OTHER(domain, cuda) domain[CUPTI_##domain##_TRACE_CBID_##cuda] = {};
#include "mupti_calls.inc"
#undef MUPTI_CUDA_OTHER
#undef MUPTI_CUDA_CALL
    }
  };
  static const Table& table = *new Table;
  switch (domain) {
    case MUPTI_CB_DOMAIN_RUNTIME_API: return table.RUNTIME;
    case MUPTI_CB_DOMAIN_DRIVER_API: return table.DRIVER;
    default: return table.none;
  }
}

} // namespace

const Call* find_call(MUpti_CallbackDomain domain, CUpti_CallbackId id) {
  const Calls& calls = calls_of(domain);
  const auto found = calls.find(id);
  return found != calls.end() ? &found->second : nullptr;
}

std::vector<CUpti_CallbackId> numbers_of(MUpti_CallbackDomain domain, MUpti_CallbackId id) {
  std::vector<CUpti_CallbackId> numbers;
  for (const auto& [number, call] : calls_of(domain)) {
    if (id != 0 && call.id == id) {
      numbers.push_back(number);
    }
  }
  return numbers;
}

} // namespace musa_cuda
