//! The decision about one call.

use std::{path::Path, sync::Arc};

use serde_json::Value;

use super::{Effect, Mode, Role, RoleVerdict, Rule, Rules, globs, protected};
use crate::{
    bash::{self, Judgement, Safety, Simple},
    paths::{Place, Workspace},
    tool::{Access, Permission, Properties},
};

/// In safe mode only these may run, and nothing long.
const SAFE_COMMANDS: &[&str] = &["ls", "cat", "grep", "find", "head", "tail"];
/// The longest command of safe mode.
const SAFE_LENGTH: usize = 500;

/// A call to decide about.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The tool's name.
    pub tool: String,
    /// What it needs.
    pub permission: Permission,
    /// How it behaves.
    pub properties: Properties,
    /// What it touches.
    pub accesses: Vec<Access>,
    /// Its arguments.
    pub input: Value,
}

/// What was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It may run.
    Allow(Why),
    /// Someone must say so first.
    Ask(Why),
    /// It may not.
    Deny(Why),
}

/// Why it was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    /// The rule that gave it, with its place.
    pub rule: Option<String>,
    /// `rule`, `mode`, `workingDir`, `safetyCheck`, `role`.
    pub kind: &'static str,
    /// In words, for the model and for people.
    pub text: String,
}

impl Why {
    fn new(kind: &'static str, text: impl Into<String>) -> Self {
        Self {
            rule: None,
            kind,
            text: text.into(),
        }
    }

    fn rule(rule: &Rule) -> Self {
        Self {
            rule: Some(format!("{} ({})", rule.text, rule.origin)),
            kind: "rule",
            text: format!("the rule {} of {}", rule.text, rule.origin),
        }
    }
}

impl Decision {
    /// Why.
    pub fn why(&self) -> &Why {
        match self {
            Self::Allow(why) | Self::Ask(why) | Self::Deny(why) => why,
        }
    }

    /// From most to least permitted.
    pub fn rank(&self) -> u8 {
        match self {
            Self::Allow(_) => 0,
            Self::Ask(_) => 1,
            Self::Deny(_) => 2,
        }
    }

    /// The stricter of two.
    fn stricter(self, other: Self) -> Self {
        if other.rank() > self.rank() {
            other
        } else {
            self
        }
    }
}

/// Everything that decides.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The rules.
    pub rules: Rules,
    /// How much is permitted without asking.
    pub mode: Mode,
    /// The agent's standing, if it has one.
    pub role: Option<Role>,
    /// The directories it works in.
    pub workspace: Arc<Workspace>,
}

impl Policy {
    /// Decides about a call.
    pub fn decide(&self, call: &Call) -> Decision {
        for effect in [Effect::Deny, Effect::Ask] {
            if let Some(rule) = self.rules.with(effect).find(|rule| self.hits(rule, call)) {
                let why = Why::rule(rule);
                return match effect {
                    Effect::Deny => Decision::Deny(why),
                    Effect::Ask | Effect::Allow => self.ask(why),
                };
            }
        }
        let mut decision = Decision::Allow(Why::new("mode", "nothing speaks against it"));
        if let Some(role) = &self.role {
            match role.judge(&call.tool, call.properties.destructive) {
                RoleVerdict::Denied(reason) => {
                    let text = format!("{reason} ({})", role.name);
                    return Decision::Deny(Why::new("role", text));
                }
                RoleVerdict::Confirm => {
                    let text = format!("{} must confirm what may destroy", role.name);
                    decision = self.ask(Why::new("role", text));
                }
                RoleVerdict::Allowed => {}
            }
        }
        let judged = if call.accesses.is_empty() {
            self.whole(call)
        } else {
            let each = call.accesses.iter().map(|access| self.access(access, call));
            each.reduce(Decision::stricter)
                .unwrap_or_else(|| self.whole(call))
        };
        // The reason of the judgement is the better one where both permit.
        judged.stricter(decision)
    }

    /// In the mode of rules alone nobody is asked.
    fn ask(&self, why: Why) -> Decision {
        match self.mode {
            Mode::Custom => Decision::Deny(why),
            Mode::Safe | Mode::Normal | Mode::Relaxed | Mode::Auto => Decision::Ask(why),
        }
    }

    fn allowing(&self, tool: &str) -> Option<&Rule> {
        self.rules
            .with(Effect::Allow)
            .find(|rule| rule.covers_tool(tool))
    }

    /// Whether a deny or ask rule is about any part of the call.
    fn hits(&self, rule: &Rule, call: &Call) -> bool {
        if rule.covers_tool(&call.tool) {
            return true;
        }
        if rule.names(&call.tool) && rule.matches_argument(&call.input) {
            return true;
        }
        call.accesses.iter().any(|access| match access {
            Access::Read(place) => rule.matches_read(place),
            Access::Write(place) => rule.matches_write(place),
            Access::Fetch { host } => rule.matches_host(host),
            Access::Command(judgement) => self.hits_command(rule, judgement),
        })
    }

