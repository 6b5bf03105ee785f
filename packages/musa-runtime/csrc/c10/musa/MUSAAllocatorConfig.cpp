// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/MUSAAllocatorConfig.h>

#include <c10/musa/MUSACachingAllocator.h>
#include <c10/musa/MUSAEnvironment.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace c10::musa::MUSACachingAllocator {
namespace {

using Config = c10::CachingAllocator::AcceleratorAllocatorConfig;

constexpr char kGeneric[] = "PYTORCH_ALLOC_CONF";
constexpr char kOwn[] = "PYTORCH_MUSA_ALLOC_CONF";
constexpr uint64_t kMostMib = std::numeric_limits<uint64_t>::max() >> 20;
constexpr uint64_t kLargeSegmentMib = 20; // torch's default
constexpr uint64_t kLeastLargeSegmentMib = 11; // torch refuses less

struct Setting {
  std::string key;
  std::string value;
};

// The effect of a setting in the vendor's allocator that changes no result and is not implemented here; nullptr for other
// settings.
const char* effect_left_out(const Setting& setting) {
  if (setting.key == "cpu") {
    return "tensors of the CPU are not in memory that the device shares, so they are copied to the device";
  }
  if (setting.key == "backend" && setting.value != "native") {
    return "memory comes from the native caching allocator";
  }
  if (setting.key == "release_lock_on_musamalloc") {
    return "the allocator's lock is held while the driver allocates";
  }
  if (setting.key == "pinned_use_musa_host_register" || setting.key == "pinned_num_register_threads") {
    return "the driver allocates pinned memory, one thread at a time";
  }
  return nullptr;
}

// Parses and checks the text of one source: every error names the key and the source.
class Reader {
 public:
  Reader(const std::string& text, const std::string& source, uint64_t large_segment)
      : text_(text), source_(source), large_segment_(large_segment) {}

  std::vector<Setting> settings() {
    std::vector<Setting> found;
    std::string part;
    int depth = 0;
    size_t left = text_.size(); // a comma follows that ends the last setting
    for (const char c : text_ + ',') {
      depth += c == '[' ? 1 : c == ']' ? -1 : 0;
      if (c == ',' && depth <= 0) {
        if (!part.empty()) {
          found.push_back(split(part));
        } else if (left != 0) {
          refuse(",", "is where a setting should be"); // torch fails with an internal assertion
        }
        part.clear();
      } else if (std::isspace(static_cast<unsigned char>(c)) == 0) {
        part += c;
      }
      --left;
    }
    if (depth != 0) {
      refuse(part.substr(0, part.find(':')), "has a list without its closing ']'");
    }
    for (const Setting& setting : found) {
      check(setting);
    }
    return found;
  }

  // The large segment size after these settings, once they have been read.
  uint64_t large_segment() const { return large_segment_; }

 private:
  [[noreturn]] void refuse(const std::string& key, const std::string& complaint) const {
    TORCH_CHECK_VALUE(
        false, source_, "='", printable(c10::str(text_, "': '", key, "' ", complaint)), ".\n",
        "Fix: correct it, or leave it out. The form is key:value,key:value; for example "
        "max_split_size_mb:64,garbage_collection_threshold:0.8");
  }

  Setting split(const std::string& part) const {
    const size_t colon = part.find(':');
    if (colon == std::string::npos) {
      refuse(part, "has no value");
    }
    Setting setting{part.substr(0, colon), part.substr(colon + 1)};
    if (setting.key.empty() || setting.value.empty()) {
      refuse(part, setting.key.empty() ? "has no key" : "has no value");
    }
    return setting;
  }

  template <typename Number>
  static std::optional<Number> number(std::string_view text) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
  }

  uint64_t mib(const Setting& setting, uint64_t least) const {
    const auto value = number<uint64_t>(setting.value);
    if (!value || *value < least || *value > kMostMib) {
      refuse(
          setting.key, c10::str("must be a whole number of MiB, ", least, " or more, and not '", setting.value, "'"));
    }
    return *value;
  }

  void fraction(const Setting& setting, bool open) const {
    const auto value = number<double>(setting.value);
    if (!value || !(open ? *value > 0.0 && *value < 1.0 : *value >= 0.0 && *value <= 1.0)) {
      refuse(
          setting.key,
          c10::str("must be a number ", open ? "between 0 and 1" : "from 0 to 1", ", and not '", setting.value, "'"));
    }
  }

