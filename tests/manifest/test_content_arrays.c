/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors, .npy and .npz: what counts, what does not, what is damaged. */
#include "tests/manifest/content_fixture.h"

static const float three[] = {1, 2, 3};

/* ---- .npy --------------------------------------------------------------------------------------------- */

static void memory_order_and_byte_order_do_not_count(void **state)
{
    static const int32_t c[] = {1, 2, 3, 4, 5, 6}, f[] = {1, 4, 2, 5, 3, 6};
    static const unsigned char big[] = {0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3,
                                        0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 6};
    (void)state;
    tctl_content a = content_of(
        write_npy("c", "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }", c, sizeof c), "npy");
    assert_int_equal(a.n_tensors, 1);
    assert_same(
        a, content_of(write_npy("f", "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3)}", f, sizeof f),
                      "npy"));
    assert_same(a, content_of(write_npy("big", "{\"shape\":(2,3),'descr': '>i4','fortran_order':False}", big,
                                        sizeof big),
                              "npy"));
    assert_other(a, content_of(write_npy("shape", "{'descr': '<i4', 'fortran_order': False, 'shape': (3, 2)}",
                                         c, sizeof c),
                               "npy"));
    assert_other(a, content_of(write_npy("type", "{'descr': '<u4', 'fortran_order': False, 'shape': (2, 3)}",
                                         c, sizeof c),
                               "npy"));
}

static void the_header_of_an_array_may_be_longer_and_newer(void **state)
{
    tctl_buf bytes = TCTL_BUF_INIT;
    static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}         \n";
    (void)state;
    tctl_buf_add(&bytes, "\x93NUMPY\2\0", 8);
    add_u64(&bytes, sizeof header - 1);
    bytes.size -= 4; /* the length has four bytes */
    tctl_buf_add_text(&bytes, header);
    tctl_buf_add(&bytes, three, sizeof three);
    assert_same(content_of(write_buf("v2", &bytes), "npy"),
                content_of(write_npy("v1", "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", three,
                                     sizeof three),
                           "npy"));
}

static void structured_types_texts_and_no_elements_are_read(void **state)
{
    (void)state;
    content_of(
        write_npy("s", "{'descr': [('a', '<f4'), ('b', '<f8', (2,))], 'fortran_order': False, 'shape': (3,)}",
                  "0123456789012345678901234567890123456789012345678901234567890", 60),
        "npy");
    content_of(write_npy("u", "{'descr': '<U1', 'fortran_order': False, 'shape': (3,)}", three, 12), "npy");
    content_of(write_npy("none", "{'descr': '<f8', 'fortran_order': True, 'shape': (0, 7)}", "", 0), "npy");
    content_of(write_npy("scalar", "{'descr': '|b1', 'fortran_order': False, 'shape': ()}", "\1", 1), "npy");
}

static void a_cut_array_is_found(void **state)
{
    (void)state;
    assert_damaged(
        write_npy("cut", "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", three, 11),
        "the array at byte 0 reaches outside of its data: 3 elements of 4 bytes from byte 66, of 77 bytes");
    assert_damaged(write_npy("huge",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 16)}",
                             three, 12),
                   "a shape of more elements than can be");
    assert_damaged(write_npy("bad", "{'descr': '<f4', 'shape': (3,)}", three, 12),
                   "a header that can't be read");
    assert_damaged(write_file("short", "\x93NUMPY\1\0\xff\xff{", 11), "ends at byte 11");
}

static void arrays_behind_each_other_are_all_listed(void **state)
{
    tctl_buf bytes = TCTL_BUF_INIT;
    (void)state;
    for (int i = 0; i < 2; i++)
        add_npy(&bytes, "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", three, sizeof three);
    assert_int_equal(content_of(write_buf("two", &bytes), "npy").n_tensors, 2);
    add_npy(&bytes, "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", three, sizeof three);
    tctl_buf_add_text(&bytes, "more");
    assert_not_looked_into(write_buf("more", &bytes), "something else behind its arrays");
}

/* ---- .npz --------------------------------------------------------------------------------------------- */

