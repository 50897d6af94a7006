//! Every route of a port, once: for the router and for the OpenAPI document.

use super::{
    Site, actions, call, events, files, log, login, mcp, metrics, notifier, openapi, own, past,
    ready, reminders, render, shell, state, stats, tasks,
};
use crate::access::Audience;
use axum::routing::{MethodRouter, delete, get, post};

/// One route.
pub(super) struct Route {
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) summary: &'static str,
    /// Whether it needs a token.
    pub(super) guarded: bool,
    /// What the body or the query holds.
    pub(super) fields: &'static [Field],
    /// The name of the shape of its answer, where that is described.
    pub(super) answer: Option<&'static str>,
    pub(super) handler: MethodRouter<Site>,
}

/// A field of a body, or a parameter of a query.
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) kind: &'static str,
    pub(super) required: bool,
}

const fn required(name: &'static str) -> Field {
    Field {
        name,
        kind: "string",
        required: true,
    }
}

const fn optional(name: &'static str, kind: &'static str) -> Field {
    Field {
        name,
        kind,
        required: false,
    }
}

const COMMAND: &[Field] = &[required("cmd")];
const CODE: &[Field] = &[required("code")];
const WAIT: &[Field] = &[optional("wait_seconds", "integer")];
const MODEL: &[Field] = &[required("name"), optional("wait_seconds", "integer")];
const INPUT: &[Field] = &[required("text"), optional("wait_seconds", "integer")];
const MESSAGE: &[Field] = &[
    required("body"),
    optional("in_reply_to", "integer"),
    optional("key", "string"),
];
const MESSAGE_TO: &[Field] = &[
    required("to"),
    required("body"),
    optional("in_reply_to", "integer"),
    optional("key", "string"),
];
const PAGE: &[Field] = &[optional("before", "integer"), optional("limit", "integer")];
const DAYS: &[Field] = &[optional("days", "integer")];
const EVENTS: &[Field] = &[optional("after", "string"), optional("recent", "integer")];
const HIVE_EVENTS: &[Field] = &[
    optional("after", "string"),
    optional("recent", "integer"),
    optional("about", "string"),
    optional("watch", "string"),
];
const PAST: &[Field] = &[optional("before", "string"), optional("limit", "integer")];
const PATH: &[Field] = &[optional("path", "string")];
const TAIL: &[Field] = &[optional("stream", "string"), optional("from", "integer")];
const LOG: &[Field] = &[
    optional("format", "string"),
    optional("about", "string"),
    optional("contains", "string"),
    optional("limit", "integer"),
    optional("brief", "boolean"),
];
const REMINDER: &[Field] = &[
    required("agent"),
    Field {
        name: "reminder_id",
        kind: "integer",
        required: true,
    },
];
const PIECES: &[Field] = &[Field {
    name: "pieces",
    kind: "array",
    required: true,
}];

/// Every route of a port of this audience.
pub(super) fn routes(audience: &Audience) -> Vec<Route> {
    let mut table = Table { routes: Vec::new() };
    table.open("GET", "/", "The page", get(shell::page));
    table.open(
        "GET",
        "/assets/{name}",
        "Its script and style",
        get(shell::asset),
    );
    table.open(
        "GET",
        "/icon",
        "The mark of the agent or of the hive",
        get(shell::icon),
    );
    table.open(
        "GET",
        "/healthz",
        "Whether the daemon answers",
        get(|| async { "ok\n" }),
    );
    let what = "Whether the hive takes mail";
    table.open("GET", "/readyz", what, get(ready::ready));
    table.open(
        "POST",
        "/api/login",
        "Exchanges a one-time code for a token",
        post(login::login),
    );
    table.last().fields = CODE;
    table.post(
        "/api/logout",
        "Ends the session of the token",
        &[],
        post(login::logout),
    );
    table.get(
        "/api/openapi.json",
        "This document",
        &[],
        get(openapi::show),
    );
    let what = "What agents wrote, as parts that are safe to show";
    table.post("/api/render", what, PIECES, post(render::render));
    table.last().answer = Some("Rendered");
    match audience {
        Audience::Operator => {
            table.hive();
            table.agent("/api/agents/{name}");
        }
        Audience::Agent(_) => {
            let what = "The agent's own static files, sandboxed";
            table.open("GET", "/own/{*path}", what, get(own::file));
            table.agent("/api");
            table.tools();
        }
    }
    table.routes
}

struct Table {
    routes: Vec<Route>,
}

