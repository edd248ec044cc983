# Puts text files into the program: each becomes a string constant of the C file that is generated, so that what is written in a
# language stays in a file of that language.
#   trireme_embed(target prefix file...)          constants are called <prefix><name of the file up to its first dot>
#   trireme_embed_packed(target prefix file...)   one constant <prefix>packed for all, of a fifth of the size (base/text/packed.h)
function(trireme_embed_source target prefix text)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${prefix}texts.c)
  # Not by file(CONFIGURE), whose lines CMake 3.18 joins.
  file(WRITE ${source}.new "/* Made by cmake/embed.cmake. */\n${text}")
  configure_file(${source}.new ${source} COPYONLY)
  target_sources(${target} PRIVATE ${source})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN})
endfunction()

function(trireme_embed target prefix)
  set(text "")
  foreach(file ${ARGN})
    get_filename_component(name ${file} NAME_WE)
    file(READ ${file} bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(APPEND text "extern const char ${prefix}${name}[];\nconst char ${prefix}${name}[] = {${bytes}0};\n")
  endforeach()
  trireme_embed_source(${target} ${prefix} "${text}" ${ARGN})
endfunction()

function(trireme_embed_packed target prefix)
  set(entries "")
  set(whole ${CMAKE_CURRENT_BINARY_DIR}/${prefix}texts)
  file(WRITE ${whole} "")
  foreach(file ${ARGN})
    get_filename_component(name ${file} NAME_WE)
    file(READ ${file} content)
    file(APPEND ${whole} "${content}")
    file(SIZE ${file} size)
    string(APPEND entries "{\"${name}\", ${size}}, ")
  endforeach()
  file(ARCHIVE_CREATE OUTPUT ${whole}.gz PATHS ${whole} FORMAT raw COMPRESSION GZip)
  # The header has the time at which it was written: equal sources are to give equal programs.
  file(READ ${whole}.gz head LIMIT 4 HEX)
  file(READ ${whole}.gz rest OFFSET 8 HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${head}00000000${rest}")
  trireme_embed_source(${target} ${prefix}
    "#include \"base/text/packed.h\"\n
static const unsigned char bytes[] = {${bytes}};
static const struct tr_packed_text texts[] = {${entries}{0}};
extern const struct tr_packed ${prefix}packed;
const struct tr_packed ${prefix}packed = {bytes, sizeof bytes, texts};\n" ${ARGN})
endfunction()
