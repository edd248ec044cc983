# What docs/architecture.md promises of the tree itself.
add_test(NAME architecture.includes
         COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/architecture/includes.sh ${PROJECT_SOURCE_DIR})
add_test(NAME architecture.circles COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/architecture/circles.sh ${PROJECT_SOURCE_DIR})
add_test(NAME architecture.names COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/architecture/names.sh ${PROJECT_SOURCE_DIR})
add_test(NAME architecture.flags COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/architecture/flags.sh ${PROJECT_SOURCE_DIR})
add_test(NAME architecture.streams COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/architecture/streams.sh ${PROJECT_SOURCE_DIR})
add_test(NAME architecture.paths COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/architecture/paths.sh ${PROJECT_SOURCE_DIR})
add_test(NAME architecture.words COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/architecture/words.sh ${PROJECT_SOURCE_DIR})
add_test(NAME architecture.portable COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/architecture/portable.sh ${PROJECT_SOURCE_DIR})
add_test(NAME architecture.broken COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/architecture/broken.sh
                                          ${CMAKE_CURRENT_SOURCE_DIR}/architecture)
set_tests_properties(architecture.includes architecture.circles architecture.names architecture.flags architecture.streams architecture.paths architecture.portable architecture.words
                     architecture.broken
                     PROPERTIES LABELS architecture TIMEOUT 900)

# Every fault of tools/mutations still finds its place. Long, so that it is looked after in peace, not in the middle of other work.
add_test(NAME architecture.mutations COMMAND ${PROJECT_SOURCE_DIR}/tools/mutate --check WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(architecture.mutations PROPERTIES LABELS "architecture;long" TIMEOUT 900)
