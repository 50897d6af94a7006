//! Links that an agent's configuration puts on its card and page (T31). The file lies where the
//! agent can write, so it is read as anybody's: few, short, to web pages only.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::beneath::{self, Found};
use crate::render::markdown::safe_link;

/// Where they are written at boot.
const FILE: &str = "hyperhive-dashboard-links.json";
/// The largest file, the most links, and the longest words in one.
const MAX_FILE: u64 = 64 * 1024;
const MAX_LINKS: usize = 16;
const MAX_LABEL: usize = 60;
const MAX_ICON: usize = 4;

/// A link on an agent's card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) struct DashboardLink {
    pub(super) label: String,
    pub(super) url: String,
    /// An emoji or a short sign.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) icon: String,
}

/// The links in an agent's state directory; none when there is no file that makes sense.
pub(super) fn read(state: &Path) -> Vec<DashboardLink> {
    let Ok(Found::File(mut file)) = beneath::open(state, FILE) else {
        return Vec::new();
    };
    if file.size > MAX_FILE {
        return Vec::new();
    }
    let bytes = file.read(0, usize::try_from(MAX_FILE).unwrap_or(0));
    bytes.map(|bytes| parse(&bytes)).unwrap_or_default()
}

fn parse(bytes: &[u8]) -> Vec<DashboardLink> {
    let given: Vec<serde_json::Value> = serde_json::from_slice(bytes).unwrap_or_default();
    let links = given
        .into_iter()
        .filter_map(|link| serde_json::from_value(link).ok());
    links.filter_map(checked).take(MAX_LINKS).collect()
}

fn checked(link: DashboardLink) -> Option<DashboardLink> {
    let url = safe_link(&link.url).filter(|url| !url.starts_with("mailto:"))?;
    let plain = |text: &str, max: usize| -> String {
        let shown = text.chars().filter(|c| !c.is_control());
        shown.take(max).collect::<String>().trim().to_owned()
    };
    let label = plain(&link.label, MAX_LABEL);
    (!label.is_empty()).then(|| DashboardLink {
        label,
        url,
        icon: plain(&link.icon, MAX_ICON),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_links_to_the_web_are_kept() {
        let given = br#"[
            {"label":"Forge","url":"http://localhost:3000/ada","icon":"F"},
            {"label":"bad","url":"javascript:alert(1)"},
            {"label":"mail","url":"mailto:a@b"},
            {"label":"","url":"http://a"},
            {"label":7,"url":"http://a"},
            "nonsense",
            {"label":"long name with\nbreaks","url":"https://a.test/x","icon":"abcdefgh"}
        ]"#;
        let links = parse(given);
        let shown: Vec<_> = links
            .iter()
            .map(|link| (link.label.as_str(), link.icon.as_str()))
            .collect();
        assert_eq!(shown, [("Forge", "F"), ("long name withbreaks", "abcd")]);
        assert!(parse(b"{}").is_empty() && parse(b"[").is_empty());
        let many = format!(
            "[{}]",
            vec![r#"{"label":"x","url":"http://a"}"#; 99].join(",")
        );
        assert_eq!(parse(many.as_bytes()).len(), MAX_LINKS);
    }
}
