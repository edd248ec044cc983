# What the build finds, and what it makes of what it finds by half.
add_test(NAME build.mpi COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/build/mpi.sh ${PROJECT_SOURCE_DIR} ${CMAKE_COMMAND} ${CMAKE_C_COMPILER})
set_tests_properties(build.mpi PROPERTIES LABELS build TIMEOUT 900)
# Headers and macros in the languages of their users.
add_test(NAME build.languages COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/build/languages.sh ${PROJECT_SOURCE_DIR}/include)
set_tests_properties(build.languages PROPERTIES LABELS build TIMEOUT 900)
# Faults that tools/faults plants are on when they are to be.
find_package(Python3 COMPONENTS Interpreter QUIET)
if(Python3_FOUND)
  add_test(NAME build.faults COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/build/test_faults.py ${PROJECT_SOURCE_DIR}
                                     ${CMAKE_C_COMPILER})
  set_tests_properties(build.faults PROPERTIES LABELS build TIMEOUT 300 SKIP_RETURN_CODE 77)
endif()
# The warnings of other compilers, of as many versions as are here; and musl's headers, which lack what glibc adds to POSIX.
function(front_end_test name source)
  add_test(NAME build.${name} COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/build/front_end.sh ${PROJECT_BINARY_DIR}/compile_commands.json
                                      "${source}" ${ARGN})
  set_tests_properties(build.${name} PROPERTIES LABELS "build;long" TIMEOUT 3600 SKIP_RETURN_CODE 77)
endfunction()
set(versions 22 21 20 19 18 17 16 15 14)
list(TRANSFORM versions PREPEND clang- OUTPUT_VARIABLE clangs)
front_end_test(clang "[.]c$" clang ${clangs})
front_end_test(gcc "[.]c$" gcc-16 gcc-15 gcc-14 gcc-13 gcc-12 gcc-11 gcc-10)
front_end_test(musl "^${PROJECT_SOURCE_DIR}/(src|cli)/|^${PROJECT_BINARY_DIR}/(src|cli)/" musl-gcc)
