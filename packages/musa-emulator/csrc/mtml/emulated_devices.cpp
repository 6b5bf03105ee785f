// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The emulated devices: their properties, and their usage by all processes of the user.
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string_view>
#include <thread>
#include <utility>

#include "engine/config.h"
#include "engine/device.h"
#include "engine/usage.h"
#include "mtml/device.h"

namespace mtml {
namespace {

using musa_emulator::Config;
using musa_emulator::DeviceUsage;
using musa_emulator::kMaxDevices;
using musa_emulator::UsagePage;

// A directory that is read entry by entry. Empty if it cannot be read, as those of other users' processes.
class Directory {
 public:
  explicit Directory(const std::string& path) : handle_(opendir(path.c_str())) {}
  ~Directory() {
    if (handle_ != nullptr) {
      closedir(handle_);
    }
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  // Name of the next entry, or nullptr at the end.
  const char* next() {
    const dirent* entry = handle_ != nullptr ? readdir(handle_) : nullptr;
    return entry != nullptr ? entry->d_name : nullptr;
  }

 private:
  DIR* handle_;
};

// The page of another process, mapped for reading. Its figures stay readable after the process has ended.
class MappedPage {
 public:
  // Null if the file is not the page of this process.
  MappedPage(const std::string& file, pid_t process) {
    const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
      return;
    }
    struct stat status = {};
    if (fstat(descriptor, &status) == 0 && status.st_size == static_cast<off_t>(sizeof(UsagePage))) {
      void* mapped = mmap(nullptr, sizeof(UsagePage), PROT_READ, MAP_SHARED, descriptor, 0);
      page_ = mapped != MAP_FAILED ? static_cast<const UsagePage*>(mapped) : nullptr;
    }
    close(descriptor);
    if (page_ != nullptr &&
        (page_->magic.load(std::memory_order_acquire) != UsagePage::kMagic || page_->owner != process)) {
      unmap();
    }
  }
  ~MappedPage() { unmap(); }
  MappedPage(MappedPage&& other) noexcept : page_(std::exchange(other.page_, nullptr)) {}
  MappedPage& operator=(MappedPage&&) = delete;

  explicit operator bool() const { return page_ != nullptr; }
  const UsagePage* operator->() const { return page_; }

 private:
  void unmap() {
    if (page_ != nullptr) {
      munmap(const_cast<UsagePage*>(page_), sizeof(UsagePage));
      page_ = nullptr;
    }
  }

  const UsagePage* page_ = nullptr;
};

std::string link_target(const std::string& path) {
  std::array<char, 256> target;
  const ssize_t length = readlink(path.c_str(), target.data(), target.size());
  return length > 0 ? std::string(target.data(), static_cast<size_t>(length)) : std::string();
}

// The pages of all processes of this emulated machine that this user may read.
std::vector<MappedPage> find_pages(const std::string& name) {
  const std::string file = "/memfd:" + name + " (deleted)";
  std::vector<MappedPage> pages;
  Directory processes("/proc");
  while (const char* entry = processes.next()) {
    pid_t process = 0;
    const char* end = entry + std::strlen(entry);
    if (std::from_chars(entry, end, process).ptr != end) {
      continue;
    }
    const std::string descriptors = std::string("/proc/") + entry + "/fd/";
    Directory files(descriptors);
    while (const char* number = files.next()) {
      if (link_target(descriptors + number) == file) {
        if (MappedPage page(descriptors + number, process); page) {
          pages.push_back(std::move(page));
          break;
        }
      }
    }
  }
  return pages;
}

// Readings of all devices. Programs read several values in sequence, which share one search for processes and one
// sample.
class Readings {
 public:
  explicit Readings(const Config& config) : name_(musa_emulator::usage_name(config)) {}

  const std::vector<MappedPage>& pages() {
    const auto now = Clock::now();
    if (now >= pages_expire_) {
      pages_ = find_pages(name_);
      pages_expire_ = Clock::now() + std::chrono::milliseconds(20);
    }
    return pages_;
  }

  // Percent of the samples in which an operation ran on the device.
  unsigned utilization(int physical) {
    if (Clock::now() >= sample_expires_) {
      sample();
      sample_expires_ = Clock::now() + std::chrono::milliseconds(100);
    }
    return busy_[static_cast<size_t>(physical)] * 100 / kSamples;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr unsigned kSamples = 40;
  static constexpr std::chrono::milliseconds kInterval{4};

  void sample() {
    busy_.fill(0);
    const std::vector<MappedPage>& found = pages();
    if (found.empty()) {
      return;
    }
    for (unsigned i = 0; i < kSamples; ++i) {
      for (size_t device = 0; device < busy_.size(); ++device) {
        bool runs = false;
        for (const MappedPage& page : found) {
          runs = runs || page->devices[device].running.load(std::memory_order_relaxed) != 0;
        }
        busy_[device] += runs;
      }
      std::this_thread::sleep_for(kInterval);
    }
  }

  std::string name_;
  std::vector<MappedPage> pages_;
  Clock::time_point pages_expire_;
  std::array<unsigned, kMaxDevices> busy_ = {};
  Clock::time_point sample_expires_;
};

class EmulatedDevice : public Device {
 public:
  EmulatedDevice(int physical, const Config& config, std::shared_ptr<Readings> readings)
      : physical_(physical),
        properties_(musa_emulator::device_properties(config, physical)),
        readings_(std::move(readings)) {}

  std::string name() const override { return properties_.name; }

