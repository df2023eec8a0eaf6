/* SPDX-License-Identifier: Apache-2.0 */
/* YAML text to a tree: positions, what is refused and in which words, and the limits. */
#include "tests/config/read.h"

#include <stdio.h>
#include <time.h>

/* A tree as text: kinds, texts, places. */
static void dump(const tctl_yaml_node *node, tctl_buf *out)
{
    tctl_buf_add_format(out, "%u:%u", node->loc.line, node->loc.col);
    if (node->kind == TCTL_YAML_SCALAR) {
        tctl_buf_add_format(out, "-%u:%u%s'%s'", node->loc.end_line, node->loc.end_col,
                            node->quoted ? "q" : "", node->text);
        return;
    }
    tctl_buf_add_text(out, node->kind == TCTL_YAML_SEQUENCE ? "[" : "{");
    for (size_t i = 0; i < node->n; i++) {
        tctl_buf_add_text(out, i ? " " : "");
        if (node->kind == TCTL_YAML_MAPPING) {
            dump(node->pairs[i].key, out);
            tctl_buf_add_text(out, "=");
            dump(node->pairs[i].value, out);
        } else {
            dump(node->items[i], out);
        }
    }
    tctl_buf_add_text(out, node->kind == TCTL_YAML_SEQUENCE ? "]" : "}");
}

static void check_tree(const char *text, const char *golden)
{
    tctl_arena *arena = tctl_arena_create();
    tctl_diags diags = {0};
    tctl_buf out = TCTL_BUF_INIT;
    tctl_yaml_node *root = NULL;
    assert_int_equal(tctl_yaml_parse(arena, "t.yaml", text, strlen(text), &root, &diags), TCTL_OK);
    if (root)
        dump(root, &out);
    assert_string_equal(tctl_buf_text(&out), golden);
    tctl_buf_release(&out);
    tctl_diags_release(&diags);
    tctl_arena_destroy(arena);
}

static void places_are_lines_and_code_points(void **state)
{
    (void)state;
    check_tree("a: 1\nb:\n  - x\n  - {c: 'd'}\n",
               "1:1{1:1-1:2'a'=1:4-1:5'1' 2:1-2:2'b'=3:3[3:5-3:6'x' 4:5{4:6-4:7'c'=4:9-4:12q'd'}]}");
    check_tree("\xC3\xA9: \xE6\xBC\xA2 # x\n", "1:1{1:1-1:2'\xC3\xA9'=1:4-1:5'\xE6\xBC\xA2'}");
    /* A byte order mark is no column; CR LF ends a line once. */
    check_tree("\xEF\xBB\xBF"
               "a: 1\r\nb: 2\r\n",
               "1:1{1:1-1:2'a'=1:4-1:5'1' 2:1-2:2'b'=2:4-2:5'2'}");
    check_tree("a:\nb: 2\n", "1:1{1:1-1:2'a'=1:3-1:3'' 2:1-2:2'b'=2:4-2:5'2'}");
}

static void nothing_is_resolved(void **state)
{
    (void)state;
    check_tree("[1e-3, NO, 017, ~, null, 12:30, 2024-01-01, <<]",
               "1:1[1:2-1:6'1e-3' 1:8-1:10'NO' 1:12-1:15'017' 1:17-1:18'~' 1:20-1:24'null' 1:26-1:31'12:30' "
               "1:33-1:43'2024-01-01' 1:45-1:47'<<']");
}

static void an_empty_document_is_no_node(void **state)
{
    (void)state;
    check_tree("", "");
    check_tree("# only a comment\n", "");
}

static void duplicate_keys_show_both_places(void **state)
{
    (void)state;
    assert_says("seed: 1\nname: x\nseed: 2\n",
                "t.yaml:3:1: error: the key 'seed' stands twice in this mapping\n"
                "    3 | seed: 2\n"
                "      | ^~~~\n"
                "t.yaml:1:1: note: first written here\n"
                "    1 | seed: 1\n"
                "      | ^~~~\n");
    /* Quoted or not is the same key. */
    assert_first("{a: 1, \"a\": 2}", "t.yaml:1:8: error: the key 'a' stands twice");
}

