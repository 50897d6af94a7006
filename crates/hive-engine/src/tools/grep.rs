//! Searches the content of files, with the crates that ripgrep is made of.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use globset::{GlobBuilder, GlobMatcher};
use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use ignore::{WalkBuilder, types::TypesBuilder};
use serde::Deserialize;
use serde_json::json;

use super::output::fit;
use crate::tool::{Access, Context, Output, Permission, Tool, ToolError, build};

const TIME: Duration = Duration::from_secs(20);
/// Lines that are collected before the search stops.
const MAX_LINES: usize = 20_000;
const DEFAULT_LIMIT: usize = 250;
const MAX_LINE: usize = 500;

#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Content,
    #[default]
    FilesWithMatches,
    Count,
}

#[derive(Deserialize)]
struct Input {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    #[serde(rename = "type")]
    file_type: Option<String>,
    #[serde(default)]
    output_mode: Mode,
    #[serde(rename = "-i", default)]
    ignore_case: bool,
    #[serde(rename = "-o", default)]
    only_matching: bool,
    #[serde(rename = "-n", default = "yes")]
    line_numbers: bool,
    #[serde(rename = "-A", default)]
    after: usize,
    #[serde(rename = "-B", default)]
    before: usize,
    #[serde(rename = "-C", alias = "context", default)]
    around: usize,
    head_limit: Option<usize>,
    #[serde(default)]
    offset: usize,
    #[serde(default)]
    multiline: bool,
}

fn yes() -> bool {
    true
}

pub(super) fn tool() -> Arc<dyn Tool> {
    build::<Input>(
        "Grep",
        Permission::Read,
        "Searches the content of files for a regular expression (Rust syntax), as ripgrep does: \
         .gitignore is respected and binary files are skipped. output_mode is content, \
         files_with_matches (default) or count; glob and type narrow the files.",
        json!({"type": "object", "required": ["pattern"], "additionalProperties": false, "properties": {
            "pattern": {"type": "string", "description": "The regular expression"},
            "path": {"type": "string", "description": "File or directory; the working directory by default"},
            "glob": {"type": "string", "description": "Only files whose name or path matches, such as *.rs"},
            "type": {"type": "string", "description": "Only files of a type, such as rust, py, js"},
            "output_mode": {"type": "string", "enum": ["content", "files_with_matches", "count"]},
            "-i": {"type": "boolean", "description": "Ignore case"},
            "-o": {"type": "boolean", "description": "Only the matching part"},
            "-n": {"type": "boolean", "description": "Line numbers (default)"},
            "-A": {"type": "integer"}, "-B": {"type": "integer"}, "-C": {"type": "integer"},
            "context": {"type": "integer"},
            "head_limit": {"type": "integer", "description": "At most so many lines or files; 0 for all"},
            "offset": {"type": "integer", "description": "Skip so many"},
            "multiline": {"type": "boolean", "description": "Let . match newlines and patterns span lines"},
        }}),
    )
    .read_only()
    .touches(|input, workspace| {
        Ok(vec![Access::Read(workspace.place(input.path.as_deref().unwrap_or("."))?)])
    })
    .run_blocking(run)
}

fn run(input: Input, context: &Context) -> Result<Output, ToolError> {
    let place = context
        .workspace
        .place(input.path.as_deref().unwrap_or("."))?;
    if !place.real.exists() {
        return Err(ToolError::tell(format!(
            "Path does not exist: {}",
            place.lexical.display()
        )));
    }
    let matcher = RegexMatcherBuilder::new()
        .case_insensitive(input.ignore_case)
        .multi_line(true)
        .dot_matches_new_line(input.multiline)
        .line_terminator(if input.multiline { None } else { Some(b'\n') })
        .build(&input.pattern)
        .map_err(|error| {
            ToolError::tell(format!(
                "{:?} is not a regular expression: {error}",
                input.pattern
            ))
        })?;
    let files = walk(&input, &place.real, context)?;
    let mut search = Search::new(&input, matcher, &place.real);
    let began = Instant::now();
    let mut is_cut = false;
    for path in files {
        if context.cancel.is_cancelled() {
            return Err(ToolError::Interrupted);
        }
        if began.elapsed() > TIME || search.lines.len() > MAX_LINES {
            is_cut = true;
            break;
        }
        search.file(&path);
    }
    Ok(search.report(&input, context, is_cut))
}

fn walk(input: &Input, root: &Path, _: &Context) -> Result<Vec<PathBuf>, ToolError> {
    let mut walk = WalkBuilder::new(root);
    walk.hidden(false).require_git(false).follow_links(false);
    walk.filter_entry(|entry| entry.file_name() != ".git");
    if let Some(file_type) = &input.file_type {
        let mut types = TypesBuilder::new();
        types.add_defaults();
        types.select(file_type);
        walk.types(
            types
                .build()
                .map_err(|error| ToolError::tell(error.to_string()))?,
        );
    }
    let glob = input.glob.as_deref().map(glob_matcher).transpose()?;
    let files = walk.build().flatten().filter(|entry| {
        entry.file_type().is_some_and(|kind| kind.is_file())
            && glob.as_ref().is_none_or(|(glob, is_path)| {
                let relative = entry.path().strip_prefix(root).unwrap_or(entry.path());
                if *is_path {
                    glob.is_match(relative)
                } else {
                    glob.is_match(entry.file_name())
                }
            })
    });
    Ok(files.map(ignore::DirEntry::into_path).collect())
}

