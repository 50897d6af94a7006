//! What the operator gives to an agent: tool groups and capabilities, by their words. Which command
//! needs which of them is the host's rule and not known here.

use std::{collections::BTreeSet, fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

use crate::text;

/// A word that names no group or capability.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no {what} `{word}`{guess}")]
pub struct UnknownWord {
    what: &'static str,
    word: String,
    guess: String,
}

impl UnknownWord {
    fn new(what: &'static str, word: &str, known: &[&'static str]) -> Self {
        let word = text::shorten(word, 40);
        let guess = match text::did_you_mean(&word, known.iter().copied()) {
            Some(near) => format!(": did you mean `{near}`?"),
            None => format!(": they are {}", known.join(", ")),
        };
        Self { what, word, guess }
    }
}

/// Declares a closed set of words once: as variants, as a list and as what stands on the wire.
macro_rules! words {
    ($(#[$doc:meta])* $set:ident = $what:literal { $($(#[$word_doc:meta])* $word:ident => $name:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, schemars::JsonSchema)]
        #[schemars(with = "String")]
        pub enum $set {
            $($(#[$word_doc])* $word,)+
        }

        impl $set {
            /// All there are.
            pub const ALL: &'static [Self] = &[$(Self::$word),+];
            /// Their words, in the same order.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// Its word, as on the wire.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$word => $name,)+
                }
            }
        }

        impl FromStr for $set {
            type Err = UnknownWord;

            fn from_str(word: &str) -> Result<Self, UnknownWord> {
                match word {
                    $($name => Ok(Self::$word),)+
                    _ => Err(UnknownWord::new($what, word, Self::NAMES)),
                }
            }
        }

        impl fmt::Display for $set {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl Serialize for $set {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $set {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = std::borrow::Cow::<str>::deserialize(deserializer)?;
                word.parse().map_err(de::Error::custom)
            }
        }
    };
}

words! {
    /// A group of tools that the operator gives to an agent or not (M1).
    Group = "tool group" {
        /// Talking with others.
        Messaging => "messaging",
        /// Who one is and how one is seen.
        Meta => "meta",
        /// What is open around oneself.
        Inbox => "inbox",
        /// Gates nothing: background bash is always there.
        Execution => "execution",
        /// Stopping and starting children.
        Lifecycle => "lifecycle",
        /// Asking for new agents and changed configs.
        Approvals => "approvals",
        /// Prompts at a time.
        Scheduling => "scheduling",
        /// Logs of oneself and of children.
        Diagnostics => "diagnostics",
        /// The engine's own web tools.
        WebTools => "web_tools",
    }
}

words! {
    /// Something that an agent may do beyond its groups (C14).
    Capability = "capability" {
        /// Looking into the affairs of agents that are not its children.
        QueryAgentState => "query_agent_state",
        /// Reading the log of the host.
        ReadHostJournal => "read_host_journal",
    }
}

/// The groups of one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Groups(BTreeSet<Group>);

impl Default for Groups {
    fn default() -> Self {
        Self::from_iter([
            Group::Messaging,
            Group::Meta,
            Group::Inbox,
            Group::Execution,
        ])
    }
}

impl FromIterator<Group> for Groups {
    fn from_iter<I: IntoIterator<Item = Group>>(groups: I) -> Self {
        Self(groups.into_iter().collect())
    }
}

impl Groups {
    /// Every group there is.
    pub fn all() -> Self {
        Group::ALL.iter().copied().collect()
    }

    /// Reads a list with commas or blanks between its words; the default when there are none.
    /// Unknown words come back beside it: they grant nothing.
    pub fn parse(list: &str) -> (Self, Vec<String>) {
        let words = list.split([',', ' ', '\t', '\n']).filter(|w| !w.is_empty());
        let (mut groups, mut unknown) = (BTreeSet::new(), Vec::new());
        for word in words {
            match word.parse() {
                Ok(group) => {
                    groups.insert(group);
                }
                Err(UnknownWord { .. }) => unknown.push(word.to_owned()),
            }
        }
        if groups.is_empty() && unknown.is_empty() {
            return (Self::default(), unknown);
        }
        (Self(groups), unknown)
    }

    /// Whether the agent has this group.
    pub fn has(&self, group: Group) -> bool {
        self.0.contains(&group)
    }

    /// The groups, in the order in which lists show them.
    pub fn iter(&self) -> impl Iterator<Item = Group> {
        self.0.iter().copied()
    }

    /// Their words, as a list of them is written in an environment. An empty list there means the
    /// defaults; so one without groups names the one that gates nothing.
    pub fn join(&self) -> String {
        if self.0.is_empty() {
            return Group::Execution.as_str().to_owned();
        }
        let words: Vec<&str> = self.iter().map(Group::as_str).collect();
        words.join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m1_lists_of_groups_are_read_as_people_write_them() {
        let of = |groups: &[Group]| groups.iter().copied().collect::<Groups>();
        for (list, groups, unknown) in [
            ("", Groups::default(), vec![]),
            (" , ", Groups::default(), vec![]),
            ("meta", of(&[Group::Meta]), vec![]),
            (
                "meta, lifecycle\tweb_tools",
                of(&[Group::Meta, Group::Lifecycle, Group::WebTools]),
                vec![],
            ),
            ("meta,Meta,root", of(&[Group::Meta]), vec!["Meta", "root"]),
            ("everything", of(&[]), vec!["everything"]),
        ] {
            let (read, left) = Groups::parse(list);
            assert_eq!(read, groups, "{list:?}");
            assert_eq!(left, unknown, "{list:?}");
        }
    }

    #[test]
    fn words_travel_as_themselves_and_a_wrong_one_is_guessed() {
        for group in Group::ALL {
            let json = serde_json::to_string(group).unwrap();
            assert_eq!(json, format!("\"{group}\""));
            assert_eq!(serde_json::from_str::<Group>(&json).unwrap(), *group);
        }
        for capability in Capability::ALL {
            assert_eq!(capability.as_str().parse(), Ok(*capability));
        }
        let error = serde_json::from_str::<Group>("\"lifecycel\"").unwrap_err();
        assert!(error.to_string().contains("`lifecycle`"), "{error}");
        let error = "root".parse::<Capability>().unwrap_err();
        assert!(error.to_string().contains("query_agent_state"), "{error}");
    }

    #[test]
    fn a_joined_list_is_read_back() {
        let groups = Groups::all();
        assert_eq!(Groups::parse(&groups.join()), (groups, vec![]));
        let nothing = Groups::from_iter([]);
        let (read, _) = Groups::parse(&nothing.join());
        assert_eq!(read.iter().collect::<Vec<_>>(), [Group::Execution]);
    }
}
