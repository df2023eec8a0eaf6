/* SPDX-License-Identifier: Apache-2.0 */
/* Loading: what is right is found and described; each plugin of tests/abi/bad is refused with the words that name what
 * is wrong with it. */
#include <fenv.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "host/plugins.h"
#include "host/surroundings.h"
#include "trainctl/ext/source.h"

static char folder[4000]; /* where the plugins of tests/abi are */
static char scratch[64];
static tctl_plugins *plugins;

static tctl_status load(const char *use, const tctl_loaded **ret, tctl_error *err)
{
    tctl_error_clear(err);
    return tctl_plugins_load(plugins, use, folder, ret, err);
}

static void assert_says(const tctl_error *err, const char *words)
{
    if (!strstr(err->message, words))
        fail_msg("'%s' does not say '%s'", err->message, words);
}

static void assert_refused(const char *use, tctl_status code, const char *words)
{
    tctl_error err;
    const tctl_loaded *loaded = NULL;
    assert_int_equal(load(use, &loaded, &err), code);
    assert_null(loaded);
    assert_says(&err, words);
    assert_int_equal(fegetround(), FE_TONEAREST);
}

static void a_good_plugin_is_loaded_once(void **state)
{
    (void)state;
    tctl_error err;
    const tctl_loaded *by_name = NULL, *by_path = NULL;
    assert_int_equal(load("good", &by_name, &err), TCTL_OK);
    assert_int_equal(load("./good.so", &by_path, &err), TCTL_OK);
    assert_ptr_equal(by_name, by_path);
    assert_string_equal(by_name->plugin->name, "good");
    assert_non_null(tctl_plugin_extension(by_name->plugin, TCTL_SOURCE_ID));
    assert_int_equal(by_name->path[0], '/');
    assert_int_equal(strlen(by_name->build_id), 40);
    tctl_sha256 digest;
    uint64_t size;
    assert_int_equal(tctl_sha256_file(by_name->path, &digest, &size, NULL), TCTL_OK);
    assert_true(tctl_sha256_equal(&digest, &by_name->digest));
    assert_ptr_equal(tctl_plugins_entry(plugins, by_name->plugin), by_name);
}

static void an_unknown_name_gets_a_suggestion(void **state)
{
    (void)state;
    tctl_error err;
    const tctl_loaded *loaded = NULL;
    assert_int_equal(load("goood", &loaded, &err), TCTL_ENOENT);
    assert_string_equal(err.message, "there is no plugin 'goood'");
    assert_string_equal(err.hint, "did you mean 'good'?");
    assert_non_null(strstr(err.notes[0], folder));
    assert_refused("./missing.so", TCTL_ENOENT, "cannot open plugin './missing.so': No such file");
}

static void names_are_listed_without_loading(void **state)
{
    (void)state;
    tctl_arena *arena = tctl_arena_create();
    const char *const *names = NULL;
    uint32_t n = 0, good = 0;
    assert_int_equal(tctl_plugins_names(plugins, arena, &names, &n, NULL), TCTL_OK);
    for (uint32_t i = 0; i < n; i++) {
        good += strcmp(names[i], "good") == 0;
        assert_true(i == 0 || strcmp(names[i - 1], names[i]) < 0);
    }
    assert_int_equal(good, 1); /* and we are still alive: crash_load.so was not loaded */
    tctl_arena_destroy(arena);
}

static void what_changes_the_surroundings_is_refused_by_name(void **state)
{
    (void)state;
#if defined(__x86_64__)
    assert_refused(
        "./fast_math.so", TCTL_EPLUGIN,
        "plugin './fast_math.so' changed the floating-point mode (MXCSR 0x1f80 -> 0x9fc0); rebuild it "
        "without -ffast-math");
#else
    assert_refused("./fast_math.so", TCTL_EPLUGIN, "plugin './fast_math.so' changed the floating-point mode");
#endif
    assert_refused("signals", TCTL_EPLUGIN,
                   "plugin 'signals' changed what SIGPIPE does (default -> ignored)");
    assert_refused("mask", TCTL_EPLUGIN,
                   "plugin 'mask' changed the signal mask (SIGTERM let through -> blocked)");
    assert_refused("folder", TCTL_EPLUGIN, "plugin 'folder' changed the working directory (");
    if (setlocale(LC_ALL, "C.UTF-8") && setlocale(LC_ALL, "C"))
        assert_refused("locale", TCTL_EPLUGIN, "plugin 'locale' changed the locale ('C' -> 'C.UTF-8')");
}

static void a_dependency_that_is_to_blame_is_named(void **state)
{
    (void)state;
    tctl_error err;
    const tctl_loaded *loaded = NULL;
    assert_int_equal(load("fast_dependency", &loaded, &err), TCTL_EPLUGIN);
    assert_says(&err, "plugin 'fast_dependency' changed the floating-point mode");
    assert_int_equal(err.n_notes, 1);
    assert_string_equal(err.notes[0],
                        "loading it loaded 'libfast_library.so' too; one of them may have done it");
}

static void versions_are_compared_and_both_are_told(void **state)
{
    (void)state;
    assert_refused("./too_new.so", TCTL_EPLUGIN,
                   "plugin './too_new.so' needs ABI 1.3; this trainctl offers 1.0");
    assert_refused("next_major", TCTL_EPLUGIN,
                   "plugin 'next_major' is built for ABI 2; this trainctl offers 1.0");
}

