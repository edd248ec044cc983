# Finds the dependencies of the library and reports all missing ones in one message.
find_package(PkgConfig)
find_package(Threads REQUIRED)
set(TRIREME_MISSING "")
# The targets that the library is linked with, and their modules for programs that link it statically, in the files of pkg-config
# and CMake.
set(TRIREME_PACKAGES "")
set(TRIREME_PC_MODULES "")
set(TRIREME_STATIC_MODULES "")

# name of the target, pkg-config module, Debian package, purpose
function(trireme_need target module package purpose)
  if(PKG_CONFIG_FOUND)
    pkg_check_modules(${target} QUIET IMPORTED_TARGET ${module})
  endif()
  if(NOT ${target}_FOUND)
    set(TRIREME_MISSING "${TRIREME_MISSING}\n  ${package}: ${purpose}" PARENT_SCOPE)
  endif()
endfunction()

if(NOT PKG_CONFIG_FOUND)
  string(APPEND TRIREME_MISSING "\n  pkg-config: finds the other libraries")
endif()
# The same for one that the library is linked with
macro(trireme_need_linked target module package purpose)
  trireme_need(${target} ${module} ${package} ${purpose})
  list(APPEND TRIREME_PACKAGES PkgConfig::${target})
  string(APPEND TRIREME_PC_MODULES " ${module}")
  string(APPEND TRIREME_STATIC_MODULES "  pkg_check_modules(${target} REQUIRED QUIET IMPORTED_TARGET ${module})\n")
endmacro()

trireme_need_linked(YAML yaml-0.1 libyaml-dev "reads model files")
trireme_need_linked(ZLIB zlib zlib1g-dev "writes gzip files")
trireme_need_linked(CRYPTO libcrypto libssl-dev "SHA-256")
trireme_need_linked(ISAL libisal libisal-dev "CRC-32C and fast gzip reading")
trireme_need_linked(PNG libpng libpng-dev "reads and writes PNG images")
trireme_need_linked(JPEG libturbojpeg libturbojpeg0-dev "reads JPEG images")
trireme_need_linked(PROTOBUF_C libprotobuf-c libprotobuf-c-dev "writes TensorBoard's events and ONNX")
find_program(TRIREME_PROTOC_C protoc-c)
mark_as_advanced(TRIREME_PROTOC_C)
if(NOT TRIREME_PROTOC_C)
  string(APPEND TRIREME_MISSING "\n  protobuf-c-compiler: compiles descriptions of protobuf messages to C")
endif()
trireme_need(CURL libcurl libcurl4-openssl-dev "downloads data sets (a separate module)")
if(TRIREME_BUILD_TESTS)
  trireme_need(CMOCKA cmocka libcmocka-dev "runs the tests (or configure with -DTRIREME_BUILD_TESTS=OFF)")
  trireme_need(JANSSON jansson libjansson-dev "judges our JSON in the tests")
endif()

# Optional: the module that carries a job over several hosts is built if Open MPI is complete.
include(${CMAKE_CURRENT_LIST_DIR}/mpi.cmake)

if(TRIREME_MISSING)
  message(FATAL_ERROR "Trireme needs these packages (Debian names), which were not found:${TRIREME_MISSING}\n"
          "On Debian and Ubuntu ./demo installs them; elsewhere install their counterparts with headers.")
endif()
