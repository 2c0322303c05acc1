# Installs BUILD into an empty prefix under WORK and moves that elsewhere. Then the program there must find its plugin and
# its page, and two projects are built and run against that prefix alone: the one beside this file, and examples/library,
# which must decode examples/sort/capture to the counts in its truth.txt.
file(REMOVE_RECURSE ${WORK})
set(source ${CMAKE_CURRENT_LIST_DIR}/../..)

# step(<what> <command>...): fails the test if the command fails; its output is in `text`.
function(step what)
    execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
    message("-- ${what}\n${text}")
    if(NOT status EQUAL 0)
        message(FATAL_ERROR "${what} failed: ${status}")
    endif()
    set(text "${text}" PARENT_SCOPE)
endfunction()

# build_consumer(<folder> <name>): configures and builds the project in a folder.
function(build_consumer folder name)
    step("configure ${name}" ${CMAKE_COMMAND} -G ${GENERATOR} -S ${folder} -B ${WORK}/${name}
        -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_BUILD_TYPE=Release -D CMAKE_PREFIX_PATH=${WORK}/prefix
        -D CMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
    step("build ${name}" ${CMAKE_COMMAND} --build ${WORK}/${name})
endfunction()

step("install" ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/first)
file(RENAME ${WORK}/first ${WORK}/prefix)

set(waymark ${WORK}/prefix/bin/waymark)
foreach(file share/man/man1/waymark-flow.1 share/bash-completion/completions/waymark
        share/zsh/site-functions/_waymark share/fish/vendor_completions.d/waymark.fish)
    if(NOT EXISTS ${WORK}/prefix/${file})
        message(FATAL_ERROR "${file} was not installed")
    endif()
endforeach()
set(sort ${source}/examples/sort)
step("--version" ${waymark} --version)
if(text MATCHES "with the page of waymark report")
    step("report" ${waymark} report ${sort}/capture --image ${sort}/sort.elf -o ${WORK}/report.html)
endif()
find_program(QEMU qemu-arm)
if(QEMU)
    step("record" ${waymark} record -o ${WORK}/recording -- ${sort}/sort.elf)
    step("verify" ${waymark} verify ${WORK}/recording)
endif()

# The headers for a use are in the document and in uses.cc, and nothing else is in their folder.
file(GLOB for_uses RELATIVE ${WORK}/prefix/include ${WORK}/prefix/include/waymark/*.h)
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/uses.cc included REGEX "^#include")
list(TRANSFORM included REPLACE "^#include \"(.+)\"" "\\1")
file(STRINGS ${source}/docs/library.md documented REGEX "^. .waymark/[a-z]+.h. . ")
list(TRANSFORM documented REPLACE "^. .(waymark/[a-z]+.h).*" "\\1")
list(SORT documented)
if(NOT for_uses STREQUAL included OR NOT for_uses STREQUAL documented)
    message(FATAL_ERROR "installed: ${for_uses}\nin uses.cc: ${included}\nin docs/library.md: ${documented}")
endif()
foreach(inside waymark/pft/parser.h waymark/etm4/decoder.h)
    if(EXISTS ${WORK}/prefix/include/${inside})
        message(FATAL_ERROR "${inside}, which no header for a use includes, was installed")
    endif()
endforeach()
build_consumer(${CMAKE_CURRENT_LIST_DIR} build)
step("run" ${WORK}/build/consumer)

build_consumer(${source}/examples/library library)
step("run examples/library" ${WORK}/library/decode_capture ${source}/examples/sort/capture)
file(STRINGS ${source}/examples/sort/capture/truth.txt truth REGEX "^(ranges|range_instructions) ")
if(NOT "${truth}" MATCHES "^ranges ([0-9]+);range_instructions ([0-9]+)$")
    message(FATAL_ERROR "examples/sort/capture/truth.txt holds no 'ranges' and 'range_instructions': ${truth}")
endif()
set(expected "${CMAKE_MATCH_2} instructions in ${CMAKE_MATCH_1} ranges,")
if(NOT text MATCHES "^${expected}")
    message(FATAL_ERROR "decode_capture printed '${text}', expected '${expected} …'")
endif()
# The same object with what pkg-config says.
find_program(PKG_CONFIG pkg-config REQUIRED)
file(GLOB_RECURSE pc_file ${WORK}/prefix/waymark-cpp.pc)
cmake_path(GET pc_file PARENT_PATH pc_folder)
step("pkg-config" ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${pc_folder} ${PKG_CONFIG} --cflags --libs waymark-cpp)
separate_arguments(pc_flags UNIX_COMMAND "${text}")
step("link by pkg-config" ${COMPILER} ${WORK}/library/CMakeFiles/decode_capture.dir/decode_capture.cc.o ${pc_flags}
    -o ${WORK}/decode_capture)
step("run what pkg-config linked" ${WORK}/decode_capture ${source}/examples/sort/capture)
if(NOT text MATCHES "^${expected}")
    message(FATAL_ERROR "decode_capture printed '${text}', expected '${expected} …'")
endif()
step("run decode.c" ${WORK}/library/decode ${source}/examples/sort/capture)
if(NOT text MATCHES "${expected}")
    message(FATAL_ERROR "decode.c printed '${text}', expected '${expected} …'")
endif()
execute_process(COMMAND ${WORK}/library/decode_capture ${WORK}/no-such-capture
    RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE text)
if(NOT status EQUAL 1 OR NOT text MATCHES "no-such-capture")
    message(FATAL_ERROR "decode_capture of a folder that does not exist: status ${status}, '${text}'")
endif()
