//! What a command sees of the daemon's environment: what programs need, and no secrets.

use std::ffi::{OsStr, OsString};

/// Variables that commands may see. Everything else stays out, above all the keys of the engine.
const KEPT: [&str; 34] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "HOSTNAME",
    "HIVE_SOCKET",
    "HIVE_STATE_DIR",
    "HIVE_HARNESS_DIR",
    "HIVE_LABEL",
    "HIVE_BASH_SOCKET",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_CONFIG_GLOBAL",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NIX_PATH",
    "NIX_SSL_CERT_FILE",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
];

/// Families of variables that commands may see.
const KEPT_PREFIXES: [&str; 2] = ["LC_", "XDG_"];

/// The variables for commands, out of `all`; `more` names further ones.
pub(crate) fn clean(
    all: impl IntoIterator<Item = (OsString, OsString)>,
    more: &[String],
) -> Vec<(OsString, OsString)> {
    let mut kept: Vec<_> = all
        .into_iter()
        .filter(|(name, _)| is_kept(name, more))
        .collect();
    // There is no terminal: nothing should try to draw.
    kept.push(("TERM".into(), "dumb".into()));
    kept.push(("NO_COLOR".into(), "1".into()));
    kept
}

fn is_kept(name: &OsStr, more: &[String]) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    KEPT.contains(&name)
        || KEPT_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || more.iter().any(|kept| kept == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_tokens_stay_out_and_tools_still_work() {
        let all = [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("ANTHROPIC_API_KEY", "secret"),
            ("ANTHROPIC_AUTH_TOKEN", "secret"),
            ("CLAUDE_CODE_OAUTH_TOKEN", "secret"),
            ("CLAUDE_CONFIG_DIR", "/secret"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("GITHUB_TOKEN", "secret"),
            ("SSH_AUTH_SOCK", "/secret"),
            ("LD_PRELOAD", "/x.so"),
            ("JAVA_HOME", "/java"),
            ("TERM", "xterm"),
        ];
        let all = all.map(|(name, value)| (name.into(), value.into()));
        let kept = clean(all, &["JAVA_HOME".to_owned()]);
        let names: Vec<_> = kept
            .iter()
            .map(|(name, _)| name.to_str().unwrap())
            .collect();
        assert_eq!(names, ["PATH", "LC_ALL", "JAVA_HOME", "TERM", "NO_COLOR"]);
        assert!(kept.iter().all(|(_, value)| value != "secret"));
    }
}
