//! Budgets: what an agent and the whole hive may spend in a day, and what follows when they do.
//!
//! A day is one of UTC. What was spent is the gateway's own count; only where engines do not go
//! through the gateway is it what their harnesses say. At four fifths of a budget the operator gets
//! a note. At its cap the agent, or the hive, is paused and the operator is asked once: `raise`
//! grants the cap again for that day, and at midnight the pause ends by itself. The turn that
//! passes the cap may end; one that goes on to half as much again is refused the model.

use hive_store::{
    NewMessage,
    sqlite::{CallCost, NewQuestion},
};
use hive_wire::{
    AgentName, QuestionId, Recipient, SenderLabel, Timestamp, WireError,
    host::{BudgetState, DaySpend, PauseCause},
};
use serde_json::json;

use crate::{
    agent_config::AgentConfig,
    broker::Desk,
    config::{Budget, Config},
    pauses::Pauses,
};

/// The answer that grants the cap once more.
pub(crate) const RAISE: &str = "raise";
/// The answer that leaves things as they are.
const KEEP: &str = "keep paused";
/// The share of a budget at which the operator gets a note, in percent.
const NOTE: u64 = 80;
/// The share at which a turn that goes on is refused the model, in percent.
const OVERRUN: u64 = 150;
/// A day in milliseconds.
const DAY: i64 = 24 * 60 * 60 * 1_000;

/// What may be spent today, raises included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Cap {
    tokens: Option<u64>,
    micro_usd: Option<u64>,
}

/// What was spent today.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Total {
    tokens: u64,
    micro_usd: u64,
}

/// What a count led to, for whoever has to act on it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Consequences {
    /// The pauses in force, when they changed.
    pub(crate) pauses: Option<Pauses>,
    /// Why the agent's calls are refused from now on, if they are.
    pub(crate) refused: Option<String>,
}

impl Cap {
    fn new(budget: &Budget, raises: u32) -> Self {
        let times = u64::from(raises) + 1;
        // A cast from a float saturates.
        let micro = budget.usd.map(|usd| (usd * 1_000_000.0).round() as u64);
        Self {
            tokens: budget.tokens.map(|tokens| tokens.saturating_mul(times)),
            micro_usd: micro.map(|micro| micro.saturating_mul(times)),
        }
    }

    /// How much of it is spent, in percent; nothing where there is no cap.
    fn share(&self, total: &Total) -> u64 {
        let share = |spent: u64, cap: Option<u64>| match cap {
            None => 0,
            // A budget of nothing is spent before it begins.
            Some(0) => 100 + u64::from(spent > 0) * 100,
            Some(cap) => {
                u64::try_from(u128::from(spent) * 100 / u128::from(cap)).unwrap_or(u64::MAX)
            }
        };
        share(total.tokens, self.tokens).max(share(total.micro_usd, self.micro_usd))
    }

    /// Spent and cap in words, such as `812000 of 1000000 tokens, $1.20 of $2.00`.
    fn words(&self, total: &Total) -> String {
        let tokens = self
            .tokens
            .map(|cap| format!("{} of {cap} tokens", total.tokens));
        let money = self
            .micro_usd
            .map(|cap| format!("{} of {}", dollars(total.micro_usd), dollars(cap)));
        let parts: Vec<String> = tokens.into_iter().chain(money).collect();
        parts.join(", ")
    }
}

/// `$1.20` for millionths of a dollar.
pub(crate) fn dollars(micro: u64) -> String {
    let cents = micro.saturating_add(5_000) / 10_000;
    format!("${}.{:02}", cents / 100, cents % 100)
}

/// Counts a call, and sees to what it means for the agent's budget and the hive's.
///
/// # Errors
/// The store's refusal.
pub(crate) fn count(
    desk: &mut Desk<'_>,
    agent: &AgentName,
    own: &Budget,
    cost: &CallCost,
) -> Result<Consequences, WireError> {
    desk.store(|tx| tx.add_spend(agent, cost))?;
    check(desk, agent, own)
}

/// What an agent may spend in a day: what its own configuration says, else what `hive.toml` says.
pub(crate) fn of_agent(config: &Config, own: &AgentConfig) -> Budget {
    let default = &config.agents.budget;
    Budget {
        tokens: own.budget.tokens.or(default.tokens),
        usd: own.budget.usd.map(|usd| usd.0).or(default.usd),
    }
}

