# The Python package. What needs no NumPy runs in every ./check; the rest with the environment of ./check --interop.
find_program(TRIREME_PYTHON3 python3)
mark_as_advanced(TRIREME_PYTHON3)
set(place "TRIREME_LIBRARY=$<TARGET_FILE:trireme_shared>;TRIREME_SHIPPED=${PROJECT_SOURCE_DIR};PYTHONPATH=${PROJECT_SOURCE_DIR}/python;PYTHONDONTWRITEBYTECODE=1")
if(TRIREME_PYTHON3 AND NOT TRIREME_SANITIZE)
  add_test(NAME python.layouts COMMAND ${TRIREME_PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/python/test_layouts.py ${PROJECT_SOURCE_DIR}
                                       ${CMAKE_C_COMPILER})
  add_test(NAME python.layers COMMAND ${TRIREME_PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/python/test_layers.py $<TARGET_FILE:trireme>
                                      ${PROJECT_SOURCE_DIR})
else()
  foreach(name layouts layers)
    add_test(NAME python.${name} COMMAND ${CMAKE_COMMAND} -E echo "skipped: python3 was not found, or cannot load a library with sanitizers")
  endforeach()
endif()
set_tests_properties(python.layouts python.layers PROPERTIES LABELS python SKIP_REGULAR_EXPRESSION "^skipped:" TIMEOUT 900)
set_tests_properties(python.layers PROPERTIES ENVIRONMENT "${place}")

file(GLOB scripts RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/python CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/python/test_*.py)
list(REMOVE_ITEM scripts test_layouts.py test_layers.py)
foreach(script ${scripts})
  string(REGEX REPLACE "^test_(.*)\\.py$" "\\1" name ${script})
  add_test(NAME python.${name} COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/interop/run.sh ${CMAKE_CURRENT_SOURCE_DIR}/python/${script}
                                       $<TARGET_FILE:trireme> ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR})
  set_tests_properties(python.${name} PROPERTIES LABELS "python;interop;long" TIMEOUT 1800 SKIP_RETURN_CODE 77
                       ENVIRONMENT "${place}")
endforeach()
