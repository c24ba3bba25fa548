/* Steps of Fourier transforms, a part of kernels_body.h. Vector loops run along q, over numbers
 * that are transformed alike; real and imaginary parts lie apart. */

struct fft_row {
    const float *re, *im; /* of the first q */
    float *to_re, *to_im;
    size_t step, to_step; /* between the numbers that a butterfly takes, and gives */
    size_t n;
    const float *w; /* roots for all results but the first */
};

#define FFT_IN(k)                                                                                  \
    const float re##k = f->re[(k)*f->step + i];                                                    \
    const float im##k = f->im[(k)*f->step + i]
#define FFT_OUT(k, x, y)                                                                           \
    do {                                                                                           \
        const float out_re = x, out_im = y;                                                        \
        const float c = f->w[2 * (k)-2], s = f->w[2 * (k)-1];                                      \
        f->to_re[(k)*f->to_step + i] = out_re * c - out_im * s;                                    \
        f->to_im[(k)*f->to_step + i] = out_re * s + out_im * c;                                    \
    } while (0)
#define FFT_OUT_0(x, y)                                                                            \
    f->to_re[i] = x;                                                                               \
    f->to_im[i] = y

static void fft_2(const struct fft_row *f)
{
    VECTOR_LOOP for (size_t i = 0; i < f->n; i++)
    {
        FFT_IN(0);
        FFT_IN(1);
        FFT_OUT_0(re0 + re1, im0 + im1);
        FFT_OUT(1, re0 - re1, im0 - im1);
    }
}

static void fft_3(const struct fft_row *f)
{
    const float s60 = 0.866025403784438647f;

    VECTOR_LOOP for (size_t i = 0; i < f->n; i++)
    {
        FFT_IN(0);
        FFT_IN(1);
        FFT_IN(2);
        const float sum_re = re1 + re2, sum_im = im1 + im2;
        const float mid_re = re0 - 0.5f * sum_re, mid_im = im0 - 0.5f * sum_im;
        const float off_re = s60 * (im1 - im2), off_im = s60 * (re2 - re1);
        FFT_OUT_0(re0 + sum_re, im0 + sum_im);
        FFT_OUT(1, mid_re + off_re, mid_im + off_im);
        FFT_OUT(2, mid_re - off_re, mid_im - off_im);
    }
}

static void fft_4(const struct fft_row *f)
{
    VECTOR_LOOP for (size_t i = 0; i < f->n; i++)
    {
        FFT_IN(0);
        FFT_IN(1);
        FFT_IN(2);
        FFT_IN(3);
        const float a_re = re0 + re2, a_im = im0 + im2, b_re = re0 - re2, b_im = im0 - im2;
        const float c_re = re1 + re3, c_im = im1 + im3, d_re = im1 - im3, d_im = re3 - re1;
        FFT_OUT_0(a_re + c_re, a_im + c_im);
        FFT_OUT(1, b_re + d_re, b_im + d_im);
        FFT_OUT(2, a_re - c_re, a_im - c_im);
        FFT_OUT(3, b_re - d_re, b_im - d_im);
    }
}

static void fft_5(const struct fft_row *f)
{
    const float c1 = 0.309016994374947424f, c2 = -0.809016994374947424f;
    const float s1 = 0.951056516295153572f, s2 = 0.587785252292473129f;

    VECTOR_LOOP for (size_t i = 0; i < f->n; i++)
    {
        FFT_IN(0);
        FFT_IN(1);
        FFT_IN(2);
        FFT_IN(3);
        FFT_IN(4);
        const float a_re = re1 + re4, a_im = im1 + im4, b_re = re1 - re4, b_im = im1 - im4;
        const float c_re = re2 + re3, c_im = im2 + im3, d_re = re2 - re3, d_im = im2 - im3;
        const float m_re = re0 + c1 * a_re + c2 * c_re, m_im = im0 + c1 * a_im + c2 * c_im;
        const float n_re = re0 + c2 * a_re + c1 * c_re, n_im = im0 + c2 * a_im + c1 * c_im;
        const float o_re = s1 * b_im + s2 * d_im, o_im = -(s1 * b_re + s2 * d_re);
        const float p_re = s2 * b_im - s1 * d_im, p_im = s1 * d_re - s2 * b_re;
        FFT_OUT_0(re0 + a_re + c_re, im0 + a_im + c_im);
        FFT_OUT(1, m_re + o_re, m_im + o_im);
        FFT_OUT(2, n_re + p_re, n_im + p_im);
        FFT_OUT(3, n_re - p_re, n_im - p_im);
        FFT_OUT(4, m_re - o_re, m_im - o_im);
    }
}

#define FFT_LANES 16

