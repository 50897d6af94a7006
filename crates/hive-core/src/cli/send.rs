//! `send TO BODY`: sends a message as the operator; `-` reads the body from stdin.

use std::io::{self, Read};

use clap::Args;
use hive_wire::{
    MessageId, SendKey,
    agent::MAX_BODY,
    client::{Client, ClientError},
    host::SendAsOperator,
};

use super::{
    failure::{Exit, Failure},
    json,
    out::Out,
};

/// Arguments of `send`.
#[derive(Debug, Args)]
pub struct SendArgs {
    /// An agent's name.
    to: String,
    /// What to say; `-` reads it from stdin.
    #[arg(allow_hyphen_values = true)]
    body: String,
    /// The message that this one answers.
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    reply_to: Option<MessageId>,
    /// A name for this message: sent again with the same one within a day, it stays one message.
    #[arg(long)]
    key: Option<SendKey>,
}

impl SendArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let body = if self.body == "-" {
            // Blocking is harmless: nothing is connected yet.
            read_body(io::stdin().lock())?
        } else {
            self.body
        };
        let body = within_limit(body)?;
        let message = SendAsOperator {
            to: self.to,
            body,
            in_reply_to: self.reply_to,
            key: self.key,
        };
        let sent = host.call(&message).await.map_err(failed)?;
        if out.is_json() {
            return out.json(json::Sent::from(&sent));
        }
        out.line(sent.message_id)?;
        if sent.duplicate {
            out.note("this key was used before: it is still that one message");
        }
        Ok(())
    }
}

/// A send whose reply was lost may have happened; with a key it can be repeated safely.
fn failed(error: ClientError) -> Failure {
    let unsure = matches!(error, ClientError::Lost | ClientError::TimedOut { .. });
    let failure = Failure::from(error);
    if unsure {
        return failure.hint(
            "whether it was stored is not known; sent with --key K it can be sent again with the \
             same key, and stays one message",
        );
    }
    failure
}

/// Reads a body, at most as much as one may have.
fn read_body(from: impl Read) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    from.take(MAX_BODY as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::io("read the body from stdin", &error))?;
    if bytes.len() > MAX_BODY {
        return Err(too_long("more"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::new(
            Exit::Usage,
            "bad_body",
            format!("the body on stdin is not UTF-8 (byte {at})"),
        )
        .hint("a message is text: encode other data, or send the path of a file")
    })
}

/// Refuses here what the daemon would refuse, before it travels.
fn within_limit(body: String) -> Result<String, Failure> {
    let quoted = serde_json::to_string(&body)
        .map_err(|error| Failure::io("encode the body", &error.into()))?;
    let encoded = quoted.len() - 2;
    if encoded > MAX_BODY {
        return Err(too_long(&encoded.to_string()));
    }
    Ok(body)
}

fn too_long(size: &str) -> Failure {
    Failure::new(
        Exit::Usage,
        "bad_body",
        format!(
            "a message has at most {MAX_BODY} bytes once it is encoded, and this one has {size}"
        ),
    )
    .hint("put it into a file that the agent can read, and send its path")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_read_as_it_is() {
        assert_eq!(read_body(&b"a\nb\n"[..]).unwrap(), "a\nb\n");
    }

    #[test]
    fn an_endless_body_is_read_to_its_limit_and_refused() {
        let failure = read_body(io::repeat(b'x')).unwrap_err();
        let report = failure.report().unwrap();
        assert_eq!(report.exit, Exit::Usage);
        assert!(report.message.contains("262144"), "{report:?}");
        assert!(read_body(io::repeat(b'x').take(MAX_BODY as u64)).is_ok());
    }

    #[test]
    fn the_limit_is_that_of_the_encoded_body() {
        assert!(within_limit("x".repeat(MAX_BODY)).is_ok());
        assert!(within_limit("\n".repeat(MAX_BODY / 2)).is_ok());
        assert!(within_limit("\n".repeat(MAX_BODY / 2 + 1)).is_err());
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        let failure = read_body(&b"ab\xff"[..]).unwrap_err();
        assert!(failure.report().unwrap().message.contains("byte 2"));
    }
}
