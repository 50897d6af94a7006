//! The files that tell a NixOS container what the host gives it: pure text.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use crate::{Access, AgentSpec, Limits, Network, RuntimeError, failed, plan};

/// What `nixos-container create` sets by itself: any of these makes a private network, in which
/// nobody on the host is found.
const CLEARED: [&str; 5] = [
    "HOST_ADDRESS",
    "HOST_ADDRESS6",
    "LOCAL_ADDRESS",
    "LOCAL_ADDRESS6",
    "HOST_BRIDGE",
];

/// What the host gives a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Settings {
    is_private: bool,
    flags: Vec<String>,
}

impl Settings {
    /// The settings of an agent.
    ///
    /// # Errors
    /// When a path cannot be written in that file.
    pub(super) fn of(spec: &AgentSpec) -> Result<Self, RuntimeError> {
        let (dirs, inside) = (&spec.dirs, plan::view().dirs);
        use Access::{ReadOnly, ReadWrite};
        let own = [
            (&dirs.state, &inside.state, ReadWrite),
            (&dirs.harness, &inside.harness, ReadWrite),
            (&dirs.claude, &inside.claude, ReadWrite),
            (&dirs.run, &inside.run, ReadOnly),
        ];
        let mounts = spec.mounts.iter();
        let mounts = mounts.map(|mount| (&mount.source, &mount.target, mount.access));
        let mut flags = Vec::new();
        for (source, target, access) in own.into_iter().chain(mounts) {
            let option = match access {
                ReadOnly => "--bind-ro",
                ReadWrite => "--bind",
            };
            flags.push(format!("{option}={}:{}", word(source)?, word(target)?));
        }
        Ok(Self {
            is_private: spec.network != Network::Host,
            flags,
        })
    }
}

/// The file expands its flags without quotes, so that a path must be one word of a shell.
fn word(path: &Path) -> Result<&str, RuntimeError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@,".contains(c);
    let text = path.to_str().filter(|text| text.chars().all(is_plain));
    text.ok_or_else(|| RuntimeError::Mount {
        mount: PathBuf::from(path),
        reason: "a path of a NixOS container has letters, digits and /._-+@, alone".to_owned(),
    })
}

/// The `.conf` of a container with these settings, and everything else as it was.
pub(super) fn rewritten(old: &str, settings: &Settings) -> String {
    let ours = |line: &&str| {
        let name = line.split('=').next().unwrap_or_default().trim();
        name == "PRIVATE_NETWORK" || name == "EXTRA_NSPAWN_FLAGS" || CLEARED.contains(&name)
    };
    let mut text: String = old
        .lines()
        .filter(|line| !ours(line))
        .map(|line| format!("{line}\n"))
        .collect();
    for name in CLEARED {
        text.push_str(&format!("{name}=\n"));
    }
    let private = u8::from(settings.is_private);
    text.push_str(&format!("PRIVATE_NETWORK={private}\n"));
    text.push_str(&format!(
        "EXTRA_NSPAWN_FLAGS=\"{}\"\n",
        settings.flags.join(" ")
    ));
    text
}

/// A drop-in of the container's unit with its limits.
pub(super) fn limits_drop_in(limits: &Limits) -> String {
    let mut text = "[Service]\n".to_owned();
    if let Some(bytes) = limits.memory_bytes {
        text.push_str(&format!("MemoryMax={bytes}\n"));
    }
    if let Some(pids) = limits.pids {
        text.push_str(&format!("TasksMax={pids}\n"));
    }
    if let Some(percent) = limits.cpu_percent {
        text.push_str(&format!("CPUQuota={percent}%\n"));
    }
    if let Some(bytes) = limits.file_bytes {
        text.push_str(&format!("LimitFSIZE={bytes}\n"));
    }
    text
}

