/* What modules of callers say about themselves, and what is refused. */
#include <stdio.h>

#include "base/file.h"
#include "base/mem.h"
#include "spirv/module.h"
#include "support/data.h"
#include "support/testing.h"

static char *bytes_of(const char *name, size_t *n)
{
    char path[64], *bytes = NULL;

    snprintf(path, sizeof path, "kernels/%s.spv", name);
    struct data_path file = data_made(path);
    assert_ok(file_read(&bytes, n, file.v, 1 << 20));
    return bytes;
}

static struct spirv_module *module_of(const char *name)
{
    struct spirv_module *m = NULL;
    size_t n;
    char *bytes = bytes_of(name, &n);

    assert_ok(spirv_new(&m, bytes, n));
    mem_free(bytes);
    return m;
}

static void test_bindings(void **state)
{
    struct spirv_module *m = module_of("scale_add");

    (void)state;
    assert_string_equal(m->info.entry, "main");
    assert_int_equal(m->info.version, 0x00010500);
    assert_int_equal(m->info.binding.n, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(m->info.binding.v[i].binding, i);
        assert_int_equal(m->info.binding.v[i].min_size, 0);
    }
    assert_int_equal(m->info.push_size, 8);
    assert_int_equal(m->info.spec.n, 2);
    assert_int_equal(spirv_find_spec(&m->info, 0), 0);
    assert_int_equal(spirv_find_spec(&m->info, 1), 1);
    assert_int_equal(spirv_find_spec(&m->info, 2), -1);
    assert_int_equal(m->info.spec.v[0].kind, SPIRV_SPEC_UINT);
    assert_int_equal(m->info.spec.v[1].kind, SPIRV_SPEC_FLOAT);
    assert_int_equal(m->info.local_spec[0], 0);
    assert_int_equal(m->info.local_spec[1], -1);
    assert_int_equal(m->info.local_size[1], 1);
    spirv_unref(&m);
}

/* A pointer that is declared behind the block that has it. */
static void test_addresses(void **state)
{
    struct spirv_module *m = module_of("addresses");

    (void)state;
    assert_int_equal(m->info.binding.n, 0);
    assert_int_equal(m->info.push_size, 20);
    assert_int_equal(m->info.local_size[0], 64);
    spirv_unref(&m);
}

static void test_sizes(void **state)
{
    struct spirv_module *m = module_of("matrices");

    (void)state;
    /* mat3: 3 columns 16 apart; a part: vec3 and 3 floats that begin at 12, 32 apart */
    assert_int_equal(spirv_find_binding(&m->info, 0)->min_size, 48 + 32 + 24);
    assert_int_equal(spirv_find_binding(&m->info, 1)->min_size, 16);
    assert_null(spirv_find_binding(&m->info, 2));
    assert_int_equal(m->info.push_size, 32);
    assert_int_equal(m->info.shared_size, 1024);
    assert_int_equal(m->info.local_size[0], 4);
    assert_int_equal(m->info.local_size[1], 2);
    assert_int_equal(m->info.local_size[2], 3);
    assert_int_equal(m->info.spec.n, 2);
    assert_int_equal(m->info.spec.v[0].id, 3);
    assert_int_equal(m->info.spec.v[0].kind, SPIRV_SPEC_BOOL);
    assert_int_equal(m->info.spec.v[0].value, 1);
    assert_int_equal(m->info.spec.v[1].kind, SPIRV_SPEC_INT);
    assert_int_equal(m->info.spec.v[1].value, 7);
    spirv_unref(&m);
    m = module_of("count");
    assert_int_equal(spirv_find_binding(&m->info, 1)->min_size, 32);
    spirv_unref(&m);
}

static void refuse(const void *bytes, size_t n, const char *why)
{
    struct spirv_module *m = NULL;

    assert_int_equal(spirv_new(&m, bytes, n), ERR_ARG);
    assert_null(m);
    if (!strstr(err_text(), why))
        fail_msg("not \"%s\": %s", why, err_text());
}

static void refuse_file(const char *name, const char *why)
{
    size_t n;
    char *bytes = bytes_of(name, &n);

    refuse(bytes, n, why);
    mem_free(bytes);
}

static void test_resources(void **state)
{
    (void)state;
    refuse_file("uniform_block", "Binding 0 is a uniform buffer: arrays are storage buffers.");
    refuse_file("second_set", "Binding 0 of set 1: only set 0 is there.");
}

