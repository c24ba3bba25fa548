/* Windows of signal processing. */
#include <math.h>

#include "ops/build.h"

/* A window is a polynomial of degree two in u, and u a function of n * numerator / (size - 1) and a
 * shift, for n = 0, 1, ..., size - 1. */
static const struct {
    double numerator, shift;
    enum op_id u;
    double c[3];
} windows[] = {
    [WINDOW_BARTLETT] = { 2, -1, OP_ABS, { 1, -1, 0 } },
    [WINDOW_BLACKMAN] = { 2 * M_PI, 0, OP_COS, { 0.34, -0.5, 0.16 } },
    [WINDOW_HAMMING] = { 2 * M_PI, 0, OP_COS, { 0.54, -0.46, 0 } },
    [WINDOW_HANNING] = { M_PI, 0, OP_SIN, { 0, 0, 1 } },
};

/* *x = *x op v */
static enum err with_number(struct arr **x, enum op_id op, double v, struct strm *s)
{
    struct arr *number = NULL;
    enum err err;

    TRY(arr_new_number(&number, v, DT_FLOAT32));
    STEP(*x, ops_binary(&next, op, *x, number, s));
out:
    arr_unref(&number);
    return err;
}

/* c[0] + c[1] * u + c[2] * u * u, of which one of the last two is there at least. */
static enum err polynomial(struct arr **out, struct arr *u, const double *c, struct strm *s)
{
    struct arr *x = NULL, *square = NULL;
    enum err err = ERR_OK;

    if (c[1] != 0) {
        x = arr_ref(u);
        TRY(with_number(&x, OP_MULTIPLY, c[1], s));
        TRY(with_number(&x, OP_ADD, c[0], s));
    }
    if (c[2] != 0) {
        TRY(ops_unary(&square, OP_SQUARE, u, s));
        TRY(with_number(&square, OP_MULTIPLY, c[2], s));
        if (x)
            STEP(x, ops_binary(&next, OP_ADD, x, square, s));
        else
            arr_move(&x, &square);
    }
    arr_move(out, &x);
out:
    arr_unref(&x);
    arr_unref(&square);
    return err;
}

enum err ops_window(struct arr **out, enum ops_window kind, int size, struct strm *s)
{
    struct arr *u = NULL;
    enum err err;

    if (size <= 1)
        return ops_fill(out, (struct ints){ &(int32_t){ MAX(size, 0) }, 1 }, 1, DT_FLOAT32, s);
    TRY(ops_arange(&u, &(struct arange_params){ 0, size, 1 }, DT_FLOAT32, s));
    TRY(with_number(&u, OP_MULTIPLY, windows[kind].numerator / (size - 1), s));
    if (windows[kind].shift != 0)
        TRY(with_number(&u, OP_ADD, windows[kind].shift, s));
    STEP(u, ops_unary(&next, windows[kind].u, u, s));
    TRY(polynomial(out, u, windows[kind].c, s));
out:
    arr_unref(&u);
    return err;
}
