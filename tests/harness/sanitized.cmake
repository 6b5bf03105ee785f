# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
#
# Settings of all projects of C++ tests. Reads SANITIZE, the value of -fsanitize, and SANITIZE_NOT, a check to leave out.
set(SANITIZE "" CACHE STRING "value of -fsanitize")
# Compiling is what takes the time here: optimising under the undefined-behaviour checks doubles it.
set(CMAKE_BUILD_TYPE Release)
set(CMAKE_CXX_FLAGS_RELEASE "-O0 -g1")
if(SANITIZE)
  add_compile_options(
    -fsanitize=${SANITIZE} -fno-sanitize=${SANITIZE_NOT} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SANITIZE})
endif()

find_package(GTest QUIET)
if(NOT GTest_FOUND)
  message(FATAL_ERROR "GoogleTest was not found. On Debian or Ubuntu: sudo apt-get install -y libgtest-dev")
endif()
find_package(Threads REQUIRED)
