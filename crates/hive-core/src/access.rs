//! Who may use which page: one-time codes, and the tokens they are exchanged for.
//!
//! A page belongs to an audience: the dashboard to the operator, an agent's port to whoever was
//! given a link to that agent's page. A token is good for one audience alone. Tokens are kept as
//! hashes, so that the file that survives a restart opens no door; codes are kept in memory, work
//! once and for a short time. The operator's own token (`state/operator-token`) is the exception: a
//! scraper reads it from its file.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::Context;
use hive_wire::{AgentName, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::time::Instant;

/// How long a code can be exchanged.
const CODE_LIFE: Duration = Duration::from_secs(10 * 60);
/// The most codes that wait to be exchanged; the oldest give way.
const MAX_CODES: usize = 16;
/// How long a token works.
const TOKEN_LIFE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// The most tokens of one audience; the oldest give way.
const MAX_TOKENS: usize = 32;
/// How many wrong codes are answered within [`ATTEMPT_WINDOW`]; then nobody is.
const MAX_ATTEMPTS: u32 = 10;
const ATTEMPT_WINDOW: Duration = Duration::from_secs(60);

/// Whose page it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Audience {
    /// The dashboard.
    Operator,
    /// An agent's page.
    Agent(AgentName),
}

impl Audience {
    fn label(&self) -> String {
        match self {
            Self::Operator => "operator".to_owned(),
            Self::Agent(name) => format!("agent:{name}"),
        }
    }
}

/// Why a code was not exchanged.
#[derive(Debug)]
pub(crate) enum NoToken {
    /// It is wrong, used, too old, or for another page.
    WrongCode,
    /// Too many wrong ones were tried.
    TooManyAttempts,
    /// The token could not be kept.
    Storage(io::Error),
}

type Hash = [u8; 32];

/// The doorkeeper of all pages.
pub(crate) struct Access {
    sessions_file: PathBuf,
    operator_file: PathBuf,
    inner: Mutex<Inner>,
}

struct Inner {
    operator: Hash,
    codes: Vec<Code>,
    sessions: Vec<Session>,
    attempts: Attempts,
}

struct Code {
    hash: Hash,
    audience: Audience,
    expires: Instant,
}

/// Somebody who has logged in.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Session {
    /// The token's hash, in hex.
    hash: String,
    audience: String,
    created_at: Timestamp,
}

#[derive(Default, Serialize, Deserialize)]
struct SessionFile {
    sessions: Vec<Session>,
}

/// Wrong codes of the last while.
struct Attempts {
    since: Instant,
    count: u32,
}

