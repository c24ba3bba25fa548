#include "backend/common/fft_plan.h"

void fft_plan_init(struct fft_plan *p, const struct exec *x)
{
    const struct fft_params *v = x->node->params;
    bool is_back = v->real && v->inverse;
    int at = 0;

    *p = (struct fft_plan){ .n = v->n, .inverse = v->inverse };
    for (int i = 0; i < v->n; i++) {
        bool is_real = v->real && i == v->n - 1;
        int to = is_real ? (is_back ? v->n - 1 : 0) : at + (v->real && !is_back);
        const struct arr *full = is_back ? x->out[0] : x->in[0];
        p->d[to] = (struct fft_axis){ .axis = v->axis[i], .n = (size_t)full->shape[v->axis[i]] };
        if (is_real)
            p->d[to].kind = is_back ? FFT_FROM_HALF : FFT_TO_HALF;
        at += !is_real;
    }
}

int fft_factors(uint32_t out[FFT_FACTORS], size_t n, const uint8_t *allowed)
{
    int count = 0;

    for (; *allowed; allowed++)
        for (; n % *allowed == 0; n /= *allowed)
            out[count++] = *allowed;
    return n == 1 ? count : 0;
}

size_t fft_smooth(size_t n)
{
    size_t best = 1;

    while (best < n)
        best *= 2;
    for (size_t five = 1; five < best; five *= 5)
        for (size_t v = five; v < best; v *= 3) {
            size_t whole = v;
            while (whole < n)
                whole *= 2;
            best = MIN(best, whole);
        }
    return best;
}
