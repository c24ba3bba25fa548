#!/usr/bin/env bash
# Builds the fuzz targets with clang, libFuzzer and the address and undefined-behaviour sanitizers,
# and runs each of them for a while. A finding fails, and its input is kept in BUILD/findings.
# Without such a clang nothing is done and the exit status is 77.
# usage: fuzz.sh BUILD SECONDS-IN-ALL [TARGET...]; all targets, or those named, such as lm_regex
set -eu
mkdir -p "$1"
build=$(cd "$1" && pwd)
seconds=$2
shift 2
cd "$(dirname "$0")/.."

cat >"$build/probe.c" <<'PROBE'
int LLVMFuzzerTestOneInput(const unsigned char *p, unsigned long n);
int LLVMFuzzerTestOneInput(const unsigned char *p, unsigned long n) { return n && *p > 255; }
PROBE
if ! clang -fsanitize=fuzzer,address,undefined "$build/probe.c" -o "$build/probe" 2>/dev/null; then
    echo "fuzz.sh: no clang with libFuzzer here (Debian: clang, libclang-rt-dev)"
    exit 77
fi

cmake -S . -B "$build" -G Ninja -DCMAKE_C_COMPILER=clang -DMLX_BUILD_VULKAN=OFF -DMLX_FUZZ=ON \
    -DMLX_SANITIZE=fuzzer-no-link,address,undefined >"$build/configure.log"
cmake --build "$build" --target fuzz_targets

mkdir -p "$build/findings"
targets=("$build"/tests/fuzz_*)
[ $# -eq 0 ] || targets=("${@/#/$build/tests/fuzz_}")
for target in "${targets[@]}"; do
    name=$(basename "$target")
    format=${name#fuzz_}
    mkdir -p "$build/corpus/$format" "$build/seeds/$format"
    find "$build/generated/tests/io" -name "*.$format" -size -9k -exec cp -t "$build/seeds/$format" {} +
    dictionary=()
    [ ! -e "tests/fuzz/$format.dict" ] || dictionary=("-dict=tests/fuzz/$format.dict")
    echo "$name: $((seconds / ${#targets[@]})) s"
    # The limit on a single allocation catches headers that are believed before they are checked.
    if ! "$target" -max_total_time=$((seconds / ${#targets[@]})) -max_len=8192 -timeout=20 \
        -malloc_limit_mb=256 -rss_limit_mb=2048 -artifact_prefix="$build/findings/$name-" \
        "${dictionary[@]}" "$build/corpus/$format" "$build/seeds/$format" >"$build/$name.log" 2>&1; then
        tail -n 60 "$build/$name.log"
        exit 1
    fi
    tail -n 1 "$build/$name.log"
done
