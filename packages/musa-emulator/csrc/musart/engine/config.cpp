// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engine/config.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <string_view>

namespace musa_emulator {
namespace {

const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  return text;
}

template <class T>
bool parse_integer(std::string_view text, T* value) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return code == std::errc() && end == text.data() + text.size() && !text.empty();
}

void refuse(Config& config, musaError_t error, const std::string& problem) {
  if (config.error == musaSuccess) {
    config.error = error;
    config.problem = problem;
  }
}

void refuse_value(Config& config, const char* name, const char* value, const char* expected) {
  refuse(
      config, musaErrorInitializationError,
      std::string(name) + "=\"" + value + "\" is invalid: expected " + expected + ". Fix: correct it or unset " + name);
}

bool read_flag(Config& config, const char* name, bool otherwise) {
  const char* value = environment(name);
  if (value == nullptr) {
    return otherwise;
  }
  if (std::string_view(value) != "0" && std::string_view(value) != "1") {
    refuse_value(config, name, value, "0 or 1");
    return otherwise;
  }
  return *value == '1';
}

// Memory in bytes available to this process: the machine's or, if lower, the container's limit.
size_t host_memory() {
  size_t bytes = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGE_SIZE));
  size_t limit = 0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> limit && limit > 0) {
    bytes = std::min(bytes, limit);
  }
  return bytes;
}

bool parse_bytes(std::string_view text, size_t* bytes) {
  int shift = 0;
  if (!text.empty() && !std::isdigit(static_cast<unsigned char>(text.back()))) {
    switch (std::toupper(static_cast<unsigned char>(text.back()))) {
      case 'K': shift = 10; break;
      case 'M': shift = 20; break;
      case 'G': shift = 30; break;
      case 'T': shift = 40; break;
      default: return false;
    }
    text.remove_suffix(1);
  }
  size_t value = 0;
  if (!parse_integer(text, &value) || value == 0 || value > (SIZE_MAX >> 1) >> shift) {
    return false;
  }
  *bytes = value << shift;
  return true;
}

void read_mode(Config& config) {
  const char* value = environment("MUSA_EMULATOR_MODE");
  if (value == nullptr) {
    return;
  }
  const std::string_view mode = value;
  if (mode == "inline") {
    config.mode = Mode::Inline;
  } else if (mode == "async") {
    config.mode = Mode::Async;
  } else if (mode == "lazy") {
    config.mode = Mode::Lazy;
  } else {
    refuse_value(config, "MUSA_EMULATOR_MODE", value, "inline, async or lazy");
  }
}

void read_arch(Config& config) {
  const char* value = environment("MUSA_EMULATOR_ARCH");
  if (value == nullptr) {
    return;
  }
  const std::string_view arch = value;
  if (arch == "mp_21") {
    config.arch = 21;
  } else if (arch == "mp_22") {
    config.arch = 22;
  } else if (arch == "mp_31") {
    config.arch = 31;
  } else {
    refuse_value(config, "MUSA_EMULATOR_ARCH", value, "mp_21, mp_22 or mp_31");
  }
}

void read_schedule(Config& config) {
  const char* value = environment("MUSA_EMULATOR_SCHEDULE");
  if (value == nullptr) {
    return;
  }
  const std::string_view order = value;
  constexpr std::string_view random = "random:";
  if (order == "forward") {
    config.thread_order = ThreadOrder::Forward;
  } else if (order == "reverse") {
    config.thread_order = ThreadOrder::Reverse;
  } else if (order.starts_with(random) && parse_integer(order.substr(random.size()), &config.thread_order_seed)) {
    config.thread_order = ThreadOrder::Random;
  } else {
    refuse_value(config, "MUSA_EMULATOR_SCHEDULE", value, "forward, reverse or random:<number>");
  }
}

void read_threads(Config& config) {
  cpu_set_t set;
  CPU_ZERO(&set);
  config.threads = sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<size_t>(std::max(CPU_COUNT(&set), 1)) : 1;
  const char* value = environment("MUSA_EMULATOR_THREADS");
  if (value != nullptr && (!parse_integer(std::string_view(value), &config.threads) || config.threads == 0)) {
    config.threads = 1;
    refuse_value(config, "MUSA_EMULATOR_THREADS", value, "a number of threads, 1 or more");
  }
}

