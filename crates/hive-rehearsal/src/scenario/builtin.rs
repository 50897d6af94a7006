//! The scenarios that come with the program.

/// A scenario that comes with the program.
#[derive(Debug, Clone, Copy)]
pub struct Builtin {
    /// What it is called.
    pub name: &'static str,
    /// Its file.
    pub text: &'static str,
}

/// All of them, the default first.
pub const ALL: &[Builtin] = &[
    Builtin {
        name: "tour",
        text: include_str!("../../scenarios/tour.toml"),
    },
    Builtin {
        name: "echo",
        text: include_str!("../../scenarios/echo.toml"),
    },
    Builtin {
        name: "weather",
        text: include_str!("../../scenarios/weather.toml"),
    },
];

/// The one of this name.
pub fn named(name: &str) -> Option<Builtin> {
    ALL.iter().find(|builtin| builtin.name == name).copied()
}
