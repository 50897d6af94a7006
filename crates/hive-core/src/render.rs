//! What agents write, made fit to be shown: Markdown, terminal output and changes of files.
//!
//! The answer is a tree of named parts ([`node::Node`]), never HTML. The page builds elements from
//! the parts that it knows, so that there is no text in between that could turn into markup. What
//! is not shown as it is (control characters, escapes, characters that reorder or hide others) is
//! dropped in output and made visible in changes, which somebody decides on.

pub(crate) mod ansi;
pub(crate) mod diff;
pub(crate) mod markdown;
pub(crate) mod node;
mod paint;