/// Sees to what an agent has spent so far.
///
/// # Errors
/// The store's refusal.
fn check(desk: &mut Desk<'_>, agent: &AgentName, own: &Budget) -> Result<Consequences, WireError> {
    let (own, hive) = (*own, desk.config.hive.budget);
    let mut consequences = Consequences::default();
    if own == Budget::default() && hive == Budget::default() {
        return Ok(consequences);
    }
    let rows = desk.store(|tx| tx.spend_today())?;
    let of_agent = rows.iter().find(|row| row.agent == *agent);
    let mut has_paused = false;
    for (who, budget, total) in [
        (agent.as_str(), own, of_agent.map(total).unwrap_or_default()),
        ("", hive, sum(&rows)),
    ] {
        let share = look(desk, who, &budget, &total, &mut has_paused)?;
        if share >= OVERRUN {
            let whose = whose(who);
            consequences.refused = Some(format!(
                "{whose} budget for today is spent: the operator has to raise it"
            ));
        }
    }
    if has_paused {
        consequences.pauses = Some(desk.read_pauses()?);
    }
    Ok(consequences)
}

/// Looks at one budget: how much of it is spent, in percent.
fn look(
    desk: &mut Desk<'_>,
    who: &str,
    budget: &Budget,
    total: &Total,
    has_paused: &mut bool,
) -> Result<u64, WireError> {
    if *budget == Budget::default() {
        return Ok(0);
    }
    let mut day = desk.store(|tx| tx.budget_day(who))?;
    let cap = Cap::new(budget, day.raises);
    let share = cap.share(total);
    let words = cap.words(total);
    if share >= 100 && day.question.is_none() {
        day.noted = true;
        let question = ask(desk, who, &words)?;
        day.question = Some(question);
        let reason = format!("{} budget for today is spent ({words})", whose(who));
        desk.store(|tx| {
            tx.set_budget_day(who, &day)?;
            tx.pause(who, PauseCause::Budget, &reason)
        })?;
        report(desk, who, "budget_spent", &words);
        *has_paused = true;
    } else if share >= NOTE && !day.noted {
        day.noted = true;
        desk.store(|tx| tx.set_budget_day(who, &day))?;
        let body = format!(
            "[budget] {share} % of {} budget for today is spent: {words}",
            whose(who)
        );
        let note = NewMessage {
            bounded: false,
            ..NewMessage::plain(SenderLabel::system(), Recipient::Operator, body)
        };
        desk.send(note)?;
        report(desk, who, "budget_note", &words);
    }
    Ok(share)
}

/// Asks the operator what to do about a cap.
fn ask(desk: &mut Desk<'_>, who: &str, words: &str) -> Result<QuestionId, WireError> {
    let whose = whose(who);
    let question = NewQuestion {
        asker: SenderLabel::system(),
        target: Recipient::Operator,
        question: format!(
            "{whose} budget for today is spent ({words}), and no turn begins. `{RAISE}` grants the \
             same again for today; otherwise it goes on at midnight UTC."
        ),
        options: vec![RAISE.to_owned(), KEEP.to_owned()],
        multi: false,
        expires_at: None,
    };
    let id = desk.store(|tx| tx.ask(&question))?;
    desk.report_question(id, &question);
    Ok(id)
}

/// Sees to an answer of the operator, if the question was about a budget: the pauses, when they
/// changed.
///
/// # Errors
/// The store's refusal.
pub(crate) fn answered(
    desk: &mut Desk<'_>,
    question: QuestionId,
    answer: &str,
) -> Result<Option<Pauses>, WireError> {
    let Some(who) = desk.store(|tx| tx.budget_of_question(question))? else {
        return Ok(None);
    };
    if !answer.trim().to_lowercase().starts_with(RAISE) {
        return Ok(None);
    }
    desk.store(|tx| {
        let mut day = tx.budget_day(&who)?;
        day.raises += 1;
        day.question = None;
        day.noted = false;
        tx.set_budget_day(&who, &day)?;
        tx.resume(&who, Some(PauseCause::Budget))
    })?;
    report(desk, &who, "budget_raised", "");
    desk.read_pauses().map(Some)
}

/// Ends the pauses of days that are over: the pauses, when they changed.
///
/// # Errors
/// The store's refusal.
pub(crate) fn new_day(desk: &mut Desk<'_>) -> Result<Option<Pauses>, WireError> {
    let midnight = Timestamp::from_millis(desk.now().millis().div_euclid(DAY) * DAY);
    let ended = desk.store(|tx| tx.resume_older(PauseCause::Budget, midnight))?;
    if ended.is_empty() {
        return Ok(None);
    }
    for who in &ended {
        report(desk, who, "budget_new_day", "");
    }
    desk.read_pauses().map(Some)
}

/// How long it is until the next day.
pub(crate) fn until_midnight(now: Timestamp) -> std::time::Duration {
    let into = now.millis().rem_euclid(DAY);
    std::time::Duration::from_millis(u64::try_from(DAY - into).unwrap_or(0))
}

