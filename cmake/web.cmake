# The page of `waymark report`: built from web/ by Node.js into the build folder, so that presets do not share files, and then
# compiled into the layer `report`. Without Node.js, or without the packages it needs, everything else is built, and
# `waymark report` says what is missing.
set(WAYMARK_WEB AUTO CACHE STRING
    "Build the page of `waymark report` (needs Node.js 18 and npm 9): AUTO, ON or OFF; if the page cannot be built, ON fails and AUTO continues without it. BUILT: web/built, as in source packages")
set_property(CACHE WAYMARK_WEB PROPERTY STRINGS AUTO ON OFF BUILT)
find_program(WAYMARK_NODE NAMES node nodejs)
find_program(WAYMARK_NPM NAMES npm)

file(GLOB_RECURSE web_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/web/src/* ${PROJECT_SOURCE_DIR}/web/test/*)
list(APPEND web_sources ${PROJECT_SOURCE_DIR}/web/package.json ${PROJECT_SOURCE_DIR}/web/package-lock.json
    ${PROJECT_SOURCE_DIR}/web/index.html ${PROJECT_SOURCE_DIR}/web/vite.config.ts ${PROJECT_SOURCE_DIR}/web/tsconfig.json)

# Runs at each build and does nothing if nothing changed; a page that could not be built is tried again.
add_custom_target(waymark_web
    COMMAND ${CMAKE_COMMAND} -D WEB=${WAYMARK_WEB} -D NODE=${WAYMARK_NODE} -D NPM=${WAYMARK_NPM}
        -D TESTS=$<AND:$<BOOL:${WAYMARK_TESTS}>,$<NOT:$<BOOL:${WAYMARK_SANITIZE}>>> -D SOURCE=${PROJECT_SOURCE_DIR}/web -D WORK=${PROJECT_BINARY_DIR}/web
        -D OUT=${PROJECT_BINARY_DIR}/web/page.cc -P ${PROJECT_SOURCE_DIR}/cmake/build_web.cmake
    BYPRODUCTS ${PROJECT_BINARY_DIR}/web/page.cc
    COMMENT "The page of waymark report"
    SOURCES ${web_sources}
    VERBATIM)
target_sources(waymark_report PRIVATE $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/web/page.cc>)
set_source_files_properties(${PROJECT_BINARY_DIR}/web/page.cc PROPERTIES GENERATED ON SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS -O0)
add_dependencies(waymark_report waymark_web)
