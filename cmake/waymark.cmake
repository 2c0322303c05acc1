# waymark_layer(name deps…): one target waymark::<name> from src/<name>/*.cc and the folders in it. A layer with no sources is header only.
function(waymark_layer name)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cc
         ${PROJECT_SOURCE_DIR}/src/${name}/*/*.cc)
    list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
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

# Third-party libraries are for a layer's sources only; their headers never appear in include/.
function(waymark_uses name)
    target_link_libraries(waymark_${name} PRIVATE ${ARGN})
endfunction()
