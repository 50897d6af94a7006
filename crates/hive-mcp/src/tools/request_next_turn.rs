use super::{Done, NoArgs};
use crate::{
    hyperhive::Hyperhive,
    toolbox::{Call, Checked, Effect, Failure, Tool},
    whole_file,
};

/// The file by which the harness knows the wish. It looks for it after every turn and removes it.
const FILE: &str = "hyperhive-continue";

/// Asks the harness for another turn after this one (M9, T13).
pub struct RequestNextTurn;

impl Tool<Hyperhive> for RequestNextTurn {
    const NAME: &'static str = "request_next_turn";
    const TITLE: &'static str = "Ask for another turn";
    const DESCRIPTION: &'static str = "Ask for another turn directly after this one, although no \
        mail may wait: it comes as a message from `self` with the body `continue`. Use it when you \
        are in the midst of work that is too long for one turn. When mail waits, that comes first \
        and this has no effect. Do not use it to wait for something; answers, reminders and \
        background tasks wake you by themselves.";
    // The host knows it as what every harness does.
    const CHECKED: Checked = Checked::Here;
    const EFFECT: Effect = Effect::Sets;
    type Args = NoArgs;
    type Reply = Done;

    async fn call(hive: &Hyperhive, _: NoArgs, _: &Call) -> Result<Done, Failure> {
        let Some(dir) = hive.harness_dir() else {
            return Err(Failure::new(
                "No harness runs you here, so nobody could start another turn",
                "do the work in this turn",
            ));
        };
        whole_file::write(&dir.join(FILE), b"").map_err(|error| {
            Failure::new(
                format!("The wish cannot be written to {}: {error}", dir.display()),
                "set a reminder instead",
            )
        })?;
        Ok(Done::new("another turn follows this one"))
    }
}
