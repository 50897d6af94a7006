#!/usr/bin/env bash
# Makes sure that this machine has what a purpose needs: scripts/setup.sh [build|up|lint|test|bench|pages|soak]
#
# Missing Debian/Ubuntu packages are installed when we are root or sudo asks for no password, missing
# cargo tools with `cargo install`. What cannot be installed is printed as one command line, with exit
# code 1; without apt-get, packages are named instead. Silent and quick when nothing is missing. A Rust
# toolchain is never fetched: whose it is and where it comes from is the user's choice.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# A toolchain or tool that was installed a moment ago is found without a new login shell.
PATH="$PATH:${CARGO_HOME:-${HOME:-}/.cargo}/bin"

# Pinned, so that a fresh machine gets a version that builds with our Rust.
readonly NEXTEST_VERSION=0.9.143
# The engine that the tests run for real. doctor compares with the same version.
readonly CLAUDE_VERSION=2.1.325
# What the tests run on the MCP servers: the Inspector and the suite of the revision 2026-07-28, with
# a Node that is new enough for them.
readonly INSPECTOR_VERSION=2.12.0
readonly CONFORMANCE_VERSION=0.2.0-alpha.12
readonly NODE_VERSION=26.10.0
# What the benchmark compares with.
readonly CODEX_VERSION=0.166.0 GEMINI_VERSION=0.61.0
readonly RUSTUP='curl --proto =https --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y'

purpose=${1:-build}
packages=()   # Debian packages to install
wished=()     # Debian packages that make things better, and without which things go on
components=() # rustup components to add
tools=()      # cargo tools to install, as arguments of `cargo install`
engines=()    # npm packages to install for the tests, below the target directory
mcp_tools=()  # npm packages that the tests run on the MCP servers, likewise
commands=()   # what only the user can do, as command lines
as_root=()    # prefix that makes a command run as root

