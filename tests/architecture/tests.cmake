# What docs/architecture.md promises of the tree itself.
add_test(NAME architecture.includes
         COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/architecture/includes.sh ${PROJECT_SOURCE_DIR})
add_test(NAME architecture.broken COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/architecture/broken.sh
                                          ${CMAKE_CURRENT_SOURCE_DIR}/architecture/includes.sh)
set_tests_properties(architecture.includes architecture.broken PROPERTIES LABELS architecture TIMEOUT 120)
