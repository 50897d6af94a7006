//! Walks the parse of a command line and collects every simple command in it.

use std::path::{Path, PathBuf};

use brush_parser::{
    Parser,
    ast::{
        AndOr, AssignmentName, AssignmentValue, Command, CommandPrefixOrSuffixItem,
        CompoundCommand, CompoundList, ExtendedTestExpr, IoFileRedirectKind, IoFileRedirectTarget,
        IoRedirect, Pipeline, SimpleCommand,
    },
};

use super::{
    Doubt, Judgement, MAX_DEPTH, MAX_LENGTH, Simple,
    words::{self, options, shorten},
    wrappers,
};

/// Brackets nested deeper than this are not parsed: the parser recurses on them.
const MAX_NESTING: usize = 50;

/// Variables that may be set for a command without changing which code runs.
const HARMLESS: &[&str] = &[
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_NUMERIC",
    "LC_TIME",
    "TZ",
    "TERM",
    "COLUMNS",
    "LINES",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "COLORTERM",
    "DEBUG",
    "VERBOSE",
    "RUST_LOG",
    "RUST_BACKTRACE",
    "NODE_ENV",
    "CI",
    "GIT_PAGER_IN_USE",
];

/// Takes a command line apart. `cwd` is where it starts.
pub fn judge(text: &str, cwd: &Path) -> Judgement {
    let mut judgement = Judgement {
        text: text.to_owned(),
        cwds: vec![cwd.to_owned()],
        ..Judgement::default()
    };
    Walk {
        out: &mut judgement,
        depth: 0,
        behind: Vec::new(),
        is_substitution: false,
    }
    .script(text);
    judgement
}

/// One level of the walk.
pub(super) struct Walk<'a> {
    out: &'a mut Judgement,
    depth: usize,
    behind: Vec<String>,
    is_substitution: bool,
}

