//! The Anthropic Messages API.

pub(super) mod answer;
pub(super) mod check;
pub(super) mod error;
pub(super) mod models;
pub(super) mod stream;