static void anchors_aliases_merges_and_tags_are_refused(void **state)
{
    (void)state;
    assert_first("a: &x 1\n", "t.yaml:1:4: error: anchors are not supported: '&x'\n");
    assert_first("a: *nope\n",
                 "t.yaml:1:4: error: aliases are not supported: '*nope' refers to another place\n");
    assert_first("<<: {a: 1}\n", "t.yaml:1:1: error: merge keys ('<<') are not supported\n");
    assert_first("a: !!str 1\n", "t.yaml:1:4: error: tags are not supported: 'tag:yaml.org,2002:str'\n");
    assert_first("a: ! 1\n", "t.yaml:1:4: error: tags are not supported: '!'\n");
    assert_first("%TAG !e! tag:e,2000:\n---\na: 1\n", "t.yaml:1:1: error: %TAG is not supported");
    assert_first("a: *.png\n", "t.yaml:1:4: error: a text cannot begin with '*'\n");
    /* One of them does not hide the others. */
    char *said = yaml_says("a: &x 1\nb: *x\n", 14);
    assert_non_null(strstr(said, "2 errors\n"));
    free(said);
}

static void one_document_only(void **state)
{
    (void)state;
    assert_first("a: 1\n---\nb: 2\n",
                 "t.yaml:2:1: error: a second document begins here, a spec is exactly one\n");
    assert_first("a: 1\n...\nb: 2\n", "t.yaml:3:1: error: nothing may follow the end of the document\n");
    assert_first("%YAML 1.3\n--- a\n", "t.yaml:1:1: error: this YAML version is not supported\n");
    check_tree("%YAML 1.2\n---\na: 1\n...\n", "3:1{3:1-3:2'a'=3:4-3:5'1'}");
}

static void syntax_errors_speak_plainly(void **state)
{
    (void)state;
    assert_says("name: \"abc\nseed: 2\n", "t.yaml:1:7: error: this quote is never closed\n"
                                          "    1 | name: \"abc\n"
                                          "      |       ^\n"
                                          "  hint: close it, or write the text without quotes\n");
    assert_says("a: [1, 2\nb: 3\n", "t.yaml:2:2: error: expected ',' or ']' here\n"
                                    "    2 | b: 3\n"
                                    "      |  ^\n"
                                    "t.yaml:1:4: note: the list begins here\n"
                                    "    1 | a: [1, 2\n"
                                    "      |    ^\n");
    assert_first("a: {x: 1\nb: 3\n", "t.yaml:2:2: error: expected ',' or '}' here\n");
    assert_first("name: x\nseed:1\ntrain: y\n", "t.yaml:2:5: error: a blank is missing behind ':'\n");
    assert_first("seed:1\nname: x\n", "t.yaml:1:5: error: a blank is missing behind ':'\n");
    assert_first("x: {a:1}\n", "t.yaml:1:6: error: a blank is missing behind ':'\n");
    assert_first("a: b: c\n", "t.yaml:1:5: error: a ':' is not allowed here\n");
    assert_first("a: @x\n", "t.yaml:1:4: error: a text cannot begin with '@'\n");
    assert_first("a: `x`\n", "t.yaml:1:4: error: a text cannot begin with '`'\n");
    assert_first("a: - b\n", "t.yaml:1:4: error: a list cannot begin behind 'key: ' on one line\n");
    assert_first("a: \"\\q\"\n", "t.yaml:1:5: error: unknown escape after '\\' inside double quotes\n");
    assert_first("a: [1,,2]\n", "t.yaml:1:7: error: expected a value before ','\n");
    assert_first("a: }\n", "t.yaml:1:4: error: this '}' closes nothing, or a value is missing\n");
    assert_first("a: \"x\" y\n", "t.yaml:1:8: error: nothing may follow a value on its line\n");
    assert_first("a: |x\n b\n", "t.yaml:1:5: error: nothing may follow '|' or '>' on its line\n");
    assert_first("  a: 1\nb: 2\n", "t.yaml:2:1: error: nothing may follow the end of the document\n");
    assert_first("- a\nb: 1\n", "t.yaml:2:1: error: this does not fit the list around it\n");
    assert_first("? [x]\n: y\n", "t.yaml:1:3: error: a key must be a word, got a list\n");
    assert_first(": y\n", "t.yaml:1:1: error: a key is missing before ':'\n");
    assert_says("a:\n  - x\n y: 1\n", "t.yaml:3:2: error: this does not fit the mapping around it\n"
                                      "    3 |  y: 1\n"
                                      "      |  ^\n"
                                      "t.yaml:1:1: note: the mapping begins here\n"
                                      "    1 | a:\n"
                                      "      | ^\n"
                                      "  hint: keys of one mapping stand in one column\n");
}