    fn hits_command(&self, rule: &Rule, judgement: &Judgement) -> bool {
        judgement.commands.iter().any(|command| {
            if rule.matches_command(command) {
                return true;
            }
            // Whatever the command does with a path, the path's rules hold.
            let words = command.argv.iter().skip(1).flatten();
            let mut paths = words.chain(&command.reads).chain(&command.writes);
            rule.is_about_paths()
                && paths.any(|word| {
                    let is_meant =
                        |place: &Place| rule.matches_read(place) || rule.matches_write(place);
                    self.places(word, judgement)
                        .is_none_or(|places| places.iter().any(is_meant))
                })
        })
    }

    /// Where a word would lead if it is a path or a pattern of paths, from each directory the shell
    /// may be in; `None` when there are too many to look at.
    fn places(&self, word: &str, judgement: &Judgement) -> Option<Vec<Place>> {
        let word = word.split_once('=').map_or(word, |(_, value)| value);
        let mut places = Vec::new();
        for cwd in &judgement.cwds {
            let words = globs::expand(cwd, word)?;
            let found = words
                .iter()
                .map(|word| self.workspace.place_from(cwd, word));
            places.extend(found.flatten());
        }
        Some(places)
    }

    /// A tool that touches nothing that is known beforehand.
    fn whole(&self, call: &Call) -> Decision {
        if let Some(rule) = self.allowing(&call.tool) {
            return Decision::Allow(Why::rule(rule));
        }
        if call.permission == Permission::Auto {
            return Decision::Allow(Why::new("mode", "it touches only the conversation"));
        }
        let is_built_in_look = call.properties.read_only && call.permission == Permission::Read;
        let why = |text: &str| Why::new("mode", text.to_owned());
        match self.mode {
            _ if is_built_in_look => Decision::Allow(why("it only looks")),
            Mode::Auto => Decision::Allow(why("the mode permits everything")),
            Mode::Relaxed
                if !call.properties.destructive && call.permission == Permission::Write =>
            {
                Decision::Allow(why("it can be undone"))
            }
            Mode::Safe => Decision::Deny(why("the mode permits looking only")),
            Mode::Normal | Mode::Relaxed | Mode::Custom => {
                let text = format!(
                    "Claude requested permissions to use {}, but you haven't granted it yet.",
                    call.tool
                );
                self.ask(Why::new("mode", text))
            }
        }
    }

    fn access(&self, access: &Access, call: &Call) -> Decision {
        match access {
            Access::Read(place) => self.read(place, Some(&call.tool)),
            Access::Write(place) => self.write(place, Some(&call.tool)),
            Access::Command(judgement) => self.command(judgement, &call.tool),
            Access::Fetch { host } => self.fetch(host, call),
        }
    }

    fn read(&self, place: &Place, tool: Option<&str>) -> Decision {
        if self.workspace.is_readable(place) {
            return Decision::Allow(Why::new("mode", "it is in the workspace"));
        }
        let by_path = self
            .rules
            .with(Effect::Allow)
            .find(|rule| rule.matches_read(place));
        if let Some(rule) = by_path.or_else(|| self.allowing(tool?)) {
            return Decision::Allow(Why::rule(rule));
        }
        let text = format!(
            "Claude requested permissions to read from {}, but you haven't granted it yet.",
            place.real.display()
        );
        let why = Why {
            rule: None,
            kind: "workingDir",
            text,
        };
        match self.mode {
            Mode::Auto => Decision::Allow(Why::new("mode", "the mode permits everything")),
            Mode::Safe => Decision::Deny(why),
            Mode::Normal | Mode::Relaxed | Mode::Custom => self.ask(why),
        }
    }

    fn write(&self, place: &Place, tool: Option<&str>) -> Decision {
        let text = format!(
            "Claude requested permissions to write to {}, but you haven't granted it yet.",
            place.real.display()
        );
        match self.mode {
            Mode::Auto => return Decision::Allow(Why::new("mode", "the mode permits everything")),
            Mode::Safe => return Decision::Deny(Why::new("mode", "the mode permits looking only")),
            Mode::Normal | Mode::Relaxed | Mode::Custom => {}
        }
        if self.is_protected(place) {
            let text = format!("{text} It decides which code runs later.");
            return self.ask(Why::new("safetyCheck", text));
        }
        let by_path = self
            .rules
            .with(Effect::Allow)
            .find(|rule| rule.matches_write(place));
        if let Some(rule) = by_path.or_else(|| self.allowing(tool?)) {
            return Decision::Allow(Why::rule(rule));
        }
        if self.mode == Mode::Relaxed && self.workspace.contains(place) {
            return Decision::Allow(Why::new("mode", "it is in the workspace"));
        }
        self.ask(Why::new("mode", text))
    }

