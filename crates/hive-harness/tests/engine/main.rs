//! The engine's half of the harness, with the scripted fake engine and real processes.

mod claude;
mod conversation;
mod ending;
mod lifeline;
mod outcomes;
mod output;
mod probe;
mod rig;
mod turns;
mod warm;
