# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
#
# How all libraries of the emulator are compiled.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# Results must not depend on the processor: a product and a sum stay two operations where it has fused ones, as aarch64 has.
add_compile_options(-ffp-contract=off)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# musa_emulator_exports(<target> <map>): the library exports the names of a version script that are visible in its sources.
# Symbols of static libraries stay inside too: a toolchain may link parts of the C++ runtime statically, and a library built
# against the emulator would bind to them and then fail to load with another SDK.
function(musa_emulator_exports target map)
  target_link_options(${target} PRIVATE "LINKER:--version-script=${map}" LINKER:--exclude-libs,ALL)
  # A library calls its own exported functions without a detour over the linkage table.
  target_link_options(${target} PRIVATE LINKER:-Bsymbolic-functions)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${map}")
endfunction()