static void a_library_that_is_no_plugin_never_runs(void **state)
{
    (void)state;
    /* Its constructor would end this test. */
    assert_refused("./no_symbol.so", TCTL_EPLUGIN,
                   "'./no_symbol.so' is not a trainctl ABI 1 plugin: symbol 'trainctl_plugin_v1' not found");
}

static void wrong_tables_are_named(void **state)
{
    (void)state;
    assert_refused("bad_default", TCTL_EPLUGIN,
                   "plugin 'bad_default': option 'scale' has a default that is not valid: ");
    assert_refused("no_read", TCTL_EPLUGIN,
                   "plugin 'no_read': 'trainctl.source/1' lacks the function 'read'");
    assert_refused("liar", TCTL_EPLUGIN,
                   "plugin 'liar' calls itself 'truthful'; the file must be called 'truthful.so'");
}

static void files_that_are_no_libraries_are_refused(void **state)
{
    (void)state;
    char path[128], good[4096];
    tctl_buf bytes = TCTL_BUF_INIT;
    snprintf(path, sizeof path, "%s/x.so", scratch);
    assert_int_equal(tctl_file_replace(path, "hello", 5, 0755, NULL), TCTL_OK);
    assert_refused(path, TCTL_EPLUGIN, "is not a shared object: it does not begin with");
    assert_int_equal(tctl_file_replace(path, "", 0, 0755, NULL), TCTL_OK);
    assert_refused(path, TCTL_EPLUGIN, "is not a plugin: it is empty");
    snprintf(good, sizeof good, "%s/good.so", folder);
    assert_int_equal(tctl_file_read(good, (size_t)64 << 20, &bytes, NULL), TCTL_OK);
    assert_int_equal(tctl_file_replace(path, bytes.data, bytes.size / 4, 0755, NULL), TCTL_OK);
    assert_refused(path, TCTL_EPLUGIN, "is cut short");
    assert_refused(scratch, TCTL_EPLUGIN, "is not a plugin: it is not a regular file");
    tctl_buf_release(&bytes);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_refused(path, TCTL_EPLUGIN, "it is not a regular file"); /* and does not wait for a writer */
}

static void missing_symbols_of_the_plugin_are_told(void **state)
{
    (void)state;
    char path[128];
    tctl_buf bytes = TCTL_BUF_INIT;
    char good[4096];
    snprintf(good, sizeof good, "%s/good.so", folder);
    snprintf(path, sizeof path, "%s/y.so", scratch);
    assert_int_equal(tctl_file_read(good, (size_t)64 << 20, &bytes, NULL), TCTL_OK);
    for (size_t i = 0; i + 7 < bytes.size; i++) { /* it wants a function that nobody has */
        if (memcmp(bytes.data + i, "malloc", 7) == 0)
            memcpy(bytes.data + i, "mallox", 7);
    }
    assert_int_equal(tctl_file_replace(path, bytes.data, bytes.size, 0755, NULL), TCTL_OK);
    tctl_error err;
    const tctl_loaded *loaded = NULL;
    assert_int_equal(load(path, &loaded, &err), TCTL_EPLUGIN);
    assert_says(&err, "undefined symbol: mallox");
    tctl_buf_release(&bytes);
}

static void count_load(void *arg, const char *path)
{
    assert_int_equal(path[0], '/');
    ++*(int *)arg;
}

static void the_watcher_hears_of_each_library_once(void **state)
{
    (void)state;
    tctl_error err;
    const tctl_loaded *loaded = NULL;
    int n = 0;
    tctl_plugins_watch(plugins, count_load, &n);
    assert_int_equal(load("impure", &loaded, &err), TCTL_OK);
    assert_int_equal(load("impure", &loaded, &err), TCTL_OK);
    assert_int_equal(load("no_symbol", &loaded, &err), TCTL_EPLUGIN); /* none of its code runs */
    assert_int_equal(n, 1);
    tctl_plugins_watch(plugins, NULL, NULL);
}

static int set_up(void **state)
{
    (void)state;
    const char *build = getenv("TRAINCTL_BUILD");
    snprintf(folder, sizeof folder, "%s/tests/abi", build ? build : ".");
    snprintf(scratch, sizeof scratch, "/tmp/test_plugins.XXXXXX");
    return !mkdtemp(scratch) || setenv("TRAINCTL_PLUGIN_PATH", folder, 1) ||
           tctl_plugins_create("/nowhere/bin/trainctl", &plugins, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    tctl_plugins_destroy(plugins);
    return tctl_remove_tree(scratch, NULL) != TCTL_OK;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_plugin_is_loaded_once),
        cmocka_unit_test(an_unknown_name_gets_a_suggestion),
        cmocka_unit_test(names_are_listed_without_loading),
        cmocka_unit_test(what_changes_the_surroundings_is_refused_by_name),
        cmocka_unit_test(a_dependency_that_is_to_blame_is_named),
        cmocka_unit_test(versions_are_compared_and_both_are_told),
        cmocka_unit_test(a_library_that_is_no_plugin_never_runs),
        cmocka_unit_test(wrong_tables_are_named),
        cmocka_unit_test(files_that_are_no_libraries_are_refused),
        cmocka_unit_test(missing_symbols_of_the_plugin_are_told),
        cmocka_unit_test(the_watcher_hears_of_each_library_once),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
