/* Gradients of matrix products. */
#include "ops/build.h"
#include "ops/rules.h"

/* a @ b, of which one is the other factor of the product: its matrices are transposed, and
 * conjugated if they are complex. */
static enum err product(struct arr **out, struct arr *a, struct arr *b, int factor, struct strm *s)
{
    struct arr *m[2] = { arr_ref(a), arr_ref(b) };
    enum err err;

    STEP(m[factor], ops_swapaxes(&next, m[factor], -1, -2, s));
    STEP(m[factor], ops_unary(&next, OP_CONJUGATE, m[factor], s));
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

/* ---- alpha * a @ b + beta * c ---- */

static enum err scaled(struct arr **out, struct arr *a, float factor, struct strm *s)
{
    struct arr *v = NULL;
    enum err err;

    if (factor == 1)
        return ops_same(out, a);
    TRY(arr_new_number(&v, factor, dtype_of(a)));
    err = ops_binary(out, OP_MULTIPLY, a, v, s);
out:
    arr_unref(&v);
    return err;
}

enum err op_vjp_addmm(struct vjp_call *c)
{
    const struct addmm_params *p = c->f.params;
    struct arr *t = NULL;
    size_t done = 0;
    enum err err;

    TRY(scaled(&t, c->cotan[0], p->alpha, c->f.strm));
    for (; done < c->n_wanted; done++)
        if (c->wanted[done] == 0)
            TRY(product(&c->result[done], t, c->f.in[1], 1, c->f.strm));
        else if (c->wanted[done] == 1)
            TRY(product(&c->result[done], c->f.in[0], t, 0, c->f.strm));
        else
            TRY(scaled(&c->result[done], c->cotan[0], p->beta, c->f.strm));
out:
    arr_unref(&t);
    if (err)
        arr_unref_all(c->result, done);
    return err;
}

/* sum + alpha * a @ b, where sum may be NULL. */
static enum err add_product(struct arr **sum, float alpha, struct arr *a, struct arr *b,
                            struct strm *s)
{
    struct addmm_params p = { alpha, 1 };
    enum err err;

    if (*sum) {
        struct arrs in = { (struct arr *[]){ a, b, *sum }, 3 };
        STEP(*sum, ops_make(&next, OP_ADDMM, &p, in, s));
    } else {
        TRY(ops_matmul(sum, a, b, s));
        STEP(*sum, scaled(&next, *sum, alpha, s));
    }
out:
    return err;
}

enum err op_jvp_addmm(struct jvp_call *c)
{
    const struct addmm_params *p = c->f.params;
    struct arr *x = NULL;
    enum err err = ERR_OK;

    if (c->tan[2])
        TRY(scaled(&x, c->tan[2], p->beta, c->f.strm));
    if (c->tan[0])
        TRY(add_product(&x, p->alpha, c->tan[0], c->f.in[1], c->f.strm));
    if (c->tan[1])
        TRY(add_product(&x, p->alpha, c->f.in[0], c->tan[1], c->f.strm));
    arr_move(&c->result[0], &x);
out:
    arr_unref(&x);
    return err;
}

/* ---- products of chosen matrices ---- */

enum { A, B };

enum err op_jvp_gather_mm(struct jvp_call *c)
{
    struct arr *in[4], *part[2] = { NULL, NULL };
    enum err err = ERR_OK;

    for (int i = A; i <= B; i++) {
        if (!c->tan[i])
            continue;
        memcpy(in, c->f.in, sizeof in);
        in[i] = c->tan[i];
        TRY(ops_make(&part[i], c->f.op, c->f.params, (struct arrs){ in, 4 }, c->f.strm));
    }
    err = op_sum_of_two(&c->result[0], part, c->f.strm);
out:
    arr_unref_all(part, 2);
    return err;
}
