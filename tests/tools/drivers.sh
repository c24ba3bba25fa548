#!/usr/bin/env bash
# tools/drivers.sh where drivers are made up: what counts as a failure, and what is left out.
# usage: drivers.sh TOOLS
set -u
failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/tools" "$folder/build"
cp "$1/drivers.sh" "$1/counts.sh" "$folder/tools"
export OTHER CODE TESTS

cat >"$folder/build/mlx" <<'END'
#!/bin/sh
echo "in use: a device, driver ${DRIVER:-Mesa 1}"
END
cat >"$folder/tools/on_mesa.sh" <<'END'
#!/bin/sh
shift 2
[ "$CODE" -eq 0 ] || exit "$CODE"
DRIVER=$OTHER exec "$@"
END
cat >"$folder/tools/run_tests.sh" <<'END'
#!/bin/sh
echo "$TESTS"
END
chmod +x "$folder"/*/*

says() { # LINE part|all: the last line with the drivers as they are set
    local got
    got=$("$folder/tools/drivers.sh" "$folder/build" "$2" 2>/dev/null | tail -1)
    if [ "$got" != "$1" ]; then
        echo "OTHER=$OTHER CODE=$CODE TESTS=$TESTS $2: $got instead of $1"
        failed=1
    fi
}

OTHER="Mesa 2" CODE=0 TESTS="3 passed, 1 failed"
says "6 passed, 2 failed" part
TESTS="12 passed, 0 failed"
says "24 passed, 0 failed" all
# Into a file everything, from the first line on.
"$folder/tools/drivers.sh" "$folder/build" part >"$folder/log" 2>&1
if [ "$(sed -n '1p;$p' "$folder/log")" != $'== Mesa of Debian trixie\n24 passed, 0 failed' ]; then
    echo "the log has lost lines:"
    cat "$folder/log"
    failed=1
fi
TESTS="no such line"
says "0 passed, 2 failed" part
TESTS="12 passed, 0 failed"
OTHER="Mesa 1"
says "0 passed, 2 failed" part
OTHER="Mesa 2" CODE=125
says "0 passed, 0 failed" part
says "0 passed, 2 failed" all
CODE=1
says "0 passed, 2 failed" part
exit $failed
