#!/bin/sh
# Installs what some tests use beyond Python packages: kcat (conformance tests, guides) and rsync (a guide). Does nothing
# where they are there already; says why where one can't be had (the tests that need it are skipped then, with that
# reason).
set -u
missing=""
for program in kcat rsync; do
    command -v "$program" >/dev/null 2>&1 || missing="$missing $program"
done
[ -z "$missing" ] && exit 0
if ! command -v apt-get >/dev/null 2>&1; then
    echo "missing, and this is not a Debian:$missing; install by hand to run the tests that need it" >&2
    exit 0
fi
as_root=""
[ "$(id -u)" -eq 0 ] || as_root="sudo -n"
# shellcheck disable=SC2086  # a list
{ $as_root apt-get update -qq && DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends $missing; } >/dev/null 2>&1 \
    || echo "could not be installed:$missing; the tests that need it will be skipped" >&2
exit 0
