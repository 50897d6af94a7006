//! How commands are declared, parsed and answered.
//!
//! A command is a struct with its own reply type ([`Command`]); a socket's commands form a closed
//! enum made by `commands!`, so that a dispatcher that forgets one does not compile.

pub(crate) mod one_pass;

use std::{cell::RefCell, fmt};

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, DeserializeOwned},
};

use crate::{ErrorCode, WireError, line::MAX_LINE, text};

/// One command of a socket, with the reply it gets.
pub trait Command: Serialize + DeserializeOwned {
    /// Its name in `cmd`.
    const NAME: &'static str;
    /// What a successful reply carries besides `ok` and `id`.
    type Reply: Serialize + DeserializeOwned;
}

/// What a client may put into `id` to find its reply again: an integer or a short text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum RequestId {
    /// A number.
    Number(i64),
    /// A text of at most 64 bytes.
    Text(ShortText),
}

/// The longest text that may be an `id`, in bytes.
pub const MAX_REQUEST_ID: usize = 64;

/// A text of at most [`MAX_REQUEST_ID`] bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct ShortText(String);

impl TryFrom<&str> for ShortText {
    type Error = &'static str;

    fn try_from(text: &str) -> Result<Self, Self::Error> {
        if text.len() <= MAX_REQUEST_ID {
            Ok(Self(text.to_owned()))
        } else {
            Err("an id has at most 64 bytes")
        }
    }
}

/// Written by hand because the derived one for untagged enums copies the value aside and cannot
/// say what was expected.
impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RequestIdVisitor)
    }
}

struct RequestIdVisitor;

impl de::Visitor<'_> for RequestIdVisitor {
    type Value = RequestId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id that is a 64-bit integer or a text of at most 64 bytes")
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<RequestId, E> {
        Ok(RequestId::Number(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<RequestId, E> {
        i64::try_from(number)
            .map(RequestId::Number)
            .map_err(|_| E::invalid_value(de::Unexpected::Unsigned(number), &self))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<RequestId, E> {
        text.try_into().map(RequestId::Text).map_err(E::custom)
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
        let refuse = |why: &str| {
            WireError::new(
                ErrorCode::BadRequest,
                format!("cannot read the request: {why}"),
            )
            .hint("send one JSON object per line, such as {\"cmd\":\"status\"}")
        };
        // Left to itself, serde would take an array for an object whose fields come in order.
        if line.trim_ascii_start().first() != Some(&b'{') {
            return Err(refuse("it is no JSON object"));
        }
        serde_json::from_slice(line).map_err(|error| refuse(&reason(&error)))
    }
}

/// The id of a request whose head is broken, so that a pipelining client finds its error.
pub(crate) fn id_of(line: &[u8]) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct OnlyId {
        id: Option<RequestId>,
    }
    serde_json::from_slice::<OnlyId>(line).ok()?.id
}

/// Reads the fields of command `C` from a request line whose head named it.
///
/// # Errors
/// `bad_request` with the field that is missing or wrong.
pub fn parse_fields<C: Command>(line: &[u8]) -> Result<C, WireError> {
    serde_json::from_slice(line).map_err(|error| {
        WireError::new(
            ErrorCode::BadRequest,
            format!("`{}`: {}", C::NAME, reason(&error)),
        )
        .hint("docs/wire.md lists the fields of each command")
    })
}

/// What was wrong, within bounds: serde quotes the offending text whole, which may be a megabyte
/// and even longer once it is escaped in the reply.
fn reason(error: &serde_json::Error) -> String {
    text::shorten_middle(&error.to_string(), 300)
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
    with_scratch(|scratch| {
        line(
            scratch,
            &RequestLine {
                cmd: C::NAME,
                id,
                fields: command,
            },
        )?;
        Ok(scratch.clone())
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
    with_reply(reply, id, <[u8]>::to_vec)
}

/// Encodes a reply, newline included, and lends it to `take`, which encodes nothing itself.
pub fn with_reply<R: Serialize, T>(
    reply: Result<&R, &WireError>,
    id: Option<&RequestId>,
    take: impl FnOnce(&[u8]) -> T,
) -> T {
    with_scratch(|scratch| {
        let encoded = match reply {
            Ok(reply) => line(
                scratch,
                &OkLine {
                    ok: true,
                    id,
                    reply,
                },
            ),
            Err(error) => error_line(scratch, id, error),
        };
        let problem = match encoded {
            Ok(()) if scratch.len() <= MAX_LINE + 1 => return take(scratch),
            // A peer would cut the connection; whoever makes replies keeps them shorter.
            Ok(()) => format!(
                "the reply has {} bytes, and a line has at most {MAX_LINE}",
                scratch.len()
            ),
            Err(error) => format!("cannot encode the reply: {error}"),
        };
        let error = WireError::new(ErrorCode::LimitReached, problem);
        error_line(scratch, id, &error).expect("plain strings encode");
        take(scratch)
    })
}

fn error_line(
    scratch: &mut Vec<u8>,
    id: Option<&RequestId>,
    error: &WireError,
) -> serde_json::Result<()> {
    let ok = false;
    line(scratch, &ErrorLine { ok, id, error })
}

/// Encodes a line in place of what was there.
fn line<T: Serialize>(scratch: &mut Vec<u8>, value: &T) -> serde_json::Result<()> {
    scratch.clear();
    serde_json::to_writer(&mut *scratch, value)?;
    scratch.push(b'\n');
    Ok(())
}

/// Lends the room that this thread keeps: how long a line gets is known only at its end.
fn with_scratch<T>(work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    SCRATCH.with_borrow_mut(|scratch| {
        let outcome = work(scratch);
        scratch.clear();
        scratch.shrink_to(SCRATCH_BYTES);
        outcome
    })
}

/// How much room a thread keeps for the next line.
const SCRATCH_BYTES: usize = 64 * 1024;

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
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

            /// Reads a request line: its id, as far as it can be read, and its command.
            pub fn read(
                line: &[u8],
            ) -> (Option<$crate::command::RequestId>, Result<Self, $crate::WireError>) {
                use $crate::command::{Head, id_of, one_pass};
                let read = match one_pass::leading_command(line) {
                    $(Some($name) => one_pass::read(line).map(|(id, it)| (id, Self::$command(it))),)+
                    _ => None,
                };
                if let Some((id, request)) = read {
                    return (id, Ok(request));
                }
                match Head::parse(line) {
                    Ok(head) => {
                        let request = Self::parse(&head.cmd, line);
                        (head.id, request)
                    }
                    Err(error) => (id_of(line), Err(error)),
                }
            }

            /// The name of this command.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$command(_) => $name,)+
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
