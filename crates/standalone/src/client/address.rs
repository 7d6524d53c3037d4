//! The receiver's address, from `HOST[:PORT]`.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use crate::error::StandaloneError;

/// The control channel's port where none is named.
pub const DEFAULT_PORT: u16 = 5210;

/// Which version of IP to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// Whatever the name gives first.
    #[default]
    Any,
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    fn has(self, address: &SocketAddr) -> bool {
        match self {
            Self::Any => true,
            Self::V4 => address.is_ipv4(),
            Self::V6 => address.is_ipv6(),
        }
    }
}

/// Splits `HOST[:PORT]`; an IPv6 address with a port stands in brackets.
///
/// # Errors
/// What is wrong with the text.
pub fn split(text: &str) -> Result<(String, u16), String> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        let host = text.rsplit_once(':').map_or(text, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        return Ok((host.into(), address.port()));
    }
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .unwrap_or(text);
    if bare.parse::<IpAddr>().is_ok() || bare.matches(':').count() > 1 {
        return Ok((bare.into(), DEFAULT_PORT));
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (
            host,
            port.parse()
                .map_err(|_| format!("`{port}` in `{text}` is no port"))?,
        ),
        None => (text, DEFAULT_PORT),
    };
    if host.is_empty() {
        return Err(format!("`{text}` names no host"));
    }
    Ok((host.into(), port))
}

/// The address to listen on, from `ADDR[:PORT]`.
///
/// # Errors
/// What is wrong with the text; names are not looked up.
pub fn parse_bind(text: &str) -> Result<SocketAddr, String> {
    let (host, port) = split(text)?;
    let address: IpAddr = host.parse().map_err(|_| {
        format!("`{host}` is no IP address to listen on; write for example 0.0.0.0, [::]:{DEFAULT_PORT} or 127.0.0.1")
    })?;
    Ok(SocketAddr::new(address, port))
}

/// Looks the host up.
///
/// # Errors
/// `Failed` where it has no address of the family.
pub(crate) fn resolve(
    host: &str,
    port: u16,
    family: Family,
) -> Result<SocketAddr, StandaloneError> {
    let found = (host, port)
        .to_socket_addrs()
        .map_err(|failure| StandaloneError::failed(format!("cannot find {host}: {failure}")))?;
    let mut suitable = found.filter(|address| family.has(address));
    suitable.next().ok_or_else(|| {
        let version = if family == Family::V6 { "IPv6" } else { "IPv4" };
        StandaloneError::failed(format!("{host} has no {version} address"))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hosts_come_with_and_without_ports() {
        for (text, host, port) in [
            ("10.0.0.1", "10.0.0.1", DEFAULT_PORT),
            ("10.0.0.1:99", "10.0.0.1", 99),
            ("::1", "::1", DEFAULT_PORT),
            ("[::1]", "::1", DEFAULT_PORT),
            ("[::1]:99", "::1", 99),
            ("fe80::1%eth0", "fe80::1%eth0", DEFAULT_PORT),
            ("[fe80::1%3]:99", "fe80::1%3", 99),
            ("example.org", "example.org", DEFAULT_PORT),
            ("example.org:99", "example.org", 99),
        ] {
            assert_eq!(split(text), Ok((host.into(), port)), "{text}");
        }
        for wrong in ["", ":99", "host:port", "host:70000"] {
            assert!(split(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_receiver_listens_on_addresses() {
        assert_eq!(parse_bind("0.0.0.0").unwrap().to_string(), "0.0.0.0:5210");
        assert_eq!(parse_bind("[::]:7").unwrap().to_string(), "[::]:7");
        assert!(parse_bind("localhost").unwrap_err().contains("localhost"));
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "\\PC{0,20}") {
            let _ = (split(&text), parse_bind(&text));
        }
    }
}
