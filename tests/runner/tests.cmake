# Tests that fail must show: a program that fails on purpose, and what ctest makes of it.
add_executable(test_runner_failing runner/test_failing.c)
target_link_libraries(test_runner_failing PRIVATE trireme_flags PkgConfig::CMOCKA)
add_test(NAME runner.reports COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/runner/reports.sh ${CMAKE_CTEST_COMMAND}
                                     $<TARGET_FILE:test_runner_failing>)
set_tests_properties(runner.reports PROPERTIES LABELS runner TIMEOUT 900)
