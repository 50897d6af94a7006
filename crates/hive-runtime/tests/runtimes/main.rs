//! Every runtime against the suite of promises, and what is special about each.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(
    clippy::print_stderr,
    reason = "a test that did not run says so, wherever it is run"
)]

mod bwrap;
mod escape;
mod nixos;
mod nspawn;
mod place;
mod podman;
mod process;

/// One test per promise of the suite, for a runtime that this machine has.
macro_rules! promises {
    ($kind:expr) => {
        $crate::promises!($kind;
            starting_twice_is_starting_once,
            a_stop_asks_first,
            a_stop_insists,
            stopping_is_idempotent,
            a_stop_leaves_nothing_behind,
            an_end_leaves_nothing_behind,
            another_daemon_adopts_it,
            its_end_is_told_and_kept,
            nothing_is_inherited,
            output_is_kept_within_bounds,
            what_cannot_run_leaves_nothing,
            agents_are_told_apart,
            credentials_are_an_agents_own,
        );
    };
    ($kind:expr; $($name:ident),+ $(,)?) => {
        $(#[test]
        fn $name() {
            let promises = hive_runtime::conformance::PROMISES;
            let promise = promises.iter().find(|(name, _)| *name == stringify!($name));
            if let Some(place) = $crate::place::Place::of($kind) {
                promise.unwrap().1(&place);
            }
        })+

        #[test]
        fn c13_every_promise_is_tested() {
            let promises = hive_runtime::conformance::PROMISES;
            let promised: Vec<&str> = promises.iter().map(|(name, _)| *name).collect();
            assert_eq!(promised, [$(stringify!($name)),+]);
        }
    };
}
pub(crate) use promises;
