# Installs BUILD into an empty prefix under WORK, then builds and runs two projects against that prefix alone: the one
# beside this file, and examples/library, which must decode examples/sort/capture to the counts in its truth.txt.
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

step("install" ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)

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
step("run decode.c" ${WORK}/library/decode ${source}/examples/sort/capture)
if(NOT text MATCHES "${expected}")
    message(FATAL_ERROR "decode.c printed '${text}', expected '${expected} …'")
endif()
execute_process(COMMAND ${WORK}/library/decode_capture ${WORK}/no-such-capture
    RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE text)
if(NOT status EQUAL 1 OR NOT text MATCHES "no-such-capture")
    message(FATAL_ERROR "decode_capture of a folder that does not exist: status ${status}, '${text}'")
endif()