// Parsed like the driver does: a list of ordinals in order, which ends at the first one that does not exist.
void read_visible_devices(Config& config) {
  const char* value = std::getenv("MUSA_VISIBLE_DEVICES");
  if (value == nullptr) {
    for (int device = 0; device < config.physical_devices; ++device) {
      config.visible.push_back(device);
    }
    return;
  }
  const std::string quoted = std::string("MUSA_VISIBLE_DEVICES=\"") + value + "\"";
  std::string_view rest = value;
  if (trimmed(rest).empty()) {
    return;
  }
  while (true) {
    const size_t comma = rest.find(',');
    const std::string_view item = trimmed(rest.substr(0, comma));
    int ordinal = 0;
    if (!parse_integer(item, &ordinal)) {
      config.visible.clear();
      refuse(
          config, musaErrorNoDevice,
          quoted + " is invalid: \"" + std::string(item) +
              "\" is not a device ordinal, so no device is visible. Fix: list ordinals separated by commas, such as "
              "MUSA_VISIBLE_DEVICES=0,1, or unset MUSA_VISIBLE_DEVICES");
      return;
    }
    if (item.front() == '-') {
      return;
    }
    if (ordinal >= config.physical_devices) {
      config.problem = quoted + " contains device " + std::to_string(ordinal) + ", but there are " +
          std::to_string(config.physical_devices) +
          " devices (MUSA_EMULATOR_DEVICES); it and all later ordinals are ignored";
      return;
    }
    if (std::find(config.visible.begin(), config.visible.end(), ordinal) != config.visible.end()) {
      config.visible.clear();
      refuse(
          config, musaErrorNoDevice,
          quoted + " contains device " + std::to_string(ordinal) +
              " twice, so no device is visible. Fix: list each device once");
      return;
    }
    config.visible.push_back(ordinal);
    if (comma == std::string_view::npos) {
      return;
    }
    rest.remove_prefix(comma + 1);
  }
}

} // namespace

const char* mode_name(Mode mode) {
  switch (mode) {
    case Mode::Inline: return "inline";
    case Mode::Async: return "async";
    case Mode::Lazy: return "lazy";
  }
  return "unknown";
}

Config read_config() {
  Config config;
  read_mode(config);
  read_arch(config);
  read_schedule(config);
  read_threads(config);

  config.physical_devices = 2;
  if (const char* value = environment("MUSA_EMULATOR_DEVICES")) {
    int count = 0;
    if (!parse_integer(std::string_view(value), &count) || count < 0 || count > kMaxDevices) {
      refuse_value(config, "MUSA_EMULATOR_DEVICES", value, "a number from 0 to 64");
    } else {
      config.physical_devices = count;
    }
  }

  // Three quarters of the memory, divided over all devices, leave memory for the process itself.
  const size_t share = host_memory() / 4 * 3 / static_cast<size_t>(std::max(config.physical_devices, 1));
  config.memory_limit = share & ~((size_t{2} << 20) - 1);
  if (const char* value = environment("MUSA_EMULATOR_MEMORY_LIMIT")) {
    if (!parse_bytes(value, &config.memory_limit)) {
      refuse_value(
          config, "MUSA_EMULATOR_MEMORY_LIMIT", value, "bytes with an optional suffix K, M, G or T, such as 2G");
    }
  }

  if (const char* value = environment("MUSA_EMULATOR_MEMORY")) {
    const std::string_view kind(value);
    config.strict = kind == "strict" || kind == "soc";
    config.integrated = kind != "strict";
    if (!config.strict && kind != "shared") {
      refuse_value(config, "MUSA_EMULATOR_MEMORY", value, "shared, strict or soc");
    }
  }
  config.poison = read_flag(config, "MUSA_EMULATOR_POISON", config.strict);
  config.float64 = read_flag(config, "MUSA_EMULATOR_FLOAT64", true);
  config.virtual_memory = read_flag(config, "MUSA_EMULATOR_VIRTUAL_MEMORY", true);
  config.launch_blocking = read_flag(config, "MUSA_LAUNCH_BLOCKING", false);
  if (const char* value = environment("MUSA_EMULATOR_FAIL")) {
    config.faults = value;
  }
  if (const char* value = environment("MUSA_EMULATOR_MACHINE")) {
    config.machine = value;
    if (config.machine.size() > 64 || !std::all_of(config.machine.begin(), config.machine.end(), [](unsigned char c) {
          return std::isalnum(c) || c == '-' || c == '_' || c == '.';
        })) {
      config.machine.clear();
      refuse_value(config, "MUSA_EMULATOR_MACHINE", value, "up to 64 letters, digits, dots, hyphens and underscores");
    }
  }
  read_visible_devices(config);
  if (config.visible.empty()) {
    refuse(config, musaErrorNoDevice, std::string());
  }
  return config;
}

} // namespace musa_emulator