impl Access {
    /// Reads what an earlier daemon left in `state`, and makes the operator's token at the first
    /// start.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub(crate) fn open(operator_file: &Path, sessions_file: &Path) -> anyhow::Result<Self> {
        let operator = operator_token(operator_file)?;
        let sessions = read_sessions(sessions_file)?;
        Ok(Self {
            sessions_file: sessions_file.to_path_buf(),
            operator_file: operator_file.to_path_buf(),
            inner: Mutex::new(Inner {
                operator: hash(&operator),
                codes: Vec::new(),
                sessions,
                attempts: Attempts {
                    since: Instant::now(),
                    count: 0,
                },
            }),
        })
    }

    /// A new code for a page, and until when it works.
    ///
    /// # Errors
    /// When the kernel gives no random bytes.
    pub(crate) fn new_code(&self, audience: Audience) -> io::Result<(String, Timestamp)> {
        let code = secret(16)?;
        let mut inner = self.lock();
        let now = Instant::now();
        inner.codes.retain(|code| code.expires > now);
        if inner.codes.len() >= MAX_CODES {
            inner.codes.remove(0);
        }
        inner.codes.push(Code {
            hash: hash(&code),
            audience,
            expires: now + CODE_LIFE,
        });
        Ok((code, Timestamp::now().plus(CODE_LIFE)))
    }

    /// Exchanges a code for a token of the same audience. It writes a file.
    pub(crate) fn exchange(&self, audience: &Audience, code: &str) -> Result<String, NoToken> {
        let mut inner = self.lock();
        if !inner.attempts.may_try() {
            return Err(NoToken::TooManyAttempts);
        }
        let (given, now) = (hash(code), Instant::now());
        let mut found = None;
        // Every code is looked at, so that the time tells nothing.
        for (place, code) in inner.codes.iter().enumerate() {
            let is_same: bool = code.hash.ct_eq(&given).into();
            if is_same && code.audience == *audience && code.expires > now {
                found = Some(place);
            }
        }
        let Some(place) = found else {
            inner.attempts.count += 1;
            return Err(NoToken::WrongCode);
        };
        inner.codes.remove(place);
        let token = secret(32).map_err(NoToken::Storage)?;
        let mut sessions = inner.sessions.clone();
        let label = audience.label();
        sessions.retain(Session::is_alive);
        let own = sessions.iter().filter(|session| session.audience == label);
        if own.count() >= MAX_TOKENS
            && let Some(oldest) = sessions
                .iter()
                .position(|session| session.audience == label)
        {
            sessions.remove(oldest);
        }
        sessions.push(Session {
            hash: hex(&hash(&token)),
            audience: label,
            created_at: Timestamp::now(),
        });
        self.keep(&mut inner, sessions).map_err(NoToken::Storage)?;
        Ok(token)
    }

    /// Whether a token opens this audience's page.
    pub(crate) fn admits(&self, audience: &Audience, token: &str) -> bool {
        let given = hash(token);
        let (text, label) = (hex(&given), audience.label());
        let inner = self.lock();
        let mut admitted = false;
        for session in &inner.sessions {
            let is_same: bool = session.hash.as_bytes().ct_eq(text.as_bytes()).into();
            admitted |= is_same && session.audience == label && session.is_alive();
        }
        let is_operator: bool = inner.operator.ct_eq(&given).into();
        admitted || (is_operator && *audience == Audience::Operator)
    }

    /// Ends the session of a token. It writes a file.
    ///
    /// # Errors
    /// When the file cannot be written; the session goes on then.
    pub(crate) fn revoke(&self, token: &str) -> io::Result<()> {
        let text = hex(&hash(token));
        let mut inner = self.lock();
        let mut sessions = inner.sessions.clone();
        sessions.retain(|session| session.hash != text);
        self.keep(&mut inner, sessions)
    }

    /// Ends every session and code of an audience; the operator gets a new token. It writes files.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub(crate) fn rotate(&self, audience: &Audience) -> io::Result<()> {
        let label = audience.label();
        let mut inner = self.lock();
        if *audience == Audience::Operator {
            inner.operator = hash(&make_operator_token(&self.operator_file)?);
        }
        inner.codes.retain(|code| code.audience != *audience);
        let mut sessions = inner.sessions.clone();
        sessions.retain(|session| session.audience != label);
        self.keep(&mut inner, sessions)
    }

    /// Puts the sessions on disk, and only then in force.
    fn keep(&self, inner: &mut Inner, sessions: Vec<Session>) -> io::Result<()> {
        let file = SessionFile { sessions };
        let text = serde_json::to_string(&file).map_err(io::Error::other)?;
        write_private(&self.sessions_file, &text)?;
        inner.sessions = file.sessions;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    fn is_alive(&self) -> bool {
        self.created_at.plus(TOKEN_LIFE) > Timestamp::now()
    }
}

impl Attempts {
    fn may_try(&mut self) -> bool {
        if self.since.elapsed() >= ATTEMPT_WINDOW {
            *self = Self {
                since: Instant::now(),
                count: 0,
            };
        }
        self.count < MAX_ATTEMPTS
    }
}

