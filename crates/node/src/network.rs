//! Changes the node's network through route netlink (RFC 3549), ethtool and kernel settings.

use std::ffi::CString;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Component, Path};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use nix::errno::Errno;
use nix::net::if_::if_nametoindex;

use crate::protocol::NetworkOperation;

/// Carries out the operations in order, up to the first that fails.
///
/// # Errors
/// Names the operation and what the kernel said of it.
pub fn configure(operations: &[NetworkOperation]) -> Result<(), String> {
    let mut netlink = Netlink::open()?;
    for operation in operations {
        apply(&mut netlink, operation).map_err(|error| format!("{operation:?}: {error}"))?;
    }
    Ok(())
}

/// Makes a pair of virtual Ethernet links: `name` here, `peer_name` in the network namespace `peer`.
///
/// # Errors
/// What the kernel said.
pub fn add_virtual_ethernet(name: &str, peer: RawFd, peer_name: &str) -> Result<(), String> {
    let mut other_end = LinkMessage::default();
    other_end.attributes = vec![
        LinkAttribute::IfName(peer_name.into()),
        LinkAttribute::NetNsFd(peer),
    ];
    let mut link = LinkMessage::default();
    link.attributes = vec![
        LinkAttribute::IfName(name.into()),
        LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(other_end))),
        ]),
    ];
    Netlink::open()?
        .request(
            RouteNetlinkMessage::NewLink(link),
            NLM_F_CREATE | NLM_F_EXCL,
        )
        .map_err(|error| format!("a link {name} to {peer_name} could not be made: {error}"))
}

fn apply(netlink: &mut Netlink, operation: &NetworkOperation) -> Result<(), String> {
    match operation {
        NetworkOperation::SetLink {
            interface,
            up,
            mtu,
            hardware_address,
            new_name,
            disable_offloads,
        } => {
            if *disable_offloads {
                switch_offloads_off(interface)?;
            }
            let mut link = link_message(interface)?;
            if let Some(up) = up {
                link.header.change_mask = LinkFlags::Up;
                link.header.flags = if *up {
                    LinkFlags::Up
                } else {
                    LinkFlags::empty()
                };
            }
            link.attributes.extend(mtu.map(LinkAttribute::Mtu));
            if let Some(address) = hardware_address {
                link.attributes
                    .push(LinkAttribute::Address(hardware_address_bytes(address)?));
            }
            link.attributes
                .extend(new_name.clone().map(LinkAttribute::IfName));
            netlink.request(RouteNetlinkMessage::SetLink(link), 0)
        }
        NetworkOperation::AddAddress { interface, address } => {
            let (address, prefix) = parse_prefix(address)?;
            let mut message = AddressMessage::default();
            message.header.family = family(address);
            message.header.prefix_len = prefix;
            message.header.index = index(interface)?;
            message.header.flags = AddressHeaderFlags::Nodad;
            message.attributes = vec![
                AddressAttribute::Local(address),
                AddressAttribute::Address(address),
            ];
            if let (IpAddr::V4(address), true) = (address, prefix < 31) {
                let host_bits = u32::MAX.checked_shr(u32::from(prefix)).unwrap_or(0);
                let broadcast = Ipv4Addr::from_bits(address.to_bits() | host_bits);
                message
                    .attributes
                    .push(AddressAttribute::Broadcast(broadcast));
            }
            netlink.request(
                RouteNetlinkMessage::NewAddress(message),
                NLM_F_CREATE | NLM_F_REPLACE,
            )
        }
        NetworkOperation::AddRoute {
            destination,
            gateway,
            interface,
            source,
        } => {
            let mut message = route_message(destination, gateway.as_deref(), interface.as_deref())?;
            if let Some(source) = source {
                let address = RouteAddress::from(parse_address(source)?);
                message.attributes.push(RouteAttribute::PrefSource(address));
            }
            netlink.request(
                RouteNetlinkMessage::NewRoute(message),
                NLM_F_CREATE | NLM_F_REPLACE,
            )
        }
        NetworkOperation::RemoveLink { interface } => {
            netlink.request(RouteNetlinkMessage::DelLink(link_message(interface)?), 0)
        }
        NetworkOperation::SetSysctl { name, value } => set_sysctl(name, value),
    }
}

struct Netlink(Socket);

impl Netlink {
    fn open() -> Result<Self, String> {
        let connect = || {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            Ok(socket)
        };
        connect()
            .map(Self)
            .map_err(|error: std::io::Error| format!("route netlink is not to be had: {error}"))
    }

    fn request(&mut self, message: RouteNetlinkMessage, flags: u16) -> Result<(), String> {
        let mut request = NetlinkMessage::from(message);
        request.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        request.finalize();
        let mut buffer = vec![0; request.buffer_len()];
        request.serialize(&mut buffer);
        self.0.send(&buffer, 0).map_err(|error| error.to_string())?;
        let (reply, _) = self.0.recv_from_full().map_err(|error| error.to_string())?;
        let reply = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&reply)
            .map_err(|error| format!("the kernel's answer could not be read: {error}"))?;
        match reply.payload {
            NetlinkPayload::Error(answer) => match answer.code {
                None => Ok(()),
                Some(code) => Err(Errno::from_raw(-code.get()).to_string()),
            },
            other => Err(format!("the kernel answered {other:?}")),
        }
    }
}

fn link_message(interface: &str) -> Result<LinkMessage, String> {
    let mut link = LinkMessage::default();
    link.header.index = index(interface)?;
    Ok(link)
}

