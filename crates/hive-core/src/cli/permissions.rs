//! `permissions [NAME]`: shows what agents may do, or changes it (C14).

use clap::Args;
use hive_wire::{
    AgentName, Recipient,
    client::Client,
    grants::{Capability, Group},
    host::{PermissionRow, SetPermissions, ShowPermissions},
};

use super::{failure::Failure, json, out::Out, table::Table};

/// Arguments of `permissions`.
#[derive(Debug, Args)]
pub struct PermissionsArgs {
    /// The agent; all of them unless given.
    #[arg(required_if_eq("reset", "true"))]
    name: Option<AgentName>,
    /// Give a tool group: messaging, meta, inbox, execution, lifecycle, approvals, scheduling,
    /// diagnostics or web_tools.
    #[arg(long, value_name = "GROUP", requires = "name")]
    grant: Vec<Group>,
    /// Take a tool group away.
    #[arg(long, value_name = "GROUP", requires = "name")]
    revoke: Vec<Group>,
    /// Give a capability: query_agent_state or read_host_journal.
    #[arg(long, value_name = "CAPABILITY", requires = "name")]
    cap: Vec<Capability>,
    /// Take a capability away.
    #[arg(long, value_name = "CAPABILITY", requires = "name")]
    revoke_cap: Vec<Capability>,
    /// Let it write to these only, besides its parent and the operator, with commas between them.
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        requires = "name",
        conflicts_with = "any_recipient"
    )]
    recipients: Vec<Recipient>,
    /// Let it write to everybody.
    #[arg(long, requires = "name")]
    any_recipient: bool,
    /// Begin from the defaults.
    #[arg(long)]
    reset: bool,
}

impl PermissionsArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let rows = match self.change() {
            Some(change) => vec![host.call(&change).await?],
            None => {
                host.call(&ShowPermissions { name: self.name })
                    .await?
                    .agents
            }
        };
        if out.is_json() {
            return out.json(json::PermissionList::from(rows.as_slice()));
        }
        if rows.is_empty() {
            out.note("no agents yet: create one with `hive-c0re spawn NAME`");
            return Ok(());
        }
        out.table(&table(&rows))
    }

    /// What is to be changed; none when nothing is.
    fn change(&self) -> Option<SetPermissions> {
        let recipients = if self.any_recipient {
            Some(Vec::new())
        } else {
            Some(self.recipients.clone()).filter(|names| !names.is_empty())
        };
        let change = SetPermissions {
            name: self.name.clone()?,
            reset: self.reset,
            grant: self.grant.clone(),
            revoke: self.revoke.clone(),
            grant_capabilities: self.cap.clone(),
            revoke_capabilities: self.revoke_cap.clone(),
            recipients,
        };
        let is_one = change.reset
            || change.recipients.is_some()
            || !(change.grant.is_empty() && change.revoke.is_empty())
            || !(change.grant_capabilities.is_empty() && change.revoke_capabilities.is_empty());
        is_one.then_some(change)
    }
}

fn table(rows: &[PermissionRow]) -> Table {
    let mut table = Table::new(&["NAME", "GROUPS", "CAPABILITIES", "MAY WRITE TO"]);
    for row in rows {
        let groups = row.granted.groups.iter().map(|group| group.as_str());
        let capabilities = row.granted.capabilities.iter().map(|word| word.as_str());
        let recipients = row.granted.recipients.iter().map(Recipient::as_str);
        table.row([
            row.name.as_str().into(),
            listed(groups, "none").into(),
            listed(capabilities, "-").into(),
            listed(recipients, "everybody").into(),
        ]);
    }
    table
}

fn listed<'a>(words: impl Iterator<Item = &'a str>, without: &str) -> String {
    let words: Vec<&str> = words.collect();
    if words.is_empty() {
        return without.to_owned();
    }
    words.join(", ")
}
