//! The tools by themselves, called with as little as they need to run `true` apart from the host.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use hive_wire::host::Runtime;

/// How long the bare tool of a runtime takes; `None` when it has none.
pub(super) fn run(kind: Runtime, scratch: &Path) -> Result<Option<Duration>> {
    let mut command = match kind {
        Runtime::Bwrap => bwrap(),
        Runtime::Nspawn => nspawn(&skeleton(scratch)?),
        Runtime::Podman => podman(&skeleton(scratch)?, scratch)?,
        Runtime::Auto | Runtime::None | Runtime::Process | Runtime::Nixos => return Ok(None),
    };
    let begun = Instant::now();
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let took = begun.elapsed();
    ensure!(status.success(), "the bare {}: {status}", kind.as_str());
    Ok(Some(took))
}

fn bwrap() -> Command {
    let mut command = Command::new("bwrap");
    command.args(["--unshare-all", "--ro-bind", "/", "/"]);
    command.args(["--proc", "/proc", "--dev", "/dev", "--", "/bin/true"]);
    command
}

fn nspawn(root: &Path) -> Command {
    let mut command = Command::new("systemd-nspawn");
    command.args(["--quiet", "--register=no", "--keep-unit", "--settings=no"]);
    command.args([
        "--console=pipe",
        "--as-pid2",
        "--resolv-conf=off",
        "--timezone=off",
    ]);
    command.args(["--read-only", "--private-network", "--bind-ro=/usr"]);
    command.arg("--directory").arg(root);
    command.args(["--", "/bin/true"]);
    command
}

fn podman(root: &Path, scratch: &Path) -> Result<Command> {
    let config = scratch.join("containers.conf");
    let limits = "[containers]\ndefault_ulimits = [\"nofile=1024:4096\", \"nproc=4096:4096\"]\n";
    fs::write(&config, limits)?;
    let store = scratch.join("bare-podman");
    let mut command = Command::new("podman");
    command.env("CONTAINERS_CONF", config);
    for (option, dir) in [
        ("--root", "storage"),
        ("--runroot", "run"),
        ("--tmpdir", "tmp"),
    ] {
        command.arg(option).arg(store.join(dir));
    }
    command.args(["--storage-driver=vfs", "--cgroup-manager=cgroupfs"]);
    command.arg("--events-backend=file");
    if !Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
        command.arg("--runtime=runc");
    }
    command.args(["run", "--rm", "--network=none", "--read-only"]);
    command
        .args(["--volume=/usr:/usr:ro", "--rootfs"])
        .arg(root);
    command.arg("/bin/true");
    Ok(command)
}

/// A root of mount points, as a user of these tools would make one.
fn skeleton(scratch: &Path) -> Result<std::path::PathBuf> {
    let root = scratch.join("bare-root");
    if root.exists() {
        return Ok(root);
    }
    for name in ["usr", "etc", "dev", "proc", "sys", "run", "tmp"] {
        fs::create_dir_all(root.join(name))?;
    }
    for name in ["bin", "sbin", "lib", "lib64"] {
        symlink(format!("usr/{name}"), root.join(name))?;
    }
    Ok(root)
}
