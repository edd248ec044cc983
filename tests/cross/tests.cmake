# The kernels of other processors, on an emulator. Long: a whole build.
add_test(NAME cross.aarch64
         COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/cross/aarch64.sh ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/aarch64
                 ${CMAKE_COMMAND} $<TARGET_FILE:trireme>)
set_tests_properties(cross.aarch64 PROPERTIES LABELS "cross;long" TIMEOUT 1500 SKIP_REGULAR_EXPRESSION "skipped:")
