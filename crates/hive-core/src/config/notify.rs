//! `[notify]`: who is told when something waits for the operator.

use std::{fmt, time::Duration};

use hive_providers::Endpoint;
use serde::{Deserialize, de};

/// Whom to tell, how often and how much.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Notify {
    /// Where to post: a webhook, or a topic of an ntfy server. Empty for nobody.
    pub url: Secret,
    /// What is there.
    pub kind: NotifyKind,
    /// A bearer token for it.
    pub token: Secret,
    /// Whether what agents wrote is told too. It leaves the machine then.
    pub content: bool,
    /// At most one message in so many seconds.
    pub min_interval_secs: u32,
    /// Hours of the day in which nobody is told, in the host's own time zone, as `22:00-07:00`.
    pub quiet_hours: Option<QuietHours>,
}

impl Default for Notify {
    fn default() -> Self {
        Self {
            url: Secret::default(),
            kind: NotifyKind::Webhook,
            token: Secret::default(),
            content: false,
            min_interval_secs: 60,
            quiet_hours: None,
        }
    }
}

impl Notify {
    /// The pause between two messages.
    pub fn min_interval(&self) -> Duration {
        Duration::from_secs(self.min_interval_secs.max(1).into())
    }

    pub(super) fn check(&self) -> anyhow::Result<()> {
        let url = self.url.expose();
        if !url.is_empty() {
            let is_web = url.starts_with("http://") || url.starts_with("https://");
            anyhow::ensure!(
                is_web && Endpoint::parse(url).is_ok(),
                "notify.url must be an http or https address"
            );
        }
        Ok(())
    }
}

/// What listens at the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NotifyKind {
    /// Anything that takes a JSON object.
    Webhook,
    /// An ntfy server: the text is the body, the title and the link are headers.
    Ntfy,
}

impl NotifyKind {
    /// Its name, as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Ntfy => "ntfy",
        }
    }
}

/// A text that is not printed: an address of a webhook is a key to it.
#[derive(Clone, Default, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "none" } else { "***" })
    }
}

/// A part of the day, in minutes since midnight; it may go past midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuietHours {
    from: u16,
    to: u16,
}

impl QuietHours {
    /// Reads `22:00-07:00`.
    fn parse(text: &str) -> Option<Self> {
        let (from, to) = text.split_once('-')?;
        let minutes = |time: &str| -> Option<u16> {
            let (hour, minute) = time.trim().split_once(':')?;
            let (hour, minute): (u16, u16) = (hour.parse().ok()?, minute.parse().ok()?);
            (hour < 24 && minute < 60).then_some(hour * 60 + minute)
        };
        Some(Self {
            from: minutes(from)?,
            to: minutes(to)?,
        })
    }

    /// For how many minutes it is still quiet at this minute of the day; none when it is not.
    pub fn left(self, now: u16) -> Option<u16> {
        const DAY: u16 = 24 * 60;
        let length = (self.to + DAY - self.from) % DAY;
        let since = (now + DAY - self.from) % DAY;
        (since < length).then(|| length - since)
    }
}

impl fmt::Display for QuietHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to } = self;
        write!(
            f,
            "{:02}:{:02}-{:02}:{:02}",
            from / 60,
            from % 60,
            to / 60,
            to % 60
        )
    }
}

impl<'de> Deserialize<'de> for QuietHours {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            de::Error::custom(format!(
                "`{text}` are no hours; write them like \"22:00-07:00\""
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_hours_go_past_midnight() {
        let night = QuietHours::parse("22:00 - 07:30").unwrap();
        for (now, left) in [
            ("22:00", Some(570)),
            ("23:59", Some(451)),
            ("00:00", Some(450)),
            ("07:29", Some(1)),
            ("07:30", None),
            ("12:00", None),
            ("21:59", None),
        ] {
            let (hour, minute) = now.split_once(':').unwrap();
            let now_minutes = hour.parse::<u16>().unwrap() * 60 + minute.parse::<u16>().unwrap();
            assert_eq!(night.left(now_minutes), left, "{now}");
        }
        assert_eq!(night.to_string(), "22:00-07:30");
        assert_eq!(
            QuietHours::parse("08:00-08:00").unwrap().left(480),
            None,
            "none at all"
        );
        for bad in ["", "22-7", "24:00-07:00", "22:00", "22:60-07:00", "a:b-c:d"] {
            assert_eq!(QuietHours::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_address_is_checked_and_not_printed() {
        let notify = |url: &str| Notify {
            url: Secret(url.to_owned()),
            ..Notify::default()
        };
        assert!(notify("").check().is_ok());
        assert!(notify("https://ntfy.example/secret-topic").check().is_ok());
        assert!(notify("file:///etc/passwd").check().is_err());
        assert!(notify("ntfy.example/x").check().is_err());
        assert!(!format!("{:?}", notify("https://ntfy.example/secret-topic")).contains("secret"));
    }
}
