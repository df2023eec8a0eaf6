# `cmake --install`: the program, what it runs, the public headers, and what helps to use them. The folders keep the
# layout of the build tree, because the program finds its plugins relative to itself.
include(GNUInstallDirs)

install(TARGETS trainctl RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET trainctl-worker)
    install(TARGETS trainctl-worker RUNTIME DESTINATION lib/trainctl)
endif()
if(TARGET tctl_probe)
    install(TARGETS tctl_probe LIBRARY DESTINATION lib/trainctl)
endif()
if(TARGET trainctl-det)
    install(TARGETS trainctl-det LIBRARY DESTINATION lib/trainctl)
endif()
get_property(plugins GLOBAL PROPERTY TRAINCTL_PLUGINS)
foreach(plugin IN LISTS plugins)
    install(TARGETS plugin_${plugin} LIBRARY DESTINATION lib/trainctl/plugins)
endforeach()
install(DIRECTORY ${PROJECT_BINARY_DIR}/lib/trainctl/python DESTINATION lib/trainctl)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/trainctl DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

configure_file(${CMAKE_CURRENT_LIST_DIR}/trainctl.pc.in ${PROJECT_BINARY_DIR}/trainctl.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/trainctl.pc DESTINATION lib/pkgconfig)

if(EXISTS ${PROJECT_SOURCE_DIR}/share/man/trainctl.1)
    install(FILES ${PROJECT_SOURCE_DIR}/share/man/trainctl.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    install(FILES ${PROJECT_SOURCE_DIR}/share/completion/trainctl.bash
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME trainctl)
    install(FILES ${PROJECT_SOURCE_DIR}/share/completion/_trainctl DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
endif()
if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/share/schema)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/share/schema DESTINATION ${CMAKE_INSTALL_DATADIR}/trainctl)
endif()