  void one_of(const Setting& setting, std::initializer_list<const char*> values) const {
    if (std::find(values.begin(), values.end(), setting.value) != values.end()) {
      return;
    }
    std::string known;
    for (const char* value : values) {
      known += known.empty() ? value : c10::str(" or ", value);
    }
    refuse(setting.key, c10::str("must be ", known, ", and not '", setting.value, "'"));
  }

  // 4, or [256:1,512:2,>:4]: the number of steps into which each power of two is divided, from that many MiB on.
  void roundup(const Setting& setting) const {
    const auto power_of_two = [](std::optional<uint64_t> value) { return value && std::has_single_bit(*value); };
    const std::string& value = setting.value;
    if (value.front() != '[') {
      if (!power_of_two(number<uint64_t>(value))) {
        refuse(
            setting.key, c10::str("must be a power of two or a list such as [256:1,512:2,>:4], and not '", value, "'"));
      }
      return;
    }
    const std::string list = value.substr(1, value.size() - 2);
    if (value.back() != ']' || list.empty()) {
      refuse(setting.key, c10::str("must be a list such as [256:1,512:2,>:4], and not '", value, "'"));
    }
    for (size_t begin = 0; begin <= list.size();) {
      const size_t end = std::min(list.find(',', begin), list.size());
      const std::string entry = list.substr(begin, end - begin);
      const size_t colon = std::min(entry.find(':'), entry.size());
      const auto divisions =
          colon < entry.size() ? number<uint64_t>(std::string_view(entry).substr(colon + 1)) : std::nullopt;
      const bool size_known =
          entry.substr(0, colon) == ">" || power_of_two(number<uint64_t>(std::string_view(entry).substr(0, colon)));
      if (!size_known || !(power_of_two(divisions) || divisions == uint64_t{0})) {
        refuse(
            setting.key,
            c10::str(
                "must list pairs of a size in MiB (a power of two, or > for all larger ones) and a number of steps (a "
                "power of two, or 0), and not '",
                entry, "'"));
      }
      begin = end + 1;
    }
  }

  void check(const Setting& setting) {
    const std::string& key = setting.key;
    if (key == "large_segment_size_mb") {
      large_segment_ = mib(setting, kLeastLargeSegmentMib);
    } else if (key == "max_split_size_mb" || key == "max_non_split_rounding_mb") {
      mib(setting, large_segment_);
    } else if (key == "garbage_collection_threshold") {
      fraction(setting, /*open=*/true);
    } else if (key == "per_process_memory_fraction") {
      fraction(setting, /*open=*/false);
    } else if (key == "roundup_power2_divisions") {
      roundup(setting);
    } else if (
        key == "expandable_segments" || key == "pinned_use_background_threads" || key == "release_lock_on_musamalloc" ||
        key == "pinned_use_musa_host_register") {
      one_of(setting, {"True", "False"});
    } else if (key == "pinned_num_register_threads") {
      const auto value = number<uint64_t>(setting.value);
      if (!value || !std::has_single_bit(*value)) {
        refuse(key, c10::str("must be a power of two, and not '", setting.value, "'"));
      }
    } else if (key == "cpu") {
      one_of(setting, {"unified"});
    } else if (key == "pinned_max_round_threshold_mb" || key == "pinned_max_cached_size_mb") {
      mib(setting, 0);
    } else if (key == "backend") {
      if (setting.value == "unified") {
        refuse(
            key,
            "is 'unified', for tensors in memory that host and device share. The musa allocator has none; "
            "torch.musa.memory.MUSAPluggableAllocator takes functions that allocate it, with musaMallocManaged");
      }
      one_of(setting, {"native", "musaMallocAsync"});
    } else {
      refuse(
          key,
          "is no setting of the musa allocator. Its settings are backend, expandable_segments, "
          "garbage_collection_threshold, "
          "large_segment_size_mb, max_non_split_rounding_mb, max_split_size_mb, per_process_memory_fraction, "
          "pinned_max_cached_size_mb, pinned_max_round_threshold_mb, pinned_use_background_threads and "
          "roundup_power2_divisions; a setting of another backend belongs in that backend's variable, such as "
          "PYTORCH_CUDA_ALLOC_CONF");
    }
  }

  const std::string& text_;
  const std::string& source_;
  uint64_t large_segment_;
};

// Applies the settings that torch does not have. The text has been checked.
void take_own(const std::vector<Setting>& settings) {
  for (const Setting& setting : settings) {
    if (const char* instead = effect_left_out(setting)) {
      TORCH_WARN("The allocator setting ", setting.key, ":", setting.value, " has no effect: ", instead, ".");
    } else if (setting.key == "per_process_memory_fraction") {
      setMemoryFractionOfAllDevices(std::strtod(setting.value.c_str(), nullptr));
    }
  }
}

