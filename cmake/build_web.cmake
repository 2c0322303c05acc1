# cmake -D WEB=AUTO|ON|OFF|BUILT -D NODE=… -D NPM=… -D TESTS=… -D SOURCE=web -D WORK=folder -D OUT=page.cc -P build_web.cmake
#
# Copies SOURCE to WORK, runs `npm ci` and `vite build` there, and writes the page into OUT as C++. Does nothing if OUT is up
# to date. If the page cannot be built, OUT contains the reason instead; with WEB=ON that is an error. With WEB=BUILT the page
# is SOURCE/built/index.html, as source packages contain it; SOURCE/built/sources.sha256 must have the checksums of the page
# and of the sources that it was built from, else that is an error. A page that is built gets such a file beside it in WORK.

# Writes the page, or the reason why there is none, as the C++ source that the layer `report` expects.
function(write_out page why)
    set(bytes "")
    set(size 0)
    if(page)
        file(READ ${page} hex HEX)
        string(LENGTH "${hex}" size)
        math(EXPR size "${size} / 2")
        string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
        string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    endif()
    file(WRITE ${OUT}.new "// Made by cmake/build_web.cmake.
#include \"waymark/report/report.h\"

namespace waymark::report {

namespace {
constexpr unsigned char page[] = {
${bytes}0};
}  // namespace

std::string_view built_in_page() { return {reinterpret_cast<const char*>(page), ${size}}; }
std::string_view why_no_page() { return \"${why}\"; }

}  // namespace waymark::report
")
    file(COPY_FILE ${OUT}.new ${OUT} ONLY_IF_DIFFERENT)
    file(REMOVE ${OUT}.new)
endfunction()

# give_up(<why>): one or two sentences without characters that a C++ string would have to escape.
macro(give_up why)
    if(WEB STREQUAL "ON")
        message(FATAL_ERROR "The page of waymark report cannot be built: ${why}")
    endif()
    message(STATUS "waymark report is built without its page: ${why}")
    file(REMOVE ${WORK}/page.stamp)
    write_out("" "${why}")
    return()
endmacro()

if(WEB STREQUAL "OFF")
    give_up("This waymark was built with WAYMARK_WEB=OFF, so it has no page for reports. Configure it with WAYMARK_WEB=ON and build again.")
endif()
# A checksum of each source file of the page.
file(GLOB_RECURSE files RELATIVE ${SOURCE} ${SOURCE}/src/* ${SOURCE}/test/*)
list(APPEND files index.html package.json package-lock.json tsconfig.json vite.config.ts)
list(SORT files)
set(sums "")
foreach(file ${files})
    file(SHA256 ${SOURCE}/${file} sum)
    string(APPEND sums "${file} ${sum}\n")
endforeach()
string(SHA256 now "${sums}")

if(WEB STREQUAL "BUILT")
    set(built ${SOURCE}/built)
    foreach(needed index.html sources.sha256)
        if(NOT EXISTS ${built}/${needed})
            message(FATAL_ERROR "WAYMARK_WEB=BUILT needs ${built}/${needed}, which source packages contain (scripts/package); configure with -DWAYMARK_WEB=AUTO to build the page")
        endif()
    endforeach()
    file(READ ${built}/sources.sha256 recorded)
    file(SHA256 ${built}/index.html page)
    if(NOT recorded STREQUAL "${sums}built/index.html ${page}\n")
        message(FATAL_ERROR "${built}/index.html was not built from the sources in ${SOURCE}, or was changed since: ${built}/sources.sha256 has other checksums. Build it again with scripts/package")
    endif()
    write_out(${built}/index.html "")
    return()
endif()
if(NOT NODE OR NOT NPM)
    give_up("This waymark was built without Node.js, so it has no page for reports. Install the Debian packages nodejs and npm, then configure and build again.")
endif()
execute_process(COMMAND ${NODE} --version OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status)
string(REGEX REPLACE "^v([0-9]+).*" "\\1" major "${version}")
if(NOT status EQUAL 0 OR NOT major MATCHES "^[0-9]+$" OR major LESS 18)
    give_up("This waymark was built with Node.js ${version}, and the page for reports needs 18 or newer. Install a newer one and build again.")
endif()

file(SHA256 ${SOURCE}/package-lock.json packages)
set(packages "${packages} ${version} tests=${TESTS}")

set(then "")
if(EXISTS ${WORK}/page.stamp AND EXISTS ${OUT})
    file(READ ${WORK}/page.stamp then)
endif()
if(then STREQUAL "${now} ${packages}")
    return()
endif()

file(MAKE_DIRECTORY ${WORK})
file(REMOVE_RECURSE ${WORK}/src ${WORK}/test)
foreach(file ${files})
    get_filename_component(folder ${file} DIRECTORY)
    file(COPY ${SOURCE}/${file} DESTINATION ${WORK}/${folder})
endforeach()

# Installs the packages again only if their list has changed. Tests need more packages.
set(installed "")
if(EXISTS ${WORK}/packages.stamp)
    file(READ ${WORK}/packages.stamp installed)
endif()
if(NOT installed STREQUAL packages)
    file(REMOVE ${WORK}/packages.stamp)
    set(omit --omit=dev)
    if(TESTS)
        set(omit --include=dev)
    endif()
    # No package may run a program of its own while it is installed; none needs to.
    execute_process(COMMAND ${NPM} ci ${omit} --ignore-scripts --prefer-offline --no-audit --no-fund --fetch-retries=1
            --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=5000
        WORKING_DIRECTORY ${WORK} RESULT_VARIABLE status OUTPUT_FILE ${WORK}/npm.log ERROR_FILE ${WORK}/npm.log TIMEOUT 300)
    if(NOT status EQUAL 0)
        give_up("npm could not install the packages that the page for reports is built with, so this waymark has none; ${WORK}/npm.log says why. Connect to a network, then build again.")
    endif()
    file(WRITE ${WORK}/packages.stamp "${packages}")
endif()

execute_process(COMMAND ${NODE} node_modules/vite/bin/vite.js build --logLevel warn WORKING_DIRECTORY ${WORK}
    RESULT_VARIABLE status OUTPUT_VARIABLE log ERROR_VARIABLE log TIMEOUT 300)
file(WRITE ${WORK}/vite.log "${log}")
if(NOT status EQUAL 0 OR NOT EXISTS ${WORK}/dist/index.html)
    # A mistake in web/, not a missing tool.
    message(FATAL_ERROR "vite could not build the page of waymark report:\n${log}")
endif()
file(SHA256 ${WORK}/dist/index.html page)
file(WRITE ${WORK}/dist/sources.sha256 "${sums}built/index.html ${page}\n")
write_out(${WORK}/dist/index.html "")
file(WRITE ${WORK}/page.stamp "${now} ${packages}")
