# waymark_layer(name deps…): one target waymark::<name> from src/<name>/*.cc and the folders in it, but qemu/ and http/, which
# QEMU and the program load. A layer with no sources is header only.
function(waymark_layer name)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cc
         ${PROJECT_SOURCE_DIR}/src/${name}/*/*.cc)
    list(FILTER sources EXCLUDE REGEX "/main\\.cc$|/(qemu|http)/")
    if(sources)
        add_library(waymark_${name} STATIC ${sources})
        set(scope PUBLIC)
        target_link_libraries(waymark_${name} PRIVATE $<BUILD_INTERFACE:waymark_warnings>)
    else()
        add_library(waymark_${name} INTERFACE)
        set(scope INTERFACE)
    endif()
    add_library(waymark::${name} ALIAS waymark_${name})
    set_property(GLOBAL APPEND PROPERTY WAYMARK_LAYERS ${name})
    set_target_properties(waymark_${name} PROPERTIES EXPORT_NAME ${name})
    target_include_directories(waymark_${name} ${scope}
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
    target_compile_features(waymark_${name} ${scope} cxx_std_20)
    foreach(dep IN LISTS ARGN)
        target_link_libraries(waymark_${name} ${scope} waymark::${dep})
    endforeach()
endfunction()

# Headers that most sources include.
set(WAYMARK_COMMON_HEADERS <algorithm> <array> <bit> <charconv> <cstring> <deque> <filesystem> <functional> <limits> <map>
    <memory> <mutex> <numeric> <optional> <random> <set> <span> <string> <string_view> <tuple> <unordered_map> <utility>
    <variant> <vector> <fmt/format.h>)

# The parts of the lowest layers that most sources include, for clang, which reads only the used parts of a precompiled
# header. g++ loads the whole header, which takes as long as parsing the sources. A change of these headers compiles
# most sources again anyway.
set(WAYMARK_COMMON_HEADERS_OF_LAYERS "")
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    set(WAYMARK_COMMON_HEADERS_OF_LAYERS <waymark/core/byte_sink.h> <waymark/core/cursor.h> <waymark/core/numbers.h>
        <waymark/core/offset_map.h> <waymark/core/packet_parser.h> <waymark/core/registers.h> <waymark/core/shared_text.h>
        <waymark/core/spinning_mutex.h> <waymark/core/wire.h> <waymark/isa/decode_instr.h> <waymark/flow/blocks.h>
        <waymark/flow/unit.h> <waymark/follow/parallel.h> <waymark/follow/recover.h> <waymark/protocol/packets.h>
        <waymark/protocol/protocol.h>)
endif()

# waymark_headers(<level> <variable>): the target that precompiles these headers for sources with the level, such as -O1.
# Compilers take no other level's. Empty is the level of the build.
function(waymark_headers level variable)
    set(name waymark_headers${level})
    if(NOT TARGET ${name})
        file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/headers.cc CONTENT "// The headers are precompiled with this.\n")
        add_library(${name} OBJECT ${PROJECT_BINARY_DIR}/headers.cc)
        target_compile_options(${name} PRIVATE ${level})
        target_link_libraries(${name} PRIVATE fmt::fmt waymark_warnings)
        if(WAYMARK_COMMON_HEADERS_OF_LAYERS)
            target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/include)
        endif()
        target_precompile_headers(${name} PRIVATE ${WAYMARK_COMMON_HEADERS} ${WAYMARK_COMMON_HEADERS_OF_LAYERS})
    endif()
    set(${variable} ${name} PARENT_SCOPE)
endfunction()

# waymark_precompiled(<layer> <level>): the layer, which has the level, uses them.
function(waymark_precompiled name level)
    if(WAYMARK_PRECOMPILE)
        waymark_headers("${level}" headers)
        target_precompile_headers(waymark_${name} REUSE_FROM ${headers})
    endif()
endfunction()

# waymark_fast(<layer> <source>…): sources of a layer whose speed matters, without `.cc`. They have the level WAYMARK_FAST,
# whatever the layer has. Where sources are compiled together, these are one
# unit, in which what several of them instantiate is compiled once. Empty, all have the level of the build.
function(waymark_fast name)
    if(WAYMARK_FAST STREQUAL "")
        return()
    endif()
    list(TRANSFORM ARGN REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/src/${name}/\\1.cc" OUTPUT_VARIABLE sources)
    foreach(source IN LISTS sources)
        if(NOT EXISTS ${source})
            message(FATAL_ERROR "waymark_fast(${name} …): there is no ${source}")
        endif()
    endforeach()
    if(CMAKE_UNITY_BUILD)
        list(GET ARGN 0 first)
        set(unit ${PROJECT_BINARY_DIR}/fast/${name}_${first}.cc)
        list(TRANSFORM sources REPLACE "(.+)" "#include \"\\1\"\n" OUTPUT_VARIABLE lines)
        string(JOIN "" lines ${lines})
        file(CONFIGURE OUTPUT ${unit} CONTENT "${lines}" @ONLY)
        set_source_files_properties(${sources} PROPERTIES HEADER_FILE_ONLY ON)
        target_sources(waymark_${name} PRIVATE ${unit})
        set(sources ${unit})
    endif()
    set(options ${WAYMARK_FAST})
    if(WAYMARK_PRECOMPILE)
        waymark_headers(${WAYMARK_FAST} headers)
        get_target_property(folder ${headers} BINARY_DIR)
        set(header ${folder}/CMakeFiles/${headers}.dir/cmake_pch.hxx)
        set(precompiled ${header}${CMAKE_PCH_EXTENSION})
        string(REPLACE "<PCH_HEADER>" ${header} use "${CMAKE_CXX_COMPILE_OPTIONS_USE_PCH}")
        string(REPLACE "<PCH_FILE>" ${precompiled} use "${use}")
        list(APPEND options ${use})
        set_source_files_properties(${sources} PROPERTIES OBJECT_DEPENDS ${precompiled})
    endif()
    set_source_files_properties(${sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON
        COMPILE_OPTIONS "${options}")
endfunction()

# Third-party libraries are for a layer's sources only; their headers never appear in include/.
function(waymark_uses name)
    target_link_libraries(waymark_${name} PRIVATE ${ARGN})
endfunction()
