//! A real browser, started when the model first wants one and ended with the process.
//!
//! Chromium is spoken to over the pipe that it offers for this: there is no port that another
//! process could connect to. Every request of every page is held until its address was checked:
//! only `http` and `https`, and a host on this machine or in a private network only when a rule
//! names it, whatever a page, a redirect or a script asks for.

mod devtools;
mod launch;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use self::devtools::Devtools;
use crate::tool::ToolError;

/// How long the browser may take to answer anything.
const PATIENCE: Duration = Duration::from_secs(30);
/// The most text of a page.
const MAX_TEXT: usize = 200_000;
/// The size of the window.
const WINDOW: (u32, u32) = (1280, 800);

/// The text of the page as a reader sees it, and what can be clicked.
const LOOK: &str = r#"(() => {
    const text = document.body ? document.body.innerText : "";
    const links = [...document.querySelectorAll("a[href],button,input,select,textarea,[role=button]")]
        .filter((e) => e.getClientRects().length)
        .slice(0, 100)
        .map((e) => (e.innerText || e.value || e.placeholder || e.name || e.tagName).trim().slice(0, 80));
    return { url: location.href, title: document.title, text: text.slice(0, 200000), links };
})()"#;

/// A browser that may not have been started.
pub struct Browser {
    settings: Settings,
    running: Mutex<Option<Arc<Devtools>>>,
}

/// What a browser is started with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The environment of child processes.
    pub env: Arc<BTreeMap<String, String>>,
    /// Where its profile lies for as long as it runs.
    pub profile: PathBuf,
    /// Hosts that a rule names, and that may therefore be private.
    pub named_hosts: Arc<Vec<String>>,
}

/// What is on the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Its address.
    pub url: String,
    /// Its title.
    pub title: String,
    /// Its text.
    pub text: String,
    /// What can be clicked or filled in.
    pub links: Vec<String>,
}

impl Browser {
    /// A browser for later.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            running: Mutex::new(None),
        }
    }

    /// Goes to an address and waits until the page is there.
    pub async fn navigate(&self, url: &str) -> Result<Page, ToolError> {
        let devtools = self.devtools().await?;
        let loads = devtools.loads();
        let answer = devtools
            .call("Page.navigate", json!({"url": url}), PATIENCE)
            .await?;
        if let Some(error) = answer["errorText"].as_str() {
            let blocked = devtools.last_refusal().unwrap_or_default();
            return Err(ToolError::tell(format!("{url}: {error}. {blocked}")));
        }
        // A page that goes on loading is looked at as it is.
        devtools.loaded_since(loads, PATIENCE / 2).await;
        look(&devtools).await
    }

    /// The visible part of the page as a PNG.
    pub async fn screenshot(&self) -> Result<Vec<u8>, ToolError> {
        let devtools = self.started().await?;
        let answer = devtools
            .call("Page.captureScreenshot", json!({"format": "png"}), PATIENCE)
            .await?;
        let data = answer["data"].as_str().unwrap_or_default();
        let png = STANDARD.decode(data).unwrap_or_default();
        if png.is_empty() {
            return Err(ToolError::tell("The browser gave no picture."));
        }
        Ok(png)
    }

    /// Clicks what a selector or a text names, and waits for what follows.
    pub async fn click(&self, target: &str) -> Result<Page, ToolError> {
        let devtools = self.started().await?;
        let place = devtools.evaluate(&find_script(target), PATIENCE).await?;
        let (Some(x), Some(y)) = (place["x"].as_f64(), place["y"].as_f64()) else {
            let seen = look(&devtools).await?.links.join(", ");
            return Err(ToolError::tell(format!(
                "There is nothing to click for {target:?}. Give a CSS selector, or the text of: {seen}"
            )));
        };
        let loads = devtools.loads();
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1});
            devtools
                .call("Input.dispatchMouseEvent", event, PATIENCE)
                .await?;
        }
        // Most clicks load nothing; one that does has begun by now.
        devtools.loaded_since(loads, Duration::from_secs(2)).await;
        look(&devtools).await
    }

    /// Ends it, if it runs.
    pub async fn stop(&self) {
        if let Some(devtools) = self.running.lock().await.take() {
            devtools.stop().await;
        }
    }

    async fn started(&self) -> Result<Arc<Devtools>, ToolError> {
        let running = self.running.lock().await.clone();
        running.ok_or_else(|| ToolError::tell("No page is open. Navigate to one first."))
    }

    async fn devtools(&self) -> Result<Arc<Devtools>, ToolError> {
        let mut running = self.running.lock().await;
        if let Some(devtools) = running.as_ref().filter(|devtools| devtools.is_alive()) {
            return Ok(Arc::clone(devtools));
        }
        let chromium = launch::start(&self.settings, WINDOW)?;
        let named = Arc::clone(&self.settings.named_hosts);
        let devtools = Arc::new(Devtools::attach(chromium, named, PATIENCE).await?);
        *running = Some(Arc::clone(&devtools));
        Ok(devtools)
    }
}

/// Whether there is a browser on a search path.
pub fn is_installed(path: Option<&str>) -> bool {
    launch::find(path).is_some()
}

impl std::fmt::Debug for Browser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Browser")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

async fn look(devtools: &Devtools) -> Result<Page, ToolError> {
    let seen = devtools.evaluate(LOOK, PATIENCE).await?;
    let text = |name: &str| seen[name].as_str().unwrap_or_default().to_owned();
    let links = seen["links"].as_array().into_iter().flatten();
    let mut page = Page {
        url: text("url"),
        title: text("title"),
        text: text("text"),
        links: links.filter_map(Value::as_str).map(str::to_owned).collect(),
    };
    page.text.truncate(page.text.floor_char_boundary(MAX_TEXT));
    Ok(page)
}

/// Finds the middle of an element: a selector first, then the shortest element with this text.
fn find_script(target: &str) -> String {
    // JSON is a literal of the script's language: what the model says stays a text.
    let target = Value::from(target);
    format!(
        r#"((target) => {{
            let element = null;
            try {{ element = document.querySelector(target); }} catch {{}}
            const words = (e) => (e.innerText || e.value || e.placeholder || e.ariaLabel || "").trim();
            if (!element) {{
                const all = [...document.querySelectorAll("a,button,input,select,label,summary,[role=button],[onclick]")];
                const fit = all.filter((e) => words(e).toLowerCase().includes(target.toLowerCase()));
                element = fit.sort((a, b) => words(a).length - words(b).length)[0];
            }}
            if (!element) return {{}};
            element.scrollIntoView({{ block: "center", inline: "center", behavior: "instant" }});
            const box = element.getBoundingClientRect();
            if (!box.width || !box.height) return {{}};
            return {{ x: box.left + box.width / 2, y: box.top + box.height / 2 }};
        }})({target})"#
    )
}

/// Removes a profile; a browser that is just ending may still write to it.
fn remove(profile: &Path) {
    for _ in 0..20 {
        match std::fs::remove_dir_all(profile) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                std::thread::sleep(Duration::from_millis(20));
            }
            _ => return,
        }
    }
}
