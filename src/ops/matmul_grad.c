/* Gradients of matrix products. */
#include "ops/build.h"
#include "ops/rules.h"

/* a @ b with the matrices of one of them transposed. */
static enum err product(struct arr **out, struct arr *a, struct arr *b, int transposed,
                        struct strm *s)
{
    struct arr *m[2] = { arr_ref(a), arr_ref(b) };
    enum err err;

    STEP(m[transposed], ops_swapaxes(&next, m[transposed], -1, -2, s));
    TRY(ops_matmul(out, m[0], m[1], s));
out:
    arr_unref_all(m, 2);
    return err;
}

enum err op_vjp_matmul(struct vjp_call *c)
{
    struct arr *a = c->f.in[0], *b = c->f.in[1];
    size_t done = 0;
    enum err err = ERR_OK;

    for (; done < c->n_wanted; done++)
        if (c->wanted[done] == 0)
            TRY(product(&c->result[done], c->cotan[0], b, 1, c->f.strm));
        else
            TRY(product(&c->result[done], a, c->cotan[0], 0, c->f.strm));
out:
    if (err)
        arr_unref_all(c->result, done);
    return err;
}

enum err op_jvp_matmul(struct jvp_call *c)
{
    struct arr *part[2] = { NULL, NULL };
    enum err err = ERR_OK;

    if (c->tan[0])
        TRY(ops_matmul(&part[0], c->tan[0], c->f.in[1], c->f.strm));
    if (c->tan[1])
        TRY(ops_matmul(&part[1], c->f.in[0], c->tan[1], c->f.strm));
    err = op_sum_of_two(&c->result[0], part, c->f.strm);
out:
    arr_unref_all(part, 2);
    return err;
}
