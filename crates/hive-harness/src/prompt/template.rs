//! The system prompt's template (T27): blocks for roles, and six placeholders.
//!
//! `<!-- role:X -->` opens a block and `<!-- /role:X -->` closes it; blanks inside the marker do not
//! matter. Blocks do not nest: an opener within a block replaces its role, and a block that is
//! never closed runs to the end. A closer of another role than the open one is left out and closes
//! nothing. Text outside of blocks is always kept.

use crate::environment::Identity;

/// The template that every agent's prompt is made of.
pub const SYSTEM: &str = include_str!("../prompts/system.md");

/// A role that decides which blocks of the template are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Every agent.
    Agent,
    /// The root agent, and whoever may ask for new agents.
    Manager,
}

impl Role {
    fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Manager => "manager",
        }
    }
}

/// A marker of a block.
enum Marker<'a> {
    Open(&'a str),
    Close(&'a str),
}

/// The template for an agent with these roles: blocks chosen, placeholders filled.
pub fn render(template: &str, roles: &[Role], identity: &Identity) -> String {
    fill(&choose(template, roles), identity)
}

/// Keeps what is outside of blocks and the blocks of the given roles.
fn choose(template: &str, roles: &[Role]) -> String {
    let has = |name: &str| roles.iter().any(|role| role.as_str() == name);
    let mut out = String::with_capacity(template.len());
    let mut open: Option<&str> = None;
    let mut rest = template;
    while let Some((before, marker, after)) = next_marker(rest) {
        if open.is_none_or(has) {
            out.push_str(before);
        }
        match marker {
            Marker::Open(role) => open = Some(role),
            Marker::Close(role) if open == Some(role) => open = None,
            Marker::Close(_) => {}
        }
        rest = after;
    }
    if open.is_none_or(has) {
        out.push_str(rest);
    }
    out
}

/// The first marker with what is before and after it. A newline right after a marker belongs to it,
/// so that a marker on a line of its own leaves no empty line.
fn next_marker(text: &str) -> Option<(&str, Marker<'_>, &str)> {
    let mut from = 0;
    loop {
        let start = from + text[from..].find("<!--")?;
        let inner_start = start + "<!--".len();
        let inner_len = text[inner_start..].find("-->")?;
        let inner = &text[inner_start..inner_start + inner_len];
        if let Some(marker) = parse_marker(inner) {
            let after = &text[inner_start + inner_len + "-->".len()..];
            let after = after.strip_prefix('\n').unwrap_or(after);
            return Some((&text[..start], marker, after));
        }
        from = inner_start;
    }
}

/// What stands between `<!--` and `-->`, when it is a marker.
fn parse_marker(inner: &str) -> Option<Marker<'_>> {
    let inner = inner.trim();
    let (closes, inner) = match inner.strip_prefix('/') {
        Some(inner) => (true, inner.trim_start()),
        None => (false, inner),
    };
    let role = inner
        .strip_prefix("role")?
        .trim_start()
        .strip_prefix(':')?
        .trim();
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if role.is_empty() || !role.chars().all(legal) {
        return None;
    }
    Some(if closes {
        Marker::Close(role)
    } else {
        Marker::Open(role)
    })
}

