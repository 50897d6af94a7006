//! What the MCP conformance suite wants to find on a server: tools, resources and prompts of its
//! own, most of them as data in `fixtures.json`.
//!
//! Served at [`PATH`] by the very mount that serves an agent's tools, in builds with the feature
//! `mcp-fixtures` and in no others. What goes wrong here is a failed test.

#![expect(
    deprecated,
    reason = "the handshake revisions have sampling and logging, and the suite tests them"
)]

mod rounds;

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
    time::Duration,
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities,
        CompleteRequestParams, CompleteResult, ContentBlock, CreateMessageRequestParams,
        ElicitRequestParams, GetPromptRequestParams, GetPromptResponse, GetPromptResult,
        Implementation, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
        ListToolsResult, LoggingLevel, LoggingMessageNotificationParam, PaginatedRequestParams,
        ProgressNotificationParam, Prompt, PromptMessage, ReadResourceRequestParams,
        ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
        SamplingMessage, ServerCapabilities, ServerConfig, SetLevelRequestParams,
        SubscribeRequestParams, Tool, UnsubscribeRequestParams,
    },
    service::RequestContext,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use self::rounds::{Answered, Rounds, States};

/// Where they are on an agent's port.
pub(in crate::http) const PATH: &str = "/mcp-fixtures";
/// Between two messages of one call, so that they are seen to come one by one.
const STEP: Duration = Duration::from_millis(50);

/// The data.
#[derive(Deserialize)]
struct Data {
    tools: Vec<Tool>,
    /// What tools without a behaviour of their own answer.
    results: BTreeMap<String, CallToolResult>,
    /// What tools ask the user.
    elicitations: BTreeMap<String, Value>,
    /// What tools and a prompt need before they can answer.
    rounds: BTreeMap<String, Rounds>,
    resources: Vec<Resource>,
    contents: BTreeMap<String, ResourceContents>,
    templates: Vec<ResourceTemplate>,
    prompts: Vec<Prompt>,
    messages: BTreeMap<String, Value>,
}

/// The server.
#[derive(Clone)]
pub(in crate::http) struct Fixtures {
    data: Arc<Data>,
    states: Arc<States>,
}

impl Fixtures {
    pub(in crate::http) fn new() -> Self {
        static DATA: LazyLock<Arc<Data>> = LazyLock::new(|| {
            let data = serde_json::from_str(include_str!("fixtures.json"));
            Arc::new(data.expect("the fixtures are what their types say"))
        });
        Self {
            data: Arc::clone(&DATA),
            states: Arc::default(),
        }
    }

    /// A tool that talks with its client while it runs.
    async fn converse(
        &self,
        name: &str,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<CallToolResult>, ErrorData> {
        let said = |field: &str| {
            let args = request.arguments.as_ref();
            let text = args.and_then(|args| args.get(field)?.as_str());
            text.unwrap_or_default().to_owned()
        };
        let text = match name {
            "test_tool_with_logging" | "test_logging_tool" => log(context).await?,
            "test_tool_with_progress" => progress(context).await?,
            "test_sampling" => sample(context, &said("prompt")).await?,
            "test_missing_capability" => {
                needs_sampling(context)?;
                "The client can sample.".to_owned()
            }
            _ => match self.data.elicitations.get(name) {
                Some(form) => elicit(context, form, &said("message")).await?,
                None => return Ok(None),
            },
        };
        Ok(Some(spoken(text)))
    }
}

fn spoken(text: String) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn internal(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

fn parsed<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(internal)
}

async fn log(context: &RequestContext<RoleServer>) -> Result<String, ErrorData> {
    // Without a handshake a request says for itself whether it wants a log.
    let is_modern = context.meta.protocol_version().is_some();
    let is_wanted = !is_modern || context.meta.log_level().is_some();
    for step in ["started", "processing data", "completed"] {
        let line = match step {
            "processing data" => format!("Tool {step}"),
            _ => format!("Tool execution {step}"),
        };
        if is_wanted {
            let line = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(line));
            let sent = context.peer.notify_logging_message(line);
            sent.await.map_err(internal)?;
        }
        tokio::time::sleep(STEP).await;
    }
    Ok("It was logged.".to_owned())
}

async fn progress(context: &RequestContext<RoleServer>) -> Result<String, ErrorData> {
    let token = context.meta.get_progress_token();
    for done in [0.0, 50.0, 100.0] {
        if let Some(token) = &token {
            let report = ProgressNotificationParam::new(token.clone(), done).with_total(100.0);
            let sent = context.peer.notify_progress(report);
            sent.await.map_err(internal)?;
        }
        tokio::time::sleep(STEP).await;
    }
    Ok("It is done.".to_owned())
}

