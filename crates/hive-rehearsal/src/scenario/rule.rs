//! A rule: when it applies, how often, and what then happens.

use serde::Deserialize;

use super::{
    answer::Answer,
    fault::Fault,
    template::{GroupName, HasGroups},
    when::When,
};

/// A rule.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Table")]
pub struct Rule {
    /// Its name, for recordings; `rule 3` when it has none.
    pub name: String,
    /// How often it answers; `None` for always.
    pub times: Option<u64>,
    /// When it applies.
    pub when: When,
    /// What the model answers.
    pub answer: Answer,
    /// What goes wrong; a stream that breaks begins with the answer.
    pub fault: Option<Fault>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(default)]
    name: String,
    times: Option<u64>,
    #[serde(default)]
    when: When,
    answer: Option<Answer>,
    fault: Option<Fault>,
}

impl TryFrom<Table> for Rule {
    type Error = String;

    fn try_from(table: Table) -> Result<Self, String> {
        match (&table.answer, &table.fault) {
            (None, None) => return Err("a rule needs an `answer` or a `fault`".to_owned()),
            (Some(_), Some(fault)) if !matches!(fault, Fault::Break(_)) => {
                return Err("this fault leaves no room for an `answer`".to_owned());
            }
            _ => {}
        }
        if table.times == Some(0) {
            return Err("`times` must be at least 1; remove the rule instead".to_owned());
        }
        let answer = match (table.answer, &table.fault) {
            (Some(answer), _) => answer,
            (None, Some(_)) => Answer::of_text("This answer was meant to break off here."),
            (None, None) => Answer::default(),
        };
        let rule = Self {
            name: table.name,
            times: table.times,
            when: table.when,
            answer,
            fault: table.fault,
        };
        rule.check_groups()?;
        Ok(rule)
    }
}

impl Rule {
    /// Every `{{match.…}}` must be a group of one of the rule's regexes.
    fn check_groups(&self) -> Result<(), String> {
        let groups = self
            .when
            .regexes()
            .next()
            .map_or(0, regex::Regex::captures_len);
        let has_group = |group: &GroupName<'_>| match group {
            GroupName::Number(number) => *number < groups,
            GroupName::Name(name) => self
                .when
                .regexes()
                .any(|regex| regex.capture_names().flatten().any(|known| known == *name)),
        };
        let missing = self.answer.missing_group(&has_group).or_else(|| {
            self.fault
                .as_ref()
                .and_then(|fault| fault.missing_group(&has_group))
        });
        match missing {
            None => Ok(()),
            Some(group) => Err(format!(
                "`{{{{{group}}}}}` is no group of a regex of this rule"
            )),
        }
    }
}
