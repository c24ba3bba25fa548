/* Argument blocks of the GLSL kernels, read by the C compiler and by glslc.
 *
 * A block holds device addresses first (64 bit), then 64-bit and 32-bit fields, without padding, so
 * that C and GLSL's scalar layout agree. Up to 128 bytes travel as push constants; a larger block
 * goes through vk_enc_args, and its address is pushed. An address points at the first logical
 * element of its operand: a view's offset is already in it. */
#ifdef VULKAN /* predefined by GLSL compilers */
#define A_ADDR uint64_t
#define A_U64 uint64_t
#define A_I64 int64_t
#define A_U32 uint
#define A_I32 int
#define A_F32 float
#define A_STRUCT
#else
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define A_ADDR uint64_t
#define A_U64 uint64_t
#define A_I64 int64_t
#define A_U32 uint32_t
#define A_I32 int32_t
#define A_F32 float
#define A_STRUCT struct
#endif

/* A loop nest of up to 32 dimensions for one operand: what index.glsl walks. dim[ndim - 1] is the
 * innermost one; strides are in elements. Lives in memory (vk_enc_args), not in push constants. */
#define WALK_MAX 32
struct walk_args {
    A_I64 stride[WALK_MAX];
    A_U32 dim[WALK_MAX];
    A_U32 ndim;
    A_U32 reserved;
};

/* Counters of finished workgroups (last.glsl), 0 before and after: from one to the next, such that
 * each is in a cache line of its own. */
#define COUNTER_BYTES 64

/* out[i] = (in ? in[i] : i) * mul + add for i < n. */
struct probe_args {
    A_ADDR in_addr, out_addr;
    A_U32 n, mul, add, reserved;
};

/* ---- matrix products: dst = alpha * a x b + beta * c for every batch ---- */

/* Batch dimensions, innermost first: strides of a, b and c in elements, WALK_MAX of each. (Upwards,
 * because llvmpipe of Mesa 26 reads one entry past the end of a loop.) A gather has those of b,
 * then those of a: its n_pairs products take matrices numbered by rhs and lhs, which are below n_b
 * and n_a. */
struct mm_batch_args {
    A_ADDR lhs, rhs; /* 0: no gather */
    A_I64 stride[3 * WALK_MAX];
    A_U32 dim[WALK_MAX];
    A_U32 ndim;
    A_U32 ndim_b; /* of ndim, gathers only */
    A_U32 n_pairs, n_a, n_b;
    A_U32 reserved;
};

/* a is m x k, b is k x n. dst is row-major, or f32 sums of parts of k, one product after the other.
 */
struct gemm_args {
    A_ADDR a, b, c, dst;
    A_ADDR batch;    /* mm_batch_args; 0: one dimension with the strides that follow */
    A_ADDR epilogue; /* what the program behind the product reads: jit/epilogue.h */
    A_I64 batch_a, batch_b, batch_c;
    A_I32 ld_a, ld_b;
    A_I32 c_row, c_col; /* strides */
    A_U32 m, n, k, n_batch;
    A_F32 alpha, beta;
    A_U32 splits, k_split; /* parts of k, and how much of k one takes */
    A_U32 band;            /* rows of tiles whose columns are walked together */
    A_U32 reserved;
};

/* A few vectors times a matrix w of rows x k; strides of w, the vectors x, c and dst in elements.
 */
struct gemv_args {
    A_ADDR w, x, c, dst;
    A_ADDR batch; /* as above, w for a and x for b */
    A_ADDR epilogue;
    A_I64 batch_w, batch_x, batch_c;
    A_I32 ld_w;
    A_I32 x_vec, x_k;
    A_I32 c_vec, c_row;
    A_U32 dst_vec, dst_row;
    A_U32 rows, k, n_batch;
    A_F32 alpha, beta;
    A_U32 splits, k_split;
};

/* dst = alpha * (sum of parts) + beta * c; parts holds splits results of size elements in f32. */
struct splitk_args {
    A_ADDR parts, c, dst;
    A_ADDR batch, epilogue;
    A_I64 batch_c;
    A_U64 size;
    A_I32 c_row, c_col;
    A_U32 m, n, splits;
    A_F32 alpha, beta;
    A_U32 reserved;
};

