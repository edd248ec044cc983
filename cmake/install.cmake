# What is installed, in components, each of which `cmake --install BUILD --component NAME` installs and the target `uninstall-NAME`
# removes alone; without a name it is all of them (docs/how-to/install.md):
#
#   command    the program, its manual pages and its completion for shells
#   library    the shared library
#   headers    what programs are compiled with: headers, the static library, files for pkg-config and CMake, manual pages of section 3
#   mpi        the module that carries jobs over several hosts by MPI
#   downloads  the module that fetches data sets
#   data       models and data that ship
#   python     the Python package
#
# Every path between two of them is relative, so that the tree may be moved.
set(TRIREME_COMPONENTS command library headers mpi downloads data python)

# For a program in this build folder, modules are in `modules`, models and data in `sources` (src/base/files/build_folder.h).
file(CREATE_LINK ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/sources SYMBOLIC)

# The jobs and, in the folders that they name, the data.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/models DESTINATION ${CMAKE_INSTALL_DATADIR}/trireme COMPONENT data FILES_MATCHING PATTERN "*.yaml")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/data DESTINATION ${CMAKE_INSTALL_DATADIR}/trireme COMPONENT data
        FILES_MATCHING PATTERN "*.gz" PATTERN "*.tsv" PATTERN "*.csv" PATTERN "*.md")

# For programs that are compiled with the library.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/trireme DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT headers
        FILES_MATCHING PATTERN "*.h")
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/trireme)
install(EXPORT trireme NAMESPACE trireme:: DESTINATION ${package} COMPONENT headers FILE trireme-targets.cmake)
install(EXPORT trireme-static NAMESPACE trireme:: DESTINATION ${package} COMPONENT headers FILE trireme-static-targets.cmake)
include(CMakePackageConfigHelpers)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/trireme-config.cmake.in ${PROJECT_BINARY_DIR}/trireme-config.cmake
                              INSTALL_DESTINATION ${package})
# The rule of the loader: the major version is the number of the SONAME, and within one the interface only grows (src/exports.map).
write_basic_package_version_file(${PROJECT_BINARY_DIR}/trireme-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/trireme-config.cmake ${PROJECT_BINARY_DIR}/trireme-config-version.cmake
        DESTINATION ${package} COMPONENT headers)
file(RELATIVE_PATH TRIREME_PC_TO_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" TRIREME_PC_TO_PREFIX ${TRIREME_PC_TO_PREFIX})
configure_file(${CMAKE_CURRENT_LIST_DIR}/trireme.pc.in ${PROJECT_BINARY_DIR}/trireme.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/trireme.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT headers)

# The Python package finds the library, the program and the data by links in its folder _native. A wheel has them there.
find_package(Python3 COMPONENTS Interpreter QUIET)
if(Python3_FOUND AND NOT SKBUILD)
  execute_process(COMMAND ${Python3_EXECUTABLE} -c "import os, sysconfig as s; print(os.path.relpath(s.get_path('purelib'), s.get_path('data')))"
                  OUTPUT_VARIABLE modules OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(TRIREME_PYTHON_DIR ${modules} CACHE STRING "Where the Python package goes, below the prefix")
  mark_as_advanced(TRIREME_PYTHON_DIR)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/trireme DESTINATION ${TRIREME_PYTHON_DIR} COMPONENT python
          FILES_MATCHING PATTERN "*.py" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)
  function(trireme_python_link folder target)
    set(place trireme/_native/${folder})
    get_filename_component(name ${target} NAME)
    get_filename_component(root / ABSOLUTE)
    file(RELATIVE_PATH way ${root}prefix/${TRIREME_PYTHON_DIR}/${place} ${root}prefix/${target})
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/python/${folder})
    file(CREATE_LINK ${way} ${PROJECT_BINARY_DIR}/python/${folder}/${name} SYMBOLIC)
    install(FILES ${PROJECT_BINARY_DIR}/python/${folder}/${name} DESTINATION ${TRIREME_PYTHON_DIR}/${place} COMPONENT python)
  endfunction()
  trireme_python_link(lib ${CMAKE_INSTALL_LIBDIR}/libtrireme.so.${PROJECT_VERSION_MAJOR})
  trireme_python_link(bin ${CMAKE_INSTALL_BINDIR}/trireme)
  trireme_python_link(share ${CMAKE_INSTALL_DATADIR}/trireme)
endif()

# An uninstallation removes the files where the last installation put them.
set(TRIREME_INSTALLED ${PROJECT_BINARY_DIR}/install_prefix.txt)
foreach(component ${TRIREME_COMPONENTS})
  install(CODE "file(WRITE \"${TRIREME_INSTALLED}\" \"\${CMAKE_INSTALL_PREFIX}\")" COMPONENT ${component})
endforeach()
foreach(component "" ${TRIREME_COMPONENTS})
  string(REGEX REPLACE "(.+)" "-\\1" suffix "${component}")
  add_custom_target(uninstall${suffix} VERBATIM COMMENT "Removing what was installed"
    COMMAND ${CMAKE_COMMAND} -DBUILD=${PROJECT_BINARY_DIR} -DINSTALLED=${TRIREME_INSTALLED} -DPREFIX=${CMAKE_INSTALL_PREFIX}
            -DCOMPONENT=${component} -P ${CMAKE_CURRENT_LIST_DIR}/uninstall.cmake)
endforeach()
