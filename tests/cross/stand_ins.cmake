# In place of cmake/dependencies.cmake, for a processor without packages: the stand-ins of tests/cross/stand_ins, see the page
# there. Targets that need more than they offer (the module for downloads, most tests) are not to be built.
find_package(Threads REQUIRED)
set(folder ${CMAKE_CURRENT_LIST_DIR}/stand_ins)
add_library(trireme_stand_ins STATIC ${folder}/digests.c ${folder}/protobuf.c ${folder}/yaml.c)
# The compiler of messages runs on this machine, and the header that its output includes is the same for all; alone in a
# folder, since other headers of this machine are not.
find_program(TRIREME_PROTOC_C protoc-c REQUIRED)
find_path(TRIREME_PROTOBUF_C_HEADER protobuf-c/protobuf-c.h PATHS /usr/include NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH REQUIRED)
file(COPY ${TRIREME_PROTOBUF_C_HEADER}/protobuf-c/protobuf-c.h DESTINATION ${CMAKE_BINARY_DIR}/stand_ins/protobuf-c)
target_include_directories(trireme_stand_ins SYSTEM PUBLIC ${folder} ${CMAKE_BINARY_DIR}/stand_ins)
foreach(name YAML ZLIB CRYPTO ISAL PNG JPEG PROTOBUF_C CURL CMOCKA JANSSON)
  add_library(PkgConfig::${name} INTERFACE IMPORTED)
  target_link_libraries(PkgConfig::${name} INTERFACE trireme_stand_ins)
endforeach()
set(TRIREME_PACKAGES PkgConfig::YAML) # which is all of them