/* ---- convolutions ---- */

/* x / d for x below 2^31 is ((x * mul >> 32) + x) >> shift. */
struct divisor {
    A_U32 d, mul, shift;
};

/* How the input is unfolded: where its elements lie, what a position reads. As struct conv_axis of
 * common/conv_plan.h, the last axis last. Strides in bytes. */
struct unfold_args {
    A_I64 image_stride;
    A_I64 x_stride[3];
    A_I32 size[3]; /* of the input */
    A_I32 stride[3], start[3], step[3];
    A_STRUCT divisor result[3], kernel[3], dilation[3];
    A_STRUCT divisor c; /* channels of a group */
};

/* a is unfolded, b holds n rows along k for each of the groups. dst has a row for each of m
 * positions, the results of the groups side by side; or f32 sums of parts of k like that. */
struct conv_args {
    A_ADDR a, b, dst;
    A_ADDR unfold; /* unfold_args */
    A_U32 m, n, k, groups;
    A_U32 splits, k_split;
    A_U32 band; /* as above */
    A_U32 reserved;
};

/* ---- quantized matrices ---- */

/* Quantize packs n groups of w into out, scales and biases; Dequantize unpacks w into out, eight
 * numbers at a time, n times. global_scale: a float, or 0. */
#define DEQUANTIZE_ALL 0u  /* rows of the result are those of w */
#define DEQUANTIZE_IDS 1u  /* row i of the result is row ids[i * ids_stride] of w */
#define DEQUANTIZE_WALK 2u /* the same with ids that ids_walk goes over */
struct quantize_args {
    A_ADDR w, scales, biases, global_scale, out_addr;
    A_ADDR ids, ids_walk;
    A_I64 ids_stride;
    A_U64 n;
    A_U32 per_row;  /* how many times eight numbers */
    A_U32 n_rows;   /* of w */
    A_U32 ids_code; /* GATHER_<dtype> */
    A_U32 reserved;
};

/* Batch dimensions of a product with packed matrices, innermost first: strides of x, words, scales
 * and biases in elements, WALK_MAX of each. A gather has one: matrices are numbered by lhs (of x)
 * and rhs (of the packed ones), which are below n_x and n_w. */
struct qmm_batch_args {
    A_ADDR lhs, rhs; /* 0: no gather */
    A_I64 stride[4 * WALK_MAX];
    A_U32 dim[WALK_MAX];
    A_U32 ndim;
    A_U32 n_x, n_w;
    A_U32 reserved;
};

/* A few vectors times a packed matrix of n rows along k, in blocks of rows: qmv.comp. */
#define QMV_WIDE_W 1u /* flags: words in loads of up to 16 bytes */
#define QMV_WIDE_X 2u /* x, and the weight of the norm, 16 bytes at a time */
#define QMV_NORM 4u
#define QMV_BATCH 8u      /* products of a batch, by qmm_batch_args */
#define QMV_PROGRAM 16u   /* a program follows: epilogue.glsl */
#define QMV_IN_MEMORY 32u /* qmv_sets_args: see there */
#define QMV_CENTRED 64u   /* the norm takes the mean away */
#define QMV_NORM_BIAS 128u
struct qmv_args {
    A_ADDR x, w, scales, biases, out_addr;
    A_ADDR batch;    /* qmm_batch_args; 0: one product */
    A_ADDR norm;     /* its weight */
    A_ADDR epilogue; /* what the program reads */
    A_ADDR norm_bias;
    A_I32 ld_x;
    A_U32 m, n, n_batch;
    A_U32 blocks; /* of rows, of one product */
    A_F32 eps;
};

/* Two matrices of the same shape, whose products become one result. */
struct qmv_pair_args {
    A_ADDR x, w, scales, biases, out_addr;
    A_ADDR batch; /* of either matrix */
    A_ADDR norm, epilogue, norm_bias;
    A_ADDR w2, scales2, biases2;
    A_I32 ld_x;
    A_U32 m, n, n_batch;
    A_U32 blocks;
    A_F32 eps;
};

