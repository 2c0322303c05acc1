# waymark_layer(name deps…): one target waymark::<name> from src/<name>/*.cc and the folders in it, but qemu/, which QEMU
# loads. A layer with no sources is header only.
function(waymark_layer name)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cc
         ${PROJECT_SOURCE_DIR}/src/${name}/*/*.cc)
    list(FILTER sources EXCLUDE REGEX "/main\\.cc$|/qemu/")
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

# waymark_fast(<layer> <source>…): sources of a layer whose speed matters, without `.cc`. They have the level WAYMARK_FAST,
# whatever the layer has; precompiled headers are for that of the layer. Where sources are compiled together, these are one
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
    set_source_files_properties(${sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON
        SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS "${WAYMARK_FAST}")
endfunction()

# Third-party libraries are for a layer's sources only; their headers never appear in include/.
function(waymark_uses name)
    target_link_libraries(waymark_${name} PRIVATE ${ARGN})
endfunction()