static void keys_beyond_libyamls_1024_characters_get_words(void **state)
{
    (void)state;
    char text[1200];
    memset(text, 'k', 1100);
    memcpy(text + 1100, ": 1\n", 5);
    assert_first(text, "t.yaml:1:1101: error: a ':' is not allowed here\n");
}

/* ---- limits --------------------------------------------------------------------------------------- */

/* `before`, n times `unit`, `after`. */
static char *repeated(const char *before, const char *unit, size_t n, const char *after)
{
    tctl_buf buf = TCTL_BUF_INIT;
    tctl_buf_add_text(&buf, before);
    for (size_t i = 0; i < n; i++)
        tctl_buf_add_text(&buf, unit);
    tctl_buf_add_text(&buf, after);
    char *text = tctl_buf_detach(&buf);
    assert_non_null(text);
    return text;
}

static void check_repeated(const char *before, const char *unit, size_t n, const char *after,
                           const char *beginning)
{
    char *text = repeated(before, unit, n, after);
    char *said = yaml_says(text, strlen(text));
    check_begins(said, beginning, __FILE__, __LINE__);
    assert_true(*beginning != '\0' || *said == '\0');
    free(said);
    free(text);
}

static void depth_64_is_allowed_and_65_is_not(void **state)
{
    (void)state;
    char close[66];
    memset(close, ']', sizeof close);
    close[64] = '\0';
    check_repeated("", "[", 64, close, "");
    close[64] = ']';
    close[65] = '\0';
    check_repeated("", "[", 65, close, "t.yaml:1:65: error: nested deeper than 64 levels\n");
    check_repeated("", "- ", 64, "x", "");
    check_repeated("", "- ", 65, "x", "t.yaml:1:131: error: nested deeper than 64 levels\n");
    check_repeated("", "? ", 65, "x", "t.yaml:1:131: error: nested deeper than 64 levels\n");
    check_repeated("", "{a: ", 65, "", "t.yaml:1:257: error: nested deeper than 64 levels\n");
    /* Brackets in texts and comments are no depth. */
    check_repeated("a: \"", "[", 500, "\"\n", "");
    check_repeated("a: '", "[", 500, "'\n", "");
    check_repeated("a: b # ", "[", 500, "\n", "");
    check_repeated("a: b", "[", 500, "\n", "");
    check_repeated("a: |\n  x", "[", 500, "\nb: 1\n", "");
    check_repeated("a: [\"it's\", don't, ", "x, ", 500, "b]\n", "");
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void hostile_nesting_is_refused_at_once(void **state)
{
    (void)state;
    double begin = seconds();
    check_repeated("", "[", 200000, "", "t.yaml:1:65: error: nested deeper than 64 levels\n");
    check_repeated("", "[\n", 200000, "", "t.yaml:65:1: error: nested deeper than 64 levels\n");
    check_repeated("", "- ", 200000, "", "t.yaml:1:131: error: nested deeper than 64 levels\n");
    check_repeated("a: \"", "\\n[", 300000, "", "t.yaml:1:4: error: this quote is never closed\n");
    assert_true(seconds() - begin < 20.0); /* libyaml alone takes 40 s for the first */
}

static void size_nodes_and_scalars_are_limited(void **state)
{
    (void)state;
    check_repeated("", "#", TCTL_YAML_MAX_BYTES, "", "");
    check_repeated("", "#", TCTL_YAML_MAX_BYTES + 1, "",
                   "t.yaml:1:1: error: the spec has 1048577 bytes, at most 1048576 are read\n");
    check_repeated("a: ", "x", TCTL_YAML_MAX_SCALAR - 1, "\n", "");
    check_repeated("a: ", "x", TCTL_YAML_MAX_SCALAR + 1, "\n",
                   "t.yaml:1:4: error: a text of more than 65536 bytes\n");
    check_repeated("a: |\n", "  x\n", 40000, "", "t.yaml:2:1: error: a text of more than 65536 bytes\n");
    check_repeated("", "- x\n", 99999, "", "");
    check_repeated("", "- x\n", 100001, "", "t.yaml:100001:3: error: more than 100000 values\n");
    check_repeated("[", ":,", 60000, "]", "t.yaml:1:");
}

/* ---- characters ----------------------------------------------------------------------------------- */

static void bytes_that_are_no_text_have_a_place(void **state)
{
    (void)state;
    assert_first("a: 1\nb: \xFF\n", "t.yaml:2:4: error: byte 0xff is not UTF-8\n");
    assert_first("a: \xC3", "t.yaml:1:4: error: byte 0xc3 is not UTF-8\n");
    assert_first("a: \xED\xA0\x80", "t.yaml:1:4: error: byte 0xed is not UTF-8\n");
    assert_first("a: \xC0\x80", "t.yaml:1:4: error: byte 0xc0 is not UTF-8\n");
    assert_first("\xC3\xA9: \x01\n", "t.yaml:1:4: error: the control character U+0001 is not allowed\n");
    assert_first("a: \x7F\n", "t.yaml:1:4: error: the control character U+007F is not allowed\n");
    assert_first("a: \"\\\x01\"\n", "t.yaml:1:6: error: the control character U+0001 is not allowed\n");
    char *said = yaml_says("a: 1\nb: \0", 9);
    check_begins(said, "t.yaml:2:4: error: a NUL byte stands here: this is not a text file\n", __FILE__,
                 __LINE__);
    free(said);
    said = yaml_says("\xFF\xFE"
                     "a\0",
                     4);
    check_begins(said, "t.yaml:1:1: error: the file is UTF-16 or UTF-32, a spec must be UTF-8\n", __FILE__,
                 __LINE__);
    free(said);
    assert_first("a: \"x\\0y\"\n", "t.yaml:1:4: error: a text cannot hold a NUL character\n");
}

static void look_alikes_are_named(void **state)
{
    (void)state;
    assert_says("a:\xC2\xA0"
                "b\n",
                "t.yaml:1:3: error: a no-break space (U+00A0) is not a blank in YAML\n"
                "    1 | a:\xC2\xA0"
                "b\n"
                "      |   ^\n"
                "  hint: replace it by an ordinary space\n");
    assert_first("a: \xE2\x80\x9Cx\xE2\x80\x9D\n",
                 "t.yaml:1:4: error: a typographic quote does not quote in YAML\n");
    assert_first("lr: \xE2\x88\x92"
                 "1\n",
                 "t.yaml:1:5: error: a typographic minus sign (U+2212)");
    assert_first("a\xEF\xBC\x9A 1\n", "t.yaml:1:2: error: a full-width colon (U+FF1A)");
    assert_first("a: 1\n\xEF\xBB\xBF"
                 "b: 2\n",
                 "t.yaml:2:1: error: a byte order mark (U+FEFF) stands inside");
    /* Inside texts and comments they are nobody's business. */
    assert_says(
        "a: \"x\xC2\xA0y\" # \xE2\x80\x9Cz\xE2\x80\x9D\nb: it\xE2\x80\x99s\nc: |\n  \xE2\x80\x9Cz\xC2\xA0\n",
        "");
}

static void tabs_and_odd_line_breaks_are_named(void **state)
{
    (void)state;
    assert_says("a:\n\tb: 1\n", "t.yaml:2:1: error: a tab stands in the indentation\n"
                                "    2 |     b: 1\n"
                                "      | ^~~~\n"
                                "  hint: YAML indents with spaces only\n");
    assert_first("a:\n  \tb: 1\n", "t.yaml:2:3: error: a tab stands in the indentation\n");
    check_tree("a:\t1\n", "1:1{1:1-1:2'a'=1:4-1:5'1'}");
    check_tree("a: [1,\n\t2]\n", "1:1{1:1-1:2'a'=1:4[1:5-1:6'1' 2:2-2:3'2']}");
    assert_first("a: 1\rb: 2\n", "t.yaml:1:5: error: a lone carriage return is a line break for YAML");
    assert_first("a: 1\xC2\x85", "t.yaml:1:5: error: the line separator U+0085 is a line break for YAML");
    assert_first("a: 1\xE2\x80\xA8", "t.yaml:1:5: error: the line separator U+2028 is a line break for YAML");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_are_lines_and_code_points),
        cmocka_unit_test(nothing_is_resolved),
        cmocka_unit_test(an_empty_document_is_no_node),
        cmocka_unit_test(duplicate_keys_show_both_places),
        cmocka_unit_test(anchors_aliases_merges_and_tags_are_refused),
        cmocka_unit_test(one_document_only),
        cmocka_unit_test(syntax_errors_speak_plainly),
        cmocka_unit_test(keys_beyond_libyamls_1024_characters_get_words),
        cmocka_unit_test(depth_64_is_allowed_and_65_is_not),
        cmocka_unit_test(hostile_nesting_is_refused_at_once),
        cmocka_unit_test(size_nodes_and_scalars_are_limited),
        cmocka_unit_test(bytes_that_are_no_text_have_a_place),
        cmocka_unit_test(look_alikes_are_named),
        cmocka_unit_test(tabs_and_odd_line_breaks_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
