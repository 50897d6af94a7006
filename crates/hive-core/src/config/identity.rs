//! `[hive]`: who this hive is (C15).
//!
//! Every agent gets these in its environment, and its harness refuses what is not one line of a
//! decent length; so they are refused here first, where the operator sees it.

use hive_wire::AgentName;
use serde::{Deserialize, Deserializer, de};

use super::network::Budget;

/// The most characters of a name; the harness has the same limit.
const LONGEST_NAME: usize = 200;

/// Who this hive is (C15).
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hive {
    /// Its name.
    #[serde(deserialize_with = "name")]
    pub name: Option<String>,
    /// The domain that makes an agent's address, as in `ada@example.org`.
    #[serde(deserialize_with = "domain")]
    pub domain: Option<String>,
    /// The swarm it belongs to.
    #[serde(deserialize_with = "name")]
    pub swarm: Option<String>,
    /// The name of the root agent; empty for none.
    #[serde(deserialize_with = "root_agent")]
    pub root_agent: String,
    /// How prompts speak of the operator.
    #[serde(deserialize_with = "pronouns")]
    pub operator_pronouns: String,
    /// What all agents together may spend in a day.
    pub budget: Budget,
}

impl Default for Hive {
    fn default() -> Self {
        Self {
            name: None,
            domain: None,
            swarm: None,
            root_agent: "ruth".to_owned(),
            operator_pronouns: "she/her".to_owned(),
            budget: Budget::default(),
        }
    }
}

/// A name, where an empty one is none.
fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    if !is_line(&text) {
        return Err(de::Error::custom(format!(
            "a name is one line of at most {LONGEST_NAME} characters without blanks around it; \
             \"\" for none"
        )));
    }
    Ok(Some(text).filter(|text| !text.is_empty()))
}

fn pronouns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if !is_line(&text) {
        return Err(de::Error::custom(format!(
            "pronouns are one line of at most {LONGEST_NAME} characters, such as \"they/them\""
        )));
    }
    Ok(text)
}

/// A domain, where an empty one is none.
fn domain<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.is_empty() {
        return Ok(None);
    }
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(legal)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if text.len() > 253 || !text.split('.').all(is_label) {
        return Err(de::Error::custom(
            "a domain is words of letters, digits and `-` with dots between them, such as \
             \"example.org\"; \"\" for none",
        ));
    }
    Ok(Some(text))
}

/// An agent's name, or none.
fn root_agent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if !text.is_empty()
        && let Err(error) = text.parse::<AgentName>()
    {
        return Err(de::Error::custom(format!(
            "{error}; \"\" for no root agent"
        )));
    }
    Ok(text)
}

fn is_line(text: &str) -> bool {
    text.trim() == text
        && !text.chars().any(char::is_control)
        && text.chars().count() <= LONGEST_NAME
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(key: &str, value: &str) -> Result<Hive, String> {
        let value = toml::Value::from(value);
        toml::from_str(&format!("{key} = {value}\n")).map_err(|error| error.to_string())
    }

    #[test]
    fn c15_t27_an_empty_word_is_none() {
        for key in ["name", "swarm", "domain"] {
            let hive = parse(key, "").unwrap();
            assert_eq!(
                (hive.name, hive.swarm, hive.domain),
                (None, None, None),
                "{key}"
            );
        }
    }

    #[test]
    fn c15_names_and_domains_are_what_an_address_and_a_prompt_can_hold() {
        let longest = "ä".repeat(LONGEST_NAME);
        let labels = ["a".repeat(63).as_str(); 4].join(".");
        for (key, good) in [
            ("name", "pr1ma"),
            ("name", "The `big` hive"),
            ("swarm", longest.as_str()),
            ("domain", "example.org"),
            ("domain", "localhost"),
            ("domain", "xn--bcher-kva.example"),
            ("domain", &labels[..253]),
            ("operator_pronouns", "they/them"),
            ("operator_pronouns", ""),
            ("root_agent", ""),
            ("root_agent", "queen-1"),
        ] {
            assert_eq!(parse(key, good).err(), None, "{key} {good}");
        }
        let too_long = "x".repeat(LONGEST_NAME + 1);
        for (key, bad) in [
            ("name", "two\nlines"),
            ("name", "\u{1b}[2J"),
            ("swarm", " "),
            ("swarm", "north "),
            ("swarm", too_long.as_str()),
            ("operator_pronouns", "she\nher"),
            ("root_agent", "Ruth"),
            ("root_agent", "operator"),
            ("root_agent", "much-too-long"),
            ("domain", "."),
            ("domain", "example..org"),
            ("domain", "example.org."),
            ("domain", "-a.org"),
            ("domain", "exa mple.org"),
            ("domain", "ada@example.org"),
            ("domain", "example.org:80"),
            ("domain", "bücher.example"),
            ("domain", "a\n.org"),
            ("domain", &labels),
        ] {
            let error = parse(key, bad).unwrap_err();
            assert!(error.contains("line 1"), "{key} {bad:?}: {error}");
            assert!(error.contains(key), "{key} {bad:?}: {error}");
        }
    }
}
