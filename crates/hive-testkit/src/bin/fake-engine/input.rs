//! What comes in: prompts and interruptions.

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    sync::mpsc,
};

/// Where interruptions come from.
pub(crate) type Breaks = mpsc::Receiver<Break>;

/// What comes on stdin.
pub(crate) enum Input {
    Prompt { text: String, uuid: Option<String> },
    Interrupt,
    End,
}

/// What interrupts a step.
pub(crate) enum Break {
    Interrupt,
    Terminate,
}

/// Reads prompts until stdin ends. One process per turn has a single prompt: all there is.
pub(crate) async fn read_stdin(stream: bool, send: mpsc::Sender<Input>, wake: mpsc::Sender<Break>) {
    if stream {
        let mut lines = BufReader::new(tokio::io::stdin()).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let line: Value = serde_json::from_str(&line).unwrap_or_default();
            let input = match line["type"].as_str() {
                Some("user") => Input::Prompt {
                    text: line["message"]["content"][0]["text"]
                        .as_str()
                        .unwrap_or_default()
                        .to_owned(),
                    uuid: line["uuid"].as_str().map(str::to_owned),
                },
                Some("control_request") if line["request"]["subtype"] == "interrupt" => {
                    wake.send(Break::Interrupt).await.ok();
                    Input::Interrupt
                }
                _ => continue,
            };
            if send.send(input).await.is_err() {
                return;
            }
        }
    } else {
        let mut text = Vec::new();
        tokio::io::stdin().read_to_end(&mut text).await.ok();
        let text = String::from_utf8_lossy(&text).into_owned();
        send.send(Input::Prompt { text, uuid: None }).await.ok();
    }
    send.send(Input::End).await.ok();
    std::future::pending().await
}
