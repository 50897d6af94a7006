//! A browser: navigate, click, and a picture of what is there.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hive_providers::{Block, ResultContent, Source};
use serde::Deserialize;
use serde_json::json;

use super::output::fit;
use crate::{
    browser::Page,
    hosts::Address,
    tool::{Access, Context, Output, Permission, Tool, ToolError, build},
};

pub(super) fn tools() -> [Arc<dyn Tool>; 3] {
    [navigate(), click(), screenshot()]
}

#[derive(Deserialize)]
struct Navigate {
    url: String,
}

fn navigate() -> Arc<dyn Tool> {
    build::<Navigate>(
        "browser_navigate",
        Permission::Execute,
        "Opens a page in a real browser and returns its title, its text as a reader sees it, and \
         what can be clicked. Use WebFetch for pages that need no scripts.",
        json!({"type": "object", "required": ["url"], "additionalProperties": false, "properties": {
            "url": {"type": "string", "description": "The address: http or https"},
        }}),
    )
    .touches(|input, _| {
        let host = Address::parse(&input.url)?.host;
        Ok(vec![Access::Fetch { host }])
    })
    .run(|input, context| async move {
        let browsing = context.browser.navigate(&input.url);
        shown(interruptible(browsing, &context).await?, &context)
    })
}

#[derive(Deserialize)]
struct Click {
    target: String,
}

fn click() -> Arc<dyn Tool> {
    build::<Click>(
        "browser_click",
        Permission::Execute,
        "Clicks something on the page that is open, and returns what is there then.",
        json!({"type": "object", "required": ["target"], "additionalProperties": false, "properties": {
            "target": {"type": "string", "description": "A CSS selector, or the words on a link or button"},
        }}),
    )
    .run(|input, context| async move {
        let browsing = context.browser.click(&input.target);
        shown(interruptible(browsing, &context).await?, &context)
    })
}

#[derive(Deserialize)]
struct Screenshot {}

fn screenshot() -> Arc<dyn Tool> {
    build::<Screenshot>(
        "browser_screenshot",
        Permission::Execute,
        "Returns a picture of the page that is open, as it looks in the window.",
        json!({"type": "object", "additionalProperties": false, "properties": {}}),
    )
    .undoable()
    .run(|_, context| async move {
        let png = interruptible(context.browser.screenshot(), &context).await?;
        let bytes = png.len();
        let picture = Block::Image {
            source: Source::Base64 {
                media_type: "image/png".into(),
                data: STANDARD.encode(png),
            },
        };
        Ok(Output {
            content: ResultContent::Blocks(vec![picture]),
            structured: json!({"bytes": bytes}),
            is_error: false,
        })
    })
}

async fn interruptible<T>(
    browsing: impl Future<Output = Result<T, ToolError>>,
    context: &Context,
) -> Result<T, ToolError> {
    tokio::select! {
        result = browsing => result,
        () = context.cancel.cancelled() => Err(ToolError::Interrupted),
    }
}

fn shown(page: Page, context: &Context) -> Result<Output, ToolError> {
    let links = if page.links.is_empty() {
        String::new()
    } else {
        format!("\n\nCan be clicked: {}", page.links.join(" | "))
    };
    let text = fit(&page.text, &context.spill_dir);
    let shown = format!("{} ({})\n\n{text}{links}", page.title, page.url);
    Ok(Output::text(
        shown,
        json!({"url": page.url, "title": page.title}),
    ))
}
