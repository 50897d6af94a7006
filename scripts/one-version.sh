#!/usr/bin/env bash
# One version of each dependency: what stands twice in the tree must be a skip of deny.toml, with its
# reason. For machines without cargo-deny, which checks the same and more.
set -euo pipefail
# Names are in the same order with their versions and without.
export LC_ALL=C

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The same version may be built twice, for the machine that builds and for the one that runs.
twice() {
	"${CARGO:-cargo}" tree --workspace --all-features --duplicates --depth 0 --prefix none \
		--edges normal,build,dev --target x86_64-unknown-linux-gnu "$@" |
		awk 'NF { print $1, $2 }' | sort -u | cut -d' ' -f1 | uniq -d
}

skipped() {
	sed -n 's/^ *{ crate = "\([^":]*\).*reason = .*/\1/p' deny.toml | sort -u
}

found=$(twice "$@")
new=$(comm -23 <(printf '%s\n' "$found") <(skipped))
if [[ -n $new ]]; then
	printf 'one-version: in more than one version, and no skip of deny.toml says why: %s\n' "${new//$'\n'/ }" >&2
	printf 'one-version: "cargo tree --duplicates" tells who wants which\n' >&2
	exit 1
fi