/* Several matrices, each with a result. With QMV_IN_MEMORY they lie at the address in set[0].w,
 * n[0] is how many vectors there are, n[1] the distance between them, and set[1].w the bias of the
 * norm; else there is one vector, and no such bias. */
#define QMV_PUSHED 3
#define QMV_SETS 4
struct qmv_pushed {
    A_ADDR w, scales, biases, out_addr;
};
struct qmv_set {
    A_ADDR w, scales, biases, out_addr;
    A_U32 n;
    A_U32 reserved;
};
struct qmv_sets_args {
    A_ADDR x, norm;
    A_STRUCT qmv_pushed set[QMV_PUSHED];
    A_U32 n[QMV_PUSHED];
    A_F32 eps;
};

/* a is m x k; the packed matrix is k x n, or n x k. dst and the parts of k as in gemm_args. */
struct qmm_args {
    A_ADDR a, w, scales, biases, dst;
    A_ADDR batch; /* qmm_batch_args; 0: one product */
    A_ADDR epilogue;
    A_I32 ld_a;
    A_U32 m, n, k, n_batch;
    A_U32 splits, k_split;
    A_U32 band;
};

/* ---- reductions: reduce_row.comp and reduce_col.comp ----
 * A kept walk of 0 stands for one axis with the stride beside it, and a specialization constant
 * says whether red_walk or red_stride holds. In reduce_col, the kept walks leave out the axis that
 * the lanes follow. Slices cut the reduced axes into chunks. */
struct reduce_args {
    A_ADDR in_addr, out_addr;
    A_ADDR kept_walk;       /* walk_args of the input, then of the output */
    A_ADDR red_walk;        /* walk_args */
    A_ADDR parts, counters; /* row: of the slices and of every output, if the last joins them */
    A_I64 kept_stride, kept_out_stride, red_stride;
    A_I64 lane_stride, lane_out_stride; /* reduce_col */
    A_U64 n_out, n_red;
    A_U64 chunk; /* reduced elements of one slice */
    A_U32 slices;
    A_U32 log2_team; /* row: lanes of one output; col: lanes along the kept axis */
    A_U32 run;       /* row: extent of the innermost reduced axis; col: lanes' worth of outputs */
    A_U32 n_outer;   /* col: outputs of the kept walks */
};

/* Softmax over rows of consecutive elements; the output is row-major. */
#define SOFTMAX_BLOCKS 4 /* of 16 bytes that a lane holds; one more where rows have edges */
struct softmax_args {
    A_ADDR in_addr, out_addr;
    A_ADDR parts_addr; /* rows longer than a team holds: logsumexp parts of every row */
    A_ADDR row_walk;   /* walk_args; 0: row_stride */
    A_I64 row_stride;  /* input elements from row to row */
    A_U64 n_rows;
    A_U32 row_len;
    A_U32 log2_team; /* lanes of one row, or of one piece of it */
    A_U32 pieces;    /* workgroups of one row; 1 where a team holds it */
    A_U32 reserved;
};

/* ---- norms over rows of consecutive elements: norm.comp ----
 * A row lies over `lanes` lanes of a team, NORM_BLOCKS blocks of 16 bytes each at most, or is
 * walked in such pieces. */
#define NORM_BLOCKS 4
#define NORM_CENTRED 1u /* less the mean */
#define NORM_WEIGHT 2u
#define NORM_BIAS 4u
#define NORM_ADDEND 8u /* of x + addend, which is stored, too */
#define NORM_WIDE 16u  /* rows, weight and bias in whole blocks */
#define NORM_WALK 32u  /* rows that do not fit a team */

struct norm_args {
    A_ADDR x, addend, weight, bias;
    A_ADDR dst, sum;            /* row-major */
    A_ADDR x_walk, addend_walk; /* walk_args over the rows; 0: the strides that follow */
    A_I64 x_stride, addend_stride;
    A_U64 n_rows;
    A_I32 weight_stride, bias_stride;
    A_U32 row_len;
    A_U32 lanes, log2_team;
    A_F32 eps;
};

/* ---- rows of heads that are normed, rotated and moved, each step optional: rope.comp ---- */
#define ROPE_PARTS 3 /* tensors of one dispatch, in memory one after the other */
#define ROPE_PART_NORM 1u
#define ROPE_PART_TURN 2u
#define ROPE_PART_WEIGHT 4u

