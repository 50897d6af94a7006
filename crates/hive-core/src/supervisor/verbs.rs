//! What the operator may want of an agent. Each verb writes down the wish, has the agent looked
//! at, and waits for what comes of it.

use std::{io, sync::Arc, time::Duration};

use hive_store::{
    failpoint,
    sqlite::{AgentRecord, Run, Wanted},
};
use hive_wire::{AgentName, ErrorCode, WireError, host};
use serde_json::json;

use super::{Phase, Standing, Supervisor, set_run};
use crate::broker::Desk;

/// How long beyond an agent's own grace a verb waits for it.
const MARGIN: Duration = Duration::from_secs(20);

/// What is wanted of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// That it runs.
    Start,
    /// That it does not.
    Stop,
    /// That it begins anew.
    Restart,
    /// That everything of it is made anew (C7). Directories and environment are made anew at
    /// every start, so that nothing else is left to do for a plain process.
    Rebuild,
    /// That it is stopped and then taken off the registry.
    Destroy,
}

impl Wish {
    fn event(self) -> &'static str {
        match self {
            Self::Start => "agent_start_asked",
            Self::Stop => "agent_stop_asked",
            Self::Restart => "agent_restart_asked",
            Self::Rebuild => "agent_rebuild_asked",
            Self::Destroy => "agent_destroy_asked",
        }
    }

    fn applied(self, run: Run) -> Run {
        match self {
            // Stopped is what it will be, and more than that was asked for.
            Self::Stop if run.wanted == Wanted::Gone => run,
            Self::Stop => Run {
                wanted: Wanted::Stopped,
                failure: None,
                ..run
            },
            Self::Destroy => Run {
                wanted: Wanted::Gone,
                ..run
            },
            // It is as wished already.
            Self::Start if run.wanted == Wanted::Running && run.failure.is_none() => run,
            Self::Start | Self::Restart | Self::Rebuild => Run {
                wanted: Wanted::Running,
                failure: None,
                generation: run.generation + 1,
                restarts: 0,
                restarted_at: None,
                ..run
            },
        }
    }

    /// Writes it down as part of a group; `by` is the agent that wants it, none for the operator.
    ///
    /// # Errors
    /// When there is no such agent, or when it runs elsewhere.
    pub(crate) fn write_down(
        self,
        desk: &mut Desk<'_>,
        name: &AgentName,
        by: Option<&AgentName>,
    ) -> Result<AgentRecord, WireError> {
        let agent = desk.roster.find(name.as_str())?.clone();
        if agent.runtime == host::Runtime::None {
            return Err(WireError::new(
                ErrorCode::Unsupported,
                format!("`{name}` runs elsewhere: the hive only keeps its inbox"),
            )
            .hint(
                "start and stop it where it runs; `destroy` and `spawn` give it a runtime here",
            ));
        }
        let data = match by {
            Some(by) => json!({"by": by}),
            None => json!({}),
        };
        desk.report_agent(name, self.event(), &data);
        set_run(desk, name, self.applied(agent.run))
    }

    /// What has become of the wish that was written down for this generation. A start of any kind
    /// begins a new one, so that a later generation tells of a later wish.
    fn fate(self, standing: &Standing, generation: u32) -> Fate {
        if standing.generation < generation {
            return Fate::Open;
        }
        match (self, standing.phase) {
            (Self::Stop | Self::Destroy, Phase::Stopped)
            | (Self::Destroy, Phase::Failed)
            | (Self::Start | Self::Restart | Self::Rebuild, Phase::Running | Phase::Failed) => {
                Fate::Fulfilled
            }
            (Self::Stop | Self::Destroy, _) if standing.generation > generation => Fate::Overtaken,
            (Self::Start | Self::Restart | Self::Rebuild, Phase::Stopped) => Fate::Overtaken,
            _ => Fate::Open,
        }
    }
}

/// What has become of a wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It may still be fulfilled.
    Open,
    /// It is, or turned out not to be possible.
    Fulfilled,
    /// Somebody has wanted the opposite since.
    Overtaken,
}

