//! Rules as they are written: `Bash(git *)`, `Read(./src/**)`, `mcp__server__tool`.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use thiserror::Error;

use super::{canonical, pattern};
use crate::{bash::Simple, paths::Place};

/// What a rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Permit.
    Allow,
    /// Ask someone.
    Ask,
    /// Refuse.
    Deny,
}

/// Where a rule was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// A file, or `--allowedTools` and the like.
    pub source: String,
    /// The line in the file, from 1.
    pub line: Option<usize>,
    /// The directory that `/x` starts from.
    pub base: PathBuf,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        match self.line {
            Some(line) => write!(f, ":{line}"),
            None => Ok(()),
        }
    }
}

/// A rule that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{origin}: {rule:?}: {problem}")]
pub struct RuleError {
    /// Where.
    pub origin: Origin,
    /// As written.
    pub rule: String,
    /// What is wrong, and what was probably meant.
    pub problem: String,
}

/// One rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// As written.
    pub text: String,
    /// What it does.
    pub effect: Effect,
    /// Where it was written.
    pub origin: Origin,
    tool: String,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    /// Every call of the tool.
    Anything,
    Command(pattern::Command),
    Paths(pattern::Paths),
    Host(String),
    /// A top-level argument with a value.
    Argument(String, String),
}

/// The names that rules may use, for finding the one that was meant.
const TOOLS: &[&str] = &[
    "Read",
    "Write",
    "Edit",
    "MultiEdit",
    "ApplyDiff",
    "NotebookEdit",
    "Glob",
    "Grep",
    "LS",
    "Bash",
    "WebFetch",
    "WebSearch",
    "TodoWrite",
    "git_status",
    "git_diff",
    "git_log",
    "git_commit",
    "git_checkout",
    "git_push",
    "browser_navigate",
    "browser_click",
    "browser_screenshot",
    "Task",
    "Agent",
    "Skill",
];
/// Tools whose rules cover all that change files.
const EDITORS: &[&str] = &["Edit", "Write", "MultiEdit", "NotebookEdit", "ApplyDiff"];
/// Tools whose rules cover all that look at files.
const LOOKERS: &[&str] = &["Read", "Grep", "Glob", "LS"];

/// What a rule is read with.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    /// The working directory.
    pub cwd: &'a Path,
    /// The home.
    pub home: &'a Path,
}

impl Rule {
    /// Reads a rule.
    pub fn parse(
        text: &str,
        effect: Effect,
        origin: &Origin,
        reader: &Reader<'_>,
    ) -> Result<Self, RuleError> {
        let fail = |problem: String| RuleError {
            origin: origin.clone(),
            rule: text.to_owned(),
            problem,
        };
        let trimmed = text.trim();
        let (name, inside) = match trimmed.split_once('(') {
            None => (trimmed, None),
            Some((name, rest)) => {
                let inside = rest
                    .strip_suffix(')')
                    .ok_or_else(|| fail("the closing bracket is missing".into()))?;
                (name, Some(inside))
            }
        };
        let tool = canonical(name.trim());
        check_name(&tool, effect).map_err(fail)?;
        let what = match inside.map(str::trim) {
            None | Some("*") => What::Anything,
            Some("") => {
                return Err(fail(format!(
                    "the brackets are empty: write {tool} for every call"
                )));
            }
            Some(inside) => what(&tool, inside, effect, origin, reader).map_err(fail)?,
        };
        Ok(Self {
            text: trimmed.to_owned(),
            effect,
            origin: origin.clone(),
            tool,
            what,
        })
    }

    /// Whether it is about every call of the tool.
    pub fn covers_tool(&self, tool: &str) -> bool {
        matches!(self.what, What::Anything) && self.names(tool)
    }

    /// Whether it is about some calls of the tool.
    pub fn names(&self, tool: &str) -> bool {
        if self.tool == tool || pattern::glob(&self.tool, tool) && self.tool.contains('*') {
            return true;
        }
        if EDITORS.contains(&tool) && self.tool == "Edit" {
            return true;
        }
        if self.effect != Effect::Allow && LOOKERS.contains(&tool) && self.tool == "Read" {
            return true;
        }
        // `mcp__server` means every tool of the server.
        self.tool.starts_with("mcp__")
            && tool
                .strip_prefix(self.tool.as_str())
                .is_some_and(|rest| rest.starts_with("__"))
    }

