#include "backend/cpu/fft_table.h"

#include <math.h>

#include "backend/cpu/cpu.h"

/* Numbers that a core takes of a step that several share. */
#define GRAIN 4096

/* 4 first: it needs the fewest operations; 2 is left at most once. */
static const uint8_t factors[] = { 4,  2,  3,  5,  7,  11, 13, 17, 19, 23,
                                   29, 31, 37, 41, 43, 47, 53, 59, 61, 0 };

/* ---- roots ---- */

/* exp(-2 pi i k / n), from an angle of at most an eighth of a turn. */
static void exact_root(double out[2], size_t k, size_t n)
{
    size_t eighth = 8 * k / n, at = eighth % 2 ? (eighth + 1) * n - 8 * k : 8 * k - eighth * n;
    double angle = M_PI / 4 * (double)at / (double)n, c = cos(angle), s = sin(angle);
    bool is_swapped = (eighth + 1) / 2 % 2;
    double x = is_swapped ? s : c, y = is_swapped ? c : s;

    out[0] = eighth >= 2 && eighth < 6 ? -x : x;
    out[1] = eighth < 4 ? -y : y;
}

enum err fft_roots_init(struct fft_roots *r, size_t n)
{
    *r = (struct fft_roots){ .n = n };
    while ((size_t)1 << 2 * r->shift < n)
        r->shift++;
    size_t low = (size_t)1 << r->shift, high = (n >> r->shift) + 1;
    r->low = mem_alloc_array(2 * (low + high), sizeof *r->low);
    if (!r->low)
        return ERR_NO_MEMORY;
    r->high = r->low + 2 * low;
    for (size_t i = 0; i < low && i < n; i++)
        exact_root(r->low + 2 * i, i, n);
    for (size_t i = 0; i < high && i << r->shift < n; i++)
        exact_root(r->high + 2 * i, i << r->shift, n);
    return ERR_OK;
}

void fft_roots_fini(struct fft_roots *r)
{
    mem_free(r->low);
}

void fft_root(double out[2], const struct fft_roots *r, size_t k)
{
    const double *a = r->low + 2 * (k & (((size_t)1 << r->shift) - 1));
    const double *b = r->high + 2 * (k >> r->shift);

    out[0] = a[0] * b[0] - a[1] * b[1];
    out[1] = a[0] * b[1] + a[1] * b[0];
}

static void put(float out[2], const struct fft_roots *r, size_t k, double scale)
{
    double v[2];

    fft_root(v, r, k);
    out[0] = (float)(v[0] * scale);
    out[1] = (float)(v[1] * scale);
}

/* ---- steps ---- */

static size_t count_roots(const uint32_t *radix, int n, size_t length)
{
    size_t count = 0, left = length;

    for (int i = 0; i < n; i++) {
        left /= radix[i];
        count += left * (radix[i] - 1) + (radix[i] > 5 ? radix[i] : 0);
    }
    return count;
}

static enum err steps_init(struct fft_table *t, const uint32_t *radix)
{
    size_t n = t->length, s = 1;
    struct fft_roots r;
    enum err err = fft_roots_init(&r, n);

    t->roots = mem_alloc_array(2 * count_roots(radix, t->n_steps, n) + 1, sizeof *t->roots);
    if (err || !t->roots) {
        fft_roots_fini(&r);
        return ERR_NO_MEMORY;
    }
    float *at = t->roots;
    for (int i = 0; i < t->n_steps; s *= radix[i++]) {
        size_t m = n / s / radix[i];
        t->step[i] = (struct cpu_fft_step){ .radix = radix[i], .s = s, .m = m, .roots = at };
        for (size_t p = 0; p < m; p++)
            for (uint32_t k = 1; k < radix[i]; k++, at += 2)
                put(at, &r, p * k * s, 1);
        t->step[i].turn = at;
        for (uint32_t k = 0; radix[i] > 5 && k < radix[i]; k++, at += 2)
            put(at, &r, n / radix[i] * k, 1);
    }
    fft_roots_fini(&r);
    return ERR_OK;
}

static void run_steps(const struct fft_table *t, struct fft_block *b);

/* What the chirp is convolved with: its conjugates at distances of either sign. */
static enum err chirp_init(struct fft_table *t)
{
    size_t n = t->n, length = t->length;
    struct fft_roots r;
    float *work = NULL;
    enum err err = fft_roots_init(&r, 2 * n);

