# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
# find_package(MUSAToolkit): the SDK that this file is part of.
#
#   list(APPEND CMAKE_MODULE_PATH "$ENV{MUSA_HOME}/cmake")
#   find_package(MUSAToolkit REQUIRED)
#   target_link_libraries(program PRIVATE MUSA::musart)
#
# Targets: MUSA::toolkit (headers), MUSA::musart, MUSA::musa_driver.
# Variables: MUSAToolkit_FOUND, MUSAToolkit_VERSION, MUSAToolkit_INCLUDE_DIRS, MUSAToolkit_LIBRARY_DIR, MUSAToolkit_BIN_DIR.
get_filename_component(_musa_home "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)

if(EXISTS "${_musa_home}/version.json")
  file(READ "${_musa_home}/version.json" _musa_versions)
  string(JSON MUSAToolkit_VERSION ERROR_VARIABLE _musa_error GET "${_musa_versions}" musa_runtime version)
endif()

set(MUSAToolkit_BIN_DIR "${_musa_home}/bin")
set(MUSAToolkit_LIBRARY_DIR "${_musa_home}/lib")
find_path(MUSAToolkit_INCLUDE_DIR musa_runtime.h PATHS "${_musa_home}/include" NO_DEFAULT_PATH)
find_library(MUSAToolkit_musart_LIBRARY musart PATHS "${MUSAToolkit_LIBRARY_DIR}" NO_DEFAULT_PATH)
find_library(MUSAToolkit_musa_LIBRARY musa PATHS "${MUSAToolkit_LIBRARY_DIR}" NO_DEFAULT_PATH)
mark_as_advanced(MUSAToolkit_INCLUDE_DIR MUSAToolkit_musart_LIBRARY MUSAToolkit_musa_LIBRARY)
set(MUSAToolkit_INCLUDE_DIRS "${MUSAToolkit_INCLUDE_DIR}")

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(MUSAToolkit
  REQUIRED_VARS MUSAToolkit_INCLUDE_DIR MUSAToolkit_musart_LIBRARY MUSAToolkit_musa_LIBRARY
  VERSION_VAR MUSAToolkit_VERSION)

if(MUSAToolkit_FOUND AND NOT TARGET MUSA::toolkit)
  add_library(MUSA::toolkit INTERFACE IMPORTED)
  target_include_directories(MUSA::toolkit INTERFACE "${MUSAToolkit_INCLUDE_DIR}")
  add_library(MUSA::musa_driver SHARED IMPORTED)
  set_target_properties(MUSA::musa_driver PROPERTIES IMPORTED_LOCATION "${MUSAToolkit_musa_LIBRARY}")
  target_link_libraries(MUSA::musa_driver INTERFACE MUSA::toolkit)
  add_library(MUSA::musart SHARED IMPORTED)
  set_target_properties(MUSA::musart PROPERTIES
    IMPORTED_LOCATION "${MUSAToolkit_musart_LIBRARY}"
    IMPORTED_LINK_DEPENDENT_LIBRARIES MUSA::musa_driver)
  target_link_libraries(MUSA::musart INTERFACE MUSA::toolkit)
endif()
