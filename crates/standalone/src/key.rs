//! The pre-shared key of two machines, and the file that holds it.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::error::StandaloneError;
use crate::random;

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;

const HOW_TO_MAKE_ONE: &str = "make one with `tbnode key > FILE` and copy it to the other machine";

/// A secret that both machines hold. It is never printed, except by [`Key::encode`].
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; KEY_BYTES]);

/// What the two ends know of each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Only who holds the key takes part, and only they can read the control channel.
    Key(Key),
    /// Anybody takes part; the control channel is encrypted, but to whom is unknown.
    Anybody,
}

impl Key {
    /// A new key from the system's random source.
    ///
    /// # Errors
    /// Where the system has none.
    pub fn generate() -> Result<Self, StandaloneError> {
        Ok(Self(random::bytes()?))
    }

    /// One line of text.
    #[must_use]
    pub fn encode(&self) -> String {
        STANDARD.encode(self.0)
    }

    /// Reads what [`Key::encode`] wrote; none for anything else.
    #[must_use]
    pub fn decode(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text.trim()).ok()?;
        Some(Self(bytes.try_into().ok()?))
    }

    /// Reads a key file, which only its owner may be able to read.
    ///
    /// # Errors
    /// `Usage` for a file that is missing, no key, or open to others.
    pub fn read(path: &Path) -> Result<Self, StandaloneError> {
        let shown = path.display();
        let cannot = |failure: io::Error| {
            let advice = if failure.kind() == io::ErrorKind::NotFound {
                format!("; {HOW_TO_MAKE_ONE}")
            } else {
                String::new()
            };
            StandaloneError::Usage(format!(
                "cannot read the key file {shown}: {failure}{advice}"
            ))
        };
        let file = File::open(path).map_err(cannot)?;
        let mode = file.metadata().map_err(cannot)?.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(StandaloneError::Usage(format!(
                "others can read the key file {shown} (mode {mode:04o}); run `chmod 600 {shown}`, and make a new key if \
                 somebody may have seen it"
            )));
        }
        let mut text = String::new();
        file.take(1024).read_to_string(&mut text).map_err(cannot)?;
        Self::decode(&text).ok_or_else(|| {
            StandaloneError::Usage(format!("{shown} holds no key; {HOW_TO_MAKE_ONE}"))
        })
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key")
    }
}

impl Trust {
    /// From the options `--key-file` and `--insecure`.
    ///
    /// # Errors
    /// `Usage` where neither is given, or the file is of no use.
    pub fn choose(key_file: Option<&Path>, insecure: bool) -> Result<Self, StandaloneError> {
        match key_file {
            Some(path) => Ok(Self::Key(Key::read(path)?)),
            None if insecure => Ok(Self::Anybody),
            None => Err(StandaloneError::Usage(format!(
                "say who may take part: --key-file FILE for who holds the same key ({HOW_TO_MAKE_ONE}), or --insecure \
                 for anybody who can reach the port"
            ))),
        }
    }
}

/// Makes `output`, where it is a regular file, readable by its owner alone.
///
/// # Errors
/// Whatever the system reports.
pub fn keep_private(output: &File) -> io::Result<()> {
    let metadata = output.metadata()?;
    if metadata.is_file() {
        let mut permissions = metadata.permissions();
        permissions.set_mode(0o600);
        output.set_permissions(permissions)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::PathBuf;

    use proptest::prelude::*;

    use super::*;

    fn file(name: &str, mode: u32, text: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("tunnelbench-{}-{name}", std::process::id()));
        let mut file = File::create(&path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.set_permissions(PermissionsExt::from_mode(mode))
            .unwrap();
        path
    }

    #[test]
    fn a_key_file_is_read_where_only_its_owner_can() {
        let key = Key::generate().unwrap();
        let private = file("private", 0o600, &format!("{}\n", key.encode()));
        assert_eq!(Key::read(&private).unwrap(), key);
        let open = file("open", 0o640, &key.encode());
        let complaint = Key::read(&open).unwrap_err().to_string();
        assert!(complaint.contains("chmod 600"), "{complaint}");
        let nonsense = file("nonsense", 0o600, "secret");
        assert!(
            Key::read(&nonsense)
                .unwrap_err()
                .to_string()
                .contains("tbnode key")
        );
        for path in [private, open, nonsense] {
            std::fs::remove_file(path).unwrap();
        }
    }

    #[test]
    fn a_file_for_a_key_becomes_private() {
        let path = file("made-private", 0o644, "");
        keep_private(&File::options().write(true).open(&path).unwrap()).unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn who_may_take_part_must_be_said() {
        let complaint = Trust::choose(None, false).unwrap_err().to_string();
        assert!(
            complaint.contains("tbnode key") && complaint.contains("--insecure"),
            "{complaint}"
        );
        assert_eq!(Trust::choose(None, true).unwrap(), Trust::Anybody);
    }

    proptest! {
        #[test]
        fn any_text_is_a_key_or_none(text: String) {
            if let Some(key) = Key::decode(&text) {
                prop_assert_eq!(Key::decode(&key.encode()), Some(key));
            }
        }
    }
}
