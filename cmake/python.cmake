# The Python module: the package waymark with its extension waymark._waymark, which is over the C interface. Built for the
# Python of the system, and installed where that looks for packages.
if(NOT WAYMARK_PYTHON)
    return()
endif()
if(NOT TARGET waymark-c)
    message(STATUS "The Python module is left out: it needs the shared library (WAYMARK_SHARED)")
    return()
endif()
# The system's Python, not the first one in PATH: the module is installed for the system's.
set(Python_EXECUTABLE /usr/bin/python3 CACHE FILEPATH "The Python for which the module is built")
find_package(Python COMPONENTS Interpreter Development.Module REQUIRED)
find_package(pybind11 CONFIG REQUIRED)
if(CMAKE_CROSSCOMPILING)
    # The name that Python of the other machine looks for; pybind11 has asked the one that runs here.
    set(PYTHON_MODULE_EXTENSION
        ".cpython-${Python_VERSION_MAJOR}${Python_VERSION_MINOR}-${CMAKE_LIBRARY_ARCHITECTURE}.so")
endif()
message(STATUS "The Python module is built for Python ${Python_VERSION}")

file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/python/*.cc)
file(GLOB package CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/python/waymark/*)
list(FILTER package EXCLUDE REGEX "__pycache__")
pybind11_add_module(waymark_python MODULE NO_EXTRAS ${sources})
set(python_build ${CMAKE_BINARY_DIR}/python/waymark)
set_target_properties(waymark_python PROPERTIES OUTPUT_NAME _waymark LIBRARY_OUTPUT_DIRECTORY ${python_build}
    CXX_VISIBILITY_PRESET hidden)
target_include_directories(waymark_python PRIVATE ${PROJECT_SOURCE_DIR}/include)
target_compile_options(waymark_python PRIVATE ${briefly})
target_link_libraries(waymark_python PRIVATE waymark-c $<BUILD_INTERFACE:waymark_warnings>)
# A package as it is installed, for tests: PYTHONPATH=build/python.
set(copied ${python_build}/.copied)
add_custom_command(OUTPUT ${copied} DEPENDS ${package} VERBATIM
    COMMAND ${CMAKE_COMMAND} -E make_directory ${python_build}
    COMMAND ${CMAKE_COMMAND} -E copy_if_different ${package} ${python_build}
    COMMAND ${CMAKE_COMMAND} -E touch ${copied})
add_custom_target(waymark_python_package ALL DEPENDS ${copied})

set(WAYMARK_PYTHON_DIR lib/python3/dist-packages CACHE STRING "Where the package is installed, below the prefix")
# From there to the shared library, so that all can be moved together; the system's own folder needs none.
file(RELATIVE_PATH to_library /${WAYMARK_PYTHON_DIR}/waymark /${CMAKE_INSTALL_LIBDIR})
# In the build tree, too, the path is relative: an absolute one would leave its length in the module that is installed.
set_target_properties(waymark_python PROPERTIES INSTALL_RPATH "$ORIGIN/${to_library}" BUILD_RPATH_USE_ORIGIN ON)
install(TARGETS waymark_python LIBRARY DESTINATION ${WAYMARK_PYTHON_DIR}/waymark)
install(FILES ${package} DESTINATION ${WAYMARK_PYTHON_DIR}/waymark)
