# The instruction sets that kernels are compiled for on this kind of processor, and the flags of each. Which one is used is
# decided at run time.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(TRIREME_ISAS avx512 avx2 plain)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(TRIREME_ISAS neon plain)
else()
  set(TRIREME_ISAS plain)
endif()
# `plain` is a fallback where others are: not worth the compiler's time, nor much room.
set(TRIREME_FLAGS_plain)
if(NOT TRIREME_ISAS STREQUAL plain)
  set(TRIREME_FLAGS_plain ${TRIREME_SMALL})
endif()
set(TRIREME_ONLY_ISAS "" CACHE STRING "Of the instruction sets of the processor's kind, those to compile kernels for; empty: all")
mark_as_advanced(TRIREME_ONLY_ISAS)
if(TRIREME_ONLY_ISAS)
  set(TRIREME_ISAS ${TRIREME_ONLY_ISAS})
endif()
# Two copies of a loop, for each value of a condition that does not change in it, gain nothing and double what are large loops here.
set(TRIREME_FLAGS_fast $<$<CONFIG:Release>:-O3>)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  list(APPEND TRIREME_FLAGS_fast $<$<CONFIG:Release>:-fno-unswitch-loops>)
endif()
set(TRIREME_FLAGS_avx512 ${TRIREME_FLAGS_fast} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma)
set(TRIREME_FLAGS_avx2 ${TRIREME_FLAGS_fast} -mavx2 -mfma)
set(TRIREME_FLAGS_neon ${TRIREME_FLAGS_fast})
# Kernels leave out the tables that a debugger or backtrace() follows out of a function without debug information: 70 KB. Stacks that
# begin in a kernel end there, others are whole.
set(TRIREME_NO_STACKS $<$<CONFIG:Release>:-fno-asynchronous-unwind-tables>)
set(TRIREME_FLAGS_kernels -fno-function-sections ${TRIREME_NO_STACKS})
# No reader comes near the kernels, and clang takes many minutes to instrument them.
if(TRIREME_FUZZ OR TRIREME_SANITIZE STREQUAL "undefined")
  list(APPEND TRIREME_FLAGS_kernels -fno-sanitize=all)
endif()

# Adds sources of this directory to a target, each compiled once per instruction set with TR_ISA=<name> and TR_ISA_<NAME>
# defined; other files of the target see TR_HAVE_ISA_<NAME>=1.
#   trireme_per_isa(target source...)
function(trireme_per_isa target)
  foreach(isa ${TRIREME_ISAS})
    string(TOUPPER ${isa} upper)
    target_compile_definitions(${target} PRIVATE TR_HAVE_ISA_${upper}=1)
    foreach(source ${ARGN})
      # One target cannot compile a file twice, so each copy is a file of its own that includes the source.
      set(copy ${CMAKE_CURRENT_BINARY_DIR}/${isa}/${source})
      file(CONFIGURE OUTPUT ${copy} CONTENT "#include \"${CMAKE_CURRENT_SOURCE_DIR}/${source}\"\n" @ONLY)
      target_sources(${target} PRIVATE ${copy})
      set_source_files_properties(${copy} TARGET_DIRECTORY ${target} PROPERTIES
                                  COMPILE_OPTIONS "${TRIREME_FLAGS_${isa}};${TRIREME_FLAGS_kernels}"
                                  COMPILE_DEFINITIONS "TR_ISA=${isa};TR_ISA_${upper}"
                                  OBJECT_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${source})
    endforeach()
  endforeach()
endfunction()
