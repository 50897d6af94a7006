//! How commands are declared, parsed and answered.
//!
//! A command is a struct with its own reply type ([`Command`]); a socket's commands form a closed
//! enum made by [`commands!`], so that a dispatcher that forgets one does not compile.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{ErrorCode, WireError, text};

/// One command of a socket, with the reply it gets.
pub trait Command: Serialize + DeserializeOwned {
    /// Its name in `cmd`.
    const NAME: &'static str;
    /// What a successful reply carries besides `ok` and `id`.
    type Reply: Serialize + DeserializeOwned;
}

/// What a client may put into `id` to find its reply again: an integer or a short text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RequestId {
    /// A number.
    Number(i64),
    /// A text of at most 64 bytes.
    Text(ShortText),
}

/// A text of at most 64 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct ShortText(String);

impl TryFrom<String> for ShortText {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text.len() <= 64 {
            Ok(Self(text))
        } else {
            Err("an id has at most 64 bytes")
        }
    }
}

/// The fields that every request shares.
#[derive(Debug, Deserialize)]
pub struct Head<'a> {
    /// Which command it is.
    #[serde(borrow)]
    pub cmd: std::borrow::Cow<'a, str>,
    /// What to echo in the reply.
    #[serde(default)]
    pub id: Option<RequestId>,
}

impl<'a> Head<'a> {
    /// Reads the shared fields of a request line.
    ///
    /// # Errors
    /// `bad_request` when the line is no JSON object with a `cmd`.
    pub fn parse(line: &'a [u8]) -> Result<Self, WireError> {
        serde_json::from_slice(line).map_err(|error| {
            WireError::new(
                ErrorCode::BadRequest,
                format!("cannot read the request: {error}"),
            )
            .hint("send one JSON object per line, such as {\"cmd\":\"status\"}")
        })
    }
}

/// Reads the fields of command `C` from a request line whose head named it.
///
/// # Errors
/// `bad_request` with the field that is missing or wrong.
pub fn parse_fields<C: Command>(line: &[u8]) -> Result<C, WireError> {
    serde_json::from_slice(line).map_err(|error| {
        WireError::new(ErrorCode::BadRequest, format!("`{}`: {error}", C::NAME))
            .hint("docs/wire.md lists the fields of each command")
    })
}

/// The error for a `cmd` that the socket does not have.
pub fn unknown_command(cmd: &str, known: &[&'static str]) -> WireError {
    let cmd = text::shorten(cmd, 40);
    let hint = match text::did_you_mean(&cmd, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("this socket knows: {}", known.join(", ")),
    };
    WireError::new(
        ErrorCode::UnknownCommand,
        format!("there is no command `{cmd}` here"),
    )
    .hint(hint)
}

/// A request line on its way out: `cmd`, `id` and the command's own fields.
#[derive(Serialize)]
struct RequestLine<'a, C> {
    cmd: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RequestId>,
    #[serde(flatten)]
    fields: &'a C,
}

/// Encodes a request, newline included.
///
/// # Errors
/// When the command cannot be expressed as JSON, which no command of this crate does.
pub fn encode_request<C: Command>(
    command: &C,
    id: Option<&RequestId>,
) -> serde_json::Result<Vec<u8>> {
    line(&RequestLine {
        cmd: C::NAME,
        id,
        fields: command,
    })
}

#[derive(Serialize)]
struct OkLine<'a, R> {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RequestId>,
    #[serde(flatten)]
    reply: &'a R,
}

#[derive(Serialize)]
struct ErrorLine<'a> {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RequestId>,
    error: &'a WireError,
}

/// Encodes a reply, newline included.
pub fn encode_reply<R: Serialize>(
    reply: Result<&R, &WireError>,
    id: Option<&RequestId>,
) -> Vec<u8> {
    let encoded = match reply {
        Ok(reply) => line(&OkLine {
            ok: true,
            id,
            reply,
        }),
        Err(error) => line(&ErrorLine {
            ok: false,
            id,
            error,
        }),
    };
    encoded.unwrap_or_else(|error| {
        let error = WireError::new(
            ErrorCode::Storage,
            format!("cannot encode the reply: {error}"),
        );
        line(&ErrorLine {
            ok: false,
            id,
            error: &error,
        })
        .expect("plain strings encode")
    })
}

fn line<T: Serialize>(value: &T) -> serde_json::Result<Vec<u8>> {
    let mut line = Vec::with_capacity(256);
    serde_json::to_writer(&mut line, value)?;
    line.push(b'\n');
    Ok(line)
}

/// The part of a reply that says whom it is for and whether it went well.
#[derive(Debug, Deserialize)]
pub struct ReplyHead {
    /// Whether the command was carried out.
    pub ok: bool,
    /// The id of the request it answers.
    #[serde(default)]
    pub id: Option<RequestId>,
    /// What went wrong, when it was not.
    #[serde(default)]
    pub error: Option<WireError>,
}

/// Declares the closed set of commands of one socket.
macro_rules! commands {
    ($(#[$doc:meta])* $set:ident { $($name:literal => $command:ident -> $reply:ty),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub enum $set {
            $(#[doc = concat!("`", $name, "`")] $command($command),)+
        }

        impl $set {
            /// The names of all commands of this socket.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// Reads the command that `cmd` names from its request line.
            ///
            /// # Errors
            /// `unknown_command`, or `bad_request` with the field that is missing or wrong.
            pub fn parse(cmd: &str, line: &[u8]) -> Result<Self, $crate::WireError> {
                match cmd {
                    $($name => $crate::command::parse_fields(line).map(Self::$command),)+
                    other => Err($crate::command::unknown_command(other, Self::NAMES)),
                }
            }
        }

        $(impl $crate::command::Command for $command {
            const NAME: &'static str = $name;
            type Reply = $reply;
        })+
    };
}
pub(crate) use commands;
