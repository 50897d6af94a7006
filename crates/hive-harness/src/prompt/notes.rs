//! The whole system prompt of a turn: the rendered template and the agent's own `CLAUDE.md` (T30).
//!
//! Engines run without the project's setting sources, because a `.claude/settings.json` in the
//! agent's directory would be obeyed; that switches `CLAUDE.md` off as well. So the harness puts it
//! where it always reaches the model.

use crate::files::CappedText;

/// The most bytes of `CLAUDE.md` that go into the prompt.
pub const MAX_NOTES: u64 = 64 * 1024;

/// The system prompt of a turn.
pub fn system_prompt(template: &str, notes: Option<&CappedText>) -> String {
    let mut prompt = template.trim_end().to_owned();
    prompt.push('\n');
    let Some(notes) = notes.filter(|notes| !notes.text.trim().is_empty()) else {
        return prompt;
    };
    prompt.push_str("\n# Your notes: CLAUDE.md in your own directory\n\n");
    prompt.push_str(notes.text.trim_end());
    prompt.push('\n');
    if notes.is_cut {
        prompt.push_str(&format!(
            "\n(Cut here: CLAUDE.md is longer than {} KiB. Shorten it.)\n",
            MAX_NOTES / 1024
        ));
    }
    prompt
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(text: &str, is_cut: bool) -> CappedText {
        CappedText {
            text: text.to_owned(),
            is_cut,
        }
    }

    #[test]
    fn t30_the_notes_follow_the_template_as_they_are() {
        let own = notes("Use tabs. {label} <!-- role:manager -->\n\n", false);
        let prompt = system_prompt("You are ada.\n", Some(&own));
        assert!(prompt.starts_with("You are ada.\n\n# Your notes"));
        assert!(
            prompt.ends_with("\n\nUse tabs. {label} <!-- role:manager -->\n"),
            "{prompt}"
        );
    }

    #[test]
    fn t30_no_notes_no_heading_and_a_cut_is_said() {
        for none in [None, Some(notes(" \n", false))] {
            assert_eq!(system_prompt("T", none.as_ref()), "T\n");
        }
        let prompt = system_prompt("T", Some(&notes("long", true)));
        assert!(prompt.contains("Cut here"), "{prompt}");
    }
}