    /// Whether it is about this command.
    pub fn matches_command(&self, command: &Simple) -> bool {
        let What::Command(pattern) = &self.what else {
            return false;
        };
        match self.effect {
            Effect::Allow => pattern.permits(command),
            Effect::Ask | Effect::Deny => pattern.may_mean(command),
        }
    }

    /// Whether it has a pattern for commands.
    pub fn is_about_commands(&self) -> bool {
        matches!(self.what, What::Command(_))
    }

    /// Whether it is about looking at this place.
    pub fn matches_read(&self, place: &Place) -> bool {
        LOOKERS.contains(&self.tool.as_str()) && self.matches_path(place)
    }

    /// Whether it is about changing this place. What may not be read may not be changed either.
    pub fn matches_write(&self, place: &Place) -> bool {
        let is_denied_read = self.effect == Effect::Deny && self.tool == "Read";
        (EDITORS.contains(&self.tool.as_str()) || is_denied_read) && self.matches_path(place)
    }

    /// Whether it has a pattern for paths.
    pub fn is_about_paths(&self) -> bool {
        matches!(self.what, What::Paths(_))
    }

    fn matches_path(&self, place: &Place) -> bool {
        let What::Paths(paths) = &self.what else {
            return false;
        };
        match self.effect {
            Effect::Allow => paths.permits(place),
            Effect::Ask | Effect::Deny => paths.may_mean(place),
        }
    }

    /// Whether it is about this host.
    pub fn matches_host(&self, host: &str) -> bool {
        matches!(&self.what, What::Host(pattern) if pattern::host(pattern, host))
    }

    /// The host that it names exactly.
    pub fn named_host(&self) -> Option<&str> {
        match &self.what {
            What::Host(host) if !host.contains('*') => Some(host),
            _ => None,
        }
    }

    /// Whether it is about an argument of this value.
    pub fn matches_argument(&self, input: &serde_json::Value) -> bool {
        let What::Argument(name, value) = &self.what else {
            return false;
        };
        match &input[name] {
            serde_json::Value::String(text) => pattern::glob(value, text),
            serde_json::Value::Null => false,
            other => pattern::glob(value, &other.to_string()),
        }
    }
}

fn check_name(tool: &str, effect: Effect) -> Result<(), String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*' | '.' | ':');
    if tool.is_empty() || !tool.chars().all(is_word) {
        return Err("a rule is TOOL or TOOL(PATTERN)".into());
    }
    if let Some(rest) = tool.strip_prefix("mcp__") {
        let server = rest.split("__").next().unwrap_or_default();
        if effect == Effect::Allow && (server.is_empty() || server.contains('*')) {
            return Err("an allow rule must name its MCP server: mcp__SERVER__*".into());
        }
        return Ok(());
    }
    if tool.contains('*') {
        let is_known = TOOLS.iter().any(|known| pattern::glob(tool, known));
        return match effect {
            Effect::Allow if tool == "*" => Ok(()),
            Effect::Allow if !is_known => Err(format!("no tool is called {tool}")),
            _ => Ok(()),
        };
    }
    if TOOLS.contains(&tool) {
        return Ok(());
    }
    let nearest = TOOLS
        .iter()
        .map(|known| {
            (
                distance(&tool.to_lowercase(), &known.to_lowercase()),
                *known,
            )
        })
        .min()
        .filter(|(distance, known)| *distance <= known.len() / 2);
    Err(match nearest {
        Some((_, known)) => format!("there is no tool {tool}; did you mean {known}?"),
        None => format!("there is no tool {tool}; known are {}", TOOLS.join(", ")),
    })
}

