trireme_test(device device SOURCES device/noting.c)
trireme_test(device names SOURCES device/noting.c)
trireme_test(device staging SOURCES support/shadow.c)
trireme_test(device math)
trireme_test(device team)
trireme_test(device vec_math SOURCES device/functions.c)
trireme_per_isa(test_device_vec_math device/cpu/vec_checks.c)
# All 2^32 inputs take minutes.
add_test(NAME device.vec_math_all COMMAND test_device_vec_math all)
set_tests_properties(device.vec_math_all PROPERTIES LABELS "device;long" TIMEOUT 3600)
set(TR_CASES device/scene.c device/cases/cases.c device/cases/attention.c device/cases/dense.c device/cases/elements.c device/cases/norm.c
    device/cases/rows.c device/cases/sequence.c device/cases/window.c)
trireme_test(device equality TIMEOUT 600 SOURCES ${TR_CASES} device/equal.c)
trireme_test(device operation SOURCES ${TR_CASES})
trireme_test(device order TIMEOUT 1800 SOURCES ${TR_CASES} device/order/order.c device/order/attention.c device/order/batch.c
             device/order/dense.c device/order/elements.c device/order/losses.c device/order/pool.c device/order/rows.c
             device/order/sequence.c device/order/window.c)
trireme_test(device isa)
trireme_test(device blocks SOURCES device/scene.c)
trireme_opencl_test(device opencl SOURCES ${TR_CASES} device/equal.c)
trireme_opencl_again(device opencl_avx2 opencl AVX2 LABELS slow ARGUMENTS dense_forward)
trireme_opencl_again(device opencl_avx2_all opencl AVX2 LABELS long)
# The tiles that a GPU would take, on pocl; and all kernels under a simulator that sees races and bounds.
trireme_opencl_again(device opencl_tiles opencl LABELS long ARGUMENTS tiles)
trireme_test(device oclgrind TIMEOUT 1800 LABELS long SOURCES ${TR_CASES} device/gpu/kernels.c)
set_tests_properties(device.oclgrind PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped: no Oclgrind")
trireme_opencl_test(device gpu SOURCES support/gpu_tables.c)
trireme_opencl_test(device gpu_lists SOURCES support/gpu_counting.c)
# Without a driver.
trireme_test(device gpu_memory SOURCES device/gpu/host.c device/gpu/on_host.c support/gpu_tables.c)
trireme_test(device gpu_launches SOURCES device/gpu/host.c device/gpu/on_host.c)
trireme_test(device gpu_times SOURCES device/gpu/host.c device/gpu/on_host.c)
trireme_test(device gpu_open SOURCES device/gpu/host.c device/gpu/on_host.c)
trireme_test(device gpu_cache)
add_executable(device_gpu_lists_host device/gpu/test_gpu_lists.c device/gpu/host.c support/gpu_counting.c support/opencl.c)
target_link_libraries(device_gpu_lists_host PRIVATE trireme_static trireme_test_watchdog PkgConfig::CMOCKA)
target_include_directories(device_gpu_lists_host PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_definitions(device_gpu_lists_host PRIVATE TEST_ON_HOST TEST_PROGRAMS="${PROJECT_BINARY_DIR}/Testing/programs")
add_test(NAME device.gpu_lists_host COMMAND device_gpu_lists_host)
set_tests_properties(device.gpu_lists_host PROPERTIES LABELS device TIMEOUT 600)
trireme_test(device conv_plan)
trireme_test(device conv_grid)
# The layer for CUDA, on the stand-in: operations of each kind of argument in the quick suite, all in the long one.
trireme_cuda_test(device cuda SOURCES support/cuda/control.c)
trireme_cuda_test(device cuda_equality LABELS long SOURCES ${TR_CASES} device/equal.c)
trireme_cuda_again(device cuda_equality_some cuda_equality LABELS slow ARGUMENTS
                   add,split_columns,dense_forward,dense_backward_weights,pool_forward,softmax_cross_entropy,load_images)
trireme_cuda_again(device gpu_cuda gpu LABELS slow ARGUMENTS cuda)
trireme_cuda_again(device gpu_lists_cuda gpu_lists LABELS slow ARGUMENTS cuda)
trireme_opencl_test(device opencl_functions SOURCES device/functions.c)
trireme_opencl_again(device opencl_functions_all opencl_functions TIMEOUT 3600 LABELS long ARGUMENTS all)
# What kernels compute by themselves where a device has nothing exact: compiled for the processor, and on pocl; and all operations so.
trireme_test(device rounding SOURCES device/gpu/rounding.c)
trireme_opencl_test(device opencl_rounding SOURCES device/gpu/rounding.c)
trireme_opencl_again(device opencl_rounding_all opencl_rounding TIMEOUT 3600 LABELS long ARGUMENTS all)
trireme_opencl_again(device opencl_poor opencl LABELS long ARGUMENTS poor)
add_test(NAME device.rusticl COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/device/gpu/rusticl.sh ${PROJECT_SOURCE_DIR} $<TARGET_FILE:trireme>
                                     $<TARGET_FILE:test_device_opencl> $<TARGET_FILE:test_device_opencl_functions>
                                     $<TARGET_FILE:test_device_opencl_rounding> $<TARGET_FILE:test_train_opencl_models>)
set_tests_properties(device.rusticl PROPERTIES LABELS "device;long" TIMEOUT 7200 SKIP_RETURN_CODE 77)
add_executable(gpu_programs device/gpu/programs.c device/gpu/kernels.c ${TR_CASES}) # for tests/interop/test_nvrtc.py
target_link_libraries(gpu_programs PRIVATE trireme_static PkgConfig::CMOCKA)
target_include_directories(gpu_programs PRIVATE ${PROJECT_SOURCE_DIR}/tests)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/Testing/gpu_programs)
add_test(NAME device.gpu_programs COMMAND gpu_programs ${PROJECT_BINARY_DIR}/Testing/gpu_programs)
set_tests_properties(device.gpu_programs PROPERTIES LABELS device TIMEOUT 600)
add_executable(cuda_compiler device/gpu/cuda_compiler.c) # likewise
target_link_libraries(cuda_compiler PRIVATE trireme_static)
add_dependencies(cuda_compiler trireme_cuda_driver)
trireme_test(device gradients SOURCES ${TR_CASES} device/differences.c device/gradients/attention.c
             device/gradients/layers.c
             device/gradients/rows.c device/gradients/sequence.c)
trireme_test(device scene SOURCES device/scene.c)
trireme_test(device ref SOURCES device/differences.c)
trireme_test(device ref_bits SOURCES ${TR_CASES})
trireme_test(device ref_optimizer SOURCES device/differences.c)
trireme_test(device winograd SOURCES device/differences.c)

find_path(TRIREME_DNNL_INCLUDE oneapi/dnnl/dnnl.h)
find_library(TRIREME_DNNL_LIBRARY dnnl)
mark_as_advanced(TRIREME_DNNL_INCLUDE TRIREME_DNNL_LIBRARY)
# Version 2.6 or later; tests/support/onednn_api.h.
if(TRIREME_DNNL_INCLUDE AND TRIREME_DNNL_LIBRARY)
  file(STRINGS ${TRIREME_DNNL_INCLUDE}/oneapi/dnnl/dnnl_version.h dnnl_version REGEX "define DNNL_VERSION_(MAJOR|MINOR) +[0-9]")
  string(REGEX REPLACE ".*MAJOR +([0-9]+).*MINOR +([0-9]+).*" "\\1.\\2" dnnl_version "${dnnl_version}")
else()
  set(dnnl_version 0)
endif()
if(dnnl_version VERSION_GREATER_EQUAL 2.6)
  trireme_test(device onednn SOURCES ${TR_CASES} device/differences.c device/onednn/judge.c device/onednn/window.c
               device/onednn/rows.c device/onednn/lstm.c)
  target_include_directories(test_device_onednn SYSTEM PRIVATE ${TRIREME_DNNL_INCLUDE})
  target_link_libraries(test_device_onednn PRIVATE ${TRIREME_DNNL_LIBRARY})
  set_tests_properties(device.onednn PROPERTIES ENVIRONMENT OMP_NUM_THREADS=1)
else()
  # Shows as skipped in the test report.
  add_test(NAME device.onednn COMMAND ${CMAKE_COMMAND} -E echo "skipped: oneDNN (libdnnl-dev) was not found, or is older than 2.6")
  set_tests_properties(device.onednn PROPERTIES LABELS device TIMEOUT 60 SKIP_REGULAR_EXPRESSION "skipped:")
endif()
