// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors

// Registers the musa device with torch's profiler. The cost at `import torch` is negligible: torch creates the object below
// when its first profiler starts, and only a profiler that requests the device's activity makes it load
// libmusa_profiler.so. The device itself is not used, so a profiler may start before the device's first use.

#include <profiler/library.h>
#include <profiler/problem.h>

#include <ATen/Context.h>
#include <c10/musa/MUSACompat.h>
#include <c10/util/Exception.h>
#include MUSA_PROFILER_REGISTRATION

#include <dlfcn.h>

#include <algorithm>
#include <sstream>

namespace musa_runtime {
namespace {

using libkineto::ActivityType;

std::string folder_of(const void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) {
    return {};
  }
  const std::string path(info.dli_fname);
  return path.substr(0, path.rfind('/') + 1);
}

// The result of loading, which is tried once: a missing library does not appear while a process runs.
struct Library {
  CreateProfiler create = nullptr;
  std::string problem;

  Library() {
    std::ostringstream tried;
    const auto open = [&tried](const std::string& path) {
      void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
      if (handle == nullptr) {
        tried << "\n  " << dlerror();
      }
      return handle;
    };
    // Next to the SDK's runtime, in the SDK's folder for tools, or on the loader's search path.
    const std::string sdk = folder_of(dlsym(RTLD_DEFAULT, "musaGetDeviceCount"));
    bool found = false;
    for (const std::string& path :
         {sdk + "libmupti.so", sdk + "../extras/MUPTI/lib64/libmupti.so", sdk + "../extras/MUPTI/lib/libmupti.so",
          std::string("libmupti.so")}) {
      found = found || open(path) != nullptr;
    }
    if (!found) {
      problem =
          "The musa device's activity cannot be profiled: MUPTI, the MUSA SDK's profiling library, cannot be loaded."
          "\nTried:" +
          tried.str() +
          "\nLikely cause: the SDK was installed without its profiling tools."
          "\nFix: install them (libmupti.so, below $MUSA_HOME/lib or $MUSA_HOME/extras/MUPTI).";
      return;
    }
    const std::string path = folder_of(reinterpret_cast<const void*>(&profiler_problem)) + "libmusa_profiler.so";
    void* handle = open(path);
    create = handle == nullptr ? nullptr : reinterpret_cast<CreateProfiler>(dlsym(handle, kCreateProfiler));
    if (create == nullptr) {
      problem =
          "The musa device's activity cannot be profiled: libmusa_profiler.so cannot be loaded.\nTried:" + tried.str() +
          "\nLikely causes: musa-runtime was compiled against an SDK without MUPTI; its files come from different builds."
          "\nFix: install the wheel musa-runtime again, from the folder or index that it came from";
    }
  }
};

const Library& library() {
  static const Library& instance = *new Library();
  return instance;
}

// Without calls of the SDK: torch counts those as the host's, and requests them in every profile.
bool is_device_activity(ActivityType type) {
  return type == ActivityType::GPU_MEMCPY || type == ActivityType::GPU_MEMSET ||
      type == ActivityType::CONCURRENT_KERNEL;
}

// Whether a profile is of torch.cuda, which requests the same kinds of activity and one more. torch.cuda's own profiler records
// it; a profile that requests both devices is left to it too, because the two cannot be distinguished.
bool is_of_cuda(const std::set<ActivityType>& types) {
  return types.count(ActivityType::OVERHEAD) != 0 && at::hasCUDA();
}

class MusaProfiler final : public libkineto::IActivityProfiler {
 public:
  const std::string& name() const override { return name_; }

  const std::set<ActivityType>& availableActivities() const override {
    static const std::set<ActivityType> types{ActivityType::GPU_MEMCPY,          ActivityType::GPU_MEMSET,
                                              ActivityType::CONCURRENT_KERNEL,   ActivityType::GPU_USER_ANNOTATION,
                                              ActivityType::PRIVATEUSE1_RUNTIME, ActivityType::PRIVATEUSE1_DRIVER};
    return types;
  }

  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      const std::set<ActivityType>& types, const libkineto::Config& config) override {
    libkineto::IActivityProfiler* profiler = loaded(types);
    return profiler == nullptr ? nullptr : profiler->configure(types, config);
  }

  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      int64_t ts_ms, int64_t duration_ms, const std::set<ActivityType>& types,
      const libkineto::Config& config) override {
    libkineto::IActivityProfiler* profiler = loaded(types);
    return profiler == nullptr ? nullptr : profiler->configure(ts_ms, duration_ms, types, config);
  }

 private:
  // Null if no activity of the device was requested, or none can be recorded.
  libkineto::IActivityProfiler* loaded(const std::set<ActivityType>& types) {
    if (std::none_of(types.begin(), types.end(), is_device_activity) || is_of_cuda(types)) {
      return nullptr;
    }
    if (!library().problem.empty()) {
      TORCH_WARN(library().problem, " The CPU is profiled anyway.");
      return nullptr;
    }
    if (profiler_ == nullptr) {
      profiler_.reset(library().create());
    }
    return profiler_.get();
  }

  std::string name_{"musa"};
  std::unique_ptr<libkineto::IActivityProfiler> profiler_;
};

REGISTER_PRIVATEUSE1_PROFILER(MusaProfiler);

} // namespace

std::string profiler_problem() { return library().problem; }

} // namespace musa_runtime