static void test_headers(void **state)
{
    static const uint32_t good[] = { 0x07230203, 0x00010500, 0, 8, 0 };
    uint32_t w[ARRAY_LEN(good) + 3];

    (void)state;
    refuse("", 0, "0 bytes are not a module");
    refuse(good, 7, "7 bytes are not a module");
    refuse(good, 8, "it does not begin as SPIR-V does");
    refuse(good, sizeof good, "it has no compute entry point");
#define WITH(at, value)                                                                            \
    memcpy(w, good, sizeof good);                                                                  \
    w[at] = (value)
    WITH(0, 0x03022307);
    refuse(w, sizeof good, "its bytes are in the other order");
    WITH(1, 0x00020000);
    refuse(w, sizeof good, "its version of SPIR-V");
    WITH(3, 0);
    refuse(w, sizeof good, "the bound of its ids");
    WITH(3, UINT32_MAX);
    refuse(w, sizeof good, "the bound of its ids");
    WITH(4, 1);
    refuse(w, sizeof good, "its schema is not 0");
    WITH(5, 0);
    refuse(w, sizeof good + 4, "an instruction goes beyond its end");
    WITH(5, 3 << 16 | 17);
    refuse(w, sizeof good + 4, "an instruction goes beyond its end");
    WITH(5, 1 << 16 | 17);
    refuse(w, sizeof good + 4, "an instruction is too short");
    WITH(5, 3 << 16 | 22);
    w[6] = 8;
    w[7] = 32;
    refuse(w, sizeof good + 12, "an id is out of bounds or defined twice");
#undef WITH
}

/* Whatever ends early is refused; so is every module that another stage would want. */
static void test_cut(void **state)
{
    struct spirv_module *m = NULL;
    size_t n;
    char *bytes = bytes_of("matrices", &n);

    (void)state;
    for (size_t cut = 4; cut < n; cut += 4) {
        assert_int_not_equal(spirv_new(&m, bytes, n - cut), ERR_OK);
        assert_null(m);
    }
    uint32_t *w = (uint32_t *)bytes;
    for (size_t i = 5; i < n / 4; i += w[i] >> 16)
        if ((w[i] & 0xffff) == 15)
            w[i + 1] = 4; /* a fragment shader */
    refuse(bytes, n, "it has no compute entry point");
    mem_free(bytes);
}

/* What only the validator sees: a store to what is no pointer. Without it the module is believed.
 */
static void test_validator(void **state)
{
    struct spirv_module *m = NULL;
    size_t n;
    char *bytes = bytes_of("scale_add", &n);
    uint32_t *w = (uint32_t *)bytes;

    (void)state;
    for (size_t i = 5; i < n / 4; i += w[i] >> 16)
        if ((w[i] & 0xffff) == 62)
            w[i + 1] = w[i + 2];
    if (spirv_can_validate()) {
        refuse(bytes, n, "[spirv] Not valid: OpStore");
    } else {
        assert_ok(spirv_new(&m, bytes, n));
        spirv_unref(&m);
    }
    mem_free(bytes);
}

static void test_equality(void **state)
{
    struct spirv_module *a = module_of("count"), *b = module_of("count"),
                        *c = module_of("matrices");

    (void)state;
    assert_true(spirv_equal(a, b));
    assert_false(spirv_equal(a, c));
    assert_string_equal(spirv_capability_name(SPIRV_CAP_Shader), "Shader");
    assert_string_equal(spirv_capability_name(12345), "");
    spirv_unref(&a);
    spirv_unref(&b);
    spirv_unref(&c);
}

/* No memory at any of its allocations: an error, and nothing leaks. */
static void test_no_memory(void **state)
{
    struct spirv_module *m = NULL;
    size_t n;
    char *bytes = bytes_of("matrices", &n);
    enum err err = ERR_NO_MEMORY;

    (void)state;
    for (size_t fail = 1; err; fail++) {
        mem_fail_after(fail);
        err = spirv_new(&m, bytes, n);
        mem_fail_after(0);
        assert_true(!err || err == ERR_NO_MEMORY);
    }
    spirv_unref(&m);
    mem_free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bindings),  cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_sizes),     cmocka_unit_test(test_resources),
        cmocka_unit_test(test_headers),   cmocka_unit_test(test_cut),
        cmocka_unit_test(test_validator), cmocka_unit_test(test_equality),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
