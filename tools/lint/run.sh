#!/usr/bin/env bash
# tools/lint/run.sh <step> [file...]: one step of `make lint`, on the given
# files or on all of the repository. `format` rewrites files, the others check.
set -euo pipefail
cd "$(dirname "$0")/../.."

step=$1
shift
mapfile -t files < <([ $# -gt 0 ] && printf '%s\n' "$@" || git ls-files -co --exclude-standard)
pick() { printf '%s\n' "${files[@]}" | grep -E "$1" | while read -r f; do [ -f "$f" ] && echo "$f"; done; }

cpp=$(pick '\.(h|cpp)$' || true)
cmake=$(pick '(CMakeLists\.txt|\.cmake)$' || true)

case $step in
format)
  ruff check --fix-only --quiet .
  ruff format --quiet .
  [ -z "$cpp" ] || clang-format -i $cpp
  [ -z "$cmake" ] || gersemi -i --quiet $cmake
  ;;
clang-format) [ -z "$cpp" ] || clang-format --dry-run --Werror $cpp ;;
gersemi) [ -z "$cmake" ] || gersemi --check $cmake ;;
mypy)
  # The build tree has the package in the shape that users import.
  [ -d build/dev/python/llmc ] || { echo "build first: cmake --preset dev && ninja -C build/dev"; exit 1; }
  MYPYPATH=build/dev/python mypy --config-file pyproject.toml -p llmc
  ;;
clang-tidy)
  [ -f build/dev/compile_commands.json ] || { echo "build first: cmake --preset dev && ninja -C build/dev"; exit 1; }
  # clang cannot read the compiler's own precompiled header: without the flags
  # that name it, it reads the headers themselves.
  db=$(mktemp -d)
  trap 'rm -rf "$db"' EXIT
  sed -E 's/-Winvalid-pch//g; s/-Wno-maybe-uninitialized//g' build/dev/compile_commands.json >"$db/compile_commands.json"
  sources=$(printf '%s\n' $cpp | grep '\.cpp$' || true)
  [ -z "$sources" ] || printf '%s\n' $sources | xargs -P "$(nproc)" -n 1 clang-tidy --quiet -p "$db"
  ;;
*) echo "unknown step: $step"; exit 2 ;;
esac
