//! The file that every command sources first (T34): a `cargo` that says little.
//!
//! It is POSIX shell, since commands run under `sh`. The function changes nothing but the ten
//! subcommands that compile, and only when the caller did not choose a message format.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::replace;

/// The subcommands that compile and know `--message-format`.
pub const SUBCOMMANDS: [&str; 10] = [
    "build", "check", "clippy", "test", "run", "doc", "bench", "install", "rustc", "fix",
];

/// The name of the file in the harness's directory.
pub const FILE: &str = "bash-env.sh";

const HEAD: &str = "\
# shellcheck shell=sh
# Sourced before every background command. Written anew when hive-bash-daemon starts.
";

/// The text of the file.
pub fn script(short_cargo_messages: bool) -> String {
    let mut script = HEAD.to_owned();
    if short_cargo_messages {
        script.push_str(&CARGO.replace("SUBCOMMANDS", &SUBCOMMANDS.join(" | ")));
    }
    script
}

/// Rotates through the arguments, so that the option can be put right after the subcommand: what
/// stands behind `--` belongs to the program that cargo runs.
const CARGO: &str = r#"
cargo() {
	_hive_sub='' _hive_value='' _hive_chosen=''
	for _hive_arg in "$@"; do
		case $_hive_arg in
		--) break ;;
		--message-format | --message-format=*) _hive_chosen=1 ;;
		*) ;;
		esac
	done
	_hive_left=$#
	while [ "$_hive_left" -gt 0 ]; do
		_hive_left=$((_hive_left - 1))
		_hive_arg=$1
		shift
		set -- "$@" "$_hive_arg"
		if [ -n "$_hive_sub" ]; then
			continue
		elif [ -n "$_hive_value" ]; then
			_hive_value=''
			continue
		fi
		case $_hive_arg in
		--color | --config | --explain | -C | -Z) _hive_value=1 ;;
		+* | -*) ;;
		SUBCOMMANDS)
			_hive_sub=$_hive_arg
			if [ -z "$_hive_chosen" ]; then
				set -- "$@" --message-format short
			fi
			;;
		*) _hive_sub=$_hive_arg ;;
		esac
	done
	unset _hive_sub _hive_value _hive_chosen _hive_arg _hive_left
	command cargo "$@"
}
"#;

/// Writes the file into `dir`.
///
/// # Errors
/// Those of the file system.
pub fn install(dir: &Path, short_cargo_messages: bool) -> io::Result<PathBuf> {
    let path = dir.join(FILE);
    replace::write(&path, script(short_cargo_messages).as_bytes())?;
    Ok(path)
}
