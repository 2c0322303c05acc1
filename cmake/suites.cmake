# waymark_suites(<target> <prefix> [COST <suite>=<seconds>…]): each suite of a GoogleTest program becomes one test
# <prefix>.<suite>. A test for each case would start the program for each, which with sanitizers takes longer than most
# cases. tests/summary.py counts and names the cases. A program that was not built has a failing test <target>_NOT_BUILT
# instead.
#
# This file is also the script that lists the suites: cmake -D PROGRAM=… -D PREFIX=… -D COSTS=… -D OUT=… -P suites.cmake
if(NOT CMAKE_SCRIPT_MODE_FILE)
    set(waymark_suites_script ${CMAKE_CURRENT_LIST_FILE})

    function(waymark_suites target prefix)
        cmake_parse_arguments(arg "" "" COST ${ARGN})
        set(tests ${CMAKE_CURRENT_BINARY_DIR}/${target}_suites.cmake)
        add_custom_command(TARGET ${target} POST_BUILD BYPRODUCTS ${tests}
            COMMAND ${CMAKE_COMMAND} -D PROGRAM=$<TARGET_FILE:${target}> -D PREFIX=${prefix} "-D COSTS=${arg_COST}"
                -D OUT=${tests} -P ${waymark_suites_script}
            VERBATIM)
        file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/${target}_include.cmake "if(EXISTS [==[${tests}]==])
    include([==[${tests}]==])
else()
    add_test(${target}_NOT_BUILT ${target}_NOT_BUILT)
endif()
")
        set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES
            ${CMAKE_CURRENT_BINARY_DIR}/${target}_include.cmake)
    endfunction()
    return()
endif()

execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE listed RESULT_VARIABLE status TIMEOUT 600)
if(NOT status EQUAL 0)
    message(FATAL_ERROR "${PROGRAM} --gtest_list_tests ended with ${status}:\n${listed}")
endif()
# A line that is not indented is a suite, "Suite." or "Suite.  # TypeParam = …".
string(REGEX MATCHALL "(^|\n)[A-Za-z0-9_/]+\\.[ \n]" suites "${listed}")
if(NOT suites)
    message(FATAL_ERROR "${PROGRAM} has no tests:\n${listed}")
endif()
set(script "")
foreach(suite IN LISTS suites)
    string(REGEX REPLACE "[ \n.]" "" suite "${suite}")
    # Suites without a given cost take about a second.
    set(cost 1)
    if("${COSTS}" MATCHES "(^|;)${suite}=([0-9]+)")
        set(cost ${CMAKE_MATCH_2})
    endif()
    # Skipped means: the output ends with the list of skipped cases, so none failed.
    string(APPEND script "add_test([==[${PREFIX}.${suite}]==] [==[${PROGRAM}]==] [==[--gtest_filter=${suite}.*]==])
set_tests_properties([==[${PREFIX}.${suite}]==] PROPERTIES TIMEOUT 1800 COST ${cost}
    SKIP_REGULAR_EXPRESSION [==[\\[  SKIPPED \\] [A-Za-z0-9_./]+\n*$]==])
")
endforeach()
file(WRITE ${OUT} "${script}")
