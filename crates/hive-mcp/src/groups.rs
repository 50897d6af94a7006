//! Tool groups: which tools an agent is shown. The host enforces them, here they only shorten the
//! list that the model reads.

use std::collections::BTreeSet;

/// Declares the groups once: as variants, as a list and as their words.
macro_rules! groups {
    ($($(#[$doc:meta])* $group:ident => $name:literal),+ $(,)?) => {
        /// A group of tools that the operator gives to an agent or not.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Group {
            $($(#[$doc])* $group,)+
        }

        impl Group {
            /// Every group.
            pub const ALL: &'static [Self] = &[$(Self::$group),+];

            /// The group as it is written in `HIVE_TOOL_GROUPS`.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$group => $name,)+
                }
            }
        }
    };
}

groups! {
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
    /// Logs of others.
    Diagnostics => "diagnostics",
    /// The engine's own web tools.
    WebTools => "web_tools",
}

/// The groups of one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Groups(BTreeSet<Group>);

impl Default for Groups {
    fn default() -> Self {
        Self(
            [
                Group::Messaging,
                Group::Meta,
                Group::Inbox,
                Group::Execution,
            ]
            .into(),
        )
    }
}

impl Groups {
    /// Every group there is.
    pub fn all() -> Self {
        Self(Group::ALL.iter().copied().collect())
    }

    /// Reads a list with commas or blanks between its words; the default when there are none.
    /// Unknown words come back beside it: they grant nothing.
    pub fn parse(list: &str) -> (Self, Vec<String>) {
        let words = list.split([',', ' ', '\t', '\n']).filter(|w| !w.is_empty());
        let (mut groups, mut unknown) = (BTreeSet::new(), Vec::new());
        for word in words {
            match Group::ALL.iter().find(|group| group.as_str() == word) {
                Some(group) => {
                    groups.insert(*group);
                }
                None => unknown.push(word.to_owned()),
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m1_lists_of_groups_are_read_as_people_write_them() {
        let of = |groups: &[Group]| Groups(groups.iter().copied().collect());
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
}
