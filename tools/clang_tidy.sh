#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
# Runs clang-tidy on files of packages that are built, each with the commands of its package's build.
set -euo pipefail
status=0
for file; do
  build=$(find "${file%%/csrc/*}/build" -mindepth 2 -maxdepth 2 -name build.ninja -printf '%h\n' -quit 2> /dev/null || true)
  if [[ -z $build ]]; then
    echo "$file: its package is not built. Fix: python3 tools/dev.py setup" >&2
    exit 1
  fi
  [[ $build/compile_commands.json -nt $build/build.ninja ]] || ninja -C "$build" -t compdb > "$build/compile_commands.json"
  clang-tidy --quiet -p "$build" "$file" || status=1
done
exit "$status"
