#include "support/mlxfn_files.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/data.h"

const char *const mlxfn_names[] = { "unary",        "binary",     "dtypes",     "views",
                                    "moves",        "reductions", "products",   "factors",
                                    "convolutions", "scatters",   "fouriers",   "matrices",
                                    "quantized",    "randoms",    "signatures", "shapeless",
                                    "turned",       "ordered" };
const size_t mlxfn_count = ARRAY_LEN(mlxfn_names);

const char *mlxfn_path(const char *name)
{
    static struct data_path path;
    char file[128];

    snprintf(file, sizeof file, "mlxfn/%s.mlxfn", name);
    path = data_stored(file);
    return path.v;
}

void mlxfn_calls_init(struct mlxfn_calls *c, const char *name)
{
    struct source *src = NULL;
    char file[128];

    *c = (struct mlxfn_calls){ .n = 0 };
    snprintf(file, sizeof file, "mlxfn/%s.npz", name);
    struct data_path path = data_stored(file);
    assert_ok(source_open(&src, path.v));
    assert_ok(io_load_npz(&c->arrays, src, test_stream()));
    source_unref(&src);
    for (size_t i = 0; i < c->arrays.list.n; i++)
        c->n = MAX(c->n, atoi(c->arrays.list.v[i].name + 1) + 1);
}

void mlxfn_calls_fini(struct mlxfn_calls *c)
{
    io_arrays_fini(&c->arrays);
}

static void put(struct arr **list, size_t *n, const char *number, struct arr *a)
{
    size_t at = (size_t)atoi(number);

    assert_true(at < MLXFN_ARRAYS);
    list[at] = a;
    *n = MAX(*n, at + 1);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct io_array *)a)->name, ((const struct io_array *)b)->name);
}

void mlxfn_call_init(struct mlxfn_call *c, const struct mlxfn_calls *calls, int which)
{
    *c = (struct mlxfn_call){ .n_in = 0 };
    for (size_t i = 0; i < calls->arrays.list.n; i++) {
        const struct io_array *a = &calls->arrays.list.v[i];
        const char *role = strchr(a->name, '.') + 1;
        if (atoi(a->name + 1) != which)
            continue;
        if (strncmp(role, "in", 2) == 0)
            put(c->in, &c->n_in, role + 2, a->arr);
        else if (strncmp(role, "out", 3) == 0)
            put(c->out, &c->n_out, role + 3, a->arr);
        else
            assert_ok(io_arrays_add(&c->named, role + 3, arr_ref(a->arr)));
    }
    if (c->named.list.n)
        qsort(c->named.list.v, c->named.list.n, sizeof *c->named.list.v, by_name);
}

void mlxfn_call_fini(struct mlxfn_call *c)
{
    io_arrays_fini(&c->named);
}

static bool is_close(double complex a, double complex b, double tolerance)
{
    return a == b || (isnan(creal(a)) && isnan(creal(b))) ||
           cabs(a - b) <= tolerance * (1 + cabs(b));
}

static void compare(struct arr *found, struct arr *want, const char *name, size_t number)
{
    double tolerance = 2 * tolerance_of((enum dtype)want->dtype);

    if (found->dtype != want->dtype || !arr_same_shape(found, want))
        fail_msg("%s: result %zu has another dtype or shape", name, number);
    double complex *a = arr_values(found), *b = arr_values(want);
    for (size_t i = 0; i < want->size; i++)
        if (!is_close(a[i], b[i], tolerance))
            fail_msg("%s: result %zu, element %zu: %g, not %g", name, number, i, creal(a[i]),
                     creal(b[i]));
    mem_free(a);
    mem_free(b);
}

void mlxfn_compare(const struct mlxfn_call *c, const char *name, struct arr *const *found, size_t n)
{
    assert_int_equal(n, c->n_out);
    for (size_t i = 0; i < n; i++)
        compare(found[i], c->out[i], name, i);
}
