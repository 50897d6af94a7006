//! Numbers in scenario files: times that are bounded, and sets such as "the 2nd and the 3rd".

use std::{fmt, time::Duration};

use serde::{Deserialize, Deserializer, de};

/// A time in milliseconds, at most a day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Millis(pub Duration);

/// Longer than any test or demo waits.
const MAX_MILLIS: u64 = 24 * 60 * 60 * 1000;

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let millis = u64::deserialize(deserializer)?;
        if millis > MAX_MILLIS {
            let text = format!("{millis} ms is too long: {MAX_MILLIS} (a day) is the most");
            return Err(de::Error::custom(text));
        }
        Ok(Self(Duration::from_millis(millis)))
    }
}

/// Some numbers: `2`, `[1, 3]` or `{ from = 2, to = 5 }`, of which either end may be left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Numbers {
    /// These ones.
    Listed(Vec<u64>),
    /// All from the first to the last.
    Range(u64, u64),
}

impl Numbers {
    /// Whether `number` is one of them.
    pub fn contains(&self, number: u64) -> bool {
        match self {
            Self::Listed(numbers) => numbers.contains(&number),
            Self::Range(from, to) => (*from..=*to).contains(&number),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Range {
    #[serde(default)]
    from: u64,
    #[serde(default = "no_end")]
    to: u64,
}

fn no_end() -> u64 {
    u64::MAX
}

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Numbers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, a list of numbers, or { from = …, to = … }")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Numbers, E> {
                match u64::try_from(number) {
                    Ok(number) => Ok(Numbers::Listed(vec![number])),
                    Err(_) => Err(E::custom(format!("{number} is below 0"))),
                }
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, seq: A) -> Result<Numbers, A::Error> {
                let list = de::value::SeqAccessDeserializer::new(seq);
                Vec::deserialize(list).map(Numbers::Listed)
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Numbers, A::Error> {
                let range = Range::deserialize(de::value::MapAccessDeserializer::new(map))?;
                if range.from > range.to {
                    return Err(de::Error::custom("`from` is after `to`"));
                }
                Ok(Numbers::Range(range.from, range.to))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}
