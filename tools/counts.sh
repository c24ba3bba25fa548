# Sourced: adds up the results of commands whose last line is "N passed, N failed".

passed=0
failed=0

count() { # COMMAND...: one that says nothing of the kind has failed
    local counts p f
    counts=$("$@" </dev/null | tee /dev/stderr | sed -n '$s/^\([0-9]\+\) passed, \([0-9]\+\) failed$/\1 \2/p')
    read -r p f <<<"${counts:-0 1}"
    passed=$((passed + p))
    failed=$((failed + f))
}

count_failure() { # WHAT
    echo "$*"
    failed=$((failed + 1))
}

end_counts() { # the line over all; succeeds if nothing failed
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}