impl Walk<'_> {
    pub(super) fn doubt(&mut self, doubt: Doubt) {
        if !self.out.doubts.contains(&doubt) {
            self.out.doubts.push(doubt);
        }
    }

    /// Walks a script one level down.
    pub(super) fn nested(&mut self, text: &str, behind: Option<&str>, is_substitution: bool) {
        if self.depth + 1 > MAX_DEPTH {
            self.doubt(Doubt::TooComplex);
            return;
        }
        let mut names = self.behind.clone();
        names.extend(behind.map(str::to_owned));
        Walk {
            out: &mut *self.out,
            depth: self.depth + 1,
            behind: names,
            is_substitution: self.is_substitution || is_substitution,
        }
        .script(text);
    }

    /// Adds a command that was found behind another one.
    pub(super) fn inner(
        &mut self,
        argv: Vec<Option<String>>,
        variables: Vec<String>,
        behind: &str,
    ) {
        if self.depth + 1 > MAX_DEPTH {
            self.doubt(Doubt::TooComplex);
            return;
        }
        let mut names = self.behind.clone();
        names.push(behind.to_owned());
        let simple = Simple {
            argv,
            variables,
            behind: names.clone(),
            is_substitution: self.is_substitution,
            ..Simple::default()
        };
        Walk {
            out: &mut *self.out,
            depth: self.depth + 1,
            behind: names,
            is_substitution: self.is_substitution,
        }
        .found(simple);
    }

    fn script(&mut self, text: &str) {
        if text.len() > MAX_LENGTH || nesting(text) > MAX_NESTING {
            self.doubt(Doubt::TooComplex);
            return;
        }
        if text
            .chars()
            .any(|c| c.is_control() && c != '\n' && c != '\t')
        {
            self.doubt(Doubt::ControlCharacter);
        }
        let mut parser = Parser::new(text.as_bytes(), &options());
        match parser.parse_program() {
            Ok(program) => {
                for list in &program.complete_commands {
                    self.list(list);
                }
            }
            Err(error) => self.doubt(Doubt::Unparsable(shorten(&error.to_string()))),
        }
    }

    fn list(&mut self, list: &CompoundList) {
        for item in &list.0 {
            self.pipeline(&item.0.first);
            for next in &item.0.additional {
                match next {
                    AndOr::And(pipeline) | AndOr::Or(pipeline) => self.pipeline(pipeline),
                }
            }
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline) {
        for (place, command) in pipeline.seq.iter().enumerate() {
            let before = self.out.commands.len();
            self.command(command);
            if place > 0 {
                for simple in &mut self.out.commands[before..] {
                    simple.has_piped_input = true;
                }
            }
        }
    }

    fn command(&mut self, command: &Command) {
        match command {
            Command::Simple(simple) => self.simple(simple),
            Command::Compound(compound, redirects) => {
                self.compound(compound);
                self.redirects(redirects.as_ref().map(|list| list.0.as_slice()));
            }
            Command::Function(function) => {
                self.doubt(Doubt::Definition(function.fname.value.clone()));
                self.compound(&function.body.0);
            }
            Command::ExtendedTest(test, redirects) => {
                self.test(&test.expr);
                self.redirects(redirects.as_ref().map(|list| list.0.as_slice()));
            }
        }
    }

    fn compound(&mut self, compound: &CompoundCommand) {
        match compound {
            CompoundCommand::Arithmetic(command) => self.arithmetic(&command.expr.value),
            CompoundCommand::ArithmeticForClause(clause) => {
                for part in [&clause.initializer, &clause.condition, &clause.updater] {
                    self.arithmetic(part.as_ref().map_or("", |part| part.value.as_str()));
                }
                self.list(&clause.body.list);
            }
            CompoundCommand::BraceGroup(group) => self.list(&group.list),
            CompoundCommand::Subshell(shell) => self.list(&shell.list),
            CompoundCommand::ForClause(clause) => {
                self.variable(&clause.variable_name);
                for word in clause.values.iter().flatten() {
                    self.word(&word.value);
                }
                self.list(&clause.body.list);
            }
            CompoundCommand::CaseClause(clause) => {
                self.word(&clause.value.value);
                for case in &clause.cases {
                    for pattern in &case.patterns {
                        self.word(&pattern.value);
                    }
                    if let Some(list) = &case.cmd {
                        self.list(list);
                    }
                }
            }
            CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition);
                self.list(&clause.then);
                for other in clause.elses.iter().flatten() {
                    if let Some(condition) = &other.condition {
                        self.list(condition);
                    }
                    self.list(&other.body);
                }
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.list(&clause.0);
                self.list(&clause.1.list);
            }
            CompoundCommand::Coprocess(coprocess) => self.command(&coprocess.body),
        }
    }

    /// `((…))` runs substitutions inside it, and indexes of arrays are evaluated.
    fn arithmetic(&mut self, text: &str) {
        if !text
            .chars()
            .all(|c| c.is_ascii_digit() || " +-*/%()<>=!&|^~?:,\t".contains(c))
        {
            self.doubt(Doubt::Evaluation(format!("(({}))", shorten(text))));
        }
    }

    fn test(&mut self, expression: &ExtendedTestExpr) {
        match expression {
            ExtendedTestExpr::And(left, right) | ExtendedTestExpr::Or(left, right) => {
                self.test(left);
                self.test(right);
            }
            ExtendedTestExpr::Not(inner) | ExtendedTestExpr::Parenthesized(inner) => {
                self.test(inner);
            }
            ExtendedTestExpr::UnaryTest(_, word) => self.operand(&word.value),
            ExtendedTestExpr::BinaryTest(_, left, right) => {
                self.operand(&left.value);
                self.operand(&right.value);
            }
        }
    }

    /// An operand may be evaluated as arithmetic or as the name of a variable, and then the index of
    /// an array is expanded again, quotes or not.
    fn operand(&mut self, raw: &str) {
        let value = self.word(raw);
        if value.as_deref().is_some_and(words::is_live) {
            self.doubt(Doubt::Evaluation(shorten(raw)));
        }
    }

    /// Reads a word and walks what runs inside it.
    fn word(&mut self, raw: &str) -> Option<String> {
        let word = words::read(raw);
        for script in &word.scripts {
            self.nested(script, None, true);
        }
        for doubt in word.doubts {
            self.doubt(doubt);
        }
        word.value
    }

    fn variable(&mut self, name: &str) {
        if !HARMLESS.contains(&name) {
            self.doubt(Doubt::Variable(name.to_owned()));
        }
    }

    fn simple(&mut self, command: &SimpleCommand) {
        let mut simple = Simple {
            behind: self.behind.clone(),
            is_substitution: self.is_substitution,
            ..Simple::default()
        };
        let prefix = command.prefix.iter().flat_map(|prefix| &prefix.0);
        for item in prefix {
            self.item(item, &mut simple, true);
        }
        if let Some(word) = &command.word_or_name {
            let value = self.word(&word.value);
            simple.argv.push(value);
        }
        for item in command.suffix.iter().flat_map(|suffix| &suffix.0) {
            self.item(item, &mut simple, false);
        }
        if simple.argv.is_empty() {
            // Plain assignments stay in force for what follows.
            for name in &simple.variables {
                self.doubt(Doubt::Variable(name.clone()));
            }
        }
        self.found(simple);
    }

    fn item(&mut self, item: &CommandPrefixOrSuffixItem, simple: &mut Simple, is_prefix: bool) {
        match item {
            CommandPrefixOrSuffixItem::IoRedirect(redirect) => self.redirect(redirect, simple),
            CommandPrefixOrSuffixItem::Word(word) => {
                let value = self.word(&word.value);
                simple.argv.push(value);
            }
            CommandPrefixOrSuffixItem::AssignmentWord(assignment, word) => {
                if !is_prefix {
                    // `export PATH=…`, `declare x=…`, or a plain argument with a `=` in it.
                    let value = self.word(&word.value);
                    simple.argv.push(value);
                    return;
                }
                let name = match &assignment.name {
                    AssignmentName::VariableName(name) => name.clone(),
                    AssignmentName::ArrayElementName(name, index) => {
                        self.word(index);
                        name.clone()
                    }
                };
                match &assignment.value {
                    AssignmentValue::Scalar(value) => {
                        self.word(&value.value);
                    }
                    AssignmentValue::Array(items) => {
                        for (_, item) in items {
                            self.word(&item.value);
                        }
                    }
                }
                self.variable(&name);
                simple.variables.push(name);
            }
            CommandPrefixOrSuffixItem::ProcessSubstitution(_, shell) => {
                self.doubt(Doubt::Substitution("<(…)".into()));
                let was = std::mem::replace(&mut self.is_substitution, true);
                self.list(&shell.list);
                self.is_substitution = was;
                simple.argv.push(None);
            }
        }
    }

    fn redirects(&mut self, redirects: Option<&[IoRedirect]>) {
        let mut simple = Simple {
            behind: self.behind.clone(),
            ..Simple::default()
        };
        for redirect in redirects.unwrap_or_default() {
            self.redirect(redirect, &mut simple);
        }
        if !simple.reads.is_empty() || !simple.writes.is_empty() {
            self.out.commands.push(simple);
        }
    }

    fn redirect(&mut self, redirect: &IoRedirect, simple: &mut Simple) {
        match redirect {
            IoRedirect::File(_, kind, target) => match target {
                IoFileRedirectTarget::Filename(word) => {
                    let value = self.word(&word.value);
                    self.file(value, kind, simple);
                }
                IoFileRedirectTarget::Fd(_) => {}
                IoFileRedirectTarget::Duplicate(word) => {
                    // `>&2` and `>&-` name descriptors; `>& file` writes a file.
                    let value = self.word(&word.value);
                    let is_fd = value.as_deref().is_some_and(|text| {
                        let digits = text.strip_suffix('-').unwrap_or(text);
                        digits.chars().all(|c| c.is_ascii_digit())
                    });
                    if !is_fd {
                        self.file(value, &IoFileRedirectKind::Write, simple);
                    }
                }
                IoFileRedirectTarget::ProcessSubstitution(_, shell) => {
                    self.doubt(Doubt::Substitution("<(…)".into()));
                    self.list(&shell.list);
                }
            },
            IoRedirect::HereDocument(_, document) => {
                if document.requires_expansion {
                    let text = &document.doc.value;
                    if text.contains("$(") || text.contains('`') || text.contains("${") {
                        self.doubt(Doubt::Substitution("in a here-document".into()));
                    }
                }
            }
            IoRedirect::HereString(_, word) => {
                self.word(&word.value);
            }
            IoRedirect::OutputAndError(word, _) => {
                let value = self.word(&word.value);
                self.file(value, &IoFileRedirectKind::Write, simple);
            }
        }
    }

    fn file(&mut self, value: Option<String>, kind: &IoFileRedirectKind, simple: &mut Simple) {
        let Some(path) = value else { return };
        if path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/") {
            self.doubt(Doubt::Network(path));
            return;
        }
        if path.contains(['*', '?', '[']) {
            self.doubt(Doubt::Dynamic(path.clone()));
        }
        match kind {
            IoFileRedirectKind::Read | IoFileRedirectKind::DuplicateInput => {
                simple.reads.push(path);
            }
            IoFileRedirectKind::Write
            | IoFileRedirectKind::Append
            | IoFileRedirectKind::Clobber
            | IoFileRedirectKind::DuplicateOutput => simple.writes.push(path),
            IoFileRedirectKind::ReadAndWrite => {
                simple.reads.push(path.clone());
                simple.writes.push(path);
            }
        }
    }

    /// A whole command: follows wrappers and changes of directory, and keeps it.
    fn found(&mut self, simple: Simple) {
        if simple.name() == Some("cd") || simple.name() == Some("pushd") {
            self.change_directory(&simple);
        }
        wrappers::unwrap(self, &simple);
        self.out.commands.push(simple);
    }

    /// From here on the shell may be in the new directory or, if that failed, still in the old.
    fn change_directory(&mut self, simple: &Simple) {
        let words: Vec<_> = simple.argv[1..].iter().collect();
        let target = match words.as_slice() {
            [Some(dir)] if !dir.starts_with('-') && !dir.contains(['*', '?', '[']) => dir,
            [Some(flag), Some(dir)] if flag == "--" => dir,
            _ => {
                self.doubt(Doubt::Dynamic(shorten(&simple.text_with_gaps())));
                return;
            }
        };
        if target.starts_with('~') {
            self.doubt(Doubt::Dynamic(target.clone()));
            return;
        }
        let new: Vec<PathBuf> = self
            .out
            .cwds
            .iter()
            .map(|cwd| crate::paths::normal(&cwd.join(target)))
            .collect();
        for dir in new {
            if self.out.cwds.len() >= 16 {
                self.doubt(Doubt::TooComplex);
                return;
            }
            if !self.out.cwds.contains(&dir) {
                self.out.cwds.push(dir);
            }
        }
    }
}

/// How deep brackets and quotes of substitutions are nested, counted generously.
fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest) = (0usize, 0usize);
    let mut backticks = 0;
    for c in text.chars() {
        match c {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => depth = depth.saturating_sub(1),
            '`' => backticks += 1,
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    let keywords = text
        .split_whitespace()
        .filter(|word| {
            matches!(
                *word,
                "if" | "while" | "until" | "for" | "case" | "do" | "then"
            )
        })
        .count();
    deepest.max(backticks / 2).max(keywords / 2)
}
