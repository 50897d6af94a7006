//! The links of an agent's card and page (T31): a file that the agent can write, so hostile input.

use std::path::Path;

use hive_wire::{host::DashboardLink, text};
use serde::Deserialize;

use crate::{agent_config::HttpUrl, repos};

/// The file in the agent's state directory.
const FILE: &str = "hyperhive-dashboard-links.json";
/// How long it may be, in bytes.
const MAX_BYTES: u64 = 32 * 1024;
/// How many links are shown.
const MAX_LINKS: usize = 16;

#[derive(Deserialize)]
struct Row {
    label: String,
    url: String,
    #[serde(default)]
    icon: String,
}

/// The links of the agent with this state directory; what cannot be shown is left out.
pub(crate) fn read(state: &Path) -> Vec<DashboardLink> {
    let Some(bytes) = repos::read_hostile(state, FILE, MAX_BYTES) else {
        return Vec::new();
    };
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&bytes).unwrap_or_default();
    let rows = rows.into_iter().take(MAX_LINKS);
    rows.filter_map(|row| serde_json::from_value::<Row>(row).ok())
        .filter_map(|row| {
            let url: HttpUrl = row.url.parse().ok()?;
            let label = text::printable(&text::shorten(row.label.trim(), 60)).replace('\n', " ");
            let icon = text::printable(&text::shorten(row.icon.trim(), 8)).replace('\n', " ");
            (!label.is_empty()).then(|| DashboardLink {
                label,
                url: url.to_string(),
                icon,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn t31_links_are_read_as_hostile_input() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        fs::create_dir(&state).unwrap();
        assert_eq!(read(&state), []);
        let file = state.join(FILE);
        fs::write(
            &file,
            r#"[{"label":"Stats","url":"http://localhost:9001/stats","icon":"📊"},
                {"label":"evil","url":"javascript:alert(1)"},
                {"label":"data","url":"data:text/html,x"},
                {"label":"user","url":"http://a@b/"},
                {"label":"","url":"http://x/"},
                {"label":"\u001b[2J","url":"https://x/"},
                7, {"url":"http://x/"}]"#,
        )
        .unwrap();
        let links = read(&state);
        assert_eq!(links.len(), 2, "{links:?}");
        assert_eq!(links[0].label, "Stats");
        assert_eq!(links[0].icon, "📊");
        assert!(!links[1].label.contains('\u{1b}'));
        let many: Vec<_> = (0..99)
            .map(|n| serde_json::json!({"label": format!("l{n}"), "url": "http://x/"}))
            .collect();
        fs::write(&file, serde_json::to_vec(&many).unwrap()).unwrap();
        assert_eq!(read(&state).len(), MAX_LINKS);
        fs::write(&file, vec![b'['; 100_000]).unwrap();
        assert_eq!(read(&state), []);
        fs::remove_file(&file).unwrap();
        let outside = dir.path().join("outside");
        fs::write(&outside, r#"[{"label":"a","url":"http://x/"}]"#).unwrap();
        symlink(&outside, &file).unwrap();
        assert_eq!(read(&state), [], "a link is not followed");
    }
}
