#!/bin/sh
# Installs what some tests use beyond Python packages: kcat (conformance tests, guides), rsync (a guide), zsh and fish
# (completion). Does nothing where they are there already; says why where one can't be had (the tests that need it are
# skipped then, with that reason).
set -u
missing=""
for program in kcat rsync zsh fish; do
    command -v "$program" >/dev/null 2>&1 || missing="$missing $program"
done
[ -z "$missing" ] && exit 0
if ! command -v apt-get >/dev/null 2>&1; then
    echo "missing, and this is not a Debian:$missing; install by hand to run the tests that need it" >&2
    exit 0
fi
as_root=""
[ "$(id -u)" -eq 0 ] || as_root="sudo -n"
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -qq >/dev/null 2>&1
# One by one: what one release lacks must not keep the others away.
for program in $missing; do
    $as_root apt-get install -y -qq --no-install-recommends "$program" >/dev/null 2>&1 \
        || echo "could not be installed: $program; the tests that need it will be skipped" >&2
done
exit 0