fn what(
    tool: &str,
    inside: &str,
    effect: Effect,
    origin: &Origin,
    reader: &Reader<'_>,
) -> Result<What, String> {
    if tool == "Bash" {
        if inside.matches(":*").count() > usize::from(inside.ends_with(":*")) {
            return Err("`:*` may only stand at the end; use ` *` for anything in between".into());
        }
        return Ok(What::Command(pattern::Command::parse(inside)));
    }
    if EDITORS.contains(&tool) || LOOKERS.contains(&tool) {
        let paths = pattern::Paths::parse(inside, &origin.base, reader.cwd, reader.home)?;
        return Ok(What::Paths(paths));
    }
    if tool == "WebFetch" {
        let host = inside
            .strip_prefix("domain:")
            .ok_or_else(|| format!("write WebFetch(domain:HOST), not WebFetch({inside})"))?;
        if host.trim().is_empty() || host.contains(['/', ' ']) {
            return Err(format!("{host:?} is not a host name"));
        }
        return Ok(What::Host(host.trim().to_owned()));
    }
    match inside.split_once(':') {
        Some((name, value)) if effect != Effect::Allow => Ok(What::Argument(
            name.trim().to_owned(),
            value.trim().to_owned(),
        )),
        _ => Err(format!(
            "{tool} takes no pattern in an allow rule; a deny or ask rule may say {tool}(ARGUMENT:VALUE)"
        )),
    }
}

/// How many letters differ.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut previous = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let cost = usize::from(a != *b);
            let next = (row[j + 1] + 1).min(row[j] + 1).min(previous + cost);
            previous = std::mem::replace(&mut row[j + 1], next);
        }
    }
    row[right.len()]
}

/// All rules in force.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    all: Vec<Rule>,
}

impl Rules {
    /// Adds one.
    pub fn push(&mut self, rule: Rule) {
        self.all.push(rule);
    }

    /// Those with this effect.
    pub fn with(&self, effect: Effect) -> impl Iterator<Item = &Rule> {
        self.all.iter().filter(move |rule| rule.effect == effect)
    }

    /// Hosts that are allowed by name.
    pub fn named_hosts(&self) -> Vec<String> {
        self.with(Effect::Allow)
            .filter_map(Rule::named_host)
            .map(str::to_lowercase)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str, effect: Effect) -> Result<Rule, RuleError> {
        let origin = Origin {
            source: "/x/settings.json".into(),
            line: Some(7),
            base: "/x".into(),
        };
        let reader = Reader {
            cwd: Path::new("/proj"),
            home: Path::new("/home/a"),
        };
        Rule::parse(text, effect, &origin, &reader)
    }

    #[test]
    fn mistakes_name_place_and_remedy() {
        for (text, needle) in [
            ("Bsah(git *)", "did you mean Bash?"),
            ("read", "did you mean Read?"),
            ("Bash(git *", "closing bracket"),
            ("Bash()", "brackets are empty"),
            ("", "TOOL or TOOL(PATTERN)"),
            ("WebFetch(example.com)", "domain:HOST"),
            ("mcp__*", "name its MCP server"),
            ("TodoWrite(x)", "takes no pattern"),
            ("Bash(a:* b:*)", "at the end"),
        ] {
            let error = parse(text, Effect::Allow).unwrap_err().to_string();
            assert!(error.contains("/x/settings.json:7"), "{error}");
            assert!(error.contains(needle), "{text}: {error}");
        }
    }

    #[test]
    fn names() {
        for (rule, effect, tool, expected) in [
            ("Bash", Effect::Allow, "Bash", true),
            ("execute_bash", Effect::Allow, "Bash", true),
            ("mcp__hive", Effect::Allow, "mcp__hive__send", true),
            ("mcp__hive__*", Effect::Allow, "mcp__hive__send", true),
            ("mcp__hive__send", Effect::Allow, "mcp__hive__recv", false),
            ("mcp__hive", Effect::Allow, "mcp__hivemind__send", false),
            ("mcp://hive/send", Effect::Allow, "mcp__hive__send", true),
            ("Edit", Effect::Allow, "Write", true),
            ("Write", Effect::Allow, "Edit", false),
            ("Read", Effect::Deny, "Grep", true),
            ("Read", Effect::Allow, "Grep", false),
            ("git_*", Effect::Allow, "git_status", true),
            ("mcp__*", Effect::Deny, "mcp__x__y", true),
            ("*", Effect::Deny, "Bash", true),
        ] {
            let rule_parsed = parse(rule, effect).unwrap();
            assert_eq!(rule_parsed.names(tool), expected, "{rule} / {tool}");
        }
    }

    proptest! {
        #[test]
        fn fuzz_any_text_is_a_rule_or_an_error(text in "\\PC{0,40}") {
            for effect in [Effect::Allow, Effect::Ask, Effect::Deny] {
                if let Err(error) = parse(&text, effect) {
                    prop_assert!(error.to_string().contains("settings.json:7"));
                }
            }
        }
    }
}
