//! The remote control of the browser: commands and events as JSON, each ended by a NUL.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStdin, ChildStdout},
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
};

use super::launch::Chromium;
use crate::{group::Group, hosts, tool::ToolError};

/// The longest message: a screenshot is one.
const MAX_MESSAGE: u64 = 64 * 1024 * 1024;
/// Commands that wait to be written.
const QUEUE: usize = 256;

type Waiting = Arc<Mutex<HashMap<u64, oneshot::Sender<Value>>>>;

/// One page of a running browser.
pub(super) struct Devtools {
    child: Mutex<Child>,
    group: Group,
    profile: PathBuf,
    next: AtomicU64,
    session: String,
    out: mpsc::Sender<Value>,
    waiting: Waiting,
    loads: watch::Receiver<u64>,
    refusal: Arc<Mutex<Option<String>>>,
    tasks: JoinSet<()>,
}

impl Devtools {
    /// Takes control of the first page.
    pub(super) async fn attach(
        chromium: Chromium,
        named_hosts: Arc<Vec<String>>,
        patience: Duration,
    ) -> Result<Self, ToolError> {
        let Chromium { mut child, profile } = chromium;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(ToolError::tell("The browser has no pipes."));
        };
        let group = Group::of(&child);
        let (out, commands) = mpsc::channel(QUEUE);
        let (loaded, loads) = watch::channel(0);
        let mut devtools = Self {
            child: Mutex::new(child),
            group,
            profile,
            next: AtomicU64::new(1),
            session: String::new(),
            out,
            waiting: Waiting::default(),
            loads,
            refusal: Arc::default(),
            tasks: JoinSet::new(),
        };
        devtools.tasks.spawn(write(stdin, commands));
        let listener = Listener {
            waiting: Arc::clone(&devtools.waiting),
            out: devtools.out.clone(),
            loaded,
            refusal: Arc::clone(&devtools.refusal),
            named_hosts,
            checks: JoinSet::new(),
        };
        devtools.tasks.spawn(listener.read(stdout));
        devtools.open_page(patience).await?;
        Ok(devtools)
    }

    async fn open_page(&mut self, patience: Duration) -> Result<(), ToolError> {
        let made = self
            .call(
                "Target.createTarget",
                json!({"url": "about:blank"}),
                patience,
            )
            .await?;
        let attached = json!({"targetId": made["targetId"], "flatten": true});
        let attached = self
            .call("Target.attachToTarget", attached, patience)
            .await?;
        self.session = attached["sessionId"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        for (method, params) in guards() {
            self.call(method, params, patience).await?;
        }
        let downloads = json!({"behavior": "deny"});
        self.call("Browser.setDownloadBehavior", downloads, patience)
            .await?;
        Ok(())
    }

    /// Whether it still listens.
    pub(super) fn is_alive(&self) -> bool {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        !self.out.is_closed() && matches!(child.try_wait(), Ok(None))
    }

    /// Carries out a command.
    pub(super) async fn call(
        &self,
        method: &str,
        params: Value,
        patience: Duration,
    ) -> Result<Value, ToolError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        lock(&self.waiting).insert(id, reply);
        let mut message = json!({"id": id, "method": method, "params": params});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let gone = || ToolError::tell("The browser has ended. Navigate again to start a new one.");
        let asking = async {
            self.out.send(message).await.map_err(|_| gone())?;
            answer.await.map_err(|_| gone())
        };
        let answer = tokio::time::timeout(patience, asking).await;
        lock(&self.waiting).remove(&id);
        let mut answer = answer
            .map_err(|_| ToolError::tell(format!("The browser did not answer: {method}")))??;
        if let Some(error) = answer["error"]["message"].as_str() {
            return Err(ToolError::tell(format!("{method}: {error}")));
        }
        Ok(answer["result"].take())
    }

    /// The value of an expression on the page.
    pub(super) async fn evaluate(
        &self,
        expression: &str,
        patience: Duration,
    ) -> Result<Value, ToolError> {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.call("Runtime.evaluate", params, patience).await?;
        if let Some(thrown) = answer["exceptionDetails"]["text"].as_str() {
            return Err(ToolError::tell(format!("The page refused: {thrown}")));
        }
        Ok(answer["result"]["value"].take())
    }

    /// How many pages have loaded.
    pub(super) fn loads(&self) -> u64 {
        *self.loads.borrow()
    }

    /// Waits until another page has loaded, for a while.
    pub(super) async fn loaded_since(&self, loads: u64, patience: Duration) {
        let mut seen = self.loads.clone();
        let loaded = seen.wait_for(|now| *now > loads);
        // A page that takes longer is looked at as it is.
        drop(tokio::time::timeout(patience, loaded).await);
    }

    /// Why the last request was refused, if one was.
    pub(super) fn last_refusal(&self) -> Option<String> {
        lock(&self.refusal).take()
    }

    /// Ends the browser and removes its profile.
    pub(super) async fn stop(&self) {
        self.group.signal(Signal::KILL);
        let profile = self.profile.clone();
        drop(tokio::task::spawn_blocking(move || super::remove(&profile)).await);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn write(mut stdin: ChildStdin, mut commands: mpsc::Receiver<Value>) {
    while let Some(command) = commands.recv().await {
        let mut bytes = command.to_string().into_bytes();
        bytes.push(0);
        if stdin.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

/// Hears what the browser says.
struct Listener {
    waiting: Waiting,
    out: mpsc::Sender<Value>,
    loaded: watch::Sender<u64>,
    refusal: Arc<Mutex<Option<String>>>,
    named_hosts: Arc<Vec<String>>,
    checks: JoinSet<()>,
}

impl Listener {
    async fn read(mut self, stdout: ChildStdout) {
        let mut stdout = BufReader::new(stdout);
        let mut message = Vec::new();
        loop {
            message.clear();
            let mut limited = (&mut stdout).take(MAX_MESSAGE);
            match limited.read_until(0, &mut message).await {
                Ok(read) if read > 0 && message.pop() == Some(0) => {}
                _ => break,
            }
            if let Ok(value) = serde_json::from_slice::<Value>(&message) {
                self.hear(value);
            }
            while self.checks.try_join_next().is_some() {}
        }
        // Nobody will be answered any more.
        lock(&self.waiting).clear();
    }

    fn hear(&mut self, mut message: Value) {
        if let Some(id) = message["id"].as_u64() {
            if let Some(reply) = lock(&self.waiting).remove(&id) {
                // Whoever asked may have given up.
                drop(reply.send(message));
            }
            return;
        }
        let params = message["params"].take();
        match message["method"].as_str() {
            Some("Page.loadEventFired") => self.loaded.send_modify(|loads| *loads += 1),
            Some("Fetch.requestPaused") => {
                let check = Check {
                    session: message["sessionId"].take(),
                    request: params["requestId"].clone(),
                    url: params["request"]["url"]
                        .as_str()
                        .unwrap_or_default()
                        .to_owned(),
                    out: self.out.clone(),
                    refusal: Arc::clone(&self.refusal),
                    named_hosts: Arc::clone(&self.named_hosts),
                };
                self.checks.spawn(check.run());
            }
            Some("Target.attachedToTarget") => self.guard(&params),
            _ => {}
        }
    }

    /// Puts the same guards on a frame that has a process of its own, and lets it go on. Whatever
    /// else a page starts, such as a worker, stays stopped: its requests could not be checked.
    fn guard(&self, params: &Value) {
        if !matches!(
            params["targetInfo"]["type"].as_str(),
            Some("iframe" | "page")
        ) {
            return;
        }
        let go_on = ("Runtime.runIfWaitingForDebugger", json!({}));
        for (method, command) in guards().into_iter().chain([go_on]) {
            let message = json!({"id": 0, "method": method, "params": command,
                "sessionId": params["sessionId"]});
            if self.out.try_send(message).is_err() {
                return;
            }
        }
    }
}

/// What holds for every frame: requests are held, and ways out that cannot be held are not there.
fn guards() -> [(&'static str, Value); 4] {
    let without = "for (const way of ['WebSocket', 'WebSocketStream', 'WebTransport', \
        'RTCPeerConnection', 'Worker', 'SharedWorker']) delete globalThis[way];";
    [
        (
            "Target.setAutoAttach",
            json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true}),
        ),
        ("Page.enable", json!({})),
        (
            "Page.addScriptToEvaluateOnNewDocument",
            json!({"source": without, "runImmediately": true}),
        ),
        ("Fetch.enable", json!({"patterns": [{"urlPattern": "*"}]})),
    ]
}

/// A request that is held until its address was looked at.
struct Check {
    session: Value,
    request: Value,
    url: String,
    out: mpsc::Sender<Value>,
    refusal: Arc<Mutex<Option<String>>>,
    named_hosts: Arc<Vec<String>>,
}

impl Check {
    async fn run(self) {
        let verdict = hosts::check_url(&self.url, &self.named_hosts).await;
        let (method, params) = match verdict {
            Ok(()) => ("Fetch.continueRequest", json!({"requestId": self.request})),
            Err(why) => {
                *lock(&self.refusal) = Some(why);
                let reason = json!({"requestId": self.request, "errorReason": "AccessDenied"});
                ("Fetch.failRequest", reason)
            }
        };
        // Ids of our own answers are not waited for.
        let answer =
            json!({"id": 0, "method": method, "params": params, "sessionId": self.session});
        // A browser that is gone needs no answer.
        drop(self.out.send(answer).await);
    }
}
