//! Who is in the hive and who may write to whom: pure rules over the registered agents.

use std::{collections::BTreeMap, sync::Arc};

use hive_store::sqlite::AgentRecord;
use hive_wire::{
    AgentName, ErrorCode, Recipient, SenderLabel, WireError,
    grants::Capability,
    name::{OPERATOR, PARENT, RESERVED},
    text,
};

use crate::{agent_config::AgentConfig, permissions::Grants};

/// The deepest tree of agents.
const MAX_DEPTH: usize = 8;
/// The most agents in one hive.
const MAX_AGENTS: usize = 1_000;

/// The agents that live, by name. A clone shares them until one of the two changes.
#[derive(Debug, Clone, Default)]
pub struct Roster {
    agents: Arc<BTreeMap<AgentName, AgentRecord>>,
}

impl Roster {
    pub(crate) fn new(agents: impl IntoIterator<Item = AgentRecord>) -> Self {
        let named = agents.into_iter().map(|agent| (agent.name.clone(), agent));
        Self {
            agents: Arc::new(named.collect()),
        }
    }

    pub(crate) fn insert(&mut self, agent: AgentRecord) {
        Arc::make_mut(&mut self.agents).insert(agent.name.clone(), agent);
    }

    /// Takes an agent out; its children become roots.
    pub(crate) fn remove(&mut self, name: &AgentName) {
        let agents = Arc::make_mut(&mut self.agents);
        agents.remove(name);
        for agent in agents.values_mut() {
            if agent.parent.as_ref() == Some(name) {
                agent.parent = None;
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &AgentRecord> {
        self.agents.values()
    }

    pub(crate) fn len(&self) -> usize {
        self.agents.len()
    }

    pub(crate) fn has_port(&self, port: u16) -> bool {
        self.agents.values().any(|agent| agent.port == port)
    }

    /// Where a message from `sender` goes that says it is for `to` (M2, C9).
    pub(crate) fn route(
        &self,
        sender: Option<&AgentName>,
        to: &str,
    ) -> Result<Recipient, WireError> {
        // Its socket may outlive it by a moment.
        if let Some(gone) = sender.filter(|name| !self.agents.contains_key(*name)) {
            return Err(WireError::new(
                ErrorCode::Denied,
                format!("`{gone}` is no longer an agent of this hive"),
            ));
        }
        match to {
            OPERATOR => return Ok(Recipient::Operator),
            PARENT => {
                let parent = sender.and_then(|name| self.agents.get(name)?.parent.clone());
                return Ok(parent.map_or(Recipient::Operator, Recipient::Agent));
            }
            _ => {}
        }
        self.find(to)
            .map(|agent| Recipient::Agent(agent.name.clone()))
    }

    /// Where a message of an agent with these grants and this configuration goes (M2).
    pub(crate) fn route_from(
        &self,
        sender: &AgentName,
        grants: &Grants,
        config: &AgentConfig,
        to: &str,
    ) -> Result<Recipient, WireError> {
        let recipient = self.route(Some(sender), to)?;
        let parent = self.agents.get(sender).and_then(|own| own.parent.as_ref());
        grants.check_recipient(sender, parent, &recipient)?;
        self.may_write(sender, &recipient, config)?;
        Ok(recipient)
    }

    /// Whom a question of such an agent goes to: as a message would, but the operator can always be
    /// asked.
    pub(crate) fn route_question(
        &self,
        asker: &AgentName,
        grants: &Grants,
        config: &AgentConfig,
        to: &str,
    ) -> Result<Recipient, WireError> {
        match self.route(Some(asker), to)? {
            Recipient::Operator => Ok(Recipient::Operator),
            Recipient::Agent(_) => self.route_from(asker, grants, config, to),
        }
    }

    /// Refuses a recipient that the sender's configuration does not name. Whoever is above it is
    /// always reachable (M2).
    pub(crate) fn may_write(
        &self,
        sender: &AgentName,
        to: &Recipient,
        config: &AgentConfig,
    ) -> Result<(), WireError> {
        let above = self
            .agents
            .get(sender)
            .and_then(|agent| agent.parent.clone());
        let above = above.map_or(Recipient::Operator, Recipient::Agent);
        if *to == above || config.may_write_to(to.as_str()) {
            return Ok(());
        }
        let allowed: Vec<_> = config
            .allowed_recipients
            .iter()
            .map(|name| name.as_str())
            .collect();
        Err(WireError::new(
            ErrorCode::Denied,
            format!("you may not write to `{}`", to.as_str()),
        )
        .hint(format!(
            "your configuration lets you write to {} and to `<parent>`",
            text::shorten(&allowed.join(", "), 200)
        )))
    }

    /// A living agent by its name, or an error that names the nearest one.
    pub(crate) fn find(&self, name: &str) -> Result<&AgentRecord, WireError> {
        if let Some(agent) = self.agents.get(name) {
            return Ok(agent);
        }
        let name = text::shorten(name, 40);
        let known = self.agents.keys().map(AgentName::as_str).chain([OPERATOR]);
        let hint = match text::did_you_mean(&name, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`hive-c0re list` shows the agents; `operator` and `<parent>` work too".into(),
        };
        Err(WireError::new(ErrorCode::NotFound, format!("there is no agent `{name}`")).hint(hint))
    }

    /// Whether an agent may look into another one's affairs: itself, one of its children, or
    /// anybody with the capability (M6).
    pub(crate) fn may_inspect(
        &self,
        caller: &AgentName,
        other: &str,
        grants: &Grants,
    ) -> Result<AgentName, WireError> {
        if other == "*" {
            return Err(
                WireError::new(ErrorCode::Denied, "`*` is the operator's alone")
                    .hint("name one agent"),
            );
        }
        let agent = self.find(other)?;
        let is_near = agent.name == *caller || agent.parent.as_ref() == Some(caller);
        if is_near || grants.has(Capability::QueryAgentState) {
            return Ok(agent.name.clone());
        }
        Err(not_a_child(
            other,
            "you can look at yourself and at your direct children; for others the operator would \
             have to grant you the capability `query_agent_state`",
        ))
    }

    /// A direct child of this agent (M11).
    pub(crate) fn child(
        &self,
        caller: &AgentName,
        name: &AgentName,
    ) -> Result<&AgentRecord, WireError> {
        let agent = self.find(name.as_str())?;
        if agent.parent.as_ref() == Some(caller) {
            return Ok(agent);
        }
        Err(not_a_child(
            name.as_str(),
            "you manage your direct children; ask the operator about others",
        ))
    }

    /// A label for a wake: not a name that means somebody (M16).
    pub(crate) fn wake_label(&self, from: &str) -> Result<SenderLabel, WireError> {
        let label: SenderLabel = from
            .parse()
            .map_err(|error| WireError::new(ErrorCode::BadRequest, format!("`from`: {error}")))?;
        if RESERVED.contains(&from) || self.agents.contains_key(from) {
            return Err(
                WireError::new(ErrorCode::Denied, format!("`{from}` is somebody's name"))
                    .hint("a wake carries a label of its own, such as `matrix` or `bash-task-12`"),
            );
        }
        Ok(label)
    }

    /// Whether an agent of this name may be added under this parent.
    pub(crate) fn check_new(
        &self,
        name: &AgentName,
        parent: Option<&AgentName>,
    ) -> Result<(), WireError> {
        if self.agents.contains_key(name) {
            return Err(WireError::new(
                ErrorCode::Conflict,
                format!("there is an agent `{name}` already"),
            )
            .hint("choose another name, or `destroy` that one first"));
        }
        if self.agents.len() >= MAX_AGENTS {
            return Err(WireError::new(
                ErrorCode::LimitReached,
                format!("this hive has {MAX_AGENTS} agents, which is the most it takes"),
            ));
        }
        let mut depth = 1;
        let mut above = parent.cloned();
        while let Some(ancestor) = above {
            depth += 1;
            if ancestor == *name || depth > MAX_DEPTH {
                return Err(WireError::new(
                    ErrorCode::BadRequest,
                    format!("`{name}` would stand {depth} levels deep, or above itself"),
                )
                .hint(format!("a tree of agents has at most {MAX_DEPTH} levels")));
            }
            above = self.find(ancestor.as_str())?.parent.clone();
        }
        Ok(())
    }
}

fn not_a_child(name: &str, hint: &str) -> WireError {
    let name = text::shorten(name, 40);
    WireError::new(
        ErrorCode::Denied,
        format!("`{name}` is not a child of yours"),
    )
    .hint(hint)
}

#[cfg(test)]
mod tests {
    use hive_wire::{Timestamp, host::Runtime};

    use super::*;

    fn roster(agents: &[(&str, Option<&str>)]) -> Roster {
        Roster::new(agents.iter().map(|(name, parent)| AgentRecord {
            name: name.parse().unwrap(),
            parent: parent.map(|parent| parent.parse().unwrap()),
            runtime: Runtime::None,
            port: 8100,
            created_at: Timestamp::from_millis(0),
            run: hive_store::sqlite::Run::default(),
        }))
    }

    #[test]
    fn m2_c9_routing() {
        let roster = roster(&[("ruth", None), ("ada", Some("ruth")), ("bob", Some("ada"))]);
        let ada: AgentName = "ada".parse().unwrap();
        let ruth: AgentName = "ruth".parse().unwrap();
        let cases = [
            (Some(&ada), "bob", Ok("bob")),
            (Some(&ada), "ada", Ok("ada")),
            (Some(&ada), "operator", Ok("operator")),
            (Some(&ada), "<parent>", Ok("ruth")),
            (Some(&ruth), "<parent>", Ok("operator")),
            (None, "<parent>", Ok("operator")),
            (Some(&ada), "nobody", Err(ErrorCode::NotFound)),
            (Some(&ada), "system", Err(ErrorCode::NotFound)),
            (Some(&ada), "", Err(ErrorCode::NotFound)),
            (Some(&ada), "a\nb", Err(ErrorCode::NotFound)),
        ];
        for (sender, to, expected) in cases {
            let found = roster.route(sender, to);
            let found = found
                .as_ref()
                .map(Recipient::as_str)
                .map_err(|error| error.code);
            assert_eq!(found, expected, "{sender:?} → {to:?}");
        }
        let gone: AgentName = "gone".parse().unwrap();
        assert!(
            roster.route(Some(&gone), "bob").is_err(),
            "destroyed a moment ago"
        );
        assert!(
            roster
                .route(None, "adaa")
                .unwrap_err()
                .hint
                .contains("`ada`")
        );
    }

    #[test]
    fn m16_a_wake_cannot_pose_as_somebody() {
        let roster = roster(&[("ada", None)]);
        for label in ["bash-task-12", "matrix"] {
            assert!(roster.wake_label(label).is_ok(), "{label}");
        }
        for label in [
            "ada", "operator", "system", "self", "", "A", "x\ny", "<parent>",
        ] {
            assert!(roster.wake_label(label).is_err(), "{label:?}");
        }
    }

    #[test]
    fn m6_m11_only_direct_children_are_ones_own() {
        let tree = [
            ("ruth", None),
            ("ada", Some("ruth")),
            ("bob", Some("ada")),
            ("cid", Some("bob")),
            ("eve", Some("ruth")),
        ];
        let roster = roster(&tree);
        let name = |text: &str| text.parse::<AgentName>().unwrap();
        let plain = Grants::defaults(false);
        let change = hive_wire::host::SetPermissions {
            name: name("ada"),
            reset: false,
            grant: vec![],
            revoke: vec![],
            grant_capabilities: vec![Capability::QueryAgentState],
            revoke_capabilities: vec![],
            recipients: None,
        };
        let curious = plain.changed(&change, Timestamp::from_millis(1)).unwrap();
        for (other, may_inspect, curious_may, may_stop) in [
            ("ada", true, true, false),
            ("bob", true, true, true),
            ("cid", false, true, false),
            ("ruth", false, true, false),
            ("eve", false, true, false),
            ("*", false, false, false),
            ("nobody", false, false, false),
        ] {
            let ada = name("ada");
            let inspect = |grants| roster.may_inspect(&ada, other, grants).is_ok();
            assert_eq!(inspect(&plain), may_inspect, "{other}");
            assert_eq!(
                inspect(&curious),
                curious_may,
                "{other} with the capability"
            );
            let child = other
                .parse()
                .is_ok_and(|other| roster.child(&ada, &other).is_ok());
            assert_eq!(child, may_stop, "{other}");
        }
    }

    #[test]
    fn m2_the_parent_is_reachable_by_whatever_name() {
        let roster = roster(&[("ruth", None), ("ada", Some("ruth")), ("bob", None)]);
        let ada: AgentName = "ada".parse().unwrap();
        let change = hive_wire::host::SetPermissions {
            name: ada.clone(),
            reset: false,
            grant: vec![],
            revoke: vec![],
            grant_capabilities: vec![],
            revoke_capabilities: vec![],
            recipients: Some(vec![Recipient::Operator]),
        };
        let grants = Grants::defaults(false);
        let grants = grants.changed(&change, Timestamp::from_millis(1)).unwrap();
        for (to, expected) in [
            ("<parent>", Ok("ruth")),
            ("ruth", Ok("ruth")),
            ("operator", Ok("operator")),
            ("bob", Err(ErrorCode::Denied)),
            ("nobody", Err(ErrorCode::NotFound)),
        ] {
            let found = roster.route_from(&ada, &grants, &AgentConfig::default(), to);
            let found = found.as_ref().map(Recipient::as_str).map_err(|e| e.code);
            assert_eq!(found, expected, "{to}");
        }
    }

    #[test]
    fn c9_the_tree_is_bounded_and_has_no_second_of_a_name() {
        let names: Vec<String> = (0..8).map(|n| format!("a{n}")).collect();
        let mut chain: Vec<(&str, Option<&str>)> = vec![("a0", None)];
        for pair in names.windows(2) {
            chain.push((&pair[1], Some(&pair[0])));
        }
        let roster = roster(&chain);
        let name = |text: &str| text.parse::<AgentName>().unwrap();
        assert!(roster.check_new(&name("b"), Some(&name("a6"))).is_ok());
        assert!(
            roster.check_new(&name("b"), Some(&name("a7"))).is_err(),
            "ninth level"
        );
        assert!(
            roster.check_new(&name("a3"), None).is_err(),
            "second of a name"
        );
        assert!(
            roster.check_new(&name("b"), Some(&name("x"))).is_err(),
            "no such parent"
        );
    }

    #[test]
    fn c9_children_of_a_removed_agent_are_roots() {
        let mut roster = roster(&[("ada", None), ("bob", Some("ada"))]);
        roster.remove(&"ada".parse().unwrap());
        let bob: AgentName = "bob".parse().unwrap();
        assert_eq!(
            roster.route(Some(&bob), "<parent>").unwrap(),
            Recipient::Operator
        );
    }
}