fn glob_matcher(pattern: &str) -> Result<(GlobMatcher, bool), ToolError> {
    let is_path = pattern.contains('/');
    GlobBuilder::new(pattern)
        .literal_separator(is_path)
        .build()
        .map(|glob| (glob.compile_matcher(), is_path))
        .map_err(|error| ToolError::tell(format!("{pattern:?} is not a glob pattern: {error}")))
}

struct Search<'a> {
    input: &'a Input,
    matcher: RegexMatcher,
    searcher: Searcher,
    root: &'a Path,
    lines: Vec<String>,
    files: Vec<(SystemTime, String, u64)>,
}

impl<'a> Search<'a> {
    fn new(input: &'a Input, matcher: RegexMatcher, root: &'a Path) -> Self {
        let searcher = SearcherBuilder::new()
            .line_number(true)
            .binary_detection(BinaryDetection::quit(0))
            .multi_line(input.multiline)
            .before_context(input.before.max(input.around).min(100))
            .after_context(input.after.max(input.around).min(100))
            .build();
        Self {
            input,
            matcher,
            searcher,
            root,
            lines: Vec::new(),
            files: Vec::new(),
        }
    }

    fn file(&mut self, path: &Path) {
        let name = path
            .strip_prefix(self.root)
            .ok()
            .filter(|rest| !rest.as_os_str().is_empty());
        let name = name
            .map_or_else(|| path.to_owned(), Path::to_owned)
            .display()
            .to_string();
        let mut sink = Collector {
            name: &name,
            input: self.input,
            matcher: &self.matcher,
            lines: Vec::new(),
            count: 0,
        };
        // A file that cannot be read is not worth failing the search.
        if self
            .searcher
            .search_path(&self.matcher, path, &mut sink)
            .is_err()
            || sink.count == 0
        {
            return;
        }
        let (lines, count) = (sink.lines, sink.count);
        self.lines.extend(lines);
        let modified = path.metadata().ok().and_then(|meta| meta.modified().ok());
        self.files
            .push((modified.unwrap_or(SystemTime::UNIX_EPOCH), name, count));
    }

    fn report(mut self, input: &Input, context: &Context, is_cut: bool) -> Output {
        self.files
            .sort_by(|left, right| right.0.cmp(&left.0).then(left.1.cmp(&right.1)));
        let all: Vec<String> = match input.output_mode {
            Mode::Content => self.lines,
            Mode::FilesWithMatches => self.files.iter().map(|(_, name, _)| name.clone()).collect(),
            Mode::Count => self
                .files
                .iter()
                .map(|(_, name, count)| format!("{name}:{count}"))
                .collect(),
        };
        let limit = match input.head_limit {
            None => DEFAULT_LIMIT,
            Some(0) => usize::MAX,
            Some(limit) => limit,
        };
        let total = all.len();
        let shown: Vec<String> = all.into_iter().skip(input.offset).take(limit).collect();
        let mut text = if total == 0 {
            if input.output_mode == Mode::Content {
                "No matches found".to_owned()
            } else {
                "No files found".to_owned()
            }
        } else {
            shown.join("\n")
        };
        if input.output_mode == Mode::FilesWithMatches && total > 0 {
            text = format!(
                "Found {total} file{}\n{text}",
                if total == 1 { "" } else { "s" }
            );
        }
        if is_cut || input.offset + shown.len() < total {
            text.push_str(&format!(
                "\n\n[{total} results, shown {} from {}]",
                shown.len(),
                input.offset
            ));
        }
        let files: Vec<_> = self.files.iter().map(|(_, name, _)| name).collect();
        let structured = json!({"mode": match input.output_mode {
            Mode::Content => "content", Mode::FilesWithMatches => "files_with_matches", Mode::Count => "count",
        }, "numFiles": files.len(), "filenames": files, "numLines": shown.len()});
        Output::text(fit(&text, &context.spill_dir), structured)
    }
}

struct Collector<'a> {
    name: &'a str,
    input: &'a Input,
    matcher: &'a RegexMatcher,
    lines: Vec<String>,
    count: u64,
}

impl Collector<'_> {
    fn push(&mut self, number: Option<u64>, separator: char, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        for (extra, line) in text.trim_end_matches('\n').split('\n').enumerate() {
            let line = &line[..line.floor_char_boundary(MAX_LINE)];
            let number = number
                .filter(|_| self.input.line_numbers)
                .map_or_else(String::new, |number| {
                    format!("{}{separator}", number + extra as u64)
                });
            self.lines
                .push(format!("{}{separator}{number}{line}", self.name));
        }
    }
}

impl Sink for Collector<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        self.count += 1;
        if self.input.output_mode != Mode::Content {
            // One match is enough to name a file.
            return Ok(self.input.output_mode == Mode::Count);
        }
        if self.input.only_matching {
            let bytes = found.bytes();
            let mut pieces = Vec::new();
            let each = self.matcher.find_iter(bytes, |piece| {
                pieces.push(bytes[piece].to_vec());
                true
            });
            each.map_err(std::io::Error::other)?;
            for piece in pieces {
                self.push(found.line_number(), ':', &piece);
            }
        } else {
            self.push(found.line_number(), ':', found.bytes());
        }
        Ok(self.lines.len() <= MAX_LINES)
    }

    fn context(&mut self, _: &Searcher, found: &SinkContext<'_>) -> Result<bool, Self::Error> {
        self.push(found.line_number(), '-', found.bytes());
        Ok(true)
    }
}
