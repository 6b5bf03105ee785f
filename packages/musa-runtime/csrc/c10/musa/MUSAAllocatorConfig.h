// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/core/AllocatorConfig.h>
#include <c10/musa/MUSAMacros.h>

#include <string>

namespace c10::musa::MUSACachingAllocator {

// What the user asks of the allocator: torch's own settings, which live in AcceleratorAllocatorConfig, and ours.
//
// They come from PYTORCH_ALLOC_CONF, then PYTORCH_MUSA_ALLOC_CONF, at the first use of the device, and from
// torch._C._accelerator_setAllocatorSettings at any time. Keys that such a text does not name stay as they are, but for
// three that torch then sets back: max_split_size_mb, garbage_collection_threshold, roundup_power2_divisions. torch accepts
// unknown keys and half-read numbers in silence; here each is an error (ValueError) that names the key and the variable.
class C10_MUSA_API MUSAAllocatorConfig {
 public:
  static bool expandable_segments() {
    return c10::CachingAllocator::AcceleratorAllocatorConfig::use_expandable_segments();
  }

  // Raises for a text that cannot be taken; source says where it comes from. Changes nothing.
  static void check(const std::string& text, const std::string& source);

  // Takes what the environment says, once. Raises, at each call anew, when that cannot be taken. Changes nothing then.
  static void load_environment();

  // Checks, then takes. For the settings of a running program.
  static void set(const std::string& text);
};

} // namespace c10::musa::MUSACachingAllocator