static void framing_of_an_npz_does_not_count(void **state)
{
    tctl_buf x = TCTL_BUF_INIT, y = TCTL_BUF_INIT;
    (void)state;
    add_npy(&x, "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", three, sizeof three);
    add_npy(&y, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", three, 4);
    const part a[] = {{"x.npy", x.data, x.size}, {"y.npy", y.data, y.size}};
    const part b[] = {{"y.npy", y.data, y.size}, {"x.npy", x.data, x.size}};
    const part c[] = {{"x.npy", x.data, x.size}, {"z.npy", y.data, y.size}};
    tctl_content plain = content_of(write_zip("a", a, 2, false, 1000000000), "npz");
    assert_int_equal(plain.n_tensors, 2);
    assert_same(plain, content_of(write_zip("b", b, 2, true, 1700000000), "npz"));
    assert_other(plain, content_of(write_zip("c", c, 2, false, 1000000000), "npz"));
    tctl_buf_release(&x);
    tctl_buf_release(&y);
}

/* ---- safetensors -------------------------------------------------------------------------------------- */

static void order_of_names_and_tensors_does_not_count(void **state)
{
    static const float swapped[] = {3, 1, 2};
    (void)state;
    tctl_content a = content_of(
        write_safetensors(
            "a",
            "{\"__metadata__\":{\"k\":\"1\",\"l\":\"2\"},\"u\":{\"dtype\":\"F32\",\"shape\":[2],"
            "\"data_offsets\":[0,8]},\"v\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[8,12]}}",
            three, sizeof three),
        "safetensors");
    assert_int_equal(a.n_tensors, 2);
    assert_same(
        a,
        content_of(write_safetensors(
                       "b",
                       "{\"v\":{\"data_offsets\":[0,4],\"dtype\":\"F32\",\"shape\":[1,1]},\"u\":{\"dtype\":"
                       "\"F32\",\"shape\":[2],\"data_offsets\":[4,12]},\"__metadata__\":{\"l\":\"2\","
                       "\"k\":\"1\"}}    ",
                       swapped, sizeof swapped),
                   "safetensors"));
    assert_other(
        a, content_of(write_safetensors("c",
                                        "{\"u\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                                        "\"v\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[8,12]}}",
                                        three, sizeof three),
                      "safetensors"));
}

#define TENSOR "{\"u\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]}}"

static void what_safetensors_must_keep_is_checked(void **state)
{
    (void)state;
    content_of(write_safetensors("good", TENSOR, three, 12), "safetensors");
    content_of(write_file("empty", "\2\0\0\0\0\0\0\0{}", 10), "safetensors");
    assert_damaged(write_safetensors("cut", TENSOR, three, 11), "tensor 'u' would end at byte 75");
    assert_damaged(write_safetensors("long", TENSOR, "0123456789abc", 13),
                   "something behind its tensors, from byte 75");
    assert_damaged(write_file("header", "\377\0\0\0\0\0\0\0{\"u\":{\"dtype\":", 22),
                   "its header alone would end at byte 263");
    assert_damaged(write_safetensors("hole",
                                     "{\"u\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
                                     three, 12),
                   "does not begin where the one before it ends");
    assert_damaged(write_safetensors("size",
                                     "{\"u\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,12]}}",
                                     three, 12),
                   "does not have the bytes that its shape and type ask for");
    assert_damaged(write_safetensors("twice", "{\"u\":1,\"u\":1}", three, 12), "duplicate object key");
    assert_not_looked_into(
        write_safetensors("type", "{\"u\":{\"dtype\":\"F31\",\"shape\":[3],\"data_offsets\":[0,12]}}", three,
                          12),
        "a type that is not known");
}

static void numbers_of_less_than_a_byte_are_listed_by_their_bytes(void **state)
{
    (void)state;
    tctl_content a =
        content_of(write_safetensors(
                       "a", "{\"u\":{\"dtype\":\"F4\",\"shape\":[2,12],\"data_offsets\":[0,12]}}", three, 12),
                   "safetensors");
    assert_other(a, content_of(write_safetensors(
                                   "b", "{\"u\":{\"dtype\":\"F4\",\"shape\":[24],\"data_offsets\":[0,12]}}",
                                   three, 12),
                               "safetensors"));
    assert_damaged(write_safetensors("c", "{\"u\":{\"dtype\":\"F4\",\"shape\":[23],\"data_offsets\":[0,12]}}",
                                     three, 12),
                   "does not have the bytes");
}

static void a_text_file_is_no_container(void **state)
{
    (void)state;
    assert_not_looked_into(write_file("text", "loss 0.5\n{\"a\": 1}\n", 18), NULL);
    assert_not_looked_into(write_file("empty", "", 0), NULL);
    assert_not_looked_into(write_file("json", "{\"loss\": 0.5, \"acc\": 1}", 23), NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(memory_order_and_byte_order_do_not_count),
        IN_FOLDER(the_header_of_an_array_may_be_longer_and_newer),
        IN_FOLDER(structured_types_texts_and_no_elements_are_read),
        IN_FOLDER(a_cut_array_is_found),
        IN_FOLDER(arrays_behind_each_other_are_all_listed),
        IN_FOLDER(framing_of_an_npz_does_not_count),
        IN_FOLDER(order_of_names_and_tensors_does_not_count),
        IN_FOLDER(what_safetensors_must_keep_is_checked),
        IN_FOLDER(numbers_of_less_than_a_byte_are_listed_by_their_bytes),
        IN_FOLDER(a_text_file_is_no_container),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