/// How today's budgets stand, the hive's first; those without a cap are left out.
pub(crate) fn states(
    config: &Config,
    rows: &[DaySpend],
    agents: &[(AgentName, Budget)],
    raises: impl Fn(&str) -> u32,
) -> Vec<BudgetState> {
    let mut states = Vec::new();
    if config.hive.budget != Budget::default() {
        states.push(of_hive(config, rows, raises("")));
    }
    let capped = agents
        .iter()
        .filter(|(_, budget)| *budget != Budget::default());
    states.extend(capped.map(|(agent, budget)| {
        let row = rows.iter().find(|row| row.agent == *agent);
        let cap = Cap::new(budget, raises(agent.as_str()));
        state(Some(agent), &cap, &row.map(total).unwrap_or_default())
    }));
    states
}

/// What the whole hive has spent today, and may.
pub(crate) fn of_hive(config: &Config, rows: &[DaySpend], raises: u32) -> BudgetState {
    state(None, &Cap::new(&config.hive.budget, raises), &sum(rows))
}

fn state(agent: Option<&AgentName>, cap: &Cap, total: &Total) -> BudgetState {
    BudgetState {
        agent: agent.cloned(),
        tokens: total.tokens,
        tokens_cap: cap.tokens,
        cost_micro_usd: total.micro_usd,
        cost_cap_micro_usd: cap.micro_usd,
    }
}

fn report(desk: &mut Desk<'_>, who: &str, kind: &'static str, words: &str) {
    let data = json!({"spent": words});
    match who.parse::<AgentName>() {
        Ok(agent) => desk.report_agent(&agent, kind, &data),
        Err(_) => desk.report_hive(kind, &data),
    }
}

fn whose(who: &str) -> String {
    match who {
        "" => "the hive's".to_owned(),
        agent => format!("{agent}'s"),
    }
}

fn total(row: &DaySpend) -> Total {
    let kinds = [
        row.input_tokens,
        row.output_tokens,
        row.cache_read_tokens,
        row.cache_creation_tokens,
    ];
    Total {
        tokens: kinds.into_iter().fold(0, u64::saturating_add),
        micro_usd: row.cost_micro_usd,
    }
}

fn sum(rows: &[DaySpend]) -> Total {
    rows.iter()
        .map(total)
        .fold(Total::default(), |sum, one| Total {
            tokens: sum.tokens.saturating_add(one.tokens),
            micro_usd: sum.micro_usd.saturating_add(one.micro_usd),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_as_spent_as_its_worse_half() {
        let budget = |tokens, usd| Budget { tokens, usd };
        let total = |tokens, micro_usd| Total { tokens, micro_usd };
        for (budget, raises, total, share) in [
            (budget(None, None), 0, total(u64::MAX, u64::MAX), 0),
            (budget(Some(1_000), None), 0, total(799, u64::MAX), 79),
            (budget(Some(1_000), None), 0, total(1_000, 0), 100),
            (budget(Some(1_000), None), 1, total(1_000, 0), 50),
            (budget(None, Some(2.0)), 0, total(0, 1_600_000), 80),
            (
                budget(Some(1_000), Some(2.0)),
                0,
                total(100, 3_000_000),
                150,
            ),
            (budget(Some(0), None), 0, total(0, 0), 100),
            (budget(Some(0), None), 3, total(1, 0), 200),
            (budget(Some(1), None), 0, total(u64::MAX, 0), u64::MAX),
        ] {
            let cap = Cap::new(&budget, raises);
            assert_eq!(cap.share(&total), share, "{budget:?} {raises} {total:?}");
        }
    }

    #[test]
    fn money_is_written_in_cents() {
        for (micro, text) in [
            (0, "$0.00"),
            (4_999, "$0.00"),
            (5_000, "$0.01"),
            (1_234_567, "$1.23"),
            (10_000_000_000, "$10000.00"),
        ] {
            assert_eq!(dollars(micro), text);
        }
        let cap = Cap::new(
            &Budget {
                tokens: Some(10),
                usd: Some(2.0),
            },
            0,
        );
        let total = Total {
            tokens: 8,
            micro_usd: 1_500_000,
        };
        assert_eq!(cap.words(&total), "8 of 10 tokens, $1.50 of $2.00");
    }

    #[test]
    fn days_end_at_midnight_utc() {
        for (now, left) in [(0, DAY), (1, DAY - 1), (DAY - 1, 1), (DAY, DAY), (-1, 1)] {
            let until = until_midnight(Timestamp::from_millis(now)).as_millis();
            assert_eq!(until, u128::try_from(left).unwrap(), "{now}");
        }
    }
}