struct rope_part {
    A_ADDR src, dst, weight;
    A_ADDR head_walk; /* walk_args over the heads of src and dst; 0: strides that follow */
    A_I64 src_batch, src_head, src_position;
    A_I64 dst_batch, dst_head, dst_position;
    A_I32 src_stride, dst_stride, weight_stride; /* along the last axis */
    A_U32 heads;
    A_U32 flags;
    A_F32 eps;
};

#define ROPE_TRADITIONAL 1u
#define ROPE_INVERSE 2u
#define ROPE_WIDE 4u   /* halves and rows in whole blocks of 16 bytes */
#define ROPE_FREQS 8u  /* the table holds frequencies of the caller, not angles per position */
#define ROPE_TURNS 16u /* the table holds cosine and sine of every position and pair */
#define ROPE_NORMS 32u /* some part is normed */
#define ROPE_HELD 64u  /* wide; a lane holds two blocks, and they turn with each other */

struct rope_args {
    A_ADDR parts;
    A_ADDR table;  /* angles per position of the pairs; see flags */
    A_ADDR offset; /* of positions, one for each batch; 0: first */
    A_I64 table_stride, offset_stride;
    A_I32 first;
    A_F32 scale;
    A_U32 n_rows;
    A_U32 first_row[ROPE_PARTS]; /* of each part; 0xffffffff: there is none */
    A_U32 positions;
    A_U32 size, pairs; /* elements of a row, pairs that turn */
    A_U32 lanes, log2_team;
    A_U32 reserved;
};

/* ---- attention: strides in elements, rows of consecutive elements ---- */
struct sdpa_mask {
    A_ADDR addr;
    A_I64 batch, head, query, key;
};

#define SDPA_CAUSAL 1u
#define SDPA_MASK_BOOL 2u
#define SDPA_MASK_ADD 4u
#define SDPA_SINKS 8u
#define SDPA_WIDE 16u  /* rows in whole blocks of 16 bytes */
#define SDPA_SPLIT 32u /* several workgroups share the keys */

struct sdpa_args {
    A_ADDR q, k, v, dst; /* dst in the order batch, query, head */
    A_ADDR mask;         /* sdpa_mask in memory */
    A_ADDR sinks;
    A_ADDR parts;    /* of several workgroups: sums, maximum and weight of every row */
    A_ADDR counters; /* of every item */
    A_I32 q_batch, q_head, q_pos;
    A_I32 k_batch, k_head, k_pos;
    A_I32 v_batch, v_head, v_pos;
    A_I32 sinks_stride;
    A_U32 n_kv, n_q, n_k;
    A_U32 splits;  /* of the keys */
    A_U32 n_items; /* workgroups, but for splits */
    A_F32 scale;
};
#define SDPA_SPLITS 64 /* at most */

/* ---- attention of one new position whose heads come straight from the products: attn_rows.comp
 * with HEADS. k and v are the caches; the last of the n_k keys is not in them yet. What is not
 * needed at once lies in memory, because reading it takes as long as reading a row. ---- */
struct attn_heads_more {
    A_ADDR sinks, parts, counters; /* as in sdpa_args */
    A_ADDR offset;                 /* of positions, one for each batch; 0: first */
    A_I64 table_stride, offset_stride;
    A_I32 sinks_stride;
    A_I32 q_batch, k_batch, v_batch; /* of the new rows */
    A_I32 keys_batch, values_batch;  /* of the caches */
    A_I32 first;
    A_F32 position_scale;
};

#define HEADS_NORM_Q 256u /* beside the flags of rope.comp */
#define HEADS_NORM_K 512u

struct attn_heads_args {
    A_ADDR k, v, dst;
    A_ADDR q_row, k_row, v_row; /* head 0 of the new position */
    A_ADDR q_weight, k_weight;  /* of the norms; 0: none */
    A_ADDR table;               /* as in rope_args */
    A_ADDR more;                /* attn_heads_more in memory */
    A_I32 k_head, k_pos, v_head, v_pos;
    A_I32 q_row_head, k_row_head, v_row_head;
    A_U32 n_k;
    A_U32 splits;
    A_U32 size; /* of a row */
    A_F32 scale;
    A_F32 eps; /* of the norms */
};

