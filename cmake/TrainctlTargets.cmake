# One function per kind of target, so that a room's CMakeLists.txt says only what is special about it.

# A room: a static library of every .c file in the folder. LINKS are the rooms and libraries below it.
function(tctl_add_room name)
    cmake_parse_arguments(ARG "" "" "LINKS" ${ARGN})
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.c)
    add_library(tctl_${name} STATIC ${sources})
    target_include_directories(tctl_${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(tctl_${name} PUBLIC ${ARG_LINKS} PRIVATE tctl_flags)
endfunction()

# A plugin: one shared object of every .c file in the folder that exports one symbol. It sees the public headers and
# nothing more; LINKS are its own libraries.
function(tctl_add_plugin name)
    cmake_parse_arguments(ARG "" "" "LINKS;SOURCES" ${ARGN})
    if(NOT ARG_SOURCES)
        file(GLOB ARG_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.c)
    endif()
    add_library(plugin_${name} MODULE ${ARG_SOURCES})
    set_target_properties(plugin_${name} PROPERTIES
        PREFIX "" OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY ${TRAINCTL_LIBEXEC}/plugins)
    target_include_directories(plugin_${name} PRIVATE ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(plugin_${name} PRIVATE tctl_flags ${ARG_LINKS})
    target_link_options(plugin_${name} PRIVATE -Wl,--exclude-libs,ALL -Wl,--build-id=sha1)
    if(NOT TRAINCTL_SANITIZE)
        target_link_options(plugin_${name} PRIVATE -Wl,-z,defs)
    endif()
    set_property(GLOBAL APPEND PROPERTY TRAINCTL_PLUGINS ${name})
endfunction()

# Unit tests: every test_*.c of the folder is a cmocka program and a ctest case "<room>.<name>".
function(tctl_add_unit_tests room)
    cmake_parse_arguments(ARG "" "" "LINKS" ${ARGN})
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${room}/test_*.c)
    foreach(source IN LISTS sources)
        get_filename_component(stem ${source} NAME_WE)
        string(REGEX REPLACE "^test_" "" short ${stem})
        set(target unit_${room}_${short})
        add_executable(${target} ${source})
        target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
        target_link_libraries(${target} PRIVATE tctl_flags ${ARG_LINKS} PkgConfig::CMOCKA)
        set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
        add_test(NAME ${room}.${short} COMMAND ${target})
        set_tests_properties(${room}.${short} PROPERTIES
            TIMEOUT 120 ENVIRONMENT "TRAINCTL_BUILD=${CMAKE_BINARY_DIR};TRAINCTL_SOURCE=${PROJECT_SOURCE_DIR}")
    endforeach()
endfunction()
