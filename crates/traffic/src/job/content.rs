//! What payloads are made of.

use std::path::PathBuf;

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
    /// The bytes of a file, one piece after the other and over and over.
    File {
        /// On the node of the job; 1 byte to 16 MiB.
        path: PathBuf,
    },
}
