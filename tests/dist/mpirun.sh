#!/usr/bin/env bash
# Runs a program as N processes that talk through MPI, as whoever is asked to and on as few cores as
# there are, for at most a minute or two: nothing may be left waiting.
# usage: mpirun.sh LAUNCHER N STATUS -- PROGRAM...
#   STATUS  0, or "failure": how mpirun is to end
set -u
launcher=$1
n=$2
status=$3
shift 4

# Open MPI 4, and the runtime of Open MPI 5.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export OMPI_MCA_hwloc_base_binding_policy=none PRTE_MCA_hwloc_default_binding_policy=none

output=$(mktemp)
trap 'rm -f "$output"' EXIT
limit=${MLX_TEST_MPI_SECONDS:-120}
SECONDS=0
timeout -k 10 "$limit" "$launcher" -n "$n" "$@" >"$output" 2>&1 </dev/null
ended=$?
cat "$output"
echo "$launcher -n $n: $ended after $SECONDS s"
[ "$SECONDS" -lt "$limit" ] || { echo "it did not end" && exit 1; }
if [ "$status" = failure ]; then
    [ $ended -ne 0 ]
else
    [ $ended -eq "$status" ]
fi