impl Supervisor {
    /// Writes down a wish, and waits until it is fulfilled or turns out not to be.
    ///
    /// # Errors
    /// When there is no such agent, when it runs elsewhere, or when it takes too long.
    pub(crate) async fn wish(
        self: &Arc<Self>,
        name: &AgentName,
        wish: Wish,
    ) -> Result<AgentRecord, WireError> {
        let wanted = name.clone();
        let agent = self
            .parts
            .broker
            .run(move |desk| wish.write_down(desk, &wanted, None))
            .await?;
        failpoint!("supervisor::wished");
        self.look(name);
        self.fulfilled(&agent, wish).await?;
        Ok(agent)
    }

    /// Writes down what an agent runs with from now on, and has it begin anew if it should run.
    ///
    /// # Errors
    /// When there is no such agent, or when it runs elsewhere.
    pub(crate) async fn reconfigure(
        self: &Arc<Self>,
        name: &AgentName,
        engine: String,
        model: String,
    ) -> Result<(), WireError> {
        let wanted = name.clone();
        let written = self.parts.broker.run(move |desk| {
            let run = desk.roster.find(wanted.as_str())?.run.clone();
            let is_wanted = run.wanted == Wanted::Running;
            set_run(
                desk,
                &wanted,
                Run {
                    engine,
                    model,
                    ..run
                },
            )?;
            if is_wanted {
                Wish::Rebuild.write_down(desk, &wanted, None)?;
            }
            Ok(())
        });
        written.await?;
        self.look(name);
        Ok(())
    }

    /// Writes down that an agent begins anew, and waits for nothing.
    ///
    /// # Errors
    /// When there is no such agent, or when it runs elsewhere.
    pub(crate) async fn renew(self: &Arc<Self>, name: &AgentName) -> Result<(), WireError> {
        let wanted = name.clone();
        let renewed = self
            .parts
            .broker
            .run(move |desk| Wish::Rebuild.write_down(desk, &wanted, None));
        renewed.await?;
        self.look(name);
        Ok(())
    }

    /// Waits for a wish that is written down.
    ///
    /// # Errors
    /// When it takes too long, or when somebody has wanted the opposite since.
    pub(crate) async fn fulfilled(
        self: &Arc<Self>,
        agent: &AgentRecord,
        wish: Wish,
    ) -> Result<(), WireError> {
        let patience = self.parts.config.agents.stop_grace() + MARGIN;
        let generation = agent.run.generation;
        let standing = self
            .wait_until(&agent.name, patience, |standing| {
                wish.fate(standing, generation) != Fate::Open
            })
            .await;
        let Some(standing) = standing else {
            return Ok(());
        };
        match wish.fate(&standing, generation) {
            Fate::Fulfilled => Ok(()),
            Fate::Overtaken => Err(overtaken(&agent.name)),
            Fate::Open => Err(slow(&standing)),
        }
    }

    /// Writes down that no agent should run.
    ///
    /// # Errors
    /// The store's refusal.
    pub(crate) async fn stop_all(self: &Arc<Self>) -> Result<Vec<AgentRecord>, WireError> {
        let stopped = self
            .parts
            .broker
            .run(|desk| {
                let running: Vec<AgentName> = desk
                    .roster
                    .iter()
                    .filter(|agent| agent.runtime != host::Runtime::None)
                    .filter(|agent| agent.run.wanted == Wanted::Running)
                    .map(|agent| agent.name.clone())
                    .collect();
                let write = |name| Wish::Stop.write_down(desk, name, None);
                running.iter().map(write).collect::<Result<Vec<_>, _>>()
            })
            .await?;
        stopped.iter().for_each(|agent| self.look(&agent.name));
        Ok(stopped)
    }

    /// Removes every file of an agent that is gone.
    ///
    /// # Errors
    /// When something of it cannot be removed.
    pub(crate) async fn purge(self: &Arc<Self>, name: &AgentName) -> Result<(), WireError> {
        let dir = self.agent_dir(name);
        let shown = dir.display().to_string();
        let removal = self.parts.tasks.spawn_blocking(move || {
            // It follows no links, whatever the agent left there.
            match std::fs::remove_dir_all(dir) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            }
        });
        let removed = removal.await.map_err(io::Error::other).flatten();
        removed.map_err(|error| {
            WireError::new(
                ErrorCode::Storage,
                format!("`{name}` is gone, but {shown} cannot be removed: {error}"),
            )
            .hint("remove the directory yourself")
        })
    }
}

