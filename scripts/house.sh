#!/usr/bin/env bash
# How large the house is, beside what it was on 2026-11-22 (9be76b7): lines, rooms, and what its prose repeats. `make house`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

lines() { git ls-files -z -- "${@/%//*.rs}" | xargs -0 cat | wc -l; }
count() { { git grep -hE "$@" || true; } | wc -l; }

# A doc comment of its own line, of three words or fewer.
short() {
  git ls-files -z -- '*.rs' | xargs -0 awk '
    FNR == 1 { before = ""; held = "" }
    { line = $0; is = line ~ /^ *\/\/\/ /
      if (held != "" && !is) short++
      held = ""
      if (is && before !~ /^ *\/\/\//) { n = split(line, words, " "); if (n <= 4) held = line }
      before = line }
    END { print short + 0 }'
}

row() { printf '%-52s %9s %9s %9s\n' "$@"; }
row '' 'now' 'was' 'aim'
row 'lines of Rust in src' "$(lines src)" 126413 116000
row 'lines of Rust in tests' "$(lines tests)" 49404 45000
row 'rooms of the purge' "$(grep '^pub mod' src/domain/purge/lib.rs | grep -vc testing)" 62 18
row 'a reader of the purge needs' "$(lines src/domain/kernel src/domain/kinds src/domain/notices src/domain/purge src/apiserver src/adapters src/actors src/app)" '' 65000
row 'bytes of ARCHITECTURE.md' "$(wc -c < ARCHITECTURE.md)" 109422 25600
row 'Result<_, String> in src' "$(count 'Result<.*, String>' -- src)" 254 60
row 'doc comments of three words or fewer' "$(short)" 1553 100
row 'comments that say told' "$(count '//.*\btold\b' -- 'src/*.rs')" 207 50
echo 'Circles and arrows that lead back up: none, or tests/tidy fails.'
