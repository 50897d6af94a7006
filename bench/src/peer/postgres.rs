//! PostgreSQL as a queue: a table, `FOR UPDATE SKIP LOCKED`, `synchronous_commit = on`.
//!
//! It gets its better variant. The insert carries no NOTIFY, which would serialise the commits of
//! all senders; the receiver is told of the insert in this process, at no cost to the peer, and
//! then leases the head of its queue with one statement. Statements are prepared once per
//! connection, over a unix socket.

use std::{
    fs,
    os::unix::{fs::chown, process::CommandExt as _},
    path::{Path, PathBuf},
    process::Command,
    rc::Rc,
};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Signal, geteuid};
use tokio::{sync::Notify, task::JoinSet};
use tokio_postgres::{Client, Config, NoTls, Statement};

use super::{Pair, Peer, Receiver, Sender};
use crate::{
    process::{Server, on_path, run},
    site::Site,
};

const SCHEMA: &str = "
    CREATE TABLE queue (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        recipient int NOT NULL,
        leased_by text,
        body text NOT NULL
    );
    CREATE INDEX queue_ready ON queue (recipient, id) WHERE leased_by IS NULL;
";
const INSERT: &str = "INSERT INTO queue (recipient, body) VALUES ($1, $2)";
const LEASE: &str = "
    UPDATE queue SET leased_by = $2 WHERE id = (
        SELECT id FROM queue WHERE recipient = $1 AND leased_by IS NULL
        ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1
    ) RETURNING id, body";
const DELETE: &str = "DELETE FROM queue WHERE id = $1";

/// Durable, and sized so that no checkpoint falls into a measurement.
const SETTINGS: &[&str] = &[
    "listen_addresses=",
    "fsync=on",
    "synchronous_commit=on",
    "full_page_writes=on",
    "max_connections=200",
    "shared_buffers=256MB",
    "max_wal_size=4GB",
    "min_wal_size=1GB",
    "checkpoint_timeout=1h",
    "jit=off",
];

#[derive(Debug)]
pub(crate) struct Postgres {
    server: Server,
    config: Box<Config>,
}

impl Postgres {
    pub(crate) async fn start(site: &Site) -> Result<Self> {
        let account = Account::to_run_as()?;
        for dir in [site.dir(), site.sockets()] {
            account.give(dir)?;
        }
        let data = site.dir().join("data");
        let mut initdb = Command::new(program("initdb")?);
        initdb.args([
            "-U",
            "bench",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-locale",
            "--no-sync",
            "-D",
        ]);
        initdb.arg(&data).current_dir(site.dir());
        account.apply(&mut initdb);
        run(initdb)?;

        let mut command = site.command(&program("postgres")?);
        command.arg("-D").arg(&data).arg("-k").arg(site.sockets());
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command.current_dir(site.dir());
        account.apply(&mut command);
        let mut server = Server::start(command, Signal::INT, site.log())?;
        let mut config = Config::new();
        config
            .host_path(site.sockets())
            .user("bench")
            .dbname("postgres");
        server
            .ready(async || Link::open(&config).await.map(drop))
            .await?;
        Link::open(&config)
            .await?
            .client
            .batch_execute(SCHEMA)
            .await?;
        Ok(Self {
            server,
            config: Box::new(config),
        })
    }

    pub(crate) fn version() -> Result<String> {
        let mut command = Command::new(program("postgres")?);
        command.arg("--version");
        let text = run(command)?;
        Ok(text
            .split_whitespace()
            .nth(2)
            .unwrap_or("unknown")
            .to_owned())
    }
}

impl Peer for Postgres {
    type Sender = TableSender;
    type Receiver = TableReceiver;

    async fn pairs(&self, count: usize, body: &str) -> Result<Vec<Pair<Self>>> {
        let admin = Link::open(&self.config).await?;
        admin.client.batch_execute("TRUNCATE queue").await?;
        let mut pairs = Vec::with_capacity(count);
        for client in 0..count {
            let recipient = i32::try_from(client)?;
            let told = Rc::new(Notify::new());
            let sender = TableSender::open(&self.config, recipient, body, Rc::clone(&told)).await?;
            let receiver = TableReceiver::open(&self.config, recipient, told).await?;
            pairs.push((sender, receiver));
        }
        Ok(pairs)
    }

    fn pid(&self) -> u32 {
        self.server.pid()
    }
}

#[derive(Debug)]
pub(crate) struct TableSender {
    link: Link,
    insert: Statement,
    recipient: i32,
    body: String,
    tell: Rc<Notify>,
}

