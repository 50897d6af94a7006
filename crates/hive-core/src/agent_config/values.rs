//! The values of options: valid by construction, so that a bad one is refused with its line.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, de};

use crate::repos::Tree;

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident: $check:expr;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) struct $name(Box<str>);

        impl $name {
            /// As text.
            #[allow(dead_code, reason = "every kind of word has it")]
            pub(crate) fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let check: fn(&str) -> Result<(), String> = $check;
                check(text).map(|()| Self(text.into()))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(de::Error::custom)
            }
        }
    )+};
}

words! {
    /// One line of text.
    Line: line;
    /// A name in a prompt. The harness takes 200 characters; bytes are what Nix can count too.
    Name: |text| {
        line(text)?;
        refuse_unless(text.len() <= 200, text, "has to be one line of text of at most 200 bytes")
    };
    /// A model's name.
    ModelName: |text| {
        let is_plain = |c: char| !c.is_control() && !c.is_whitespace();
        let is_name = (1..=100).contains(&text.len()) && text.chars().all(is_plain);
        refuse_unless(is_name && !text.starts_with('-'), text, "has to be a model's name, one word")
    };
    /// A name or a word.
    Word: |text| {
        let legal = |c: char| c.is_ascii_alphanumeric() || "_-.@".contains(c);
        let is_word = (1..=64).contains(&text.len()) && text.chars().all(legal);
        refuse_unless(is_word, text, "has to be a word of letters, digits and `_-.@`")
    };
    /// The name of a unix user.
    UserName: |text| {
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
        let starts_well = text.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
        let is_name = text.len() <= 31 && starts_well && text.chars().all(legal);
        refuse_unless(is_name, text, "has to be a unix user's name of small letters, digits, `_` and `-`")
    };
    /// A path in the repository.
    RepoPath: |text| Tree::check_path(text).map_err(|error| format!("`{}`: {error}", shown(text)));
    /// What a file of the page is served under (T32).
    Target: |text| {
        let first = text.chars().next().unwrap_or('-');
        let legal = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
        let is_legal = (1..=200).contains(&text.len())
            && (first.is_ascii_alphanumeric() || first == '_')
            && text.chars().all(legal)
            && text.split('/').all(|name| !name.is_empty() && name != "." && name != "..");
        refuse_unless(
            is_legal,
            text,
            "has to begin with a letter, a digit or `_`, and go on with those and `./-`, without `..`",
        )
    };
    /// An address that a page may link to.
    HttpUrl: |text| {
        refuse_unless(is_http(text), text, "has to be an address that begins with http:// or https://")
    };
    /// The name of an MCP server.
    ServerName: |text| {
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let is_name = (1..=64).contains(&text.len()) && text.chars().all(legal) && !text.contains("__");
        refuse_unless(is_name, text, "has to be a name of letters, digits, `-` and single `_`")?;
        let is_free = !["hyperhive", "bash", "matrix", "forge"].contains(&text);
        refuse_unless(is_free, text, "is a server of the hive's own")
    };
    /// The name of a tool.
    ToolName: |text| {
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let is_name = (1..=128).contains(&text.len()) && text.chars().all(legal);
        refuse_unless(is_name, text, "has to be a tool's name")
    };
    /// The name of a variable that an agent may set.
    EnvName: |text| {
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let starts_well = !text.starts_with(|c: char| c.is_ascii_digit());
        let is_name = (1..=128).contains(&text.len()) && text.chars().all(legal) && starts_well;
        refuse_unless(is_name, text, "has to be a variable's name of letters, digits and `_`")?;
        refuse_unless(!is_reserved(text), text, "is a variable that the hive or the system sets")
    };
    /// A path on the host or in the container.
    MountPath: |text| {
        let is_plain = text.starts_with('/')
            && text.len() <= 1_000
            && !text.chars().any(char::is_control)
            && !text.contains(':')
            && text[1..].split('/').all(|name| !name.is_empty() && name != "." && name != "..");
        refuse_unless(is_plain, text, "has to be an absolute path without `..`, `.`, `//` or `:`")
    };
}

