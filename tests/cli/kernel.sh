#!/usr/bin/env bash
# `mlx kernel` runs modules on arrays in files, says what they declare, and in one line what is wrong.
# usage: kernel.sh MLX MODULES PYTHON-WITH-NUMPY
set -u
mlx=$1
modules=$2
python=$3
failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

fail() {
    echo "$*"
    failed=1
}

numpy() { # CODE
    "$python" -B -c "import numpy as np
$1" || fail "numpy: $1"
}

refuses() { # TEXT ARGUMENTS...
    local want=$1 text rc
    shift
    text=$("$mlx" kernel "$@" 2>&1)
    rc=$?
    if [ $rc -ne 1 ] || [[ $text != *"$want"* ]]; then
        fail "$*: exit code $rc, text: $text"
    fi
}

numpy "np.save('a.npy', np.arange(100, dtype=np.float32)); np.save('b.npy', np.ones(100, np.float32))"
numpy "np.save('x.npy', np.arange(64, dtype=np.uint32))"

text=$("$mlx" kernel "$modules/scale_add.spv" --in a.npy --in b.npy --out f32:100 --grid 100 \
    --local 32 --push 2.5,u32:100 --spec 1=0.25 --repeat 3) || fail "scale_add: exit code $?"
[[ $text == *"wrote out0.npy"* && $text == *median* && $text == *GPU* ]] || fail "scale_add: $text"
numpy "y = np.load('out0.npy'); assert (y == np.arange(100) * 2.5 + 1.25).all(), y"

"$mlx" kernel "$modules/count.spv" --in x.npy --out=u32:2x4=y.npy --groups 2 --init 3 >/dev/null ||
    fail "count: exit code $?"
numpy "y = np.load('y.npy'); assert y.shape == (2, 4) and (y == 11).all(), y"

"$mlx" kernel "$modules/addresses.spv" --in a.npy --out f32:100=z.npy --groups 2 --push 100 \
    >/dev/null || fail "addresses: exit code $?"
numpy "assert (np.load('z.npy') == 2 * np.arange(100)).all()"

text=$("$mlx" kernel "$modules/matrices.spv" --info) || fail "info: exit code $?"
for line in "SPIR-V        1.5" "entry         main" "workgroup     4 x 2 x 3" \
    "shared        1024 bytes" "push          32 bytes" "binding 0     104 bytes or more" \
    "constant 3    bool, true" "constant 7    i32, 7" "capability    1 Shader"; do
    [[ $text == *"$line"* ]] || fail "info lacks \"$line\": $text"
done
text=$("$mlx" kernel "$modules/scale_add.spv" --info) || fail "info: exit code $?"
[[ $text == *"x by constant 0"* && $text == *"constant 1    f32, 0"* ]] || fail "info: $text"

good=("$modules/scale_add.spv" --in a.npy --in b.npy --out f32:100)
refuses "FILE is missing" --info
refuses "--out is missing" "$modules/count.spv"
refuses "--groups or --grid is missing" "${good[@]}"
refuses "--grid cannot be 1" "${good[@]}" --groups 1 --grid 1
refuses "--groups cannot be 1,2,3,4" "${good[@]}" --groups 1,2,3,4
refuses "--out cannot be f31:2" "$modules/count.spv" --out f31:2
refuses "--push cannot be u32:-1" "${good[@]}" --groups 1 --push u32:-1
refuses "--spec cannot be 0=1,2" "${good[@]}" --groups 1 --spec 0=1,2
refuses "--repeat cannot be 0" "${good[@]}" --groups 1 --repeat 0
refuses "--init needs a value" "${good[@]}" --groups 1 --init
refuses "unknown option --no-such" --no-such
refuses "more than one FILE" a b
refuses "no_such.spv" no_such.spv --info
refuses "it does not begin as SPIR-V does" a.npy --info
refuses "but the module has 8" "${good[@]}" --groups 1
refuses "no_such.npy" "$modules/count.spv" --in no_such.npy --out u32:8 --groups 1
refuses "Output 0 has 16 bytes" "$modules/count.spv" --in x.npy --out u32:4 --groups 1
"$mlx" kernel --help | grep -q "^usage: mlx kernel" || fail "no help"
exit $failed