    t->chirp = mem_alloc_array(2 * n, sizeof *t->chirp);
    t->spectrum = mem_alloc_array(2 * length, sizeof *t->spectrum);
    work = mem_alloc_array(4 * length, sizeof *work);
    if (!t->chirp || !t->spectrum || !work)
        err = ERR_NO_MEMORY;
    TRY(err);
    struct fft_block b = { .data = work, .other = work + 2 * length, .width = 1 };
    for (size_t i = 0; i < n; i++) {
        size_t square = (size_t)((unsigned __int128)i * i % (2 * n));
        float v[2];
        put(t->chirp + 2 * i, &r, square, 1);
        put(v, &r, square, 1 / (double)length);
        b.data[i] = v[0];
        b.data[length + i] = -v[1];
        b.data[(length - i) % length] = v[0];
        b.data[length + (length - i) % length] = -v[1];
    }
    run_steps(t, &b);
    for (size_t i = 0; i < length; i++) {
        t->spectrum[2 * i] = b.data[i];
        t->spectrum[2 * i + 1] = b.data[length + i];
    }
out:
    mem_free(work);
    fft_roots_fini(&r);
    return err;
}

enum err fft_table_init(struct fft_table *t, size_t n)
{
    uint32_t radix[FFT_FACTORS];
    enum err err;

    *t = (struct fft_table){ .n = n, .length = n };
    t->n_steps = fft_factors(radix, n, factors);
    if (!t->n_steps && n > 1) {
        t->length = fft_smooth(2 * n - 1);
        t->n_steps = fft_factors(radix, t->length, factors);
    }
    TRY(steps_init(t, radix));
    if (t->length != n)
        TRY(chirp_init(t));
out:
    if (err)
        fft_table_fini(t);
    return err;
}

void fft_table_fini(struct fft_table *t)
{
    mem_free(t->roots);
    mem_free(t->chirp);
    mem_free(t->spectrum);
    *t = (struct fft_table){ .n = 0 };
}

/* ---- transforms ---- */

static void run_range(void *arg, size_t begin, size_t end)
{
    cpu_kernels()->fft_step(arg, begin, end);
}

/* Lines that lie side by side are numbers that are transformed alike. */
static void run_steps(const struct fft_table *t, struct fft_block *b)
{
    size_t size = t->length * b->width;

    for (int i = 0; i < t->n_steps; i++) {
        struct cpu_fft_step step = t->step[i];
        float *to = b->other;
        step.s *= b->width;
        step.re = b->data;
        step.im = b->data + size;
        step.to_re = to;
        step.to_im = to + size;
        if (b->is_shared)
            cpu_parallel_for(step.s * step.m, GRAIN, run_range, &step);
        else
            run_range(&step, 0, step.s * step.m);
        b->other = b->data;
        b->data = to;
    }
}

/* Numbers times those of a table, pairs; conjugated afterwards if sign is -1. */
static void multiply(const struct fft_block *b, const float *table, size_t length, size_t n,
                     float sign)
{
    for (size_t j = 0; j < n; j++) {
        float *re = b->data + j * b->width, *im = re + length * b->width;
        const float c = table[2 * j], s = table[2 * j + 1];
        for (size_t l = 0; l < b->width; l++) {
            const float x = re[l], y = im[l];
            re[l] = x * c - y * s;
            im[l] = sign * (x * s + y * c);
        }
    }
}

static void conjugate(const struct fft_block *b, size_t length, size_t n)
{
    float *im = b->data + length * b->width;

    for (size_t i = 0; i < n * b->width; i++)
        im[i] = -im[i];
}

void fft_table_run(const struct fft_table *t, struct fft_block *b)
{
    size_t n = t->n, length = t->length, rest = (length - n) * b->width * sizeof(float);

    if (length == n) {
        run_steps(t, b);
        return;
    }
    multiply(b, t->chirp, length, n, 1);
    memset(b->data + n * b->width, 0, rest);
    memset(b->data + (length + n) * b->width, 0, rest);
    run_steps(t, b);
    multiply(b, t->spectrum, length, length,
             -1); /* the way back is the way forward of conjugates */
    run_steps(t, b);
    conjugate(b, length, n);
    multiply(b, t->chirp, length, n, 1);
}
