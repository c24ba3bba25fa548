#include "lm/model/rope.h"

#include <math.h>

#include "eval/eval.h"
#include "eval/wait.h"

/* Positions are divided by these: base^(2i / dims), slowed down where a scaling says so. */

static double llama3_freq(const struct lm_rope *r, double freq)
{
    double context = r->original_context, wavelength = 2 * M_PI * freq;
    double low = context / (double)r->low_freq_factor, high = context / (double)r->high_freq_factor;

    if (wavelength > low)
        return freq * (double)r->factor;
    if (wavelength <= high)
        return freq;
    double smooth = (context / wavelength - (double)r->low_freq_factor) /
                    (double)(r->high_freq_factor - r->low_freq_factor);
    return freq / ((1 - smooth) / (double)r->factor + smooth);
}

/* The dimension whose wave turns so often within the original context. */
static double yarn_dim(const struct lm_rope *r, int dims, double turns)
{
    return dims * log(r->original_context / (turns * 2 * M_PI)) / (2 * log((double)r->base));
}

static double yarn_freq(const struct lm_rope *r, int dims, int i, double freq)
{
    double low = fmax(floor(yarn_dim(r, dims, (double)r->beta_fast)), 0);
    double high = fmin(ceil(yarn_dim(r, dims, (double)r->beta_slow)), dims - 1);
    double width = high == low ? 0.001 : high - low;
    double keep = 1 - fmin(fmax((i - low) / width, 0), 1);
    double slow = freq * (double)r->factor;

    return slow * freq / (slow * keep + freq * (1 - keep));
}

static float yarn_mscale(float factor, float mscale)
{
    return factor <= 1 ? 1 : 0.1F * mscale * logf(factor) + 1;
}

/* freqs[i] is base^(2i / dims) on entry. */
static enum err scale_by_factors(float *freqs, int n, struct lm_weights *src)
{
    struct arr *factors = NULL;
    const void *p;
    enum err err;

    TRY(weights_get(&factors, src, LM_ROPE_FACTORS_NAME,
                    &(struct lm_tensor){ { 1, { n } }, LM_ELEMENT_REAL }));
    if ((enum dtype)factors->dtype != DT_FLOAT32)
        TRY(err_set(ERR_ARG, LM_ROPE_FACTORS_NAME " is not float32"));
    TRY(eval_arrays(&factors, 1, false));
    TRY(arr_host(&p, factors));
    for (int i = 0; i < n; i++)
        freqs[i] *= ((const float *)p)[i];
out:
    arr_unref(&factors);
    return err;
}

enum err rope_prepare(struct lm_model *m, struct lm_weights *src)
{
    const struct lm_rope *r = &m->config.rope;
    int dims = m->config.head_dim;
    float *freqs;
    enum err err = ERR_OK;

    m->rope_scale = r->kind == LM_ROPE_LINEAR ? 1 / r->factor : 1;
    m->rope_mscale = 1;
    if (r->kind == LM_ROPE_PLAIN || r->kind == LM_ROPE_LINEAR)
        return ERR_OK;
    if (!(freqs = mem_alloc_array((size_t)dims / 2, sizeof *freqs)))
        return ERR_NO_MEMORY;
    for (int i = 0; i < dims / 2; i++) {
        double freq = pow((double)r->base, 2.0 * i / dims);
        if (r->kind == LM_ROPE_LLAMA3)
            freq = llama3_freq(r, freq);
        else if (r->kind == LM_ROPE_YARN)
            freq = yarn_freq(r, dims, i, freq);
        freqs[i] = (float)freq;
    }
    if (r->kind == LM_ROPE_FACTORS)
        TRY(scale_by_factors(freqs, dims / 2, src));
    if (r->kind == LM_ROPE_YARN)
        m->rope_mscale =
            yarn_mscale(r->factor, r->mscale) / yarn_mscale(r->factor, r->mscale_all_dim);
    err = arr_new_data(&m->rope_freqs, freqs, &(struct shp){ .ndim = 1, .d = { dims / 2 } },
                       DT_FLOAT32);
out:
    mem_free(freqs);
    return err;
}
