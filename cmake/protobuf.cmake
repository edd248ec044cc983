# Compiles descriptions of protobuf messages to C: src/<part>/proto/<name>.proto becomes "<part>/proto/<name>.pb-c.h" and its source,
# which are added to a target. Imports are written from src/ too. The target trireme_messages makes them alone, for tools that read
# the sources.
#   trireme_proto(target part/proto/name.proto...)
# To be called in the folder that makes the target, since CMake ties rules for files to targets of one folder.
set(TRIREME_GENERATED ${PROJECT_BINARY_DIR}/generated)
target_include_directories(trireme_flags INTERFACE ${TRIREME_GENERATED})

function(trireme_proto target)
  # A change of one may change the code of another that imports it; there are few.
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/src/ OUTPUT_VARIABLE protos)
  foreach(proto ${ARGN})
    string(REGEX REPLACE "\\.proto$" ".pb-c" name ${proto})
    set(output ${TRIREME_GENERATED}/${name})
    add_custom_command(OUTPUT ${output}.c ${output}.h
                       COMMAND ${CMAKE_COMMAND} -E make_directory ${TRIREME_GENERATED}
                       COMMAND ${TRIREME_PROTOC_C} --proto_path=${PROJECT_SOURCE_DIR}/src --c_out=${TRIREME_GENERATED} ${proto}
                       DEPENDS ${protos} VERBATIM COMMENT "Compiling ${proto}")
    target_sources(${target} PRIVATE ${output}.c ${output}.h)
    # The generated code is not ours to correct.
    set_source_files_properties(${output}.c PROPERTIES COMPILE_OPTIONS -w)
    list(APPEND outputs ${output}.c ${output}.h)
  endforeach()
  add_custom_target(trireme_messages DEPENDS ${outputs})
  add_dependencies(${target} trireme_messages)
endfunction()
