# The shared library libwaymark: the C interface of include/waymark.h and nothing else. It consists of the objects of the
# layer capi and of the static libraries of all layers below.
target_compile_definitions(waymark_capi PRIVATE WAYMARK_VERSION="${PROJECT_VERSION}")
target_include_directories(waymark_capi PRIVATE ${PROJECT_SOURCE_DIR}/include)

if(WAYMARK_SHARED)
    set(map ${PROJECT_SOURCE_DIR}/src/capi/waymark.map)
    add_library(waymark-c SHARED $<TARGET_OBJECTS:waymark_capi>)
    add_library(waymark::c ALIAS waymark-c)
    set_target_properties(waymark-c PROPERTIES OUTPUT_NAME waymark SOVERSION 1 EXPORT_NAME c LINKER_LANGUAGE CXX
        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib LINK_DEPENDS ${map})
    target_link_libraries(waymark-c PRIVATE waymark_capi)
    target_include_directories(waymark-c INTERFACE
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_link_options(waymark-c PRIVATE -Wl,--version-script=${map} -Wl,--no-undefined)
endif()
