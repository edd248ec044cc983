# What is given to others, on machines as they come: ./check --long, as root. `packages.wheel` builds the wheel (python/tools/wheel), the
# others install it on a fresh Debian of that name.
set(wheels ${CMAKE_CURRENT_BINARY_DIR}/wheels)
add_test(NAME packages.wheel COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/packages/wheel.sh ${PROJECT_SOURCE_DIR} ${wheels})
set_tests_properties(packages.wheel PROPERTIES LABELS "packages;long" TIMEOUT 7200 SKIP_RETURN_CODE 77 FIXTURES_SETUP wheel)
foreach(suite bookworm trixie)
  add_test(NAME packages.${suite} COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/packages/debian.sh ${suite} ${PROJECT_SOURCE_DIR} ${wheels})
  set_tests_properties(packages.${suite} PROPERTIES LABELS "packages;long" TIMEOUT 3600 SKIP_RETURN_CODE 77 FIXTURES_REQUIRED wheel)
endforeach()
