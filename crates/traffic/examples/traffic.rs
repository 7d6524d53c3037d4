//! Runs one job from standard input and prints its outcome, both MessagePack: the engine without a node agent.
//!
//! The address of a listener comes first, as one line of text.

use std::io::{Read, Write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut job = Vec::new();
    std::io::stdin().read_to_end(&mut job)?;
    let running = tunnelbench_traffic::start(rmp_serde::from_slice(&job)?)?;
    let mut output = std::io::stdout();
    if let Some(bound) = running.bound() {
        writeln!(output, "{bound}")?;
        output.flush()?;
    }
    output.write_all(&rmp_serde::to_vec_named(&running.finish()?)?)?;
    Ok(())
}
