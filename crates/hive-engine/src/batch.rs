//! Runs the calls of one answer: side by side where that is safe, in order where it is not.

use std::{ops::Range, sync::Arc};

use serde_json::Value;
use tokio::task::JoinSet;

use crate::tool::{Context, Output, Properties, Tool, ToolError};

/// Cuts calls into batches: neighbours that are safe side by side go together, every other call
/// goes alone, and the order of batches is the order of calls.
pub fn partition(calls: &[Properties], max_parallel: usize) -> Vec<Range<usize>> {
    let mut batches: Vec<Range<usize>> = Vec::new();
    let is_safe = |call: &Properties| call.read_only && call.concurrency_safe;
    for (place, call) in calls.iter().enumerate() {
        match batches.last_mut() {
            Some(last)
                if is_safe(call) && is_safe(&calls[last.start]) && last.len() < max_parallel =>
            {
                last.end = place + 1;
            }
            _ => batches.push(place..place + 1),
        }
    }
    batches
}

/// Runs tools side by side; results are in the order of `calls`. One that panics fails alone.
pub async fn run(calls: Vec<(Arc<dyn Tool>, Value, Context)>) -> Vec<Result<Output, ToolError>> {
    let mut tasks = JoinSet::new();
    let mut ids = Vec::new();
    for (tool, input, context) in calls {
        let task = tasks.spawn(async move {
            let cancel = context.cancel.clone();
            let running = tool.run(input, context);
            tokio::select! {
                result = running => result,
                // Tools end by themselves when they are told to; one that does not is left behind.
                () = async {
                    cancel.cancelled().await;
                    tokio::time::sleep(GRACE).await;
                } => Err(ToolError::Interrupted),
            }
        });
        ids.push(task.id());
    }
    let mut results: Vec<Option<Result<Output, ToolError>>> = ids.iter().map(|_| None).collect();
    while let Some(joined) = tasks.join_next_with_id().await {
        let (id, result) = match joined {
            Ok((id, result)) => (id, result),
            Err(error) => {
                let message = "The tool crashed. This is a bug in the engine; try another way.";
                (error.id(), Err(ToolError::tell(message)))
            }
        };
        if let Some(place) = ids.iter().position(|known| *known == id) {
            results[place] = Some(result);
        }
    }
    let missing = || Err(ToolError::Interrupted);
    results
        .into_iter()
        .map(|result| result.unwrap_or_else(missing))
        .collect()
}

/// How long a tool may take to stop.
const GRACE: std::time::Duration = std::time::Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SAFE: Properties = Properties {
        read_only: true,
        destructive: false,
        concurrency_safe: true,
    };
    const ALONE: Properties = Properties {
        read_only: false,
        destructive: true,
        concurrency_safe: false,
    };

    #[test]
    fn safe_neighbours_go_together() {
        let calls = [SAFE, SAFE, ALONE, SAFE, ALONE, ALONE, SAFE, SAFE, SAFE];
        assert_eq!(
            partition(&calls, 2),
            [0..2, 2..3, 3..4, 4..5, 5..6, 6..8, 8..9]
        );
        assert_eq!(partition(&calls, 5), [0..2, 2..3, 3..4, 4..5, 5..6, 6..9]);
    }

    proptest! {
        #[test]
        fn prop_order_is_kept_and_unsafe_calls_are_alone(
            safe in proptest::collection::vec(any::<bool>(), 0..30), max in 1usize..6
        ) {
            let calls: Vec<_> = safe.iter().map(|safe| if *safe { SAFE } else { ALONE }).collect();
            let batches = partition(&calls, max);
            let flat: Vec<usize> = batches.iter().cloned().flatten().collect();
            prop_assert_eq!(flat, (0..calls.len()).collect::<Vec<_>>());
            for batch in batches {
                prop_assert!(batch.len() <= max);
                prop_assert!(batch.len() == 1 || batch.into_iter().all(|at| safe[at]));
            }
        }
    }
}
