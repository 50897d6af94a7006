//! What a rule matches. Everything that is named must hold; what is not named does not matter.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{number::Numbers, text::TextMatch};
use crate::ask::{Api, Ask, Purpose};

/// Which kind of request a rule answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestKind {
    /// A step of the conversation.
    #[default]
    Turn,
    /// The summary for a compaction.
    Summary,
    /// A title, a probe of the key.
    Side,
    /// Any of these.
    Any,
}

/// Which API a rule answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApiName {
    /// `/v1/messages`.
    Anthropic,
    /// `/v1/chat/completions`.
    OpenAi,
}

/// The conditions of a rule.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct When {
    /// The kind of request.
    pub request: RequestKind,
    /// The API.
    pub api: Option<ApiName>,
    /// Whether the answer is streamed.
    pub stream: Option<bool>,
    /// The number of the call, from 1, over all calls of the server.
    pub call: Option<Numbers>,
    /// The number of the match, from 1: how often everything else held when it came to this rule.
    pub nth: Option<Numbers>,
    /// How often the model has answered since the last text of the user.
    pub step: Option<Numbers>,
    /// The last text of the user.
    pub last_user: Option<TextMatch>,
    /// The sender in a wake prompt.
    pub from: Option<TextMatch>,
    /// The body in a wake prompt, or the whole text when it is none.
    pub body: Option<TextMatch>,
    /// The system prompt.
    pub system: Option<TextMatch>,
    /// The model.
    pub model: Option<TextMatch>,
    /// One of the newest results of tools.
    pub tool_result: Option<TextMatch>,
    /// Whether one of the newest results is a failure.
    pub tool_error: Option<bool>,
    /// Tools that are offered.
    pub tools: Vec<String>,
    /// Tools that are not offered.
    pub without_tools: Vec<String>,
}

/// What the regexes of a rule captured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// The groups of the first regex, of which 0 is the whole.
    pub numbered: Vec<String>,
    /// The named groups of all of them.
    pub named: BTreeMap<String, String>,
}

impl When {
    /// Whether a call meets every condition but `nth`, which only the script can count.
    pub fn matches(&self, ask: &Ask, call: u64) -> Option<Captured> {
        if !self.holds(ask, call) {
            return None;
        }
        let mut captured = Captured::default();
        for (text_match, subject) in [
            (&self.body, ask.wake.body.as_str()),
            (&self.last_user, ask.last_user.as_str()),
        ] {
            captured.take(text_match.as_ref(), subject)?;
        }
        if let Some(text_match) = &self.tool_result {
            let result = ask
                .tool_results
                .iter()
                .find(|result| text_match.matches(&result.text).is_some())?;
            captured.take(Some(text_match), &result.text)?;
        }
        if self.from.is_some() {
            captured.take(self.from.as_ref(), ask.wake.from.as_deref()?)?;
        }
        captured.take(self.model.as_ref(), &ask.model)?;
        captured.take(self.system.as_ref(), &ask.system)?;
        Some(captured)
    }

    /// The conditions that capture nothing.
    fn holds(&self, ask: &Ask, call: u64) -> bool {
        let is_kind = match self.request {
            RequestKind::Turn => ask.purpose == Purpose::Turn,
            RequestKind::Summary => ask.purpose == Purpose::Summary,
            RequestKind::Side => ask.purpose == Purpose::Side,
            RequestKind::Any => true,
        };
        let is_api = self.api.is_none_or(|api| match api {
            ApiName::Anthropic => ask.api == Api::Anthropic,
            ApiName::OpenAi => ask.api == Api::OpenAi,
        });
        let has_error = || ask.tool_results.iter().any(|result| result.is_error);
        is_kind
            && is_api
            && self.stream.is_none_or(|stream| stream == ask.is_streamed)
            && is_in(self.call.as_ref(), call)
            && is_in(self.step.as_ref(), ask.step)
            && self.tool_error.is_none_or(|error| error == has_error())
            && self.tools.iter().all(|tool| ask.offers(tool))
            && !self.without_tools.iter().any(|tool| ask.offers(tool))
    }

    /// The regexes, in the order in which they are looked at.
    pub fn regexes(&self) -> impl Iterator<Item = &regex::Regex> {
        [
            &self.body,
            &self.last_user,
            &self.tool_result,
            &self.from,
            &self.model,
            &self.system,
        ]
        .into_iter()
        .filter_map(|text_match| text_match.as_ref()?.regex())
    }
}

/// Whether a number is wanted; without a wish, any is.
pub(crate) fn is_in(numbers: Option<&Numbers>, number: u64) -> bool {
    numbers.is_none_or(|numbers| numbers.contains(number))
}

impl Captured {
    /// Matches a subject and keeps what was captured.
    fn take(&mut self, text_match: Option<&TextMatch>, subject: &str) -> Option<()> {
        let Some(text_match) = text_match else {
            return Some(());
        };
        let captures = text_match.matches(subject)?;
        if let (Some(captures), Some(regex)) = (captures, text_match.regex()) {
            let text = |group: Option<regex::Match<'_>>| {
                group.map_or_else(String::new, |group| group.as_str().to_owned())
            };
            if self.numbered.is_empty() {
                self.numbered = captures.iter().map(text).collect();
            }
            for name in regex.capture_names().flatten() {
                self.named
                    .insert(name.to_owned(), text(captures.name(name)));
            }
        }
        Some(())
    }
}
