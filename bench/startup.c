/* From an opened device to the first result. */
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "core/stat.h"

int bench_startup(mlx_stream s)
{
    float one = 1.0f;
    int shape = 1;

    if (bench_options.filter && !strstr("startup", bench_options.filter))
        return 0;
    double start = bench_now();
    mlx_array a = mlx_array_new_data(&one, &shape, 1, MLX_FLOAT32), c = mlx_array_new();
    int rc = mlx_add(&c, a, a, s) || mlx_array_eval(c);
    const float *r = rc ? NULL : mlx_array_data_float32(c);
    double ms = (bench_now() - start) * 1e3;

    rc = !r || *r != 2.0f;
    if (rc == 0 && bench_options.json)
        printf("{\"case\": \"first_result\", \"ms\": %.3f, \"target_ms\": 100}\n", ms);
    else if (rc == 0)
        printf("first result %.1f ms after the device was opened (at most 100)\n\n", ms);
    mlx_array_free(a);
    mlx_array_free(c);
    return rc;
}
