//! What an agent sees of the host's system: programs, libraries and the few files of `/etc` that
//! they need. Nothing in it is secret or belongs to a person.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Directories of programs and libraries.
const DIRS: [&str; 8] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
];

/// What programs read below `/etc`. `passwd`, `group`, `hosts` and their like are made for the agent
/// ([`crate::plan`]); what is not here, the agent does not see.
const ETC: [&str; 31] = [
    "alternatives",
    "bash.bashrc",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "debian_version",
    "fonts",
    "inputrc",
    "java-17-openjdk",
    "java-21-openjdk",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "ld.so.preload",
    "locale.alias",
    "locale.conf",
    "localtime",
    "magic",
    "mime.types",
    "os-release",
    "perl",
    "pki",
    "profile",
    "protocols",
    "python3",
    "services",
    "shells",
    "ssl/certs",
    "ssl/cert.pem",
    "ssl/openssl.cnf",
    "static",
];

/// What the host has of it, with links as links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct System {
    /// Files and directories that are bound where they lie.
    pub bound: Vec<PathBuf>,
    /// Links: where they lie, and where they lead.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// The file that names the host's resolvers, for agents that share its network.
    pub resolv_conf: Option<PathBuf>,
}

impl System {
    /// Looks at the host.
    pub fn of_host() -> Self {
        let mut system = Self {
            bound: Vec::new(),
            links: Vec::new(),
            resolv_conf: fs::canonicalize("/etc/resolv.conf").ok(),
        };
        let etc = ETC.iter().map(|name| Path::new("/etc").join(name));
        for path in DIRS.iter().map(PathBuf::from).chain(etc) {
            let Ok(found) = fs::symlink_metadata(&path) else {
                continue;
            };
            match fs::read_link(&path) {
                Ok(to) => system.links.push((path, to)),
                Err(_) if found.is_dir() || found.is_file() => system.bound.push(path),
                Err(_) => {}
            }
        }
        system
    }

    /// Whether a file of the host is part of it anyway.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        self.bound.iter().any(|dir| path.starts_with(dir))
    }
}
