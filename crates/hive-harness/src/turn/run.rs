//! One run of the engine: begun, watched, ended, counted.

use std::time::Duration;

use hive_wire::{MessageId, Timestamp, TurnId};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::why;
use crate::{
    engine::{
        AttemptId, Ended, EngineEvent, Exit, Purpose, SessionChoice, Stopped, TurnSpec,
        outcome::{self, TurnOutcome},
    },
    model::current_model,
    serve::TurnLoop,
    stats::{self, RunFacts},
    surface::{HostChannel, Surface},
};

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Run {
    /// What it means.
    pub(crate) outcome: TurnOutcome,
    /// Why the harness ended it, if it did.
    pub(crate) stopped: Option<Stopped>,
    /// How the process ended; none when there was none.
    pub(crate) exit: Option<Exit>,
    /// When it was to begin, on the clock.
    pub(crate) started_at: Timestamp,
    /// The same moment, for measuring.
    pub(crate) begun: Instant,
    /// From then until the prompt was on its way to a running engine.
    pub(crate) spawned: Duration,
    /// When it was over.
    pub(crate) ended: Instant,
    /// What the model said last.
    pub(crate) last_words: String,
}

impl Run {
    /// A run that could not begin: nothing reached an engine, so it is nobody's failure.
    pub(crate) fn not_begun(why: String) -> Self {
        Self::without_engine(TurnOutcome::Unavailable { why }, None)
    }

    fn without_engine(outcome: TurnOutcome, stopped: Option<Stopped>) -> Self {
        Self {
            outcome,
            stopped,
            exit: None,
            started_at: Timestamp::now(),
            begun: Instant::now(),
            spawned: Duration::ZERO,
            ended: Instant::now(),
            last_words: String::new(),
        }
    }

    /// The outcome in a word, for events and statistics.
    pub(crate) fn word(&self) -> &'static str {
        match (&self.outcome, self.stopped) {
            (TurnOutcome::Interrupted, Some(Stopped::ShutDown)) => "shutdown",
            (outcome, _) => outcome.word(),
        }
    }

    /// Whether it did what it was for.
    pub(crate) fn is_good(&self) -> bool {
        self.outcome.is_success()
    }

    /// Whether whatever it was part of cannot go on either.
    pub(crate) fn is_broken_off(&self) -> bool {
        match self.outcome {
            TurnOutcome::RateLimited { .. }
            | TurnOutcome::AuthFailed { .. }
            | TurnOutcome::Unavailable { .. }
            | TurnOutcome::Interrupted => true,
            TurnOutcome::Ok
            | TurnOutcome::Compacted
            | TurnOutcome::TooLong
            | TurnOutcome::Failed { .. } => false,
        }
    }
}