std::string joined(const std::vector<Setting>& first, const std::vector<Setting>& second) {
  std::string text;
  for (const auto* settings : {&first, &second}) {
    for (const Setting& setting : *settings) {
      text += (text.empty() ? "" : ",") + setting.key + ":" + setting.value;
    }
  }
  return text;
}

struct Environment {
  std::mutex mutex; // held while the text is read, when the allocators' mutexes are taken; never taken under theirs
  std::atomic<bool> loaded{false};
};

Environment& the_environment() {
  static auto& instance = *new Environment();
  return instance;
}

uint64_t present_large_segment() { return Config::large_segment_size() >> 20; }

// Called by torch with settings of a running program, after torch has applied its own.
void take_from_torch(const std::string& text) {
  const bool first = !the_environment().loaded;
  MUSAAllocatorConfig::load_environment();
  const std::string source = "the allocator settings";
  const auto settings = Reader(text, source, kLeastLargeSegmentMib).settings(); // torch has checked this bound
  if (first) {
    Config::instance().parseArgs(text); // the environment has overwritten settings of the program
  }
  take_own(settings);
}

[[maybe_unused]] const bool configuration_registered = [] {
  // In a torch that also has CUDA, its allocator may have claimed some of these keys, and the only place for a hook.
  std::unordered_set<std::string> keys{
      "backend", "cpu", "per_process_memory_fraction", "pinned_use_musa_host_register", "release_lock_on_musamalloc",
      // Registered so that torch accepts them in PYTORCH_CUDA_ALLOC_CONF, which it reads as well.
      "graph_capture_record_stream_reuse", "pinned_free_catch_all", "pinned_num_register_threads",
      "pinned_reserve_segment_size_mb", "pinned_use_cuda_host_register", "release_lock_on_cudamalloc",
      "throw_on_cudamalloc_oom"};
  std::erase_if(keys, [](const std::string& key) { return Config::getKeys().count(key) != 0; });
  Config::registerDeviceConfigParserHook(
      [before = Config::getConfigParserHook()](const std::string& text) {
        if (before) {
          before(text);
        }
        take_from_torch(text);
      },
      keys);
  return true;
}();

} // namespace

void MUSAAllocatorConfig::check(const std::string& text, const std::string& source) {
  Reader(text, source, kLargeSegmentMib).settings();
}

void MUSAAllocatorConfig::load_environment() {
  Environment& state = the_environment();
  if (state.loaded.load(std::memory_order_acquire)) {
    return;
  }
  const std::lock_guard<std::mutex> guard(state.mutex);
  if (state.loaded) {
    return;
  }
  environment_flag("PYTORCH_NO_MUSA_MEMORY_CACHING", false); // applied when the library is loaded
  const std::string generic_name = kGeneric;
  const std::string own_name = kOwn;
  const std::string generic = environment_variable(kGeneric);
  const std::string own = environment_variable(kOwn);
  Reader generic_reader(generic, generic_name, kLargeSegmentMib);
  const auto generic_settings = generic_reader.settings();
  const auto own_settings = Reader(own, own_name, generic_reader.large_segment()).settings();
  try {
    Config::instance(); // reads PYTORCH_ALLOC_CONF or, without it, PYTORCH_CUDA_ALLOC_CONF
  } catch (const std::exception& error) {
    const auto* ours = dynamic_cast<const c10::Error*>(&error);
    TORCH_CHECK_VALUE(
        false, "torch cannot take its allocator settings: ",
        printable(ours != nullptr ? ours->what_without_backtrace() : error.what()), ".\n",
        "Likely causes: PYTORCH_CUDA_ALLOC_CONF='", printable(environment_variable("PYTORCH_CUDA_ALLOC_CONF")),
        "' is malformed; torch reads it for every device.\nFix: correct or unset it.");
  }
  take_own(generic_settings);
  if (!own.empty()) {
    // Both again, because torch resets some keys that a text does not name.
    Config::instance().parseArgs(joined(generic_settings, own_settings));
    take_own(own_settings);
  }
  state.loaded.store(true, std::memory_order_release);
}

void MUSAAllocatorConfig::set(const std::string& text) {
  load_environment();
  const std::string source = "the allocator settings";
  Reader(text, source, present_large_segment()).settings();
  c10::CachingAllocator::setAllocatorSettings(text);
}

} // namespace c10::musa::MUSACachingAllocator
