//! Every route of a port, once: for the router and for the OpenAPI document.

use super::{Site, actions, call, events, login, mcp, openapi, own_files, shell, state, stats};
use crate::access::Audience;
use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
    routing::{MethodRouter, delete, get, post},
};

/// One route.
pub(super) struct Route {
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) summary: &'static str,
    /// Whether it needs a token.
    pub(super) guarded: bool,
    /// What the body or the query holds.
    pub(super) fields: &'static [Field],
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
];

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
        get(own_files::icon),
    );
    table.open(
        "GET",
        "/healthz",
        "Whether the daemon answers",
        get(|| async { "ok\n" }),
    );
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
    match audience {
        Audience::Operator => {
            table.get("/metrics", "Metrics for Prometheus", &[], get(metrics));
            table.get("/api/state", "How the hive stands", &[], get(state::hive));
            let what = "What happens in the hive, as server-sent events";
            table.get("/api/events", what, HIVE_EVENTS, get(events::of_hive));
            let what = "Sends a message as the operator";
            table.post("/api/send", what, MESSAGE_TO, post(actions::send_to));
            let what = "Any command of the host, as on its admin socket";
            table.post("/api/call", what, COMMAND, post(call::call));
            let what = "What the turns of all agents add up to, by day";
            table.get("/api/stats", what, DAYS, get(stats::of_hive));
            table.agent("/api/agents/{name}");
        }
        Audience::Agent(_) => {
            let about = "Files of the agent's own, sandboxed";
            table.open("GET", "/files/", about, get(own_files::index));
            table.open("GET", "/files/{*path}", about, get(own_files::file));
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
    /// The routes about one agent, under its place.
    fn agent(&mut self, at: &str) {
        let at = |path: &str| format!("{at}/{path}");
        self.get(at("state"), "How the agent stands", &[], get(state::agent));
        let what = "What happens to the agent, as server-sent events";
        self.get(at("events"), what, EVENTS, get(events::of_agent));
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

async fn metrics(State(site): State<Site>) -> Response {
    let kind = [(
        header::CONTENT_TYPE,
        "application/openmetrics-text; version=1.0.0; charset=utf-8",
    )];
    (kind, site.metrics.render()).into_response()
}
