//! Reading a request in one pass, where its line begins with its command, as those of every client
//! of ours do. Whatever does not fit is left to the way that says what is wrong.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeSeed, IgnoredAny, MapAccess, Visitor, value::BorrowedStrDeserializer},
    forward_to_deserialize_any,
};

use super::{Command, RequestId};

/// The command that a line begins with.
pub(crate) fn leading_command(line: &[u8]) -> Option<&str> {
    let rest = line.strip_prefix(br#"{"cmd":""#)?;
    let is_of_name = |byte: &&u8| byte.is_ascii_lowercase() || **byte == b'_';
    let length = rest.iter().take_while(is_of_name).count();
    (rest.get(length) == Some(&b'"')).then_some(str::from_utf8(&rest[..length]).ok()?)
}

/// Reads the id and the fields of command `C` from its line.
pub(crate) fn read<C: Command>(line: &[u8]) -> Option<(Option<RequestId>, C)> {
    let request = serde_json::from_slice::<Request<C>>(line).ok()?;
    Some((request.id, request.fields))
}

struct Request<C> {
    id: Option<RequestId>,
    fields: C,
}

impl<'de, C: Command> Deserialize<'de> for Request<C> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RequestVisitor(PhantomData))
    }
}

struct RequestVisitor<C>(PhantomData<C>);

impl<'de, C: Command> Visitor<'de> for RequestVisitor<C> {
    type Value = Request<C>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a request")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Request<C>, A::Error> {
        let mut id = None;
        let mut commands = 0;
        let fields = C::deserialize(Fields {
            map,
            id: &mut id,
            commands: &mut commands,
        })?;
        Ok(Request {
            id: id.flatten(),
            fields,
        })
    }
}

/// The fields of a request but for those that every request shares.
struct Fields<'a, A> {
    map: A,
    id: &'a mut Option<Option<RequestId>>,
    commands: &'a mut u32,
}

impl<'de, A: MapAccess<'de>> Deserializer<'de> for Fields<'_, A> {
    type Error = A::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, A::Error> {
        visitor.visit_map(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier
        ignored_any
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Fields<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        while let Some(key) = self.map.next_key::<&'de str>()? {
            match key {
                "cmd" if *self.commands == 0 => {
                    *self.commands += 1;
                    self.map.next_value::<IgnoredAny>()?;
                }
                "id" if self.id.is_none() => *self.id = Some(self.map.next_value()?),
                "cmd" | "id" => return Err(de::Error::custom("said twice")),
                _ => {
                    return seed
                        .deserialize(BorrowedStrDeserializer::new(key))
                        .map(Some);
                }
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_begins_with_its_command_or_not() {
        for (line, command) in [
            (r#"{"cmd":"send","to":"bob"}"#, Some("send")),
            (r#"{"cmd":"ack_turn"}"#, Some("ack_turn")),
            (r#"{"cmd":"Send"}"#, None),
            (r#"{"cmd":"se\u006ed"}"#, None),
            (r#"{"cmd":"send"#, None),
            (r#"{"cmd": "send"}"#, None),
            (r#" {"cmd":"send"}"#, None),
            (r#"{"to":"bob","cmd":"send"}"#, None),
            ("", None),
        ] {
            assert_eq!(leading_command(line.as_bytes()), command, "{line}");
        }
    }
}
