// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The command line of programs that take no arguments but --help and --version.
#pragma once

#include <cstdio>
#include <cstring>

enum class Option { None, Version, Answered, Invalid };

// Prints the usage for --help and for an unknown argument. `text` is the description, a sentence.
inline Option parse_options(int count, char** arguments, const char* name, const char* text) {
  if (count < 2) return Option::None;
  if (std::strcmp(arguments[1], "--version") == 0) return Option::Version;
  const bool help = std::strcmp(arguments[1], "--help") == 0 || std::strcmp(arguments[1], "-h") == 0;
  if (!help) std::fprintf(stderr, "%s: unrecognized argument: %s\n", name, arguments[1]);
  std::fprintf(
      help ? stdout : stderr,
      "usage: %s [--help] [--version]\n\n%s\n\n  --help     print this text and exit\n"
      "  --version  print the version and exit\n",
      name, text);
  return help ? Option::Answered : Option::Invalid;
}