/* ---- gather: lengths and strides in units, see gather.comp ---- */
#define GATHER_PER_LANE 4 /* units that a lane copies */
#define GATHER_U8 0
#define GATHER_U16 1
#define GATHER_U32 2
#define GATHER_U64 3
#define GATHER_I8 4
#define GATHER_I16 5
#define GATHER_I32 6
#define GATHER_I64 7

/* One index array; in memory, each before the walk_args that goes over its elements. */
struct gather_index {
    A_ADDR addr;
    A_I64 stride; /* source units per index */
    A_I64 dim;    /* added to a negative index */
    A_I64 last;   /* largest index whose slice is inside the source */
    A_U32 code;   /* GATHER_<dtype> */
    A_U32 reserved;
};
#define WALK_BYTES (8 * WALK_MAX + 4 * WALK_MAX + 8)
#define GATHER_WALK_AT 40
#define GATHER_INDEX_BYTES (GATHER_WALK_AT + WALK_BYTES)

struct gather_args {
    A_ADDR src_addr, out_addr;
    A_ADDR base_walk;  /* walk_args: source units before the indices count; 0: none */
    A_ADDR index_addr; /* n_index times GATHER_INDEX_BYTES */
    A_ADDR slice_walk; /* walk_args over one slice of the source; 0: its units are consecutive */
    A_U64 n;           /* units of the output */
    A_U64 slice;       /* units of one slice */
    A_U32 n_index;
    A_U32 reserved;
};

/* ---- scatter: every position gets a number that says where in the result its slice goes;
 * positions in the order of those numbers have slices of one place side by side ---- */
#define SCATTER_NOWHERE 0xffffffffu /* number of a position that is out of range */

struct scatter_keys_args {
    A_ADDR keys;
    A_ADDR base_walk;  /* walk_args: the number before the indices count */
    A_ADDR index_addr; /* as in gather_args; strides are in numbers */
    A_U32 n;           /* positions */
    A_U32 n_index;
};

/* Lengths and strides in units. */
struct scatter_args {
    A_ADDR keys, places; /* of positions; positions in order */
    A_ADDR updates, dst;
    A_ADDR parts;         /* of the chunks: see scatter_fold.comp */
    A_ADDR key_walk;      /* walk_args of the result over keys, */
    A_ADDR position_walk; /* of the updates over positions, */
    A_ADDR
    slice_walk;  /* of the result, then of the updates over a slice; 0: units are consecutive */
    A_U64 slice; /* units of one slice */
    A_U32 n;     /* positions */
    A_U32 chunk; /* of them that one lane goes through at most */
};

/* Masked scatter: element i of a row takes the value whose number is how many true elements of the
 * mask come before it. */
struct masked_scatter_args {
    A_ADDR counts; /* true elements up to each one, itself included, row by row */
    A_ADDR values, dst;
    A_ADDR value_walk, dst_walk; /* walk_args */
    A_U64 n_rows;
    A_U32 row_len;  /* elements */
    A_U32 n_values; /* of a row */
};

/* ---- copies with offsets that lie in memory: lengths and strides in units ---- */
#define COPY_DYNAMIC_PER_LANE 4 /* units that a lane copies */

/* An offset of the source or of the destination: the sum of position[i] * stride[i]. */
struct copy_start {
    A_ADDR addr; /* of the first position */
    A_I64 apart; /* elements from one position to the next */
    A_I64 stride[WALK_MAX];
    A_I32 dim[WALK_MAX];  /* added to a negative position */
    A_I32 last[WALK_MAX]; /* the largest position at which the part is inside */
    A_U32 n;
    A_U32 code; /* GATHER_<dtype> */
};

struct copy_dynamic_args {
    A_ADDR src_addr, dst_addr;
    A_ADDR src_walk, dst_walk;   /* walk_args; 0: units are consecutive */
    A_ADDR src_start, dst_start; /* copy_start; 0: none */
    A_U64 n;                     /* units */
};

