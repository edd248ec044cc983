# The console blocks of README and of every page that has some; those with blocks that take long are a long test, too.
file(GLOB pages RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/README.md
     ${PROJECT_SOURCE_DIR}/docs/*.md ${PROJECT_SOURCE_DIR}/docs/*/*.md ${PROJECT_SOURCE_DIR}/docs/*/*/*.md)
foreach(page ${pages})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${page})
  file(STRINGS ${PROJECT_SOURCE_DIR}/${page} blocks REGEX "^```console$")
  file(STRINGS ${PROJECT_SOURCE_DIR}/${page} long_blocks REGEX "^<!-- console: long -->$")
  get_filename_component(name ${page} NAME_WE)
  set(page_test sh ${CMAKE_CURRENT_SOURCE_DIR}/docs/page.sh ${PROJECT_SOURCE_DIR}/${page} $<TARGET_FILE:trireme> ${PROJECT_SOURCE_DIR})
  if(blocks)
    add_test(NAME docs.${name} COMMAND ${page_test})
    set_tests_properties(docs.${name} PROPERTIES LABELS docs TIMEOUT 600)
  endif()
  if(long_blocks)
    add_test(NAME docs.${name}_long COMMAND ${page_test} long)
    set_tests_properties(docs.${name}_long PROPERTIES LABELS "docs;long" TIMEOUT 1800)
  endif()
endforeach()

# Links lead somewhere; prose is plain.
foreach(name links prose)
  add_test(NAME docs.${name} COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/docs/${name}.sh ${PROJECT_SOURCE_DIR})
  set_tests_properties(docs.${name} PROPERTIES LABELS docs TIMEOUT 300)
endforeach()

# Words are spelled as in the dictionary of codespell.
add_test(NAME docs.spelling COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/docs/spelling.sh ${PROJECT_SOURCE_DIR})
set_tests_properties(docs.spelling PROPERTIES LABELS docs TIMEOUT 300 SKIP_RETURN_CODE 77)

# Every function, structure and member of the public headers has words.
find_package(Python3 COMPONENTS Interpreter QUIET)
if(Python3_FOUND)
  add_test(NAME docs.reference COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/reference.py --check)
  add_test(NAME docs.reference_faults COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/docs/test_reference.py
                                              ${PROJECT_SOURCE_DIR})
  set_tests_properties(docs.reference docs.reference_faults PROPERTIES LABELS docs TIMEOUT 120)
endif()
