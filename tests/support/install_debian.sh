#!/bin/sh
# Installs what the conformance tests use beyond Python packages: kcat. Does nothing where it is there already; says why
# where it can't be had (the tests that need it are skipped then, with that reason).
set -u
command -v kcat >/dev/null 2>&1 && exit 0
if ! command -v apt-get >/dev/null 2>&1; then
    echo "kcat is missing and this is not a Debian: install it by hand to run its tests" >&2
    exit 0
fi
as_root=""
[ "$(id -u)" -eq 0 ] || as_root="sudo -n"
{ $as_root apt-get update -qq && DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends kcat; } >/dev/null 2>&1 \
    || echo "kcat could not be installed: its tests will be skipped" >&2
exit 0