async fn sample(context: &RequestContext<RoleServer>, prompt: &str) -> Result<String, ErrorData> {
    let message = SamplingMessage::user_text(prompt);
    let asked = CreateMessageRequestParams::new(vec![message], 100);
    let answer = context.peer.create_message(asked).await.map_err(internal)?;
    let said = answer.message.content.first();
    let said = said.and_then(|content| Some(content.as_text()?.text.clone()));
    Ok(format!("LLM response: {}", said.unwrap_or_default()))
}

fn needs_sampling(context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
    let capabilities = context.client_capabilities().unwrap_or_default();
    if capabilities.sampling.is_some() {
        return Ok(());
    }
    let required: ClientCapabilities = parsed(json!({"sampling": {}}))?;
    Err(ErrorData::missing_required_client_capability(required))
}

async fn elicit(
    context: &RequestContext<RoleServer>,
    form: &Value,
    message: &str,
) -> Result<String, ErrorData> {
    let own = form["message"].as_str().unwrap_or_default();
    let message = if message.is_empty() { own } else { message };
    let asked = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message.to_owned(),
        requested_schema: parsed(form["requestedSchema"].clone())?,
    };
    let asked = context.peer.create_elicitation(asked);
    let answer = serde_json::to_value(asked.await.map_err(internal)?).map_err(internal)?;
    Ok(format!(
        "User response: action={}, content={}",
        answer["action"], answer["content"]
    ))
}

/// The same with every `{name}` replaced by that argument.
fn filled(template: &Value, args: &BTreeMap<String, String>) -> Result<Value, ErrorData> {
    let mut text = template.to_string();
    for (name, value) in args {
        let quoted = Value::from(value.as_str()).to_string();
        text = text.replace(&format!("{{{name}}}"), quoted.trim_matches('"'));
    }
    serde_json::from_str(&text).map_err(internal)
}

fn no_such_resource(uri: &str) -> ErrorData {
    ErrorData::invalid_params("Resource not found", Some(json!({"uri": uri})))
}

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .enable_completions()
            .enable_logging()
            .build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new(
            "hyperhive-fixtures",
            env!("CARGO_PKG_VERSION"),
        ))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.data.tools.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let mut tools = self.data.tools.iter();
        tools.find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.to_string();
        if let Some(result) = self.data.results.get(&name) {
            return Ok(result.clone().into());
        }
        if let Some(rounds) = self.data.rounds.get(&name) {
            let capabilities = context.client_capabilities().unwrap_or_default();
            let state = request.request_state.as_deref();
            let responses = request.input_responses.unwrap_or_default();
            let answered = rounds.answer(&self.states, state, &responses, &capabilities)?;
            return Ok(match answered {
                Answered::More(more) => more.into(),
                Answered::All(text) => spoken(text).into(),
            });
        }
        match self.converse(&name, &request, &context).await? {
            Some(result) => Ok(result.into()),
            None => Err(ErrorData::invalid_params("Unknown tool", None)),
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resources = self.data.resources.clone();
        Ok(ListResourcesResult::with_all_items(resources))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let templates = self.data.templates.clone();
        Ok(ListResourceTemplatesResult::with_all_items(templates))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.as_str();
        let templated = uri.strip_prefix("test://template/");
        let id = templated.and_then(|rest| rest.strip_suffix("/data"));
        let content = match (self.data.contents.get(uri), id) {
            (Some(content), _) => content.clone(),
            (None, Some(id)) => {
                let text =
                    json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
                let kind = "application/json";
                parsed(json!({"uri": uri, "mimeType": kind, "text": text.to_string()}))?
            }
            (None, None) => return Err(no_such_resource(uri)),
        };
        Ok(ReadResourceResult::new(vec![content]).into())
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Ok(CompleteResult::default())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(self.data.prompts.clone()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let Some(messages) = self.data.messages.get(&request.name) else {
            return Err(ErrorData::invalid_params("Unknown prompt", None));
        };
        let given = request.arguments.unwrap_or_default();
        let given = given.into_iter().filter_map(|(name, value)| {
            let value = value.as_str()?.to_owned();
            Some((name, value))
        });
        let mut args: BTreeMap<String, String> = given.collect();
        if let Some(rounds) = self.data.rounds.get(&request.name) {
            let capabilities = context.client_capabilities().unwrap_or_default();
            let state = request.request_state.as_deref();
            let responses = request.input_responses.unwrap_or_default();
            match rounds.answer(&self.states, state, &responses, &capabilities)? {
                Answered::More(more) => return Ok(more.into()),
                Answered::All(text) => args.insert("context".to_owned(), text),
            };
        }
        let messages: Vec<PromptMessage> = parsed(filled(messages, &args)?)?;
        Ok(GetPromptResult::new(messages).into())
    }
}
