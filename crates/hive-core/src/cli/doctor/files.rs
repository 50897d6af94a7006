//! Checks of the hive's directories.

use std::{fs::Metadata, os::unix::fs::MetadataExt, path::Path};

use hive_store::Readers;
use hive_wire::socket::{MAX_SOCKET_PATH, fits, reachable};
use rustix::process::geteuid;

use super::{Facts, Finding};

/// The least free space on which a hive can go on for a while.
const MIN_FREE_MIB: u64 = 256;

/// The root directory is there.
pub(super) fn root_dir(facts: &Facts) -> Finding {
    let root = &facts.places.root;
    let (good, measured) = match std::fs::metadata(root) {
        Ok(meta) if meta.is_dir() => (true, root.display().to_string()),
        Ok(_) => (false, format!("{} is no directory", root.display())),
        Err(error) => (false, format!("{}: {error}", root.display())),
    };
    Finding::expect(
        good,
        measured,
        "a directory",
        "`hive-c0re up` creates it; another one is chosen with --root or HIVE_ROOT",
    )
}

/// The root directory belongs to whoever runs this.
pub(super) fn root_owner(facts: &Facts) -> Finding {
    with_root(facts, |root, meta| {
        let me = geteuid().as_raw();
        Finding::expect(
            me == 0 || meta.uid() == me,
            format!("uid {}", meta.uid()),
            format!("uid {me}"),
            format!(
                "run this as uid {}, or `chown -R {me} {}`",
                meta.uid(),
                root.display()
            ),
        )
    })
}

/// Nobody else can write to the root directory.
pub(super) fn root_mode(facts: &Facts) -> Finding {
    with_root(facts, |root, meta| {
        let mode = meta.mode() & 0o7777;
        Finding::expect(
            mode & 0o022 == 0,
            format!("{mode:04o}"),
            "not writable by group or others",
            format!("`chmod go-w {}`", root.display()),
        )
    })
}

/// Every page of the database is what it should be.
pub(super) fn database(facts: &Facts) -> Finding {
    let path = &facts.places.database;
    if !path.exists() {
        return Finding::skipped("no database yet");
    }
    let problem = Readers::open_file(path).and_then(|readers| readers.integrity());
    let measured = match problem {
        Ok(None) => "whole".to_owned(),
        Ok(Some(problem)) => problem,
        Err(error) => error.to_string(),
    };
    Finding::expect(
        measured == "whole",
        measured,
        "whole",
        "keep the files and restore a backup: docs/persistence.md tells how",
    )
}

/// There is room for messages.
pub(super) fn disk_space(facts: &Facts) -> Finding {
    let existing = facts.places.root.ancestors().find(|dir| dir.exists());
    let dir = existing.unwrap_or(Path::new("/"));
    let free = match rustix::fs::statvfs(dir) {
        Ok(stat) => stat.f_bavail.saturating_mul(stat.f_frsize) >> 20,
        Err(error) => return Finding::skipped(format!("{}: {error}", dir.display())),
    };
    Finding::expect(
        free >= MIN_FREE_MIB,
        format!("{free} MiB free"),
        format!("at least {MIN_FREE_MIB} MiB"),
        format!("free some space on the disk of {}", dir.display()),
    )
}

/// The kernel takes the admin socket's path, or the path leads to one that it takes.
pub(super) fn socket_path(facts: &Facts) -> Finding {
    let socket = &facts.places.host_socket;
    let length = socket.as_os_str().len();
    let linked = !fits(socket) && reachable(socket).is_ok();
    let measured = if linked {
        format!("{length} bytes, linked to a shorter path")
    } else {
        format!("{length} bytes")
    };
    Finding::expect(
        fits(socket) || linked,
        measured,
        format!("at most {MAX_SOCKET_PATH} bytes, or a link to a shorter path"),
        "a running daemon leaves a link to a short path; or choose a shorter --root",
    )
    .as_note()
}

fn with_root(facts: &Facts, examine: impl FnOnce(&Path, &Metadata) -> Finding) -> Finding {
    let root = &facts.places.root;
    match std::fs::metadata(root) {
        Ok(meta) => examine(root, &meta),
        Err(error) => Finding::skipped(format!("{}: {error}", root.display())),
    }
}
