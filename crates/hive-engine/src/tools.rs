//! The tools: one file each.

mod apply_diff;
mod bash;
mod browser;
mod child;
mod edit;
mod git;
mod glob;
mod grep;
mod ls;
mod multi_edit;
mod notebook_edit;
mod output;
mod read;
mod todo_write;
mod web_fetch;
mod write;

use std::sync::Arc;

use crate::{permission::canonical, tool::Tool};

/// Tools that are offered unless a list says otherwise.
const STANDARD: &[&str] = &[
    "Read",
    "Write",
    "Edit",
    "Glob",
    "Grep",
    "Bash",
    "WebFetch",
    "TodoWrite",
    "NotebookEdit",
];

/// Every built-in tool.
pub fn all() -> Vec<Arc<dyn Tool>> {
    let mut tools = vec![
        read::tool(),
        write::tool(),
        edit::tool(),
        multi_edit::tool(),
        apply_diff::tool(),
        notebook_edit::tool(),
        ls::tool(),
        glob::tool(),
        grep::tool(),
        bash::tool(),
        web_fetch::tool(),
        todo_write::tool(),
    ];
    tools.extend(git::tools());
    tools.extend(browser::tools());
    tools
}

/// The tools of a list such as `Read,git_*` or `default`; unknown names are left out.
pub fn select(list: Option<&[String]>) -> Vec<Arc<dyn Tool>> {
    let default = ["default".to_owned()];
    let list = list.unwrap_or(&default);
    let is_wanted = |name: &str| {
        list.iter().any(|entry| {
            let entry = canonical(entry.trim());
            match entry.as_str() {
                "default" => STANDARD.contains(&name),
                entry => entry == name || matches(entry, name),
            }
        })
    };
    all()
        .into_iter()
        .filter(|tool| is_wanted(&tool.spec().name))
        .collect()
}

fn matches(pattern: &str, name: &str) -> bool {
    pattern
        .strip_suffix('*')
        .is_some_and(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: Option<&[&str]>) -> Vec<String> {
        let list: Option<Vec<String>> =
            list.map(|list| list.iter().map(|name| (*name).to_owned()).collect());
        let tools = select(list.as_deref());
        tools.iter().map(|tool| tool.spec().name.clone()).collect()
    }

    #[test]
    fn lists() {
        assert_eq!(names(None).len(), STANDARD.len());
        assert_eq!(names(Some(&["Read", "Nonsense"])), ["Read"]);
        assert_eq!(
            names(Some(&["read_file", "execute_bash"])),
            ["Read", "Bash"]
        );
        assert_eq!(names(Some(&["git_*"])).len(), 6);
        assert_eq!(names(Some(&[""])), Vec::<String>::new());
    }

    #[test]
    fn every_tool_is_well_formed() {
        for tool in all() {
            let spec = tool.spec();
            assert_eq!(spec.input_schema["type"], "object", "{}", spec.name);
            assert!(spec.description.len() > 20, "{}", spec.name);
            let properties = tool.properties(&serde_json::json!({}));
            assert!(
                !(properties.read_only && properties.destructive),
                "{}",
                spec.name
            );
        }
    }
}