say() { printf 'setup: %s\n' "$*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }
# Two purposes may need the same program: its package is named once.
need() { have "$1" || [[ " ${packages[*]} " == *" $2 "* ]] || packages+=("$2"); }

# A compiler without libc's headers is as good as none, so compile something.
have_c_compiler() {
	have cc && printf '#include <stdio.h>\n' | cc -x c -fsyntax-only - >/dev/null 2>&1
}

# Debian keeps the server's programs off PATH, in a directory per version.
have_postgres() {
	have postgres || compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null
}

rust_is_new_enough() {
	local wanted found
	have cargo || return 1
	wanted=$(sed -n 's/^rust-version *= *"\(.*\)"/\1/p' Cargo.toml)
	found=$(rustc --version 2>/dev/null | cut -d' ' -f2)
	[[ -n $found && $(printf '%s\n' "$wanted" "${found%%-*}" | sort -V | head -n1) == "$wanted" ]]
}

check_build() {
	have_c_compiler || packages+=(gcc libc6-dev)
	need make make
	need git git
	if rust_is_new_enough; then return; fi
	if have rustup; then
		commands+=('rustup update stable')
	else
		have curl || packages+=(curl ca-certificates)
		commands+=("$RUSTUP")
	fi
}

check_lint() {
	need shellcheck shellcheck
	# The right toolchain brings its components; without it there is nothing to ask.
	((${#commands[@]} == 0)) || return 0
	cargo fmt --version >/dev/null 2>&1 || components+=(rustfmt)
	cargo clippy --version >/dev/null 2>&1 || components+=(clippy)
}

check_nextest() {
	((${#commands[@]} == 0)) || return 0 # built by the next run, with the right toolchain
	have cargo-nextest || tools+=("cargo-nextest@$NEXTEST_VERSION")
}

claude_dir=${CARGO_TARGET_DIR:-target}/claude
mcp_tools_dir=${CARGO_TARGET_DIR:-target}/mcp-tools

# This machine as npm names it.
npm_cpu() {
	case $(uname -m) in
	x86_64) echo x64 ;;
	aarch64 | arm64) echo arm64 ;;
	*) uname -m ;;
	esac
}

# The program itself, of the package for this machine.
claude_program() {
	printf '%s/node_modules/@anthropic-ai/claude-code-linux-%s/claude' "$claude_dir" "$(npm_cpu)"
}

# Asks the program, because a directory may be half there. It gets no environment to look into.
have_claude() {
	local program version
	program=$(claude_program)
	[[ -x $program ]] || return 1
	version=$(env -i HOME="$claude_dir" "$program" --version 2>/dev/null) || return 1
	[[ ${version%% *} == "$CLAUDE_VERSION" ]]
}

check_claude() {
	have_claude && return
	need node nodejs
	need npm npm
	engines+=("@anthropic-ai/claude-code@$CLAUDE_VERSION")
}

# Whether a package is there in this version.
have_mcp_tool() {
	local package=$mcp_tools_dir/node_modules/$1/package.json
	[[ -f $package ]] && grep -q "^  *\"version\": \"$2\"" "$package"
}

check_mcp_tools() {
	local packages=(
		"@modelcontextprotocol/inspector@$INSPECTOR_VERSION"
		"@modelcontextprotocol/conformance@$CONFORMANCE_VERSION"
		"node-linux-$(npm_cpu)@$NODE_VERSION"
	)
	local package
	for package in "${packages[@]}"; do
		have_mcp_tool "${package%@*}" "${package##*@}" || mcp_tools=("${packages[@]}")
	done
}

# What agents are isolated with. The first is what a hive takes; the tests run all of them.
check_runtimes() {
	need bwrap bubblewrap
	need systemd-nspawn systemd-container
	need podman podman
	# Podman needs something that makes containers, on hosts of either kind, and a first process.
	need runc runc
	have catatonit || [[ -x /usr/libexec/podman/catatonit ]] || packages+=(catatonit)
	need newuidmap uidmap
}

# A browser for the tests of the pages, and what builds them.
check_browser() {
	need node nodejs
	need npm npm
	have chromium || [[ -n ${CHROMIUM:-} ]] || packages+=(chromium)
}

check_bench() {
	need redis-server redis-server
	have_postgres || packages+=(postgresql)
	need strace strace
	install_peers
}

# Other engines, to compare with. The benchmark does without those that do not install here, and
# says so.
install_peers() {
	local dir=${CARGO_TARGET_DIR:-target}/engines
	[[ -e $dir/installed-$CODEX_VERSION-$GEMINI_VERSION ]] && return
	have npm || return 0
	say "installing codex and gemini into $dir, to compare with"
	mkdir -p "$dir"
	if npm install --ignore-scripts --no-save --no-audit --no-fund --loglevel=error --prefix "$dir" \
		"@openai/codex@$CODEX_VERSION" "@google/gemini-cli@$GEMINI_VERSION" </dev/null >&2; then
		touch "$dir/installed-$CODEX_VERSION-$GEMINI_VERSION"
	else
		say 'npm install failed; they are left out'
	fi
}

# Fills the lists with what the purpose lacks.
check() {
	packages=() wished=() components=() tools=() engines=() mcp_tools=() commands=()
	check_build
	case $purpose in
	build) ;;
	lint) check_lint ;;
	test)
		check_lint
		check_nextest
		need socat socat
		# Shows that nothing is answered before it is synced.
		need strace strace
		# Evaluates the modules for NixOS; nothing is built with it.
		need nix-instantiate nix-bin
		check_runtimes
		check_claude
		check_browser
		check_mcp_tools
		;;
	bench)
		check_bench
		check_runtimes
		;;
	up) have bwrap || wished+=(bubblewrap) ;;
	pages) check_browser ;;
	soak) check_nextest ;;
	*)
		echo "usage: ${0##*/} [build|up|lint|test|bench|pages|soak]" >&2
		exit 2
		;;
	esac
}

