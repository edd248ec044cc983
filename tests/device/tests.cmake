trireme_test(device staging SOURCES support/shadow.c)
trireme_test(device math)
trireme_test(device team)
trireme_test(device vec_math SOURCES device/functions.c)
trireme_per_isa(test_device_vec_math device/vec_checks.c)
# All 2^32 inputs take minutes.
add_test(NAME device.vec_math_all COMMAND test_device_vec_math all)
set_tests_properties(device.vec_math_all PROPERTIES LABELS "device;long" TIMEOUT 3600)
set(TR_CASES device/scene.c device/cases.c device/cases_attention.c device/cases_dense.c device/cases_elements.c device/cases_rows.c
    device/cases_sequence.c device/cases_window.c)
trireme_test(device equality TIMEOUT 600 SOURCES ${TR_CASES} device/equal.c)
trireme_test(device blocks SOURCES device/scene.c)
trireme_opencl_test(device opencl SOURCES ${TR_CASES} device/equal.c)
# pocl for another instruction set: its compiler and its library of functions are others then.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  foreach(test opencl_avx2 opencl_avx2_all)
    # Without a name, no argument: an empty one would filter all tests out.
    add_test(NAME device.${test} COMMAND test_device_opencl $<$<STREQUAL:${test},opencl_avx2>:dense_forward>
      COMMAND_EXPAND_LISTS)
    set_tests_properties(device.${test} PROPERTIES TIMEOUT 1800 SKIP_REGULAR_EXPRESSION "^skipped: "
      ENVIRONMENT "POCL_CACHE_DIR=${PROJECT_BINARY_DIR}/Testing/pocl-avx2;POCL_LLVM_CPU_NAME=haswell;POCL_KERNELLIB_NAME=avx2")
  endforeach()
  set_tests_properties(device.opencl_avx2 PROPERTIES LABELS "device;slow")
  set_tests_properties(device.opencl_avx2_all PROPERTIES LABELS "device;long")
endif()
# The tiles that a GPU would take, on pocl; and all kernels under a simulator that sees races and bounds.
add_test(NAME device.opencl_tiles COMMAND test_device_opencl tiles)
set_tests_properties(device.opencl_tiles PROPERTIES LABELS "device;long" TIMEOUT 1800 SKIP_REGULAR_EXPRESSION "^skipped: "
                     ENVIRONMENT "POCL_CACHE_DIR=${PROJECT_BINARY_DIR}/Testing/pocl")
trireme_test(device oclgrind TIMEOUT 1800 LABELS long SOURCES ${TR_CASES} device/gpu_kernels.c)
set_tests_properties(device.oclgrind PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped: no Oclgrind")
trireme_opencl_test(device gpu)
trireme_opencl_test(device gpu_lists)
trireme_test(device conv_plan)
trireme_opencl_test(device opencl_functions SOURCES device/functions.c)
add_test(NAME device.opencl_functions_all COMMAND test_device_opencl_functions all)
get_test_property(device.opencl_functions SKIP_REGULAR_EXPRESSION skipped)
set_tests_properties(device.opencl_functions_all PROPERTIES LABELS "device;long" TIMEOUT 3600
                     SKIP_REGULAR_EXPRESSION "${skipped}"
                     ENVIRONMENT "POCL_CACHE_DIR=${PROJECT_BINARY_DIR}/Testing/pocl")
add_executable(gpu_programs device/gpu_programs.c device/gpu_kernels.c ${TR_CASES}) # for tests/interop/test_nvrtc.py
target_link_libraries(gpu_programs PRIVATE trireme_static PkgConfig::CMOCKA)
target_include_directories(gpu_programs PRIVATE ${PROJECT_SOURCE_DIR}/tests)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/Testing/gpu_programs)
add_test(NAME device.gpu_programs COMMAND gpu_programs ${PROJECT_BINARY_DIR}/Testing/gpu_programs)
set_tests_properties(device.gpu_programs PROPERTIES LABELS device TIMEOUT 600)
trireme_test(device gradients SOURCES ${TR_CASES} device/differences.c device/gradients_attention.c
             device/gradients_layers.c
             device/gradients_rows.c device/gradients_sequence.c)
trireme_test(device scene SOURCES device/scene.c)
trireme_test(device ref SOURCES device/differences.c)
trireme_test(device ref_bits SOURCES ${TR_CASES})
trireme_test(device ref_optimizer SOURCES device/differences.c)
trireme_test(device winograd SOURCES device/differences.c)

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