impl Tree {
    fn check_path(path: &str) -> Result<(), String> {
        let mut tree = Self::default();
        let empty = crate::repos::File {
            mode: crate::repos::Mode::Plain,
            content: Vec::new(),
        };
        tree.add(path.to_owned(), empty)
    }
}

/// An address, or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HttpUrlOrNone(Box<str>);

impl HttpUrlOrNone {
    /// One of the host's own.
    pub(super) fn of(url: &str) -> Self {
        Self(url.into())
    }

    /// As text; empty for none.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for HttpUrlOrNone {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.is_empty() || is_http(&text) {
            return Ok(Self(text.into()));
        }
        Err(de::Error::custom(format!(
            "`{}` has to be empty or an address that begins with http:// or https://",
            shown(&text)
        )))
    }
}

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident($inner:ty): $range:expr, $what:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
        pub(crate) struct $name(pub(crate) $inner);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let number = <$inner>::deserialize(deserializer)?;
                if ($range).contains(&number) {
                    return Ok(Self(number));
                }
                Err(de::Error::custom(format!("{number} is out of range: {}", $what)))
            }
        }
    )+};
}

numbers! {
    /// A limit of something.
    Positive(u32): 1..=u32::MAX, "it is at least 1";
    /// The number of a user or a group.
    Id(u32): 1_000..=60_000, "it is a number from 1000 to 60000";
    /// An amount of money.
    Dollars(f64): 0.0..=1e6, "it is an amount of US dollars, such as 5.0";
}

impl Eq for Positive {}
impl Eq for Id {}

fn line(text: &str) -> Result<(), String> {
    let is_line = (1..=4_000).contains(&text.len()) && !text.chars().any(char::is_control);
    refuse_unless(is_line, text, "has to be one line of text")
}

fn refuse_unless(holds: bool, text: &str, rule: &str) -> Result<(), String> {
    if holds {
        return Ok(());
    }
    Err(format!("`{}` {rule}", shown(text)))
}

/// A value as an error quotes it.
fn shown(text: &str) -> String {
    hive_wire::text::shorten(&text.escape_default().to_string(), 80)
}

fn is_http(text: &str) -> bool {
    let rest = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"));
    let is_plain = |c: char| c.is_ascii_graphic() && !"\"<>\\^`{|}".contains(c);
    text.len() <= 2_000
        && rest.is_some_and(|rest| {
            let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
            !host.is_empty() && !host.contains('@') && rest.chars().all(is_plain)
        })
}

/// Variables through which an agent's configuration could reach for keys, or break the harness.
fn is_reserved(name: &str) -> bool {
    const PREFIXES: [&str; 8] = [
        "HIVE_",
        "HYPERHIVE_",
        "ANTHROPIC_",
        "CLAUDE_",
        "OPENAI_",
        "LD_",
        "GIT_CONFIG",
        "AWS_",
    ];
    const NAMES: [&str; 14] = [
        "PATH",
        "HOME",
        "PWD",
        "SHELL",
        "USER",
        "LOGNAME",
        "BASH_ENV",
        "ENV",
        "IFS",
        "NODE_OPTIONS",
        "NODE_EXTRA_CA_CERTS",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "NIX_SSL_CERT_FILE",
    ];
    let upper = name.to_ascii_uppercase();
    PREFIXES.iter().any(|prefix| upper.starts_with(prefix))
        || NAMES.contains(&upper.as_str())
        || upper.ends_with("_PROXY")
}

/// Whether a place in the container is the container's own.
pub(super) fn is_taken(target: &str) -> bool {
    const PLACES: [&str; 15] = [
        "/proc",
        "/sys",
        "/dev",
        "/run",
        "/state",
        "/harness",
        "/agents",
        "/etc",
        "/usr",
        "/bin",
        "/sbin",
        "/lib",
        "/lib64",
        "/home/agent",
        "/tmp",
    ];
    let target = std::path::Path::new(target);
    PLACES.iter().any(|place| {
        target == std::path::Path::new(place) || std::path::Path::new(place).starts_with(target)
    }) || [
        "/proc", "/sys", "/dev", "/run", "/state", "/harness", "/agents",
    ]
    .iter()
    .any(|place| target.starts_with(place))
}
