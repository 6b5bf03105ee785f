# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
# find_package(MUSAToolkit): finds the SDK that this file is part of.
#
#   list(APPEND CMAKE_MODULE_PATH "$ENV{MUSA_HOME}/cmake")
#   find_package(MUSAToolkit REQUIRED)
#   target_link_libraries(program PRIVATE MUSA::musart)
#
# Targets: MUSA::toolkit (headers), MUSA::musart, MUSA::musa_driver, and the installed mathematical libraries:
# MUSA::mublas, MUSA::mublasLt, MUSA::mufft, MUSA::murand, MUSA::musparse, MUSA::musolver. A library named in
# COMPONENTS is required.
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
set(MUSAToolkit_toolkit_FOUND TRUE)
set(MUSAToolkit_musart_FOUND TRUE)
set(MUSAToolkit_musa_driver_FOUND TRUE)
set(_musa_libraries mublas mublasLt mufft murand musparse musolver)
foreach(_musa_library IN LISTS _musa_libraries)
  find_library(MUSAToolkit_${_musa_library}_LIBRARY ${_musa_library} PATHS "${MUSAToolkit_LIBRARY_DIR}" NO_DEFAULT_PATH)
  mark_as_advanced(MUSAToolkit_${_musa_library}_LIBRARY)
  if(MUSAToolkit_${_musa_library}_LIBRARY)
    set(MUSAToolkit_${_musa_library}_FOUND TRUE)
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(MUSAToolkit
  REQUIRED_VARS MUSAToolkit_INCLUDE_DIR MUSAToolkit_musart_LIBRARY MUSAToolkit_musa_LIBRARY
  VERSION_VAR MUSAToolkit_VERSION
  HANDLE_COMPONENTS)

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
  foreach(_musa_library IN LISTS _musa_libraries)
    if(MUSAToolkit_${_musa_library}_FOUND)
      add_library(MUSA::${_musa_library} SHARED IMPORTED)
      set_target_properties(MUSA::${_musa_library} PROPERTIES
        IMPORTED_LOCATION "${MUSAToolkit_${_musa_library}_LIBRARY}"
        # The library finds torch's libraries itself at run time, so its undefined symbols are not an error.
        INTERFACE_LINK_OPTIONS "LINKER:--allow-shlib-undefined")
      target_link_libraries(MUSA::${_musa_library} INTERFACE MUSA::musart)
    endif()
  endforeach()
endif()
unset(_musa_libraries)
