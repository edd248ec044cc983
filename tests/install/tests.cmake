# The installation, used from outside this tree.
set(install ${CMAKE_CURRENT_SOURCE_DIR}/install)
add_test(NAME install.use COMMAND sh ${install}/install.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR} ${CMAKE_COMMAND} ${CMAKE_C_COMPILER})
add_test(NAME install.components COMMAND sh ${install}/components.sh ${PROJECT_BINARY_DIR} ${CMAKE_COMMAND})
add_test(NAME install.programs COMMAND sh ${install}/programs.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR} ${CMAKE_COMMAND}
                                       ${CMAKE_C_COMPILER})
# Each writes into the build folder where it installed.
set_tests_properties(install.use install.components install.programs PROPERTIES LABELS install TIMEOUT 900 RESOURCE_LOCK install)
# The size of what is installed, with the compiler, flags and instruction sets that Debian 12 and 13 build it with.
set(why "")
if(NOT CMAKE_BUILD_TYPE STREQUAL "Release" OR TRIREME_SANITIZE OR TRIREME_FUZZ OR CMAKE_C_FLAGS)
  set(why "this is no plain Release build")
elseif(NOT CMAKE_C_COMPILER_ID STREQUAL "GNU" OR NOT "avx512;avx2;plain" STREQUAL "${TRIREME_ISAS}" OR NOT TRIREME_PACKS_ADDRESSES)
  set(why "the limit is for GCC, all instruction sets of x86-64 and glibc 2.36")
endif()
add_test(NAME install.size COMMAND sh ${install}/size.sh $<TARGET_FILE:trireme> 4000000 ${why})
set_tests_properties(install.size PROPERTIES LABELS install TIMEOUT 300 SKIP_RETURN_CODE 77)
# The binary interface, against that of the last release.
add_test(NAME install.abi COMMAND sh ${PROJECT_SOURCE_DIR}/tools/abi)
set_tests_properties(install.abi PROPERTIES LABELS "install;long" TIMEOUT 3600 SKIP_RETURN_CODE 77 PROCESSORS 2)
