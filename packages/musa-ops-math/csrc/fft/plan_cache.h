// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/core/Device.h>
#include <fft/plan.h>

#include <list>
#include <map>
#include <memory>
#include <mutex>

namespace musa_ops_math::fft {

/// The plans of one device, the least recently used of which are destroyed if there are more than max_size(). Making a plan
/// takes milliseconds. A graph that was captured uses the tables of its plans whenever it is replayed, so plans that a capture
/// used are kept until the process ends, and are not counted.
class PlanCache {
 public:
  explicit PlanCache(c10::DeviceIndex device) : device_(device) {}
  static PlanCache& of(c10::DeviceIndex device);

  /// Runs a transform on the current stream of the current device, which must be this cache's.
  void run(const PlanKey& key, void* in, void* out, bool forward);

  size_t size() const;
  size_t max_size() const;
  void set_max_size(size_t size);
  void clear();

 private:
  using Entry = std::pair<PlanKey, std::unique_ptr<Plan>>;
  using Entries = std::list<Entry>;

  Plan& plan(const PlanKey& key, bool capturing);
  void trim(size_t size);

  const c10::DeviceIndex device_;
  mutable std::mutex mutex_; // also held while a plan is used, because a plan has one stream and one workspace
  size_t max_size_ = 4096;   // as in torch.cuda
  Entries recent_;           // the last used first
  std::map<PlanKey, Entries::iterator> index_;
  std::map<PlanKey, std::unique_ptr<Plan>> captured_;
};

} // namespace musa_ops_math::fft
