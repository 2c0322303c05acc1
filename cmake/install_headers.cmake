# Installs the headers of C++ for their users: the header for each use (include/waymark/*.h), what it includes, what that
# includes, and so on. Headers that only the layers themselves use stay here.
#
# Run by `cmake --install` with SOURCE (the folder include) and DESTINATION (the folder that gets waymark/) set.
cmake_minimum_required(VERSION 3.25)
file(GLOB waiting RELATIVE ${SOURCE} ${SOURCE}/waymark/*.h)
set(headers "")
while(waiting)
    list(POP_FRONT waiting header)
    if(header IN_LIST headers)
        continue()
    endif()
    list(APPEND headers ${header})
    file(STRINGS ${SOURCE}/${header} included REGEX "^#include \"waymark/")
    list(TRANSFORM included REPLACE "^#include \"([^\"]+)\".*" "\\1")
    list(APPEND waiting ${included})
endwhile()
foreach(header IN LISTS headers)
    cmake_path(GET header PARENT_PATH folder)
    file(INSTALL ${SOURCE}/${header} DESTINATION ${DESTINATION}/${folder})
endforeach()
