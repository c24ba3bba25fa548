#include "backend/common/rope.h"

#include <math.h>
#include <pthread.h>

/* The last table: models ask for the same one again and again. */
#define CACHED 256
static pthread_mutex_t last_lock = PTHREAD_MUTEX_INITIALIZER; /* guards it */
static struct {
    float base;
    size_t n;
    float v[CACHED];
} last;

static void compute(float *dst, float base, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = (float)pow((double)base, -(double)i / (double)n);
}

void rope_inv_freqs(float *dst, float base, size_t n)
{
    if (n > CACHED) {
        compute(dst, base, n);
        return;
    }
    pthread_mutex_lock(&last_lock);
    if (last.n != n || last.base != base) {
        compute(last.v, base, n);
        last.base = base;
        last.n = n;
    }
    memcpy(dst, last.v, n * sizeof *dst);
    pthread_mutex_unlock(&last_lock);
}

void rope_rows_of(struct rope_rows *r, const struct arr *x)
{
    int n = x->ndim;
    struct shp heads = { .ndim = n - 3 };
    const int64_t *strides = x->strides + 1;

    memcpy(heads.d, x->shape + 1, (size_t)heads.ndim * sizeof heads.d[0]);
    *r = (struct rope_rows){ .batch = x->shape[0],
                             .length = x->shape[n - 2],
                             .size = x->shape[n - 1],
                             .heads = shp_size(&heads),
                             .batch_stride = x->strides[0],
                             .position_stride = x->strides[n - 2],
                             .stride = x->strides[n - 1] };
    shp_collapse(&r->head, &heads, &strides, 1);
    if (r->head.ndim == 0) {
        r->head = (struct nest){ .ndim = 1, .n_operands = 1 };
        r->head.dim[0] = 1;
    }
}
