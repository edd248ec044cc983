# What the build finds, and what it makes of what it finds by half.
add_test(NAME build.mpi COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/build/mpi.sh ${PROJECT_SOURCE_DIR} ${CMAKE_COMMAND} ${CMAKE_C_COMPILER})
set_tests_properties(build.mpi PROPERTIES LABELS build TIMEOUT 900)
# Headers and macros in the languages of their users.
add_test(NAME build.languages COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/build/languages.sh ${PROJECT_SOURCE_DIR}/include)
set_tests_properties(build.languages PROPERTIES LABELS build TIMEOUT 900)
# The other compiler's warnings.
add_test(NAME build.clang COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/build/clang.sh ${PROJECT_BINARY_DIR}/compile_commands.json)
set_tests_properties(build.clang PROPERTIES LABELS "build;long" TIMEOUT 1800 SKIP_RETURN_CODE 77)