    /// `.git`, shell start-up files and the like, in any directory. Above the workspace such names
    /// are only part of the way to it.
    fn is_protected(&self, place: &Place) -> bool {
        [&place.lexical, &place.real].into_iter().any(|path| {
            let root = self
                .workspace
                .roots()
                .iter()
                .find(|root| path.starts_with(root));
            let below = root
                .and_then(|root| path.strip_prefix(root).ok())
                .unwrap_or(path);
            let mut names = below
                .components()
                .filter_map(|part| part.as_os_str().to_str());
            names.any(protected::is_protected)
        })
    }

    fn fetch(&self, host: &str, call: &Call) -> Decision {
        let by_host = self
            .rules
            .with(Effect::Allow)
            .find(|rule| rule.matches_host(host));
        if let Some(rule) = by_host.or_else(|| self.allowing(&call.tool)) {
            return Decision::Allow(Why::rule(rule));
        }
        let text = format!(
            "Claude requested permissions to fetch from {host}, but you haven't granted it yet."
        );
        match self.mode {
            Mode::Auto => Decision::Allow(Why::new("mode", "the mode permits everything")),
            Mode::Safe => Decision::Deny(Why::new("mode", "the mode permits looking only")),
            Mode::Normal | Mode::Relaxed | Mode::Custom => self.ask(Why::new("mode", text)),
        }
    }

    fn command(&self, judgement: &Judgement, tool: &str) -> Decision {
        let is_critical = judgement.commands.iter().any(|command| {
            let (cwds, home) = (&judgement.cwds, self.workspace.home());
            cwds.iter()
                .any(|cwd| bash::is_critical_removal(command, cwd, home))
        });
        if is_critical {
            let text = format!("{} removes what nobody can bring back", judgement.text);
            return self.ask(Why::new("safetyCheck", text));
        }
        if self.mode == Mode::Safe {
            return self.safe_command(judgement);
        }
        if let Some(allowed) = self.blanket(judgement, tool) {
            return allowed;
        }
        if let Some(doubt) = judgement.doubts.first() {
            let text = format!("This command requires approval: {}.", doubt.describe());
            return self.ask(Why::new("safetyCheck", text));
        }
        let each = judgement
            .commands
            .iter()
            .filter(|command| !bash::is_transparent(command))
            .map(|command| self.simple(command, judgement));
        each.reduce(Decision::stricter)
            .unwrap_or_else(|| self.ask(Why::new("safetyCheck", "This command is empty.")))
    }

    /// A rule for all of Bash, or the mode that permits everything. Where rules single out some
    /// commands, a doubt might hide one of them.
    fn blanket(&self, judgement: &Judgement, tool: &str) -> Option<Decision> {
        let why = match self.allowing(tool) {
            Some(rule) => Why::rule(rule),
            None if self.mode == Mode::Auto => Why::new("mode", "the mode permits everything"),
            None => return None,
        };
        let singles_out = [Effect::Deny, Effect::Ask].into_iter().any(|effect| {
            let mut rules = self.rules.with(effect);
            rules.any(|rule| rule.is_about_commands() || rule.is_about_paths())
        });
        match judgement.doubts.first().filter(|_| singles_out) {
            Some(doubt) => {
                let text = format!(
                    "This command requires approval: some commands are forbidden, and {}.",
                    doubt.describe()
                );
                Some(self.ask(Why::new("safetyCheck", text)))
            }
            None => Some(Decision::Allow(why)),
        }
    }

    fn safe_command(&self, judgement: &Judgement) -> Decision {
        let deny = |text: String| Decision::Deny(Why::new("mode", text));
        if judgement.text.len() > SAFE_LENGTH {
            return deny(format!(
                "safe mode permits at most {SAFE_LENGTH} characters"
            ));
        }
        if let Some(doubt) = judgement.doubts.first() {
            return deny(format!("safe mode permits no doubt: {}", doubt.describe()));
        }
        for command in &judgement.commands {
            let name = command.name().unwrap_or_default();
            if !SAFE_COMMANDS.contains(&name) {
                return deny(format!(
                    "safe mode permits {} only",
                    SAFE_COMMANDS.join(", ")
                ));
            }
            let decision = self.simple(command, judgement);
            if decision.rank() > 0 {
                return Decision::Deny(decision.why().clone());
            }
        }
        Decision::Allow(Why::new("mode", "it only looks"))
    }

