//! An error of an API before it has a shape.

use crate::{ask::Ask, scenario::fault::ErrorKind};

/// An error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) kind: ErrorKind,
    /// The message; without it the API's own words.
    pub(crate) message: Option<String>,
    /// The model asked for, which some messages name.
    pub(crate) model: String,
}

impl ApiError {
    pub(crate) fn new(kind: ErrorKind, message: Option<String>, ask: &Ask) -> Self {
        Self {
            kind,
            message,
            model: ask.model.clone(),
        }
    }

    /// A request that makes no sense.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::plain(ErrorKind::BadRequest, Some(message.into()))
    }

    /// An error that has nothing to do with a model.
    pub(crate) fn plain(kind: ErrorKind, message: Option<String>) -> Self {
        Self {
            kind,
            message,
            model: String::new(),
        }
    }
}