/// Fills the placeholders in one pass, so that a value that looks like one stays as it is.
fn fill(text: &str, identity: &Identity) -> String {
    let qualified = match &identity.domain {
        Some(domain) => format!("{}@{domain}", identity.label),
        None => identity.label.clone(),
    };
    let hive = named("on hive", identity.hive_name.as_deref());
    let swarm = named("in swarm", identity.swarm_name.as_deref());
    let values = [
        ("{label}", identity.label.as_str()),
        ("{qualified_label}", &qualified),
        ("{operator_pronouns}", &identity.operator_pronouns),
        ("{hive_identity}", &hive),
        ("{swarm_identity}", &swarm),
        ("{agents_dir}", &identity.agents_dir),
    ];
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        match values.iter().find(|(name, _)| rest.starts_with(name)) {
            Some((name, value)) => {
                out.push_str(value);
                rest = &rest[name.len()..];
            }
            None => {
                out.push('{');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// ` on hive `name``, or nothing when there is no name.
fn named(what: &str, name: Option<&str>) -> String {
    match name.filter(|name| !name.is_empty()) {
        Some(name) => format!(" {what} `{name}`"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Role::{Agent, Manager},
        *,
    };

    fn identity() -> Identity {
        Identity {
            agents_dir: "/agents".to_owned(),
            label: "ada".to_owned(),
            domain: Some("example.org".to_owned()),
            hive_name: Some("pr1ma".to_owned()),
            swarm_name: None,
            operator_pronouns: "they/them".to_owned(),
            is_manager: false,
            port: None,
            dashboard_port: None,
        }
    }

    #[rustfmt::skip]
    const BLOCKS: &[(&str, &str, &[Role], &str)] = &[
        ("no marker", "plain", &[Agent], "plain"),
        ("own block", "a<!-- role:agent -->b<!-- /role:agent -->c", &[Agent], "abc"),
        ("other block", "a<!-- role:manager -->b<!-- /role:manager -->c", &[Agent], "ac"),
        ("both roles", "<!-- role:manager -->m<!-- /role:manager -->", &[Agent, Manager], "m"),
        ("blanks do not matter", "<!--role:manager-->b<!--  /role:manager  -->c", &[Agent], "c"),
        ("blanks around the colon", "<!-- role : manager -->b<!-- / role: manager -->c", &[Agent], "c"),
        ("a stray opener runs to the end", "a<!-- role:manager -->b", &[Agent], "a"),
        ("or to its closer", "a<!-- role:x -->b<!-- role:manager -->c<!-- /role:manager -->d", &[Agent], "ad"),
        ("an opener within a block replaces its role", "<!-- role:manager -->a<!-- role:agent -->b<!-- /role:agent -->c", &[Agent], "bc"),
        ("a mismatched closer closes nothing", "<!-- role:manager -->a<!-- /role:agent -->b<!-- /role:manager -->c", &[Agent], "c"),
        ("a closer without opener is left out", "a<!-- /role:agent -->b", &[Agent], "ab"),
        ("an unknown role is nobody's", "a<!-- role:boss -->b<!-- /role:boss -->c", &[Agent, Manager], "ac"),
        ("an ordinary comment is text", "a<!-- hello -->b", &[Agent], "a<!-- hello -->b"),
        ("a role without a name is text", "<!-- role: -->b", &[Agent], "<!-- role: -->b"),
        ("an unfinished marker is text", "a<!-- role:manager", &[Agent], "a<!-- role:manager"),
        ("a marker's own line goes with it", "a\n<!-- role:agent -->\nb\n<!-- /role:agent -->\nc", &[Agent], "a\nb\nc"),
        ("a marker after an unfinished comment", "<!-- x <!-- role:manager -->b", &[Agent], "<!-- x "),
        ("nothing", "", &[Agent], ""),
    ];

    #[test]
    fn t27_blocks_are_kept_by_role() {
        for (what, template, roles, wanted) in BLOCKS {
            assert_eq!(choose(template, roles), *wanted, "{what}");
        }
    }

    #[test]
    fn t27_placeholders_are_filled_once() {
        let cases = [
            ("{label} {qualified_label}", "ada ada@example.org"),
            ("{operator_pronouns}", "they/them"),
            ("x{hive_identity}{swarm_identity}.", "x on hive `pr1ma`."),
            ("{unknown} {label", "{unknown} {label"),
            ("{{label}}", "{ada}"),
        ];
        for (template, wanted) in cases {
            assert_eq!(fill(template, &identity()), wanted, "{template}");
        }
        let in_swarm = Identity {
            swarm_name: Some("north".to_owned()),
            ..identity()
        };
        assert_eq!(
            fill("x{hive_identity}{swarm_identity}.", &in_swarm),
            "x on hive `pr1ma` in swarm `north`."
        );
        let odd = Identity {
            swarm_name: Some(String::new()),
            label: "{operator_pronouns}".to_owned(),
            hive_name: Some(String::new()),
            domain: None,
            ..identity()
        };
        assert_eq!(
            fill("{qualified_label}{hive_identity}{swarm_identity}", &odd),
            "{operator_pronouns}"
        );
    }

    #[test]
    fn t27_m17_the_policy_is_the_managers() {
        let agent = render(SYSTEM, &[Agent], &identity());
        let manager = render(SYSTEM, &[Agent, Manager], &identity());
        assert!(agent.starts_with("You are `ada`, an agent on hive `pr1ma`. "));
        assert!(!agent.contains("look after this hive"));
        for word in ["role", "genuine", "cheaper", "go wrong", "unclear"] {
            assert!(manager.contains(word), "{word}");
        }
        for text in [&agent, &manager] {
            assert!(!text.contains("<!--") && !text.contains("{label}"));
        }
    }
}
