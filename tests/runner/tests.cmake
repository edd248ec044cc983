# Tests that fail must show: a program that fails on purpose, and what ctest makes of it.
add_executable(test_runner_failing runner/failing.c)
target_link_libraries(test_runner_failing PRIVATE trireme_flags PkgConfig::CMOCKA)
add_test(NAME runner.reports COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/runner/reports.sh ${CMAKE_CTEST_COMMAND}
                                     $<TARGET_FILE:test_runner_failing>)
set_tests_properties(runner.reports PROPERTIES LABELS runner TIMEOUT 900)

# And those that hang: a program of two threads that do, and what the watchdog says of them.
add_executable(test_runner_hanging runner/hanging.c)
target_link_libraries(test_runner_hanging PRIVATE trireme_static trireme_test_watchdog)
if(NOT TRIREME_SANITIZE STREQUAL "thread") # whose own thread answers no signal
  add_test(NAME runner.hangs COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/runner/hangs.sh $<TARGET_FILE:test_runner_hanging>)
  set_tests_properties(runner.hangs PROPERTIES LABELS runner TIMEOUT 300)
endif()
