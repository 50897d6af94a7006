//! The shapes of the answers that the pages read, by name, for the OpenAPI document. The page's own
//! types are made from them (`web/src/api/generated.ts`).

use hive_wire::{
    agent::Message,
    approval::ApprovalRow,
    host::{DayTotal, EventRow, HistoryRow, PermissionRow, QuestionRow, TurnRow},
    tools::ScheduleRow,
};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value};

use super::{files, past, reminders, render, state, tasks};
use crate::notifier;

/// Where they stand in the document.
const PLACE: &str = "/components/schemas";

/// Every shape, by name.
pub(super) fn components() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = PLACE.into())
        .for_serialize();
    let mut generator = settings.into_generator();
    state(&mut generator);
    for add in [
        add::<past::Past>,
        add::<files::Shown>,
        add::<tasks::Tasks>,
        add::<tasks::Piece>,
        add::<reminders::Reminders>,
        add::<render::Rendered>,
        add::<notifier::Standing>,
        add::<Message>,
        add::<HistoryRow>,
        add::<QuestionRow>,
        add::<ApprovalRow>,
        add::<PermissionRow>,
        add::<ScheduleRow>,
        add::<DayTotal>,
        add::<TurnRow>,
        add::<EventRow>,
    ] {
        add(&mut generator);
    }
    generator.take_definitions(true)
}

fn state(generator: &mut SchemaGenerator) {
    add::<state::HivePage>(generator);
    add::<state::AgentPage>(generator);
}

fn add<T: JsonSchema>(generator: &mut SchemaGenerator) {
    generator.subschema_for::<T>();
}
