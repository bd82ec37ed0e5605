# shellcheck shell=bash
# What tests of scripts share: a scratch folder as the working folder, cases with an exit status and a text, and their count.
# Sourced.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit
passed=0 failed=0

# check NAME STATUS TEXT COMMAND...: the command ends with the status, and what it prints contains every line of TEXT.
check() {
  local name=$1 wanted=$2 text=$3 status=0 line missing=''; shift 3
  "$@" >"$scratch/out" 2>&1 </dev/null || status=$?
  while IFS= read -r line; do [[ -z $line ]] || grep -qF -- "$line" "$scratch/out" || missing+="$line"$'\n'; done <<<"$text"
  if ((status == wanted)) && [[ -z $missing ]]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "$name: exit status $status (expected $wanted); missing: ${missing:-nothing}; it printed:"
    tail -15 "$scratch/out"
  fi
}
# finish: the count, for the report of all tests.
finish() {
  echo "$passed passed, $failed failed" | tee "${TYCHO_RESULT:-/dev/null}"
  ((failed == 0))
}
