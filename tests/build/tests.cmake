# What the build finds, and what it makes of what it finds by half.
add_test(NAME build.mpi COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/build/mpi.sh ${PROJECT_SOURCE_DIR} ${CMAKE_COMMAND} ${CMAKE_C_COMPILER})
set_tests_properties(build.mpi PROPERTIES LABELS build TIMEOUT 900)