  // The 16 bytes of musaDeviceProp::uuid.
  std::string uuid() const override {
    std::string text;
    for (size_t i = 0; i < sizeof properties_.uuid.bytes; ++i) {
      std::array<char, 3> digits;
      std::snprintf(digits.data(), digits.size(), "%02x", static_cast<unsigned char>(properties_.uuid.bytes[i]));
      text += digits.data();
      text += i == 3 || i == 5 || i == 7 || i == 9 ? "-" : "";
    }
    return text;
  }

  MtmlBrandType brand() const override { return MTML_BRAND_MTT; }

  // The address of musaDeviceProp. Ids and link are 0, because there is no board.
  MtmlReturn pci(MtmlPciInfo* info) const override {
    info->segment = static_cast<unsigned>(properties_.pciDomainID);
    info->bus = static_cast<unsigned>(properties_.pciBusID);
    info->device = static_cast<unsigned>(properties_.pciDeviceID);
    return MTML_SUCCESS;
  }

  MtmlReturn serial(std::string*) const override { return MTML_ERROR_NOT_SUPPORTED; }

  MtmlReturn memory(uint64_t* total, uint64_t* used) override {
    *total = properties_.totalGlobalMem;
    *used = 0;
    for (const MappedPage& page : readings_->pages()) {
      *used += usage(page).bytes.load(std::memory_order_relaxed);
    }
    // Processes allocate independently, and together they may exceed the limit, which holds for each of them.
    *used = std::min(*used, *total);
    return MTML_SUCCESS;
  }

  MtmlReturn reading(Reading reading, unsigned* value) override {
    switch (reading) {
      case Reading::Utilization:
      case Reading::MemoryUtilization: // each counted operation accesses device memory
        *value = readings_->utilization(physical_);
        return MTML_SUCCESS;
      case Reading::MaxClock: *value = static_cast<unsigned>(properties_.clockRate / 1000); return MTML_SUCCESS;
      case Reading::MemoryMaxClock:
        *value = static_cast<unsigned>(properties_.memoryClockRate / 1000);
        return MTML_SUCCESS;
      case Reading::MemoryBusWidth: *value = static_cast<unsigned>(properties_.memoryBusWidth); return MTML_SUCCESS;
      case Reading::Cores: *value = static_cast<unsigned>(properties_.multiProcessorCount); return MTML_SUCCESS;
      case Reading::Fans: *value = 0; return MTML_SUCCESS;
      default: return MTML_ERROR_NOT_SUPPORTED;
    }
  }

  MtmlReturn processes(std::vector<MusaMtmlProcess>* found) override {
    for (const MappedPage& page : readings_->pages()) {
      const DeviceUsage& used = usage(page);
      const uint64_t bytes = used.bytes.load(std::memory_order_relaxed);
      if (bytes != 0 || used.active.load(std::memory_order_relaxed)) {
        found->push_back({static_cast<unsigned>(page->owner), bytes});
      }
    }
    return MTML_SUCCESS;
  }

  MtmlReturn peer_access(const Device&) const override { return MTML_SUCCESS; }

  // The devices run on the processors of the host.
  MtmlReturn processor_set(std::vector<unsigned long>* set) const override {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
      return MTML_ERROR_NOT_SUPPORTED;
    }
    for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
      if (CPU_ISSET(processor, &allowed)) {
        add(static_cast<unsigned>(processor), set);
      }
    }
    return MTML_SUCCESS;
  }

  // The nodes whose memory this process may allocate: "Mems_allowed_list: 0-1,3".
  MtmlReturn memory_node_set(std::vector<unsigned long>* set) const override {
    constexpr std::string_view key = "Mems_allowed_list:";
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
      if (!line.starts_with(key)) {
        continue;
      }
      const char* next = line.c_str() + key.size();
      unsigned first = 0;
      unsigned last = 0;
      int length = 0;
      while (std::sscanf(next, " %u%n", &first, &length) == 1) {
        next += length;
        last = first;
        if (std::sscanf(next, "-%u%n", &last, &length) == 1) {
          next += length;
        }
        for (unsigned node = first; node <= last; ++node) {
          add(node, set);
        }
        next += *next == ',' ? 1 : 0;
      }
      return MTML_SUCCESS;
    }
    return MTML_ERROR_NOT_SUPPORTED;
  }

 private:
  const DeviceUsage& usage(const MappedPage& page) const { return page->devices[static_cast<size_t>(physical_)]; }

  static void add(unsigned number, std::vector<unsigned long>* set) {
    constexpr unsigned bits = sizeof(unsigned long) * 8;
    set->resize(std::max(set->size(), size_t{number / bits + 1}));
    (*set)[number / bits] |= 1UL << (number % bits);
  }

  int physical_;
  musaDeviceProp properties_;
  std::shared_ptr<Readings> readings_;
};

} // namespace

MtmlReturn open_devices(std::vector<std::unique_ptr<Device>>* devices, std::string* driver) {
  const Config config = musa_emulator::read_config();
  if (config.error == musaErrorInitializationError) { // not of MUSA_VISIBLE_DEVICES, which does not apply here
    std::fprintf(stderr, "musa-emulator: %s\n", config.problem.c_str());
    return MTML_ERROR_DRIVER_FAILURE;
  }
  const auto readings = std::make_shared<Readings>(config);
  for (int physical = 0; physical < config.physical_devices; ++physical) {
    devices->push_back(std::make_unique<EmulatedDevice>(physical, config, readings));
  }
  constexpr int version = musa_emulator::kVersion;
  *driver =
      std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
  return MTML_SUCCESS;
}

void close_devices() {}

} // namespace mtml
