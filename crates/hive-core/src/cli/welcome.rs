//! What `up` says once the hive runs: where it is and what to try first; and how a daemon that
//! cannot start says why.

use std::{
    io::{self, Write},
    path::Path,
};

use hive_runtime::runtimes::isolates;
use hive_wire::{AgentName, host::Runtime};

use super::BINARY;
use crate::daemon::Running;

/// Greets whoever ran `up`.
///
/// # Errors
/// When stdout cannot be written.
pub fn welcome(running: &Running, root: Option<&Path>) -> anyhow::Result<()> {
    // As it was called: the binary need not be on the PATH.
    let program = std::env::args().next().unwrap_or_else(|| BINARY.to_owned());
    let program = shell_word(&program);
    let command = match root {
        Some(root) => format!("{program} --root {}", shell_word(&root.to_string_lossy())),
        None => program,
    };
    let agents = running.crew();
    let greeting = Greeting {
        command: &command,
        url: running.url(),
        link: &running.link()?,
        agent: agents.first(),
        rehearsed: running.is_rehearsed(),
        socket: &running.agent_socket(&"ada".parse().expect("a legal name")),
    };
    let mut out = io::stdout().lock();
    out.write_all(greeting.text().as_bytes())?;
    out.flush()?;
    Ok(())
}

/// What the greeting is about.
struct Greeting<'g> {
    command: &'g str,
    url: &'g str,
    /// Opens the dashboard, once.
    link: &'g str,
    /// An agent that runs, when there is one.
    agent: Option<&'g (AgentName, Runtime)>,
    rehearsed: bool,
    /// The socket of an agent to be.
    socket: &'g Path,
}

impl Greeting<'_> {
    fn text(&self) -> String {
        let Self {
            command, url, link, ..
        } = self;
        let mut text = format!(
            "\nThe hive is up. Ctrl-C drains and stops it; nothing is lost.\n\n\
             Its page, with a code that works once (`{command} link` makes another):\n  {link}\n\n"
        );
        if self.rehearsed {
            text.push_str(
                "*** THE MODEL IS REHEARSED: no key was found, so a script answers instead of a \
                 model. ***\n*** For a real one set ANTHROPIC_API_KEY, or [engine.env] in \
                 hive.toml, and start again. ***\n\n",
            );
        }
        text.push_str(&match self.agent {
            Some((agent, runtime)) => self.talk_to(agent, *runtime),
            None => self.be_an_agent(),
        });
        text.push_str(&format!(
            "Health: {url}/healthz   Everything else: {command} --help\n\n"
        ));
        text
    }

    fn talk_to(&self, agent: &AgentName, runtime: Runtime) -> String {
        let command = self.command;
        let place = if isolates(runtime) {
            format!("in a container of its own (`{}`)", runtime.as_str())
        } else {
            format!(
                "as a plain process of yours, WITHOUT ISOLATION (`{command} doctor` says why and \
                 how to change that)"
            )
        };
        format!(
            "{agent} runs {place}. Write to {agent}, watch the turn, read the answer:\n  \
             {command} send {agent} 'hello'\n  \
             {command} tail {agent}\n  \
             {command} inbox\n\n\
             More agents:\n  \
             {command} spawn ada\n  \
             {command} list\n\n"
        )
    }

    fn be_an_agent(&self) -> String {
        let command = self.command;
        let socket = shell_word(&format!("UNIX-CONNECT:{}", self.socket.display()));
        format!(
            "Create two agents and let them talk:\n  \
             {command} spawn ada --runtime none\n  \
             {command} spawn bob --runtime none\n  \
             {command} send ada 'hello from the operator'\n\n\
             Be ada, by hand, on her socket:\n  \
             echo '{{\"cmd\":\"recv\",\"turn\":\"t1\"}}' | socat - {socket}\n  \
             echo '{{\"cmd\":\"ack_turn\",\"turn\":\"t1\",\"ids\":[1]}}' | socat - {socket}\n  \
             {command} receipt 1\n\n"
        )
    }
}

/// Says on stderr why the daemon could not start or had to stop, with each cause once.
pub fn report_fatal(error: &anyhow::Error) {
    let mut text = format!("error: {error}\n");
    for cause in error.chain().skip(1) {
        text.push_str(&format!("  because: {cause}\n"));
    }
    // Nobody is left to be told when stderr is gone.
    drop(io::stderr().lock().write_all(text.as_bytes()));
}

/// A path as a shell takes it.
fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greeting_says_what_there_is() {
        let ruth = |runtime| ("ruth".parse::<AgentName>().unwrap(), runtime);
        let (bare, boxed) = (ruth(Runtime::Process), ruth(Runtime::Bwrap));
        let greeting = |agent, rehearsed| {
            let greeting = Greeting {
                command: "hive-c0re --root /r",
                url: "http://127.0.0.1:7000",
                link: "http://127.0.0.1:7000/#code=c0de",
                agent,
                rehearsed,
                socket: Path::new("/r/run/agents/ada/mcp.sock"),
            };
            greeting.text()
        };
        let demo = greeting(Some(&bare), true);
        for words in [
            "MODEL IS REHEARSED",
            "ANTHROPIC_API_KEY",
            "WITHOUT ISOLATION",
            "hive-c0re --root /r send ruth 'hello'",
            "hive-c0re --root /r tail ruth",
        ] {
            assert!(demo.contains(words), "{words}: {demo}");
        }
        let real = greeting(Some(&boxed), false);
        assert!(!real.contains("REHEARSED"), "{real}");
        assert!(!real.contains("WITHOUT ISOLATION"), "{real}");
        assert!(real.contains("container of its own (`bwrap`)"), "{real}");
        let bare = greeting(None, false);
        assert!(bare.contains("spawn ada --runtime none"), "{bare}");
        assert!(
            bare.contains("UNIX-CONNECT:/r/run/agents/ada/mcp.sock"),
            "{bare}"
        );
    }

    #[test]
    fn paths_are_quoted_where_a_shell_would_trip() {
        for (text, word) in [
            ("/a/b", "/a/b"),
            ("/a b", "'/a b'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(text), word);
        }
    }
}
