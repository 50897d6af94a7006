//! An MCP server that has tools and nothing else: what is not declared is not answered.
//!
//! Both eras of the protocol are spoken: those that begin with `initialize`, and 2026-07-28, where
//! each request stands for itself and `server/discover` may come first. The library below does the
//! negotiation; this file switches off what it would answer without our having it.

use std::{sync::Arc, time::Instant};

use hive_wire::text;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CancelledNotificationParam,
        CompleteRequestMethod, CompleteRequestParams, CompleteResult, ContentBlock, Extensions,
        Implementation, ListPromptsRequestMethod, ListPromptsResult,
        ListResourceTemplatesRequestMethod, ListResourceTemplatesResult,
        ListResourcesRequestMethod, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
        ServerCapabilities, ServerConfig, Tool,
    },
    service::{NotificationContext, RequestContext},
};

use crate::{
    handover::Handovers,
    journal::{Ending, Journal},
    toolbox::{Call, Context, Failure, Toolbox},
};

/// A server over a toolbox. Clones share everything.
pub struct Server<C> {
    name: &'static str,
    instructions: &'static str,
    toolbox: Arc<Toolbox<C>>,
    context: Arc<C>,
    journal: Arc<Journal>,
    handovers: Arc<Handovers>,
}

impl<C> Clone for Server<C> {
    fn clone(&self) -> Self {
        Self {
            name: self.name,
            instructions: self.instructions,
            toolbox: Arc::clone(&self.toolbox),
            context: Arc::clone(&self.context),
            journal: Arc::clone(&self.journal),
            handovers: Arc::clone(&self.handovers),
        }
    }
}

impl<C> Server<C> {
    /// A server called `name`, whose tools work on `context`.
    pub fn new(
        name: &'static str,
        instructions: &'static str,
        toolbox: impl Into<Arc<Toolbox<C>>>,
        context: C,
        journal: Journal,
    ) -> Self {
        Self {
            name,
            instructions,
            toolbox: toolbox.into(),
            context: Arc::new(context),
            journal: Arc::new(journal),
            handovers: Arc::default(),
        }
    }

    pub(crate) fn handovers(&self) -> Arc<Handovers> {
        Arc::clone(&self.handovers)
    }
}

/// Where the work goes that waits for an answer to be written: to whoever writes this one.
fn handovers_of(extensions: &Extensions) -> Option<Arc<Handovers>> {
    let http = extensions.get::<http::request::Parts>()?;
    http.extensions.get::<Arc<Handovers>>().cloned()
}

impl<C: Context> Server<C> {
    async fn answer(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let args = request.arguments.unwrap_or_default();
        let (id, name) = (context.id, request.name);
        self.journal.begins(&id, &name, &args);
        let started = Instant::now();
        let call = Call {
            request: id.clone(),
            cancelled: context.ct.clone(),
            handovers: handovers_of(&context.extensions).unwrap_or_else(|| self.handovers()),
        };
        let Some(answer) = self.toolbox.call(&self.context, &name, args, call) else {
            let error = self.unknown_tool(&name);
            let ending = Ending::Failed(&error.message);
            self.journal.ends(&id, &name, &ending, started.elapsed());
            return Err(error);
        };
        // Both arms may be dropped: a call that is cancelled is dropped where it waits, and the
        // hive's side of every tool bears that.
        let answer = tokio::select! {
            answer = answer => Some(answer),
            () = context.ct.cancelled() => None,
        };
        let (ending, result) = match answer {
            Some(Ok(result)) => (Ending::Ok, result),
            Some(Err(failure)) => {
                let said = failure.to_string();
                self.journal
                    .ends(&id, &name, &Ending::Failed(&said), started.elapsed());
                return Ok(failed(said));
            }
            // Nobody reads this: the library drops the answer to a cancelled request.
            None => (
                Ending::Cancelled,
                failed("The call was cancelled.".to_owned()),
            ),
        };
        self.journal.ends(&id, &name, &ending, started.elapsed());
        Ok(result)
    }

    fn unknown_tool(&self, name: &str) -> ErrorData {
        let shown = text::printable(&text::shorten(name, 40));
        let near = match self.toolbox.nearest(&shown) {
            Some(near) => format!(" (did you mean {near}?)"),
            None => String::new(),
        };
        ErrorData::invalid_params(format!("Unknown tool: {shown}{near}"), None)
    }
}

/// A failure carries no structured content: its shape would not be that of the output schema.
fn failed(said: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(said)])
}

impl From<Failure> for CallToolResult {
    fn from(failure: Failure) -> Self {
        failed(failure.to_string())
    }
}

impl<C: Context> ServerHandler for Server<C> {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new(self.name, env!("CARGO_PKG_VERSION")))
            .with_instructions(self.instructions)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if request.is_some_and(|request| request.cursor.is_some()) {
            return Err(ErrorData::invalid_params(
                "There is one page of tools, and no cursor was given out",
                None,
            ));
        }
        let grants = self.context.granted().await;
        let tools = self.toolbox.definitions(&grants).cloned().collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.toolbox.find(name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.answer(request, context).await.map(Into::into)
    }

    async fn on_cancelled(
        &self,
        notification: CancelledNotificationParam,
        _: NotificationContext<RoleServer>,
    ) {
        if let Some(request) = &notification.request_id {
            self.handovers.forget(request);
        }
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(ErrorData::method_not_found::<
            ListResourceTemplatesRequestMethod,
        >())
    }
}
