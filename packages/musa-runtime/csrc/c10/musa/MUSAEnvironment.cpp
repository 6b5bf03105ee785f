// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/MUSAEnvironment.h>

#include <cstdlib>

#include <c10/util/Exception.h>

namespace c10::musa {

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

bool environment_flag(const char* name, bool otherwise) {
  const std::string value = environment_variable(name);
  TORCH_CHECK_VALUE(
      value.empty() || value == "0" || value == "1", name, "='", printable(value),
      "' is invalid; expected 0 or 1.\nFix: correct it, or unset ", name);
  return value.empty() ? otherwise : value == "1";
}

std::string printable(const std::string& text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string shown;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte >= 0x20 && byte < 0x7f) || c == '\n') {
      shown += c;
    } else {
      shown += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return shown;
}

} // namespace c10::musa