impl TableSender {
    async fn open(config: &Config, recipient: i32, body: &str, tell: Rc<Notify>) -> Result<Self> {
        let link = Link::open(config).await?;
        Ok(Self {
            insert: link.client.prepare(INSERT).await?,
            link,
            recipient,
            body: body.to_owned(),
            tell,
        })
    }
}

impl Sender for TableSender {
    async fn send(&mut self) -> Result<()> {
        self.link
            .client
            .execute(&self.insert, &[&self.recipient, &self.body])
            .await?;
        self.tell.notify_one();
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct TableReceiver {
    link: Link,
    lease: Statement,
    delete: Statement,
    recipient: i32,
    told: Rc<Notify>,
    taken: i64,
}

impl TableReceiver {
    async fn open(config: &Config, recipient: i32, told: Rc<Notify>) -> Result<Self> {
        let link = Link::open(config).await?;
        Ok(Self {
            lease: link.client.prepare(LEASE).await?,
            delete: link.client.prepare(DELETE).await?,
            link,
            recipient,
            told,
            taken: 0,
        })
    }
}

impl Receiver for TableReceiver {
    async fn park(&mut self) -> Result<()> {
        Ok(())
    }

    async fn take(&mut self) -> Result<()> {
        self.told.notified().await;
        let row = self
            .link
            .client
            .query_one(&self.lease, &[&self.recipient, &"T1"])
            .await?;
        self.taken = row.try_get(0)?;
        Ok(())
    }

    async fn ack(&mut self) -> Result<()> {
        match self
            .link
            .client
            .execute(&self.delete, &[&self.taken])
            .await?
        {
            1 => Ok(()),
            rows => bail!("the ack deleted {rows} rows"),
        }
    }
}

/// A connection and the task that drives it, which ends with it.
#[derive(Debug)]
struct Link {
    client: Client,
    _driver: JoinSet<Result<(), tokio_postgres::Error>>,
}

impl Link {
    async fn open(config: &Config) -> Result<Self> {
        let (client, connection) = config.connect(NoTls).await?;
        let mut driver = JoinSet::new();
        driver.spawn(connection);
        Ok(Self {
            client,
            _driver: driver,
        })
    }
}

/// The account PostgreSQL runs under: it refuses to be root.
#[derive(Debug, Clone, Copy)]
enum Account {
    Own,
    Other { uid: u32, gid: u32 },
}

impl Account {
    fn to_run_as() -> Result<Self> {
        if !geteuid().is_root() {
            return Ok(Self::Own);
        }
        let passwd = fs::read_to_string("/etc/passwd")?;
        ["postgres", "nobody"]
            .iter()
            .find_map(|name| find_account(&passwd, name))
            .context("no account but root: PostgreSQL refuses to run as root")
    }

    fn give(self, dir: &Path) -> Result<()> {
        match self {
            Self::Own => Ok(()),
            Self::Other { uid, gid } => Ok(chown(dir, Some(uid), Some(gid))?),
        }
    }

    fn apply(self, command: &mut Command) {
        if let Self::Other { uid, gid } = self {
            command.uid(uid).gid(gid);
        }
    }
}

fn find_account(passwd: &str, name: &str) -> Option<Account> {
    let line = passwd
        .lines()
        .find(|line| line.split(':').next() == Some(name))?;
    let mut ids = line.split(':').skip(2).map(str::parse);
    Some(Account::Other {
        uid: ids.next()?.ok()?,
        gid: ids.next()?.ok()?,
    })
}

/// One of PostgreSQL's programs: distributions keep the server's off PATH, by version.
fn program(name: &str) -> Result<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let newest = versions
        .filter_map(|entry| {
            Some((
                entry.file_name().to_str()?.parse::<u32>().ok()?,
                entry.path(),
            ))
        })
        .map(|(version, dir)| (version, dir.join("bin").join(name)))
        .filter(|(_, program)| program.is_file())
        .max();
    newest
        .map(|(_, program)| program)
        .or_else(|| on_path(name))
        .with_context(|| {
            format!("PostgreSQL's {name} is not installed (apt-get install postgresql)")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_accounts() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\npostgres:x:101:104::/var:/bin/bash\n";
        assert!(matches!(
            find_account(passwd, "postgres"),
            Some(Account::Other { uid: 101, gid: 104 })
        ));
        assert!(find_account(passwd, "post").is_none());
    }
}
