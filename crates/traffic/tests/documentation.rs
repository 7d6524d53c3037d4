//! The examples of the documentation are what they claim to be.

use std::io;

use tunnelbench_traffic::process::script::flows;

const PAGE: &str = include_str!("../../../docs/reference/traffic.md");

#[test]
fn examples_of_scripts_are_scripts() {
    let examples: Vec<&str> = PAGE
        .split("```toml script\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap_or_default())
        .collect();
    assert!(!examples.is_empty());
    for example in examples {
        flows(example, |_| Err(io::ErrorKind::NotFound.into()))
            .unwrap_or_else(|error| panic!("{error} in {example}"));
    }
}
