# Build options, the language, and the warnings. The flags that touch floating point are part of the exact
# contract: no contraction, no fast-math, no excess precision.

set(TRAINCTL_CUDA AUTO CACHE STRING "build what needs the CUDA toolkit: AUTO, ON or OFF")
set_property(CACHE TRAINCTL_CUDA PROPERTY STRINGS AUTO ON OFF)
set(TRAINCTL_SANITIZE "" CACHE STRING "sanitizers: empty, 'address,undefined' or 'thread'")
set(TRAINCTL_TEST_DEPTH quick CACHE STRING "which tests ctest runs: quick, ci or all")
set_property(CACHE TRAINCTL_TEST_DEPTH PROPERTY STRINGS quick ci all)
option(TRAINCTL_WERROR "treat warnings as errors" OFF)
option(TRAINCTL_FUZZ "build the fuzz targets with libFuzzer (clang only)" OFF)
option(TRAINCTL_BITS "build only the program of bench/bits, which needs no foreign library" OFF)
option(TRAINCTL_FREE_ORDER "for bench/order only: sums in any order; results are NOT the exact contract's" OFF)
option(TRAINCTL_ANALYZE "run gcc's -fanalyzer with the build" OFF)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo" FORCE)
endif()

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# The same layout as after `cmake --install`: the program finds its plugins relative to itself.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(TRAINCTL_LIBEXEC ${CMAKE_BINARY_DIR}/lib/trainctl)

add_library(tctl_flags INTERFACE)
target_compile_definitions(tctl_flags INTERFACE _GNU_SOURCE)
target_compile_options(tctl_flags INTERFACE
    -ffp-contract=off -fno-fast-math -fvisibility=hidden -fno-omit-frame-pointer
    -ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -ffile-prefix-map=${CMAKE_BINARY_DIR}=build
    -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wfloat-conversion -Wdouble-promotion -Wshadow
    -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wcast-qual -Wformat=2 -Wundef -Wvla
    -Walloca -Wwrite-strings -Wpointer-arith -Wnull-dereference -Wimplicit-fallthrough -Wdate-time
    -Wredundant-decls)
if(CMAKE_C_COMPILER_ID STREQUAL GNU)
    target_compile_options(tctl_flags INTERFACE
        -Wjump-misses-init -Wformat-signedness -Wduplicated-cond -Wlogical-op -Wcast-align=strict
        -fexcess-precision=standard)
elseif(CMAKE_C_COMPILER_ID MATCHES Clang)
    target_compile_options(tctl_flags INTERFACE
        -Wmissing-variable-declarations -Wconditional-uninitialized -Wcomma)
endif()
if(TRAINCTL_WERROR)
    target_compile_options(tctl_flags INTERFACE -Werror)
endif()
if(TRAINCTL_FREE_ORDER)
    message(WARNING "TRAINCTL_FREE_ORDER: this build breaks the exact contract; it is for measuring what that costs")
    target_compile_definitions(tctl_flags INTERFACE TRAINCTL_FREE_ORDER=1)
endif()
if(TRAINCTL_ANALYZE)
    target_compile_options(tctl_flags INTERFACE -fanalyzer)
endif()
if(TRAINCTL_SANITIZE)
    target_compile_options(tctl_flags INTERFACE -fsanitize=${TRAINCTL_SANITIZE} -fno-sanitize-recover=all -g)
    target_link_options(tctl_flags INTERFACE -fsanitize=${TRAINCTL_SANITIZE})
endif()
if(TRAINCTL_FUZZ)
    target_compile_options(tctl_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