fn read_sessions(path: &Path) -> anyhow::Result<Vec<Session>> {
    match fs::read(path) {
        Ok(bytes) => match serde_json::from_slice::<SessionFile>(&bytes) {
            Ok(file) => Ok(file.sessions),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "unreadable: everybody logs in anew");
                Ok(Vec::new())
            }
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// The operator's token, made at the first start.
fn operator_token(path: &Path) -> anyhow::Result<String> {
    match fs::read_to_string(path) {
        Ok(token) if token.trim().len() >= 32 => return Ok(token.trim().to_owned()),
        Ok(_) => anyhow::bail!(
            "{} is cut short: remove it to get a new one",
            path.display()
        ),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
    make_operator_token(path).with_context(|| format!("cannot write {}", path.display()))
}

fn make_operator_token(path: &Path) -> io::Result<String> {
    let token = secret(32)?;
    write_private(path, &format!("{token}\n"))?;
    Ok(token)
}

/// So many random bytes, in hex.
fn secret(length: usize) -> io::Result<String> {
    let mut bytes = vec![0_u8; length];
    getrandom::fill(&mut bytes)
        .map_err(|error| io::Error::other(format!("no random bytes: {error}")))?;
    Ok(hex(&bytes))
}

fn hash(secret: &str) -> Hash {
    Sha256::digest(secret.as_bytes()).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes a file that is there as a whole or not at all: a start that is cut short leaves no half
/// of it behind.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let draft = path.with_extension("new");
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&draft, path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    struct Place {
        dir: tempfile::TempDir,
    }

    impl Place {
        fn new() -> Self {
            Self {
                dir: tempfile::tempdir().unwrap(),
            }
        }

        fn open(&self) -> Access {
            let path = self.dir.path();
            Access::open(&path.join("operator-token"), &path.join("sessions.json")).unwrap()
        }
    }

    fn ada() -> Audience {
        Audience::Agent("ada".parse().unwrap())
    }

    fn bob() -> Audience {
        Audience::Agent("bob".parse().unwrap())
    }

    fn log_in(access: &Access, audience: &Audience) -> String {
        let (code, _) = access.new_code(audience.clone()).unwrap();
        access.exchange(audience, &code).unwrap()
    }

    #[test]
    fn a_code_works_once_and_for_its_own_page() {
        let place = Place::new();
        let access = place.open();
        let (code, _) = access.new_code(ada()).unwrap();
        assert!(access.exchange(&bob(), &code).is_err(), "another page");
        assert!(access.exchange(&Audience::Operator, &code).is_err());
        let token = access.exchange(&ada(), &code).unwrap();
        assert!(access.exchange(&ada(), &code).is_err(), "used");
        assert!(access.admits(&ada(), &token));
        assert!(!access.admits(&bob(), &token));
        assert!(!access.admits(&Audience::Operator, &token));
        assert!(!access.admits(&ada(), &code), "a code is no token");
        assert!(!access.admits(&ada(), ""));
    }

    #[test]
    fn tokens_survive_a_restart_as_hashes_in_a_private_file() {
        let place = Place::new();
        let access = place.open();
        let token = log_in(&access, &ada());
        let gone = log_in(&access, &ada());
        access.revoke(&gone).unwrap();
        drop(access);
        let file = place.dir.path().join("sessions.json");
        let text = fs::read_to_string(&file).unwrap();
        assert!(!text.contains(&token), "{text}");
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let access = place.open();
        assert!(access.admits(&ada(), &token));
        assert!(!access.admits(&ada(), &gone));
        fs::write(&file, "{").unwrap();
        assert!(
            !place.open().admits(&ada(), &token),
            "unreadable: log in anew"
        );
    }

    #[test]
    fn rotating_ends_what_was_begun_before() {
        let place = Place::new();
        let access = place.open();
        let own = fs::read_to_string(place.dir.path().join("operator-token")).unwrap();
        assert!(access.admits(&Audience::Operator, own.trim()));
        assert!(!access.admits(&ada(), own.trim()), "the dashboard's alone");
        let (operator, agent) = (
            log_in(&access, &Audience::Operator),
            log_in(&access, &ada()),
        );
        let (code, _) = access.new_code(Audience::Operator).unwrap();
        access.rotate(&Audience::Operator).unwrap();
        for token in [own.trim(), &operator] {
            assert!(!access.admits(&Audience::Operator, token));
        }
        assert!(access.exchange(&Audience::Operator, &code).is_err());
        assert!(
            access.admits(&ada(), &agent),
            "another page is not concerned"
        );
        let new = fs::read_to_string(place.dir.path().join("operator-token")).unwrap();
        assert!(access.admits(&Audience::Operator, new.trim()));
    }

    #[test]
    fn guessing_is_slowed_and_memory_is_bounded() {
        let place = Place::new();
        let access = place.open();
        let (first, _) = access.new_code(ada()).unwrap();
        for _ in 0..MAX_CODES {
            access.new_code(ada()).unwrap();
        }
        assert!(access.exchange(&ada(), &first).is_err(), "it gave way");
        for _ in 0..MAX_ATTEMPTS - 1 {
            let guess = access.exchange(&ada(), "0123");
            assert!(matches!(guess, Err(NoToken::WrongCode)));
        }
        let (good, _) = access.new_code(ada()).unwrap();
        let late = access.exchange(&ada(), &good);
        assert!(matches!(late, Err(NoToken::TooManyAttempts)));
    }

    #[test]
    fn the_oldest_sessions_give_way() {
        let place = Place::new();
        let access = place.open();
        let first = log_in(&access, &ada());
        let other = log_in(&access, &bob());
        for _ in 0..MAX_TOKENS {
            log_in(&access, &ada());
        }
        assert!(!access.admits(&ada(), &first));
        assert!(access.admits(&bob(), &other));
    }
}
