# `cmake --install`: the program, the libraries waymark::<layer> with their headers, and what find_package(waymark)
# reads. The layers cli, command_line and serve are the program's own and are not installed as libraries.
include(CMakePackageConfigHelpers)

get_property(layers GLOBAL PROPERTY WAYMARK_LAYERS)
list(REMOVE_ITEM layers cli command_line serve)
list(TRANSFORM layers PREPEND waymark_ OUTPUT_VARIABLE targets)

if(TARGET waymark)
    install(TARGETS waymark RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    # The program looks for them there, relative to its own folder.
    install(TARGETS waymark_qemu waymark_http LIBRARY DESTINATION ${CMAKE_INSTALL_BINDIR}/../lib/waymark)
endif()
# The folders in which man and the shells look.
install(DIRECTORY ${WAYMARK_MAN}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 OPTIONAL FILES_MATCHING PATTERN *.1)
set(WAYMARK_ZSH_DIR ${CMAKE_INSTALL_DATADIR}/zsh/site-functions CACHE STRING "Folder for completion in zsh")
install(FILES ${PROJECT_SOURCE_DIR}/completion/waymark.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
    RENAME waymark)
install(FILES ${PROJECT_SOURCE_DIR}/completion/_waymark DESTINATION ${WAYMARK_ZSH_DIR})
install(FILES ${PROJECT_SOURCE_DIR}/completion/waymark.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

install(TARGETS ${targets} EXPORT waymark ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(CODE "set(SOURCE [==[${PROJECT_SOURCE_DIR}/include]==])")
# GNUInstallDirs allows a full path; else the folder is below the prefix, which is known only when it is installed.
if(IS_ABSOLUTE ${CMAKE_INSTALL_INCLUDEDIR})
    install(CODE "set(DESTINATION [==[${CMAKE_INSTALL_INCLUDEDIR}]==])")
else()
    install(CODE "set(DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}\")")
endif()
install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/install_headers.cmake)

# For C++: all layers as one target, waymark::cpp, and the same for pkg-config. Static libraries are named before those
# that they use, so the reverse of the order in which layers are declared.
list(REMOVE_ITEM targets waymark_capi)
add_library(waymark_cpp INTERFACE)
set_target_properties(waymark_cpp PROPERTIES EXPORT_NAME cpp)
target_link_libraries(waymark_cpp INTERFACE ${targets})
install(TARGETS waymark_cpp EXPORT waymark)
set(pc_libraries "")
foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
        string(PREPEND pc_libraries " -l${target}")
    endif()
endforeach()
# Where the prefix is, seen from the file, so that all can be moved together.
file(RELATIVE_PATH pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${PROJECT_SOURCE_DIR}/cmake/waymark-cpp.pc.in ${PROJECT_BINARY_DIR}/waymark-cpp.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/waymark-cpp.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The C interface.
install(FILES ${PROJECT_SOURCE_DIR}/include/waymark.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET waymark-c)
    install(TARGETS waymark-c EXPORT waymark LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
    configure_file(${PROJECT_SOURCE_DIR}/cmake/waymark.pc.in ${PROJECT_BINARY_DIR}/waymark.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/waymark.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()

# For programs that `waymark record --unit dpu` runs.
install(FILES ${PROJECT_SOURCE_DIR}/guest/waymark_dpu.h DESTINATION ${CMAKE_INSTALL_DATADIR}/waymark)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/waymark)
install(EXPORT waymark NAMESPACE waymark:: FILE waymark-targets.cmake DESTINATION ${config_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/waymark-config.cmake.in
    ${PROJECT_BINARY_DIR}/waymark-config.cmake INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/waymark-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/waymark-config.cmake ${PROJECT_BINARY_DIR}/waymark-config-version.cmake
    DESTINATION ${config_dir})
