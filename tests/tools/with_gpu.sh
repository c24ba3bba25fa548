#!/usr/bin/env bash
# Runs a test of the GPU, or says why there is none and that it is skipped (77). Only for processors
# whose software drivers may lack something: on x86 a test that finds no GPU fails.
# usage: with_gpu.sh MLX TEST...
set -u
mlx=$1
shift
reason=$("$mlx" info 2>/dev/null | sed -n 's/^gpu (vulkan): not available: //p')
if [ -n "$reason" ]; then
    echo "skipped: $reason"
    exit 77
fi
exec "$@"
