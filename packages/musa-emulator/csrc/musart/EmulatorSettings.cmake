# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
#
# Compile settings of all emulator libraries.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# Results must not depend on the processor: without this, compilers fuse multiply-adds where the processor has them
# (aarch64).
add_compile_options(-ffp-contract=off)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# musa_emulator_exports(<target> <map>): exports only the symbols in a version script. Symbols of static libraries are
# hidden too: a toolchain may link parts of the C++ runtime statically, and libraries built against the emulator would
# bind to them and then fail to load with another SDK.
function(musa_emulator_exports target map)
  target_link_options(${target} PRIVATE "LINKER:--version-script=${map}" LINKER:--exclude-libs,ALL)
  # Calls of the library's own exported functions bypass the PLT.
  target_link_options(${target} PRIVATE LINKER:-Bsymbolic-functions)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${map}")
endfunction()
