# In place of cmake/dependencies.cmake, for a processor without packages: the stand-ins of tests/cross/stand_ins, see the page
# there. Targets that need more than they offer (the module for downloads, most tests) are not to be built.
find_package(Threads REQUIRED)
set(folder ${CMAKE_CURRENT_LIST_DIR}/stand_ins)
add_library(trireme_stand_ins STATIC ${folder}/digests.c ${folder}/yaml.c)
target_include_directories(trireme_stand_ins SYSTEM PUBLIC ${folder})
foreach(name YAML ZLIB CRYPTO ISAL PNG JPEG CURL CMOCKA JANSSON)
  add_library(PkgConfig::${name} INTERFACE IMPORTED)
  target_link_libraries(PkgConfig::${name} INTERFACE trireme_stand_ins)
endforeach()
