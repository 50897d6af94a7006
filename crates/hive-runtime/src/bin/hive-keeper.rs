//! The keeper as a program of its own, for the tests of this crate.

fn main() -> std::process::ExitCode {
    hive_runtime::keeper::main()
}
