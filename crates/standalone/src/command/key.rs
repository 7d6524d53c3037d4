//! `tbnode key`.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

use clap::Args;

use crate::error::StandaloneError;
use crate::key::{Key, keep_private};

/// The arguments of `tbnode key`: none.
#[derive(Args, Debug)]
pub struct KeyArguments {}

impl KeyArguments {
    /// Prints a new key; a file that it goes into becomes readable by its owner alone first.
    ///
    /// # Errors
    /// `Failed` where there are no random bytes, or the key cannot be written.
    pub fn run(&self) -> Result<(), StandaloneError> {
        let key = Key::generate()?;
        let write = || -> io::Result<()> {
            let output = io::stdout();
            keep_private(&File::from(output.as_fd().try_clone_to_owned()?))?;
            writeln!(output.lock(), "{}", key.encode())
        };
        write()
            .map_err(|failure| StandaloneError::failed(format!("cannot write the key: {failure}")))
    }
}
