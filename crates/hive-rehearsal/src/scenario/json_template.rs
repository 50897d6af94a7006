//! The input of a tool: JSON whose texts are templates.

use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Value};

use super::template::{GroupName, HasGroups, Scene, Template};

/// JSON of which every text is a template: the input of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonTemplate {
    /// A text.
    Text(Template),
    /// A list.
    List(Vec<JsonTemplate>),
    /// An object.
    Object(Vec<(String, JsonTemplate)>),
    /// Anything without text.
    Plain(Value),
}

impl Default for JsonTemplate {
    fn default() -> Self {
        Self::Object(Vec::new())
    }
}

impl JsonTemplate {
    fn from_value(value: Value) -> Result<Self, String> {
        Ok(match value {
            Value::String(text) => Self::Text(Template::parse(&text)?),
            Value::Array(items) => {
                let items = items.into_iter().map(Self::from_value);
                Self::List(items.collect::<Result<_, _>>()?)
            }
            Value::Object(map) if map.contains_key("$__toml_private_datetime") => {
                return Err("JSON has no dates: write this one as a text".to_owned());
            }
            Value::Object(map) => {
                let fields = map
                    .into_iter()
                    .map(|(key, value)| Ok((key, Self::from_value(value)?)));
                Self::Object(fields.collect::<Result<_, String>>()?)
            }
            plain => Self::Plain(plain),
        })
    }

    /// The value for one call; `None` for a number that there is not, which leaves its key out.
    pub fn render(&self, scene: &Scene<'_>) -> Option<Value> {
        match self {
            Self::Text(template) => template.value(scene),
            Self::List(items) => Some(Value::Array(
                items.iter().filter_map(|item| item.render(scene)).collect(),
            )),
            Self::Object(fields) => {
                let fields = fields
                    .iter()
                    .filter_map(|(key, value)| Some((key.clone(), value.render(scene)?)));
                Some(Value::Object(fields.collect::<Map<_, _>>()))
            }
            Self::Plain(value) => Some(value.clone()),
        }
    }
}

impl HasGroups for JsonTemplate {
    fn missing_group(&self, has_group: &dyn Fn(&GroupName<'_>) -> bool) -> Option<String> {
        match self {
            Self::Text(template) => template.missing_group(has_group),
            Self::List(items) => items.iter().find_map(|item| item.missing_group(has_group)),
            Self::Object(fields) => fields
                .iter()
                .find_map(|(_, value)| value.missing_group(has_group)),
            Self::Plain(_) => None,
        }
    }
}

impl<'de> Deserialize<'de> for JsonTemplate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::from_value(value).map_err(de::Error::custom)
    }
}