struct random_args {
    A_ADDR key_addr, out_addr;
    A_ADDR key_walk; /* walk_args over the keys; 0: key_stride */
    A_I64 key_stride, word_stride;
    A_U64 n_keys;
    A_U64 key_bytes; /* output bytes of one key */
    A_U32 pairs;     /* half of a key's words, rounded up */
    A_U32 is_odd;    /* the last pair has one word */
};

/* Sorting rows of consecutive elements: tiles in shared memory, then merges of neighbouring runs.
 */
#define SORT_PER_LANE 8 /* elements that a lane merges */
struct sort_args {
    A_ADDR in_addr, out_addr;
    A_ADDR from_keys, from_places; /* merges: the runs */
    A_ADDR to_keys, to_places;     /* where a run goes */
    A_U64 n_rows;
    A_U32 row_len;
    A_U32 tiles; /* of a row */
    A_U32 run;   /* merges: elements of a run */
    A_U32 reserved;
};

/* enum scan_kind */
#define SCAN_OP_MAX 0
#define SCAN_OP_MIN 1
#define SCAN_OP_SUM 2
#define SCAN_OP_PROD 3
#define SCAN_OP_LOGADDEXP 4
#define SCAN_PER_LANE 8 /* elements */
/* What a scan begins with: its first number, zero (or what there is in its place), or what changes
 * nothing, not even the sign of a zero. Each result of the latter two is without the number at its
 * place. */
#define SCAN_BEGIN_FIRST 0
#define SCAN_BEGIN_ZERO 1
#define SCAN_BEGIN_NEUTRAL 2
struct scan_args {
    A_ADDR in_addr, out_addr; /* out: the result, or one total per chunk */
    A_ADDR carry_addr;        /* what comes before each chunk; 0: nothing */
    A_U64 n_rows;
    A_U32 row_len;
    A_U32 chunks; /* of a row */
    A_U32 reverse, begin;
};

/* ---- transposition: dst[a * dst_stride + b] = src[b * src_stride + a] ---- */
#define TRANSPOSE_TILE 32
#define TRANSPOSE_THREADS 256
struct transpose_args {
    A_ADDR src_addr, dst_addr;
    A_ADDR src_walk, dst_walk; /* walk_args over the batch; 0: one axis with the strides beside */
    A_I64 src_stride, dst_stride;
    A_I64 src_batch, dst_batch;
    A_U64 n_batch;
    A_U32 n_a, n_b;
    A_U32 tiles_a, tiles_b;
};

/* ---- Fourier transforms: fft.glsl ---- */

/* What a number of the transform is made of, and what becomes of one. */
#define FFT_LOAD_COMPLEX 0
#define FFT_LOAD_REAL 1
#define FFT_LOAD_PAIRS 2    /* two real numbers */
#define FFT_LOAD_MIRRORED 3 /* a frequency, of which the first half is there */
#define FFT_LOAD_HALVED 4   /* the frequencies of two halves, for two real results each */
#define FFT_LOAD_CHIRP 5    /* the table, conjugated, at distances of either sign */
#define FFT_STORE_COMPLEX 0
#define FFT_STORE_REAL 1
#define FFT_STORE_PAIRS 2
#define FFT_STORE_HALF 3 /* what FFT_LOAD_PAIRS loaded as two becomes one spectrum */

#define FFT_LINES_IN 1  /* neighbouring lanes load from, */
#define FFT_LINES_OUT 2 /* and store to, neighbouring lines, else neighbours of one line */
#define FFT_BATCH_FIRST 4
#define FFT_CONJ_IN 8
#define FFT_CONJ_OUT 16
#define FFT_CHIRP_IN 32      /* times the table */
#define FFT_CHIRP_OUT 64     /* the conjugate times the table */
#define FFT_SPECTRUM_OUT 128 /* times the spectrum, conjugated */
#define FFT_WIDE_IN 256      /* pairs of real numbers are aligned neighbours */
#define FFT_WIDE_OUT 512

#define FFT_MAX_LINES 128 /* of a workgroup of fft_mixed */
#define FFT_PER_LANE 16   /* numbers, in fft_wide */