    /// One simple command without doubts.
    fn simple(&self, command: &Simple, judgement: &Judgement) -> Decision {
        let redirections = self.redirections(command, judgement);
        let by_rule = self
            .rules
            .with(Effect::Allow)
            .find(|rule| rule.matches_command(command));
        if let Some(rule) = by_rule {
            return Decision::Allow(Why::rule(rule)).stricter(redirections);
        }
        // In another directory `git` obeys another repository's configuration.
        let is_foreign_git = judgement.cwds.len() > 1 && command.base_name() == Some("git");
        let safety = if is_foreign_git {
            Safety::Unknown
        } else {
            bash::safety(command)
        };
        if let Some(flag) = hidden_flag(command, judgement) {
            let text = format!("This command requires approval: {flag} would be taken for a flag.");
            return self.ask(Why::new("safetyCheck", text));
        }
        let own = match safety {
            Safety::ReadOnly { reads } => self.paths(&reads, &[], judgement),
            Safety::Files {
                reads,
                writes,
                makes,
            } => {
                let files = self.paths(&reads, &writes, judgement);
                files.stricter(self.landings(&makes, judgement))
            }
            Safety::Unknown => {
                let text = format!(
                    "This command requires approval: `{}` is not known to be harmless and no rule \
                     allows it.",
                    command.text_with_gaps()
                );
                self.ask(Why::new("mode", text))
            }
        };
        own.stricter(redirections)
    }

    fn redirections(&self, command: &Simple, judgement: &Judgement) -> Decision {
        let writes: Vec<String> = command
            .writes
            .iter()
            .filter(|path| !matches!(path.as_str(), "/dev/null" | "/dev/stdout" | "/dev/stderr"))
            .cloned()
            .collect();
        let reads: Vec<String> = command
            .reads
            .iter()
            .filter(|path| path.as_str() != "/dev/null")
            .cloned()
            .collect();
        self.paths(&reads, &writes, judgement)
    }

    /// Files and directories that come into a directory under the names that they have: the same
    /// judgement as for a write there, and nothing is laid over a directory that is there already.
    fn landings(&self, makes: &[String], judgement: &Judgement) -> Decision {
        let mut decision = Decision::Allow(Why::new("mode", "it is in the workspace"));
        for path in makes {
            let name = path.rsplit('/').next().unwrap_or(path);
            if protected::may_be_protected(name) {
                let text = format!("{name} decides which code runs later, wherever it lands.");
                return self.ask(Why::new("safetyCheck", text));
            }
            for cwd in &judgement.cwds {
                let judged = match self.workspace.place_from(cwd, path) {
                    Ok(place) if place.real.is_dir() => {
                        let text = format!("{} is there already.", place.real.display());
                        self.ask(Why::new("safetyCheck", text))
                    }
                    Ok(place) => self.write(&place, None),
                    Err(error) => self.ask(Why::new("safetyCheck", error.to_string())),
                };
                decision = decision.stricter(judged);
            }
        }
        decision
    }

    fn paths(&self, reads: &[String], writes: &[String], judgement: &Judgement) -> Decision {
        let mut decision = Decision::Allow(Why::new("mode", "it only looks"));
        for (paths, is_write) in [(reads, false), (writes, true)] {
            for path in paths {
                for cwd in &judgement.cwds {
                    let Some(expanded) = globs::expand(cwd, path) else {
                        let text = format!("`{path}` matches too much to look at each file");
                        return self.ask(Why::new("safetyCheck", text));
                    };
                    for path in expanded {
                        let judged = match self.workspace.place_from(cwd, &path) {
                            Ok(place) if is_write => self.write(&place, None),
                            Ok(place) => self.read(&place, None),
                            Err(error) => self.ask(Why::new("safetyCheck", error.to_string())),
                        };
                        decision = decision.stricter(judged);
                    }
                }
            }
        }
        decision
    }
}

/// A file whose name begins with a dash and that a pattern of the command stands for: the program
/// would take it for a flag.
fn hidden_flag(command: &Simple, judgement: &Judgement) -> Option<String> {
    let words = command.argv.iter().skip(1).flatten();
    let mut patterns = words.filter(|word| word.starts_with(['*', '?', '[', '-']));
    patterns.find_map(|word| {
        judgement.cwds.iter().find_map(|cwd| {
            // The word itself comes first, and was seen as what it is.
            let Some(found) = globs::expand(cwd, word) else {
                return Some(word.clone());
            };
            let mut names = found.into_iter().skip(1).filter_map(|path| {
                let path = Path::new(&path).strip_prefix(cwd).ok()?;
                Some(path.to_str()?.to_owned())
            });
            names.find(|name| name.starts_with('-'))
        })
    })
}
