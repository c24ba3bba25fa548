/* From the start of the command to the first result, without the driver's own part. */
#include <string.h>

#include "base/stat.h"
#include "bench/bench.h"

int bench_startup(mlx_stream s, double began)
{
    if (!bench_wants("startup"))
        return 0;
    if (bench_add_once(1, s))
        return 1;
    double total = (bench_now() - began) * 1e6;
    double driver = (double)stat_get(STAT_DRIVER_OPEN_NANOSECONDS) * 1e-3;

    bench_report("driver_open", "the driver's creation of instance and device", driver, 0, NULL);
    bench_report("first_result", "start to first result, without the driver's part", total - driver,
                 100e3, NULL);
    return 0;
}
