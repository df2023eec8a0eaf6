# Only bench_bits and what it needs (-DTRAINCTL_BITS=ON): rooms without the files that stand on foreign libraries, so that a
# cross-compiler with its C library is enough.
find_package(Threads REQUIRED)
foreach(library IN ITEMS JANSSON CRYPTO XXHASH)
    add_library(bits_no_${library} INTERFACE)
    add_library(PkgConfig::${library} ALIAS bits_no_${library})
endforeach()
foreach(room IN ITEMS base seed engine)
    add_subdirectory(${room})
endforeach()
function(tctl_leave_out target pattern)
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources EXCLUDE REGEX "${pattern}")
    set_target_properties(${target} PROPERTIES SOURCES "${sources}")
endfunction()
tctl_leave_out(tctl_base "/json(_path)?\\.c$")
tctl_leave_out(tctl_seed "/stream\\.c$")
target_sources(tctl_seed PRIVATE ${PROJECT_SOURCE_DIR}/seed/interpose/sha256.c
    ${PROJECT_SOURCE_DIR}/bench/bits_network/stream.c)
# xxHash is a header that compiles for every processor; the folder that has it may be full of another processor's.
find_file(TRAINCTL_XXHASH_HEADER xxhash.h REQUIRED)
configure_file(${TRAINCTL_XXHASH_HEADER} ${CMAKE_BINARY_DIR}/foreign/xxhash.h COPYONLY)
target_include_directories(bits_no_XXHASH SYSTEM INTERFACE ${CMAKE_BINARY_DIR}/foreign)
add_subdirectory(bench/bits_network)

# Unit tests of what computes, for processors that this machine has no cmocka for (tests/bits/aarch64.py). Its header is found
# like xxHash's; tests/bits/cmocka.c stands in for the library.
find_file(TRAINCTL_CMOCKA_HEADER cmocka.h)
if(TRAINCTL_CMOCKA_HEADER)
    configure_file(${TRAINCTL_CMOCKA_HEADER} ${CMAKE_BINARY_DIR}/foreign/cmocka.h COPYONLY)
    add_library(bits_cmocka STATIC EXCLUDE_FROM_ALL tests/bits/cmocka.c)
    target_include_directories(bits_cmocka SYSTEM PUBLIC ${CMAKE_BINARY_DIR}/foreign)
    foreach(test IN ITEMS base_fmath seed_draw seed_permutation seed_philox engine_gemm engine_golden engine_loader engine_math
            engine_network_bits engine_network_gradients engine_tree)
        string(REGEX REPLACE "^([a-z]+)_(.*)" "tests/\\1/test_\\2.c" source ${test})
        add_executable(unit_${test} EXCLUDE_FROM_ALL ${source})
        target_include_directories(unit_${test} PRIVATE tests)
        target_link_libraries(unit_${test} PRIVATE tctl_flags tctl_engine bits_cmocka)
    endforeach()
endif()
