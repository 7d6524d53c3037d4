//! Bytes as base64 in formats that people read, such as JSON, and as bytes in all others.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};
use serde_bytes::ByteBuf;

pub(crate) fn serialize<S: Serializer>(bytes: &ByteBuf, serializer: S) -> Result<S::Ok, S::Error> {
    if serializer.is_human_readable() {
        serializer.serialize_str(&STANDARD.encode(bytes))
    } else {
        serializer.serialize_bytes(bytes)
    }
}

/// Takes either form: what serde has buffered no longer knows of which format it was.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ByteBuf, D::Error> {
    deserializer.deserialize_any(EitherForm)
}

struct EitherForm;

impl Visitor<'_> for EitherForm {
    type Value = ByteBuf;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("bytes or base64")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ByteBuf, E> {
        STANDARD.decode(text).map(ByteBuf::from).map_err(E::custom)
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<ByteBuf, E> {
        Ok(ByteBuf::from(bytes))
    }

    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<ByteBuf, E> {
        Ok(ByteBuf::from(bytes))
    }
}
