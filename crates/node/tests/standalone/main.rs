//! `tbnode send` and `tbnode receive` as two processes over loopback.

mod common;
mod measurements;

use common::{Outcome, Receiver, key_file, send};

#[test]
fn who_may_take_part_must_be_said() {
    let Outcome { code, errors, .. } = send(&["127.0.0.1", "--udp"]);
    assert_eq!(code, 2);
    assert!(
        errors.contains("tbnode key") && !errors.contains("panicked"),
        "{errors}"
    );
}

#[test]
fn another_key_is_turned_away() {
    let (own, other) = (key_file("own"), key_file("other"));
    let receiver = Receiver::start("127.0.0.1:0", &["--key-file", own.path()]);
    for trust in [&["--key-file", other.path()][..], &["--insecure"]] {
        let outcome = send(&[&[receiver.address(), "--udp", "--json"], trust].concat());
        assert_eq!(outcome.code, 1, "{}", outcome.errors);
        assert!(
            outcome.errors.contains("different keys"),
            "{}",
            outcome.errors
        );
        assert_eq!(outcome.output, "");
    }
}

#[test]
fn a_key_goes_into_a_private_file() {
    use std::os::unix::fs::PermissionsExt;

    let key = key_file("private");
    let mode = std::fs::metadata(key.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    std::fs::set_permissions(key.path(), PermissionsExt::from_mode(0o644)).unwrap();
    let outcome = send(&["127.0.0.1", "--udp", "--key-file", key.path()]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.errors.contains("chmod 600"), "{}", outcome.errors);
}

#[test]
fn nobody_there_is_said_so() {
    let outcome = send(&["127.0.0.1:1", "--udp", "--insecure"]);
    assert_eq!(outcome.code, 1);
    assert!(
        outcome.errors.contains("tbnode receive"),
        "{}",
        outcome.errors
    );
}