/* As many numbers as there are lanes, from i on, and what is added up of them. */
struct fft_odd {
    const struct fft_row *f;
    const float *turn; /* the r-th roots */
    size_t i, n;
    uint32_t r;
    /* Of inputs j and r - j: sums, real and imaginary parts, then differences; of input 0: itself.
     */
    float part[CPU_FFT_RADIX / 2 + 1][4][FFT_LANES];
};

static void fft_odd_begin(struct fft_odd *o)
{
    const struct fft_row *f = o->f;
    float re[FFT_LANES] = { 0 }, im[FFT_LANES] = { 0 };

    memcpy(o->part[0][0], f->re + o->i, o->n * sizeof(float));
    memcpy(o->part[0][1], f->im + o->i, o->n * sizeof(float));
    for (uint32_t j = 1; j <= o->r / 2; j++) {
        const size_t a = j * f->step + o->i, b = (o->r - j) * f->step + o->i;
        float(*part)[FFT_LANES] = o->part[j];
        for (size_t l = 0; l < o->n; l++) {
            part[0][l] = f->re[a + l] + f->re[b + l];
            part[1][l] = f->im[a + l] + f->im[b + l];
            part[2][l] = f->re[a + l] - f->re[b + l];
            part[3][l] = f->im[a + l] - f->im[b + l];
            re[l] += part[0][l];
            im[l] += part[1][l];
        }
    }
    for (size_t l = 0; l < o->n; l++) {
        f->to_re[o->i + l] = o->part[0][0][l] + re[l];
        f->to_im[o->i + l] = o->part[0][1][l] + im[l];
    }
}

/* Results k and r - k. */
static void fft_odd_pair(const struct fft_odd *o, uint32_t k)
{
    const struct fft_row *f = o->f;
    const float *w = f->w + 2 * k - 2, *v = f->w + 2 * (o->r - k) - 2;
    float re[FFT_LANES], im[FFT_LANES], x[FFT_LANES] = { 0 }, y[FFT_LANES] = { 0 };

    memcpy(re, o->part[0][0], sizeof re);
    memcpy(im, o->part[0][1], sizeof im);
    for (uint32_t j = 1, at = k; j <= o->r / 2; j++, at = (at + k) % o->r) {
        const float c = o->turn[2 * at], s = o->turn[2 * at + 1];
        for (size_t l = 0; l < FFT_LANES; l++) {
            re[l] += c * o->part[j][0][l];
            im[l] += c * o->part[j][1][l];
            x[l] -= s * o->part[j][3][l];
            y[l] += s * o->part[j][2][l];
        }
    }
    for (size_t l = 0; l < o->n; l++) {
        const size_t a = k * f->to_step + o->i + l, b = (o->r - k) * f->to_step + o->i + l;
        const float p = re[l] + x[l], q = im[l] + y[l], t = re[l] - x[l], u = im[l] - y[l];
        f->to_re[a] = p * w[0] - q * w[1];
        f->to_im[a] = p * w[1] + q * w[0];
        f->to_re[b] = t * v[0] - u * v[1];
        f->to_im[b] = t * v[1] + u * v[0];
    }
}

/* Any odd radix up to CPU_FFT_RADIX, by the definition. */
static void fft_odd(const struct fft_row *f, uint32_t r, const float *turn)
{
    struct fft_odd o = { .f = f, .turn = turn, .r = r };

    for (; o.i < f->n; o.i += FFT_LANES) {
        o.n = f->n - o.i < FFT_LANES ? f->n - o.i : FFT_LANES;
        fft_odd_begin(&o);
        for (uint32_t k = 1; k <= r / 2; k++)
            fft_odd_pair(&o, k);
    }
}

static void fft_step(const struct cpu_fft_step *t, size_t begin, size_t end)
{
    const size_t s = t->s, r = t->radix;

    for (size_t p = begin / s, q = begin % s; begin < end; p++, q = 0) {
        const size_t n = s - q < end - begin ? s - q : end - begin;
        const size_t to = p * s * r + q;
        const struct fft_row f = { .re = t->re + begin,
                                   .im = t->im + begin,
                                   .to_re = t->to_re + to,
                                   .to_im = t->to_im + to,
                                   .step = s * t->m,
                                   .to_step = s,
                                   .n = n,
                                   .w = t->roots + 2 * (r - 1) * p };
        switch (r) {
        case 2:
            fft_2(&f);
            break;
        case 3:
            fft_3(&f);
            break;
        case 4:
            fft_4(&f);
            break;
        case 5:
            fft_5(&f);
            break;
        default:
            fft_odd(&f, t->radix, t->turn);
            break;
        }
        begin += n;
    }
}
