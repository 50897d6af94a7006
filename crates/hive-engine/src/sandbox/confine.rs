//! The cage of Landlock: `hive-engine confine` puts it on and becomes the command.
//!
//! It can forbid files and TCP, not single parts of a directory that is permitted, nor other
//! sockets; that is why it comes second.

use std::{
    io,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use clap::Args;
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetStatus, Scope, path_beneath_rules,
};

/// The newest version of the kernel's interface that is made use of.
const NEWEST: ABI = ABI::V6;
/// The first that can forbid TCP.
const WITH_NETWORK: ABI = ABI::V4;
/// Devices that commands write to.
const DEVICES: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/tty",
    "/dev/random",
    "/dev/urandom",
];

/// What a command is confined to.
#[derive(Debug, Args)]
pub struct Confinement {
    /// A directory that may be written to.
    #[arg(long, value_name = "DIR")]
    write: Vec<PathBuf>,
    /// Leave the network open.
    #[arg(long)]
    network: bool,
    /// The command.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Whether this kernel can do it.
pub(super) fn check(allow_network: bool) -> Result<(), String> {
    let needed = if allow_network { ABI::V1 } else { WITH_NETWORK };
    let strict = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let made = strict
        .handle_access(AccessFs::from_all(needed))
        .and_then(|ruleset| match allow_network {
            true => Ok(ruleset),
            false => ruleset.handle_access(AccessNet::from_all(needed)),
        })
        .and_then(Ruleset::create);
    match made {
        Ok(_) => Ok(()),
        Err(_) => Err("the kernel's Landlock is missing, off or too old".to_owned()),
    }
}

/// What goes before the command: this program itself.
pub(super) fn words(roots: &[PathBuf], tmp: &Path, allow_network: bool) -> Vec<String> {
    let mut args = vec!["/proc/self/exe".to_owned(), "confine".to_owned()];
    if allow_network {
        args.push("--network".into());
    }
    for dir in roots.iter().map(PathBuf::as_path).chain([tmp]) {
        args.extend(["--write".into(), dir.to_string_lossy().into_owned()]);
    }
    args.push("--".into());
    args
}

/// Confines this process and becomes the command. Returns only when that failed, with why.
pub fn run(confinement: &Confinement) -> String {
    if let Err(error) = restrict(confinement) {
        return format!("Error: the sandbox could not be put on: {error}");
    }
    let Some((program, args)) = confinement.command.split_first() else {
        return "Error: there is no command".to_owned();
    };
    let error = Command::new(program).args(args).exec();
    format!("Error: {program} could not be started: {error}")
}

fn restrict(confinement: &Confinement) -> io::Result<()> {
    let other = io::Error::other;
    let writable = confinement.write.iter().map(PathBuf::as_path);
    let devices = DEVICES.iter().map(Path::new);
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST))
        .map_err(other)?
        .scope(Scope::from_all(NEWEST))
        .map_err(other)?;
    if !confinement.network {
        ruleset = ruleset
            .handle_access(AccessNet::from_all(NEWEST))
            .map_err(other)?;
    }
    let status = ruleset
        .create()
        .map_err(other)?
        .add_rules(path_beneath_rules(["/"], AccessFs::from_read(NEWEST)))
        .map_err(other)?
        .add_rules(path_beneath_rules(writable, AccessFs::from_all(NEWEST)))
        .map_err(other)?
        .add_rules(path_beneath_rules(devices, AccessFs::from_all(NEWEST)))
        .map_err(other)?
        .restrict_self()
        .map_err(other)?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err(io::Error::other("the kernel does not enforce Landlock")),
        RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => Ok(()),
    }
}
