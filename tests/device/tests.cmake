trireme_test(device math)
trireme_test(device team)
trireme_test(device vec_math)
trireme_per_isa(test_device_vec_math device/vec_checks.c)
set(TR_CASES device/scene.c device/cases.c device/cases_dense.c device/cases_elements.c device/cases_rows.c
    device/cases_sequence.c device/cases_window.c)
trireme_test(device equality SOURCES ${TR_CASES})
trireme_test(device gradients SOURCES ${TR_CASES} device/differences.c device/gradients_layers.c
             device/gradients_rows.c device/gradients_sequence.c)
trireme_test(device scene SOURCES device/scene.c)
trireme_test(device ref SOURCES device/differences.c)
trireme_test(device ref_bits SOURCES ${TR_CASES})
trireme_test(device ref_optimizer SOURCES device/differences.c)

find_path(TRIREME_DNNL_INCLUDE oneapi/dnnl/dnnl.h)
find_library(TRIREME_DNNL_LIBRARY dnnl)
mark_as_advanced(TRIREME_DNNL_INCLUDE TRIREME_DNNL_LIBRARY)
if(TRIREME_DNNL_INCLUDE AND TRIREME_DNNL_LIBRARY)
  trireme_test(device onednn SOURCES ${TR_CASES} device/differences.c device/judge.c device/onednn_window.c
               device/onednn_rows.c device/onednn_lstm.c)
  target_include_directories(test_device_onednn SYSTEM PRIVATE ${TRIREME_DNNL_INCLUDE})
  target_link_libraries(test_device_onednn PRIVATE ${TRIREME_DNNL_LIBRARY})
  set_tests_properties(device.onednn PROPERTIES ENVIRONMENT OMP_NUM_THREADS=1)
else()
  # Shows as skipped in the test report.
  add_test(NAME device.onednn COMMAND ${CMAKE_COMMAND} -E echo "skipped: oneDNN (libdnnl-dev) was not found")
  set_tests_properties(device.onednn PROPERTIES LABELS device SKIP_REGULAR_EXPRESSION "skipped:")
endif()