/// An environment as systemd reads it.
///
/// # Errors
/// When a value cannot be written there.
pub(super) fn environment_file(env: &BTreeMap<String, String>) -> Result<String, RuntimeError> {
    let mut text = String::new();
    for (name, value) in env {
        if value.contains('\0') {
            let reason = io::Error::other(format!("{name} holds a zero byte"));
            return Err(failed("write the environment")(reason));
        }
        let escaped: String = value
            .chars()
            .flat_map(|c| match c {
                '"' | '\\' | '`' | '$' => vec!['\\', c],
                other => vec![other],
            })
            .collect();
        text.push_str(&format!("{name}=\"{escaped}\"\n"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{Mount, plan::tests::agent};

    #[test]
    fn n4_the_conf_file_is_rewritten_and_the_rest_of_it_kept() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let mut spec = agent(&root);
        spec.network = Network::Host;
        spec.mounts = vec![Mount {
            source: "/srv/project".into(),
            target: "/work".into(),
            access: Access::ReadOnly,
        }];
        let old = "SYSTEM_PATH=/nix/store/x\nPRIVATE_NETWORK=1\nHOST_ADDRESS=10.233.1.1\n\
                   LOCAL_ADDRESS=10.233.1.2\nHOST_BRIDGE=br0\nHOST_PORT=tcp:80:80\n\
                   EXTRA_NSPAWN_FLAGS=\"--old\"\nAUTO_START=0\n";
        let new = rewritten(old, &Settings::of(&spec).unwrap());
        let expected = "SYSTEM_PATH=/nix/store/x\nHOST_PORT=tcp:80:80\nAUTO_START=0\n\
            HOST_ADDRESS=\nHOST_ADDRESS6=\nLOCAL_ADDRESS=\nLOCAL_ADDRESS6=\nHOST_BRIDGE=\n\
            PRIVATE_NETWORK=0\nEXTRA_NSPAWN_FLAGS=\"--bind=DIR/agents/ada/state:/state \
            --bind=DIR/agents/ada/harness:/harness \
            --bind=DIR/agents/ada/claude:/home/agent/.claude \
            --bind-ro=DIR/agents/ada/run:/run/hive --bind-ro=/srv/project:/work\"\n";
        assert_eq!(new.replace(root.to_str().unwrap(), "DIR"), expected);
        let again = rewritten(&new, &Settings::of(&spec).unwrap());
        assert_eq!(again, new, "idempotent");
        spec.network = Network::Gateway;
        let private = rewritten(&new, &Settings::of(&spec).unwrap());
        assert!(private.contains("PRIVATE_NETWORK=1\n"), "when asked");
    }

    #[test]
    fn n3_a_path_that_a_shell_would_take_apart_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        for bad in [
            "/a b", "/a$(id)", "/a;b", "/a\"b", "/a\nb", "/a:b", "/a`b`", "/a*",
        ] {
            let mut spec = agent(&root);
            spec.mounts = vec![Mount {
                source: bad.into(),
                target: "/work".into(),
                access: Access::ReadOnly,
            }];
            let error = Settings::of(&spec).unwrap_err().to_string();
            assert!(error.contains("letters, digits"), "{bad:?}: {error}");
        }
    }

    #[test]
    fn limits_and_environment_are_written_as_systemd_reads_them() {
        let limits = Limits {
            memory_bytes: Some(1 << 30),
            pids: Some(512),
            cpu_percent: Some(150),
            file_bytes: Some(4096),
            ..Limits::default()
        };
        assert_eq!(
            limits_drop_in(&limits),
            "[Service]\nMemoryMax=1073741824\nTasksMax=512\nCPUQuota=150%\nLimitFSIZE=4096\n"
        );
        let env =
            |value: &str| environment_file(&BTreeMap::from([("A".to_owned(), value.to_owned())]));
        for (value, line) in [
            ("plain", "A=\"plain\"\n"),
            ("two words", "A=\"two words\"\n"),
            ("a\"b\\c$d`e", "A=\"a\\\"b\\\\c\\$d\\`e\"\n"),
            ("two\nlines", "A=\"two\nlines\"\n"),
        ] {
            assert_eq!(env(value).unwrap(), line, "{value:?}");
        }
        assert!(env("a\0b").is_err());
    }
}
