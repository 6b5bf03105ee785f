// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/core/AllocatorConfig.h>
#include <c10/musa/MUSAMacros.h>

#include <string>

namespace c10::musa::MUSACachingAllocator {

// The user's allocator settings: those of torch, which are stored in AcceleratorAllocatorConfig, and ours.
//
// They are read from PYTORCH_ALLOC_CONF, then PYTORCH_MUSA_ALLOC_CONF, at the first use of the device, and from
// torch._C._accelerator_setAllocatorSettings at any time. A key that such a text does not name keeps its value, except
// max_split_size_mb, garbage_collection_threshold and roundup_power2_divisions, which torch then resets. torch silently
// accepts unknown keys and half-read numbers; here each raises a ValueError that names the key and the variable.
class C10_MUSA_API MUSAAllocatorConfig {
 public:
  static bool expandable_segments() {
    return c10::CachingAllocator::AcceleratorAllocatorConfig::use_expandable_segments();
  }

  // Raises if the text is malformed. source: the variable or call that the error names. Changes nothing.
  static void check(const std::string& text, const std::string& source);

  // Applies the settings of the environment, once. Raises at every call, and changes nothing, while they are malformed.
  static void load_environment();

  // Checks the settings of a running program, then applies them.
  static void set(const std::string& text);
};

} // namespace c10::musa::MUSACachingAllocator
