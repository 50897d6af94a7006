//! Playing prompts: steps, pauses, and what breaks them off.

use std::{path::Path, time::Duration};

use serde_json::{Value, json};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};

use crate::{
    input::{Break, Breaks, Input, read_stdin},
    out::{complain, record},
    script::{number, steps_for},
    session::Session,
};

/// How a prompt was dealt with.
pub(crate) enum Played {
    /// There is a result.
    Done,
    /// There is one, of an error.
    Failed,
    /// The engine ends now.
    Exit(u8),
}

/// The engine and what it was told so far.
pub(crate) struct Engine {
    stream_input: bool,
    pub(crate) model: String,
    pub(crate) session: Session,
    pub(crate) tokens: u64,
    pub(crate) uuid: Option<String>,
    pub(crate) unnamed: bool,
    pub(crate) stays: bool,
    pub(crate) ignores: Vec<String>,
    seen: Vec<String>,
    pub(crate) results: u64,
}

impl Engine {
    pub(crate) fn new(args: &[String], flags: &[(&str, String)]) -> Self {
        let value = |name: &str| {
            flags
                .iter()
                .find(|(flag, _)| *flag == name)
                .map(|(_, v)| &**v)
        };
        let env: serde_json::Map<_, _> = std::env::vars()
            .map(|(name, value)| (name, Value::from(value)))
            .collect();
        let cwd = std::env::current_dir().unwrap_or_default();
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed();
        let at_us = since.map_or(0, |now| u64::try_from(now.as_micros()).unwrap_or(0));
        let pid = std::process::id();
        record(&json!({"argv": args, "env": env, "cwd": cwd, "pid": pid, "at_us": at_us}));
        Self {
            stream_input: value("--input-format") == Some("stream-json"),
            model: value("--model").unwrap_or("fake-model").to_owned(),
            session: Session::open(value("--continue").is_some()),
            tokens: 1000,
            uuid: None,
            unnamed: false,
            stays: false,
            ignores: Vec::new(),
            seen: Vec::new(),
            results: 0,
        }
    }

    pub(crate) async fn run(mut self) -> u8 {
        let (Ok(mut int), Ok(mut term)) = (
            signal(SignalKind::interrupt()),
            signal(SignalKind::terminate()),
        ) else {
            return 70;
        };
        let (send, mut inputs) = mpsc::channel(16);
        let (wake, mut breaks) = mpsc::channel(16);
        let stream_input = self.stream_input;
        let reader = read_stdin(stream_input, send, wake.clone());
        let watcher = async {
            loop {
                let what = tokio::select! {
                    _ = int.recv() => Break::Interrupt,
                    _ = term.recv() => Break::Terminate,
                };
                if wake.send(what).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            code = self.serve(&mut inputs, &mut breaks) => code,
            () = async { tokio::join!(reader, watcher); } => 70,
        }
    }

    async fn serve(&mut self, inputs: &mut mpsc::Receiver<Input>, breaks: &mut Breaks) -> u8 {
        loop {
            let input = tokio::select! {
                input = inputs.recv() => input.unwrap_or(Input::End),
                Some(why) = breaks.recv() => match why {
                    Break::Terminate if !self.ignores("TERM") => return 143,
                    Break::Interrupt if !self.stream_input && !self.ignores("INT") => return 0,
                    _ => continue,
                },
            };
            match input {
                Input::Interrupt => {}
                Input::End => {
                    if self.stays
                        && let Some(code) = self.stay(breaks).await
                    {
                        return code;
                    }
                    return 0;
                }
                Input::Prompt { text, uuid } => {
                    if text.trim().is_empty() {
                        complain(
                            "Error: Input must be provided either through stdin or as a prompt argument when using --print",
                        );
                        return 1;
                    }
                    let repeated = uuid.as_ref().is_some_and(|uuid| self.seen.contains(uuid));
                    self.seen.extend(uuid.clone());
                    record(&json!({"prompt": text, "uuid": uuid, "pid": std::process::id()}));
                    if repeated {
                        continue;
                    }
                    self.uuid = uuid;
                    let played = self.play(&text, breaks).await;
                    match played {
                        Played::Exit(code) => return code,
                        Played::Done | Played::Failed if self.stream_input => {}
                        _ if self.stays => {
                            if let Some(code) = self.stay(breaks).await {
                                return code;
                            }
                        }
                        Played::Done => return 0,
                        Played::Failed => return 1,
                    }
                }
            }
        }
    }

    /// Never ends by itself.
    async fn stay(&mut self, breaks: &mut Breaks) -> Option<u8> {
        while let Some(why) = breaks.recv().await {
            match why {
                Break::Terminate if !self.ignores("TERM") => return Some(143),
                Break::Interrupt if !self.ignores("INT") => return Some(0),
                _ => {}
            }
        }
        std::future::pending().await
    }

    async fn play(&mut self, prompt: &str, breaks: &mut Breaks) -> Played {
        let mut steps = steps_for(prompt);
        let mut played = Played::Done;
        while let Some(step) = steps.pop_front() {
            let (word, rest) = step.split_once(' ').unwrap_or((&step, ""));
            let pause = match word {
                "sleep" => Some(number(rest)),
                "tool" => {
                    let (name, ms) = rest.split_once(' ').unwrap_or((rest, "0"));
                    self.tool_call(name);
                    steps.push_front("toolresult".to_owned());
                    Some(number(ms))
                }
                "hang" => Some(u64::MAX),
                "await" => {
                    if Path::new(rest).exists() {
                        continue;
                    }
                    steps.push_front(step.clone());
                    Some(1)
                }
                _ => None,
            };
            if let Some(ms) = pause {
                if let Some(why) = self.pause(ms, breaks).await {
                    return self.broken_off(why);
                }
                continue;
            }
            match self.step(word, rest) {
                Some(Played::Exit(code)) => return Played::Exit(code),
                Some(now) => played = now,
                None => {}
            }
        }
        played
    }

    /// Waits; gives what broke it off.
    async fn pause(&mut self, ms: u64, breaks: &mut Breaks) -> Option<Break> {
        // A hang that cannot be broken off is one of years.
        let sleep = tokio::time::sleep(Duration::from_millis(ms.min(1 << 40)));
        tokio::pin!(sleep);
        loop {
            tokio::select! {
                () = &mut sleep => return None,
                Some(why) = breaks.recv() => match why {
                    Break::Interrupt if self.ignores("INT") || self.ignores("CONTROL") => {}
                    Break::Terminate if self.ignores("TERM") => {}
                    why => return Some(why),
                },
            }
        }
    }

    fn broken_off(&mut self, why: Break) -> Played {
        match why {
            Break::Terminate => Played::Exit(143),
            Break::Interrupt => {
                let result = json!({
                    "subtype": "error_during_execution", "is_error": true,
                    "terminal_reason": "aborted_streaming", "errors": ["[diagnostic] interrupted"],
                });
                self.result(result);
                // Interrupted by a signal, it exits with 0 for all that.
                Played::Done
            }
        }
    }

    fn ignores(&self, what: &str) -> bool {
        self.ignores.iter().any(|ignored| ignored == what)
    }
}
