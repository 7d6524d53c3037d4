//! What payloads are made of.

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

/// What the payload is made of; it decides what a compressing tunnel can save.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Content {
    /// Zero bytes: as compressible as can be.
    Zeros,
    /// Incompressible bytes, the same in every run, repeated no sooner than compressors can see.
    Random,
    /// These bytes, repeated.
    Pattern {
        /// 1 to 65536 bytes.
        data: ByteBuf,
    },
}