nothing_missing() {
	((${#packages[@]} + ${#components[@]} + ${#tools[@]} == 0)) &&
		((${#engines[@]} + ${#mcp_tools[@]} + ${#commands[@]} == 0))
}

may_install_packages() {
	have apt-get || return 1
	if [[ $(id -u) == 0 ]]; then return 0; fi
	have sudo && sudo -n true 2>/dev/null && as_root=(sudo -n)
}

# RUNLEVEL=1 keeps packages that bring a service from starting it. Where the init system ignores that,
# Debian's own configuration of redis and postgresql listens on loopback only.
install_packages() {
	local apt=(
		"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
		apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3
	)
	say "installing packages: $*"
	# One broken source must not hide the others, so the install decides.
	"${apt[@]}" update </dev/null >&2 || say 'apt-get update failed; trying with the lists at hand'
	"${apt[@]}" install -y --no-install-recommends "$@" </dev/null >&2
}

# Each step may fail; the second check then says what is still missing.
install() {
	if ((${#packages[@]} + ${#wished[@]})) && may_install_packages; then
		install_packages "${packages[@]}" "${wished[@]}" || say 'apt-get install failed'
	fi
	if ((${#components[@]})) && have rustup; then
		rustup component add "${components[@]}" </dev/null >&2 || say 'rustup component add failed'
	fi
	if ((${#tools[@]})); then
		say "building ${tools[*]} (some minutes, once)"
		cargo install --locked "${tools[@]}" </dev/null >&2 || say 'cargo install failed'
	fi
	if ((${#engines[@]})) && have npm; then
		say "installing ${engines[*]} into $claude_dir"
		npm_install "$claude_dir" "${engines[@]}" </dev/null >&2 || say 'npm install failed'
	fi
	if ((${#mcp_tools[@]})) && have npm; then
		say "installing ${mcp_tools[*]} into $mcp_tools_dir"
		npm_install "$mcp_tools_dir" "${mcp_tools[@]}" </dev/null >&2 || say 'npm install failed'
	fi
}

# --force: the packages ask for a newer node than Debian has, and then do not use it.
npm_install() {
	local dir=$1
	shift
	mkdir -p "$dir"
	npm install --force --ignore-scripts --no-save --no-audit --no-fund --loglevel=error \
		--prefix "$dir" "$@"
}

explain() {
	local lines=() sudo='' line
	if ((${#packages[@]})); then
		if have apt-get; then
			[[ $(id -u) == 0 ]] || sudo='sudo '
			lines+=("${sudo}apt-get update")
			lines+=("${sudo}apt-get install -y --no-install-recommends ${packages[*]}")
		else
			say "install with your package manager (named as in Debian): ${packages[*]}"
		fi
	fi
	lines+=("${commands[@]}")
	if ((${#components[@]})); then lines+=("rustup component add ${components[*]}"); fi
	if ((${#tools[@]})); then lines+=("cargo install --locked ${tools[*]}"); fi
	if ((${#engines[@]})); then
		lines+=("npm install --force --ignore-scripts --no-save --prefix ${claude_dir@Q} ${engines[*]}")
	fi
	if ((${#mcp_tools[@]})); then
		lines+=("npm install --force --ignore-scripts --no-save --prefix ${mcp_tools_dir@Q} ${mcp_tools[*]}")
	fi
	((${#lines[@]})) || return 0
	line=$(printf ' && %s' "${lines[@]}")
	say "\`make $purpose\` needs something that is missing here; install it with:"
	printf '  %s\n' "${line# && }" >&2
}

# Says what would be better, and lets things go on.
explain_wished() {
	if ((${#wished[@]})); then
		say "agents run WITHOUT ISOLATION until you install: ${wished[*]}"
	fi
}

check
nothing_missing && ((${#wished[@]} == 0)) && exit 0
install
hash -r
check
explain_wished
nothing_missing && exit 0
explain
exit 1
