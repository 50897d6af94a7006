//! Ids and times as the stream-json contract writes them.

/// A random UUID.
pub fn uuid() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// Whether `text` is a UUID in its usual spelling: the only form of session id that is accepted,
/// since it becomes the name of a file.
pub fn is_uuid(text: &str) -> bool {
    text.len() == 36 && uuid::Uuid::try_parse(text).is_ok()
}

/// The time now, such as `2026-01-31T12:00:00.123Z`.
pub fn now() -> String {
    let now = jiff::Timestamp::now();
    format!("{now:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_uuids_name_sessions() {
        assert!(is_uuid(&uuid()));
        for bad in [
            "",
            "x",
            "../../etc/passwd",
            "{11111111-1111-4111-8111-111111111111}",
        ] {
            assert!(!is_uuid(bad), "{bad}");
        }
        assert_eq!(now().len(), "2026-01-31T12:00:00.123Z".len());
    }
}