/* A line of n numbers of a transform of n * before * parts: number `line` of those that are alike,
 * from u = line below before * parts on, one for every before * parts; results go from u % before
 * on to every `before`. Offsets and strides in elements of source and target. */
struct fft_args {
    A_ADDR src, dst;
    A_ADDR table, spectrum;
    A_ADDR walks;             /* of source and target, over the batch; 0: the strides beside */
    A_I64 src_step, dst_step; /* from number to number of the transform */
    A_I64 src_batch, dst_batch;
    A_U32 n, radices; /* 4 bits each, the first one lowest; of fft_wide their logarithms */
    A_U32 before, parts;
    A_U32 n_lines, n_batch;
    A_U32 lines;        /* of a workgroup, as a power of two */
    A_U32 count, limit; /* numbers of the transform that are loaded, results that are stored */
    A_F32 scale;
};

/* table[j] = exp(-pi i j j / n) for j < n */
struct fft_chirp_args {
    A_ADDR table;
    A_U32 n, reserved;
};

/* From the spectrum of n pairs of real numbers to that of the numbers; src is dense. */
struct fft_half_args {
    A_ADDR src, dst;
    A_ADDR walk; /* of the target over the batch, or 0 */
    A_I64 src_step, src_batch;
    A_I64 dst_step, dst_batch;
    A_U64 n_lines;
    A_U32 n, batch_first;
};

#ifndef VULKAN
static_assert(sizeof(struct fft_args) == 112, "padding");
static_assert(sizeof(struct fft_chirp_args) == 16, "padding");
static_assert(sizeof(struct fft_half_args) == 72, "padding");
static_assert(sizeof(struct walk_args) == 8 * WALK_MAX + 4 * WALK_MAX + 8, "padding");
static_assert(sizeof(struct probe_args) == 32, "padding");
static_assert(sizeof(struct mm_batch_args) == 28 * WALK_MAX + 40, "padding");
static_assert(sizeof(struct gemm_args) == 128, "padding");
static_assert(sizeof(struct gemv_args) == 128, "padding");
static_assert(sizeof(struct splitk_args) == 88, "padding");
static_assert(sizeof(struct quantize_args) == 88, "padding");
static_assert(sizeof(struct qmm_batch_args) == 36 * WALK_MAX + 32, "padding");
static_assert(sizeof(struct qmv_args) == 96, "padding");
static_assert(sizeof(struct qmv_pair_args) == 120, "padding");
static_assert(sizeof(struct qmv_set) == 40, "padding");
static_assert(sizeof(struct qmv_sets_args) == 128, "padding");
static_assert(sizeof(struct qmm_args) == 88, "padding");
static_assert(sizeof(struct reduce_args) == 128, "padding");
static_assert(sizeof(struct softmax_args) == 64, "padding");
static_assert(sizeof(struct norm_args) == 112, "padding");
static_assert(sizeof(struct rope_part) == 104, "padding");
static_assert(sizeof(struct rope_args) == 88, "padding");
static_assert(sizeof(struct sdpa_mask) == 40, "padding");
static_assert(sizeof(struct sdpa_args) == 128, "padding");
static_assert(sizeof(struct attn_heads_more) == 80, "padding");
static_assert(sizeof(struct attn_heads_args) == 128, "padding");
static_assert(sizeof(struct walk_args) == WALK_BYTES, "padding");
static_assert(sizeof(struct walk_args) + sizeof(struct gather_index) == GATHER_INDEX_BYTES,
              "padding");
static_assert(sizeof(struct gather_args) == 64, "padding");
static_assert(sizeof(struct scatter_keys_args) == 32, "padding");
static_assert(sizeof(struct scatter_args) == 80, "padding");
static_assert(sizeof(struct masked_scatter_args) == 56, "padding");
static_assert(sizeof(struct copy_start) == 24 + 16 * WALK_MAX, "padding");
static_assert(sizeof(struct copy_dynamic_args) == 56, "padding");
static_assert(sizeof(struct random_args) == 64, "padding");
static_assert(sizeof(struct sort_args) == 72, "padding");
static_assert(sizeof(struct scan_args) == 48, "padding");
static_assert(sizeof(struct transpose_args) == 88, "padding");
#endif
