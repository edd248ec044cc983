# What programs of others make of our files, and we of theirs: ./check --interop. Each script test_*.py is a test. (One called
# tensorboard.py would hide the module of that name.)
file(GLOB scripts RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/interop CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/interop/test_*.py)
foreach(script ${scripts})
  string(REGEX REPLACE "^test_(.*)\\.py$" "\\1" name ${script})
  add_test(NAME interop.${name} COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/interop/run.sh ${CMAKE_CURRENT_SOURCE_DIR}/interop/${script}
                                        $<TARGET_FILE:trireme> ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR})
  set_tests_properties(interop.${name} PROPERTIES LABELS "interop;long" TIMEOUT 1800 SKIP_RETURN_CODE 77)
endforeach()
set_tests_properties(interop.nvrtc interop.opencl PROPERTIES TIMEOUT 3600) # they compile every kernel, for several architectures and sizes