impl Table {
    /// The routes about the whole hive.
    fn hive(&mut self) {
        self.get(
            "/metrics",
            "Metrics for Prometheus",
            &[],
            get(metrics::show),
        );
        self.get("/api/state", "How the hive stands", &[], get(state::hive));
        self.last().answer = Some("HiveState");
        let what = "What happens in the hive, as server-sent events";
        self.get("/api/events", what, HIVE_EVENTS, get(events::of_hive));
        let what = "Sends a message as the operator";
        self.post("/api/send", what, MESSAGE_TO, post(actions::send_to));
        let what = "Any command of the host, as on its admin socket";
        self.post("/api/call", what, COMMAND, post(call::call));
        let what = "What the turns of all agents add up to, by day";
        self.get("/api/stats", what, DAYS, get(stats::of_hive));
        let what = "The agents' reminders, the next one first";
        self.get("/api/reminders", what, &[], get(reminders::list));
        self.last().answer = Some("Reminders");
        let what = "Deletes a reminder";
        let cancel = post(reminders::cancel);
        self.post("/api/reminders/cancel", what, REMINDER, cancel);
        let what = "Who is told of what waits for the operator";
        self.get("/api/notifier", what, &[], get(notifier::show));
        self.last().answer = Some("NotifierState");
        let what = "Tells them something, to see whether it arrives";
        let test = post(notifier::test);
        self.post("/api/notifier/test", what, &[], test);
        let what = "The event log as a file";
        self.get("/api/log", what, LOG, get(log::download));
    }

    /// The routes about one agent, under its place.
    fn agent(&mut self, at: &str) {
        let at = |path: &str| format!("{at}/{path}");
        self.get(at("state"), "How the agent stands", &[], get(state::agent));
        self.last().answer = Some("AgentPage");
        let what = "What happens to the agent, as server-sent events";
        self.get(at("events"), what, EVENTS, get(events::of_agent));
        let what = "The agent's events page by page, backwards";
        self.get(at("past"), what, PAST, get(past::past));
        self.last().answer = Some("Past");
        let what = "The agent's notes: a directory, or a file";
        self.get(at("files"), what, PATH, get(files::show));
        self.last().answer = Some("Look");
        let what = "The agent's background commands, newest first";
        self.get(at("tasks"), what, &[], get(tasks::list));
        self.last().answer = Some("Tasks");
        let what = "What such a command wrote";
        self.get(at("tasks/{id}"), what, TAIL, get(tasks::tail));
        self.last().answer = Some("TaskOutput");
        let what = "Sends the agent a message as the operator";
        self.post(at("send"), what, MESSAGE, post(actions::send));
        self.post(
            at("interrupt"),
            "Stops the running turn",
            WAIT,
            post(actions::interrupt),
        );
        self.post(
            at("compact"),
            "Compacts the session",
            WAIT,
            post(actions::compact),
        );
        let what = "Lets the next turn begin a new session";
        self.post(at("new-session"), what, WAIT, post(actions::new_session));
        self.post(
            at("model"),
            "Chooses the model of the next turns",
            MODEL,
            post(actions::model),
        );
        let what = "Begins a login of the engine";
        self.post(
            at("engine-login/start"),
            what,
            WAIT,
            post(actions::login_start),
        );
        let what = "Passes a line on to the login";
        self.post(
            at("engine-login/input"),
            what,
            INPUT,
            post(actions::login_input),
        );
        let what = "Gives the login up";
        self.post(
            at("engine-login/cancel"),
            what,
            WAIT,
            post(actions::login_cancel),
        );
        let what = "Lifts the wait of the credential that the agent is on";
        self.post(at("lift"), what, &[], post(actions::lift));
        let what = "What the agent's turns add up to, by day";
        self.get(at("stats"), what, DAYS, get(stats::of_agent));
        self.get(
            at("turns"),
            "The agent's turns, newest first",
            PAGE,
            get(stats::turns),
        );
    }

    /// The agent's tools, for MCP clients.
    fn tools(&mut self) {
        let serve = mcp::serve;
        self.mcp("/mcp", [post(serve), get(serve), delete(serve)]);
        #[cfg(feature = "mcp-fixtures")]
        {
            let serve = mcp::serve_fixtures;
            self.mcp(
                mcp::fixtures::PATH,
                [post(serve), get(serve), delete(serve)],
            );
        }
    }

    /// The three methods of a mount.
    fn mcp(&mut self, path: &'static str, [post, get, delete]: [MethodRouter<Site>; 3]) {
        let what = "A message of the Model Context Protocol";
        self.post(path, what, &[], post);
        let what = "What the server says by itself, in a session of the handshake revisions";
        self.get(path, what, &[], get);
        self.open("DELETE", path, "Ends such a session", delete);
        self.last().guarded = true;
    }

    fn open(
        &mut self,
        method: &'static str,
        path: impl Into<String>,
        summary: &'static str,
        handler: MethodRouter<Site>,
    ) {
        self.routes.push(Route {
            method,
            path: path.into(),
            summary,
            guarded: false,
            fields: &[],
            answer: None,
            handler,
        });
    }

    fn get(
        &mut self,
        path: impl Into<String>,
        summary: &'static str,
        fields: &'static [Field],
        handler: MethodRouter<Site>,
    ) {
        self.open("GET", path, summary, handler);
        self.last().guarded = true;
        self.last().fields = fields;
    }

    fn post(
        &mut self,
        path: impl Into<String>,
        summary: &'static str,
        fields: &'static [Field],
        handler: MethodRouter<Site>,
    ) {
        self.open("POST", path, summary, handler);
        self.last().guarded = true;
        self.last().fields = fields;
    }

    fn last(&mut self) -> &mut Route {
        self.routes.last_mut().expect("a route was just added")
    }
}
