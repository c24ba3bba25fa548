# Sourced: adds up the results of commands whose last line is "N passed, N failed".

passed=0
failed=0

count() { # COMMAND...: one that says nothing of the kind has failed
    local line last=
    while IFS= read -r line || [ -n "$line" ]; do
        printf '%s\n' "$line"
        last=$line
    done < <("$@" </dev/null)
    if [[ $last =~ ^([0-9]+)' passed, '([0-9]+)' failed'$ ]]; then
        passed=$((passed + BASH_REMATCH[1]))
        failed=$((failed + BASH_REMATCH[2]))
    else
        failed=$((failed + 1))
    fi
}

count_failure() { # WHAT
    echo "$*"
    failed=$((failed + 1))
}

end_counts() { # the line over all; succeeds if nothing failed
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}