impl<S: Surface + HostChannel> TurnLoop<'_, S> {
    /// The context window of the model that the next run uses.
    pub(crate) fn window(&self) -> u64 {
        self.environment.windows.tokens(&self.model())
    }

    /// The model of the next run (T17).
    pub(crate) fn model(&self) -> String {
        let file = &self.environment.places.model_file;
        current_model(file, &self.environment.default_model)
    }

    /// Whether the operator or a stop has ended what runs, so that no further run may begin.
    pub(crate) fn must_end(&self) -> bool {
        self.orders.is_interrupted() || self.orders.is_stopping()
    }

    /// A run that never began because of that.
    pub(crate) fn ended_early(&self) -> Run {
        let stopped = if self.orders.is_interrupted() {
            Stopped::Interrupted
        } else {
            Stopped::ShutDown
        };
        Run::without_engine(TurnOutcome::Interrupted, Some(stopped))
    }

    /// Runs the engine once.
    pub(crate) async fn run(
        &mut self,
        purpose: Purpose,
        prompt: String,
        session: SessionChoice,
        turn: &TurnId,
        messages: &[MessageId],
    ) -> Run {
        let model = self.model();
        let window = self.environment.windows.tokens(&model);
        self.bus.set_model(&model, window);
        if let Some(groups) = self.orders.take_tool_groups()
            && let Err(error) = self.boot.regroup(self.environment, &groups)
        {
            self.orders.set_tool_groups(groups);
            return Run::not_begun(format!("{error:#}"));
        }
        // The engine starts anew when the file has changed: a warm one has read the old notes.
        if let Err(error) = self.boot.refresh_prompt(&self.environment.places.state) {
            return Run::not_begun(error.to_string());
        }
        let spec = TurnSpec {
            attempt: AttemptId::fresh(),
            purpose,
            prompt,
            session,
            model: model.clone(),
            tools: self.boot.tools().built_in(),
            allowed_tools: self.boot.tools().allowed(purpose),
            files: self.boot.files().clone(),
        };
        let begun = Instant::now();
        let started_at = Timestamp::now();
        let (ended, last_words) = match self.watch(spec).await {
            Ok(watched) => watched,
            Err(why) => return Run::not_begun(why),
        };
        let run = Run {
            outcome: outcome::classify(&ended),
            stopped: ended.stopped,
            exit: Some(ended.exit),
            started_at,
            begun,
            spawned: ended.timeline.spawned,
            ended: Instant::now(),
            last_words,
        };
        self.take_facts(&run, &ended);
        let note = why(&run.outcome, run.stopped);
        let facts = RunFacts {
            turn,
            messages,
            model: &model,
            window,
            outcome: run.word(),
            note: note.as_deref(),
        };
        self.bus.counts(stats::row(&facts, &ended));
        run
    }

    /// Begins a run and passes on what is seen of it until it ends.
    async fn watch(&mut self, spec: TurnSpec) -> Result<(Ended, String), String> {
        let mut turn = match self.engine.begin(spec).await {
            Ok(turn) => turn,
            Err(error) => return Err(error.to_string()),
        };
        let handle = turn.handle();
        self.orders.engine_runs(&handle);
        let mut progress = turn.progress();
        let grace = self.orders.out_of_grace(self.environment.pace.stop_grace);
        tokio::pin!(grace);
        let mut may_shut_down = true;
        let mut may_progress = true;
        let mut last_words = String::new();
        loop {
            // `next` and `changed` are cancel-safe; `grace` is kept over the rounds.
            tokio::select! {
                event = turn.next() => match event {
                    Some(event) => self.pass_on(&event, &mut last_words),
                    None => break,
                },
                changed = progress.changed(), if may_progress => {
                    may_progress = changed.is_ok();
                    let seen = progress.borrow_and_update().clone();
                    self.bus.set_tool(seen.current_tool.as_deref());
                    if let Some(tokens) = seen.context_tokens {
                        self.bus.set_context(tokens);
                    }
                }
                () = &mut grace, if may_shut_down => {
                    may_shut_down = false;
                    handle.shut_down();
                }
            }
        }
        let ended = turn.end().await;
        self.orders.engine_ended();
        self.bus.set_tool(None);
        Ok((ended, last_words))
    }

    fn pass_on(&self, event: &EngineEvent, last_words: &mut String) {
        match event {
            EngineEvent::Line(line) => {
                if let Some(words) = words_of(line) {
                    *last_words = words;
                }
                self.bus.stream(line);
            }
            EngineEvent::Oversize { bytes, head } => self.bus.stream_cut(*bytes, head),
            EngineEvent::Stray(line) | EngineEvent::Stderr(line) => self.bus.note(line),
            EngineEvent::Gap { dropped } => self.bus.gap(*dropped),
        }
    }

    fn take_facts(&mut self, run: &Run, ended: &Ended) {
        let facts = &ended.facts;
        match facts.context_tokens {
            Some(tokens) => self.conversation.context_tokens = tokens,
            // What a compaction left is known only when the engine says; it is little.
            None if run.outcome == TurnOutcome::Compacted => self.conversation.context_tokens = 0,
            None => {}
        }
        self.bus.set_context(self.conversation.context_tokens);
        for (server, status) in &facts.mcp_servers {
            if status == "failed" {
                self.bus.note(&format!(
                    "the MCP server `{server}` did not start: its tools were missing in this turn"
                ));
            }
        }
    }
}

/// The model's last words, when the line is a `result`.
fn words_of(line: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Line<'a> {
        #[serde(rename = "type", borrow)]
        kind: std::borrow::Cow<'a, str>,
        #[serde(default)]
        result: Option<String>,
    }
    let text = line.get();
    if !text.contains("\"result\"") {
        return None;
    }
    let line: Line<'_> = serde_json::from_str(text).ok()?;
    line.result.filter(|_| line.kind == "result")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_are_those_of_a_result() {
        let cases = [
            (
                r#"{"result":"done","type":"result","is_error":false}"#,
                Some("done"),
            ),
            (r#"{"type":"assistant","result":"no"}"#, None),
            (r#"{"type":"result","subtype":"error_max_turns"}"#, None),
            (r#"{"type":"result","result":{"x":1}}"#, None),
            (r#"{"type":"user","text":"\"result\""}"#, None),
        ];
        for (json, wanted) in cases {
            let line = RawValue::from_string(json.to_owned()).unwrap();
            assert_eq!(words_of(&line).as_deref(), wanted, "{json}");
        }
    }
}
