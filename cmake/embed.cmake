# Puts text files into the program: each becomes a string constant of the C file that is generated, so that what is written in a
# language stays in a file of that language.
#   trireme_embed(target prefix file...)      constants are called <prefix><name of the file up to its first dot>
function(trireme_embed target prefix)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${prefix}texts.c)
  set(text "/* Made by cmake/embed.cmake. */\n")
  foreach(file ${ARGN})
    get_filename_component(name ${file} NAME_WE)
    file(READ ${file} bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(APPEND text "extern const char ${prefix}${name}[];\nconst char ${prefix}${name}[] = {${bytes}0};\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  endforeach()
  file(CONFIGURE OUTPUT ${source} CONTENT "${text}" @ONLY)
  target_sources(${target} PRIVATE ${source})
endfunction()