fn route_message(
    destination: &str,
    gateway: Option<&str>,
    interface: Option<&str>,
) -> Result<RouteMessage, String> {
    let (prefix, length) = parse_prefix(destination)?;
    let mut message = RouteMessage::default();
    message.header.address_family = family(prefix);
    message.header.destination_prefix_length = length;
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    message.header.protocol = RouteProtocol::Static;
    message.header.kind = RouteType::Unicast;
    message.header.scope = if gateway.is_some() || prefix.is_ipv6() {
        RouteScope::Universe
    } else {
        RouteScope::Link
    };
    if length > 0 {
        message
            .attributes
            .push(RouteAttribute::Destination(RouteAddress::from(prefix)));
    }
    if let Some(gateway) = gateway {
        let address = RouteAddress::from(parse_address(gateway)?);
        message.attributes.push(RouteAttribute::Gateway(address));
    }
    if let Some(interface) = interface {
        message
            .attributes
            .push(RouteAttribute::Oif(index(interface)?));
    }
    Ok(message)
}

fn index(interface: &str) -> Result<u32, String> {
    if_nametoindex(interface).map_err(|_| format!("there is no interface {interface}"))
}

fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

fn parse_address(text: &str) -> Result<IpAddr, String> {
    text.parse()
        .map_err(|_| format!("{text} is not an address"))
}

fn parse_prefix(text: &str) -> Result<(IpAddr, u8), String> {
    let wrong = || format!("{text} is not an address with a prefix length, such as 10.1.0.1/24");
    let (address, length) = text.split_once('/').ok_or_else(wrong)?;
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let length: u8 = length.parse().map_err(|_| wrong())?;
    let longest = if address.is_ipv4() { 32 } else { 128 };
    if length > longest {
        return Err(wrong());
    }
    Ok((address, length))
}

fn hardware_address_bytes(text: &str) -> Result<Vec<u8>, String> {
    let bytes: Result<Vec<u8>, _> = text
        .split(':')
        .map(|part| u8::from_str_radix(part, 16))
        .collect();
    bytes
        .ok()
        .filter(|bytes| bytes.len() == 6)
        .ok_or_else(|| format!("{text} is not a hardware address, such as 02:00:00:00:00:01"))
}

fn set_sysctl(name: &str, value: &str) -> Result<(), String> {
    let path = Path::new("/proc/sys").join(name);
    let stays_inside = Path::new(name)
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if !stays_inside {
        return Err(format!("{name} is not the name of a kernel setting"));
    }
    fs::write(&path, value).map_err(|error| format!("{} could not be set: {error}", path.display()))
}

/// Without this the kernel hands on frames of up to 64 KiB, and every figure per packet is meaningless.
fn switch_offloads_off(interface: &str) -> Result<(), String> {
    const SET_TRANSMIT_CHECKSUM: u32 = 0x17;
    const SET_SEGMENTATION: u32 = 0x1f;
    const SET_GENERIC_SEGMENTATION: u32 = 0x24;
    const SET_GENERIC_RECEIVE: u32 = 0x2c;
    #[repr(C)]
    struct Setting {
        command: u32,
        data: u32,
    }
    let socket = std::net::UdpSocket::bind(("127.0.0.1", 0)).map_err(|error| error.to_string())?;
    for command in [
        SET_SEGMENTATION,
        SET_GENERIC_SEGMENTATION,
        SET_GENERIC_RECEIVE,
        SET_TRANSMIT_CHECKSUM,
    ] {
        let mut setting = Setting { command, data: 0 };
        let mut request = interface_request(interface)?;
        request.ifr_ifru.ifru_data = std::ptr::from_mut(&mut setting).cast();
        // SAFETY: the request points to a setting that lives through the call.
        let status = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &request) };
        match Errno::result(status) {
            // A driver without an offload has it off.
            Ok(_) | Err(Errno::EOPNOTSUPP | Errno::EINVAL) => {}
            Err(error) => {
                return Err(format!(
                    "offloads of {interface} cannot be switched off: {error}"
                ));
            }
        }
    }
    Ok(())
}

fn interface_request(interface: &str) -> Result<libc::ifreq, String> {
    let name =
        CString::new(interface).map_err(|_| "an interface's name holds no zero byte".to_owned())?;
    let bytes = name.as_bytes_with_nul();
    if bytes.len() > libc::IFNAMSIZ {
        return Err(format!("{interface} is too long for an interface's name"));
    }
    // SAFETY: an all-zero `ifreq` is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (target, byte) in request.ifr_name.iter_mut().zip(bytes) {
        *target = *byte as libc::c_char;
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_checked() {
        assert_eq!(
            parse_prefix("10.1.0.1/24"),
            Ok((IpAddr::from([10, 1, 0, 1]), 24))
        );
        assert!(parse_prefix("fd00::1/64").is_ok());
        for wrong in [
            "10.1.0.1",
            "10.1.0.1/33",
            "x/8",
            "fd00::/129",
            "10.0.0.0/-1",
        ] {
            assert!(parse_prefix(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_kernel_setting_cannot_lead_out_of_its_tree() {
        assert!(
            set_sysctl("../../etc/passwd", "x")
                .unwrap_err()
                .contains("not the name")
        );
        assert!(
            set_sysctl("/etc/passwd", "x")
                .unwrap_err()
                .contains("not the name")
        );
    }

    #[test]
    fn hardware_addresses_have_six_bytes() {
        assert_eq!(
            hardware_address_bytes("02:00:00:00:00:0a"),
            Ok(vec![2, 0, 0, 0, 0, 10])
        );
        assert!(hardware_address_bytes("02:00").is_err());
        assert!(hardware_address_bytes("zz:00:00:00:00:00").is_err());
    }
}