fn overtaken(name: &AgentName) -> WireError {
    WireError::new(
        ErrorCode::Conflict,
        format!("something else was wanted of `{name}` meanwhile"),
    )
    .hint("look with `hive-c0re list`, and say it again if it is still meant")
}

fn slow(standing: &Standing) -> WireError {
    let problem = match standing.problem.as_str() {
        "" => String::new(),
        problem => format!(": {problem}"),
    };
    WireError::new(
        ErrorCode::Slow,
        format!("the wish is written down, but it takes long{problem}"),
    )
    .hint("the hive goes on trying; look with `hive-c0re list` and `hive-c0re logs NAME --output`")
}

#[cfg(test)]
mod tests {
    use hive_wire::Timestamp;

    use super::*;

    #[test]
    fn a_wish_that_changes_something_is_a_new_generation() {
        let run = |wanted, failure: Option<&str>, generation| Run {
            wanted,
            failure: failure.map(str::to_owned),
            generation,
            ..Run::default()
        };
        use Wanted::{Gone, Running, Stopped};
        for (wish, before, after) in [
            (Wish::Start, run(Running, None, 1), run(Running, None, 1)),
            (
                Wish::Start,
                run(Running, Some("x"), 1),
                run(Running, None, 2),
            ),
            (Wish::Start, run(Stopped, None, 1), run(Running, None, 2)),
            (Wish::Restart, run(Running, None, 1), run(Running, None, 2)),
            (Wish::Rebuild, run(Stopped, None, 1), run(Running, None, 2)),
            (
                Wish::Stop,
                run(Running, Some("x"), 1),
                run(Stopped, None, 1),
            ),
            (Wish::Destroy, run(Running, None, 1), run(Gone, None, 1)),
            (Wish::Stop, run(Gone, None, 1), run(Gone, None, 1)),
            (Wish::Start, run(Gone, None, 1), run(Running, None, 2)),
        ] {
            assert_eq!(wish.applied(before.clone()), after, "{wish:?} {before:?}");
        }
        let often = Run {
            restarts: 5,
            restarted_at: Some(Timestamp::from_millis(0)),
            ..run(Running, Some("x"), 1)
        };
        let begun_anew = Wish::Start.applied(often.clone());
        assert_eq!(begun_anew, run(Running, None, 2), "a count of its own");
        assert_eq!(Wish::Stop.applied(often).restarts, 5, "until then it stays");
    }
    #[test]
    fn a_wish_is_fulfilled_overtaken_or_waited_for() {
        use Fate::{Fulfilled, Open, Overtaken};
        use Phase::{Failed, Running, Starting, Stopped, Stopping};
        for (wish, phase, generation, fate) in [
            (Wish::Start, Running, 1, Open),
            (Wish::Start, Starting, 2, Open),
            (Wish::Start, Running, 2, Fulfilled),
            (Wish::Start, Failed, 2, Fulfilled),
            (Wish::Start, Stopped, 1, Open),
            (Wish::Start, Stopped, 2, Overtaken),
            (Wish::Restart, Starting, 3, Open),
            (Wish::Restart, Running, 3, Fulfilled),
            (Wish::Rebuild, Stopping, 2, Open),
            (Wish::Stop, Running, 2, Open),
            (Wish::Stop, Stopping, 2, Open),
            (Wish::Stop, Stopped, 2, Fulfilled),
            (Wish::Stop, Failed, 2, Open),
            (Wish::Stop, Starting, 3, Overtaken),
            (Wish::Destroy, Failed, 2, Fulfilled),
            (Wish::Destroy, Stopped, 2, Fulfilled),
            (Wish::Destroy, Running, 3, Overtaken),
        ] {
            let standing = Standing {
                phase,
                generation,
                ..Standing::default()
            };
            assert_eq!(
                wish.fate(&standing, 2),
                fate,
                "{wish:?} {phase:?} {generation}"
            );
        }
    }
}
