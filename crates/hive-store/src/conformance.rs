//! The promises of the store, checked against any implementation.
