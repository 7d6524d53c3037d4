//! Socket options that no library offers.

use std::io;
use std::mem::size_of;
use std::os::fd::AsRawFd;

use socket2::Socket;

use crate::job::Timestamps;

/// Which way a buffer faces.
#[derive(Clone, Copy)]
pub(crate) enum Buffer {
    Send,
    Receive,
}

/// Asks for a buffer of `bytes`, beyond the system's limit where the caller may.
pub(crate) fn set_buffer(socket: &Socket, buffer: Buffer, bytes: usize) -> io::Result<()> {
    let forced = match buffer {
        Buffer::Send => libc::SO_SNDBUFFORCE,
        Buffer::Receive => libc::SO_RCVBUFFORCE,
    };
    let value = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    match (set_option(socket, libc::SOL_SOCKET, forced, value), buffer) {
        (Ok(()), _) => Ok(()),
        (Err(_), Buffer::Send) => socket.set_send_buffer_size(bytes),
        (Err(_), Buffer::Receive) => socket.set_recv_buffer_size(bytes),
    }
}

/// Bytes of a buffer. Linux doubles what is asked for, to have room for its own bookkeeping, and tells the doubled size.
pub(crate) fn granted_buffer(socket: &Socket, buffer: Buffer) -> io::Result<usize> {
    match buffer {
        Buffer::Send => Ok(socket.send_buffer_size()? / 2),
        Buffer::Receive => Ok(socket.recv_buffer_size()? / 2),
    }
}

/// Has the kernel say when each datagram came in; whether it can.
fn enable_kernel_timestamps(socket: &Socket) -> bool {
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1).is_ok()
}

/// Asks the kernel for the times of arrival; says who tells them.
pub(crate) fn kernel_timestamps(socket: &Socket) -> Timestamps {
    if enable_kernel_timestamps(socket) {
        Timestamps::Kernel
    } else {
        Timestamps::User
    }
}

/// Has a raw ICMP socket receive messages of one type alone.
pub(crate) fn filter_icmp(socket: &Socket, kind: u8) -> io::Result<()> {
    const SOL_RAW: libc::c_int = 255;
    const ICMP_FILTER: libc::c_int = 1;
    let blocked: u32 = !(1 << kind);
    set_option(socket, SOL_RAW, ICMP_FILTER, blocked as libc::c_int)
}

/// The same of a raw ICMPv6 socket.
pub(crate) fn filter_icmpv6(socket: &Socket, kind: u8) -> io::Result<()> {
    const ICMPV6_FILTER: libc::c_int = 1;
    let mut blocked = [u32::MAX; 8];
    blocked[usize::from(kind / 32)] &= !(1 << (kind % 32));
    let blocked = blocked.map(u32::to_ne_bytes);
    set_option_bytes(
        socket,
        libc::IPPROTO_ICMPV6,
        ICMPV6_FILTER,
        blocked.as_flattened(),
    )
}

/// Lets datagrams that the kernel put together arrive as one, with their size. Where it can't, each comes on its own.
pub(crate) fn enable_coalescing(socket: &Socket) {
    let _ = set_option(socket, libc::SOL_UDP, libc::UDP_GRO, 1);
}

/// How many datagrams the system dropped because the receive buffer was full.
pub(crate) fn buffer_drops(socket: &Socket) -> io::Result<u64> {
    let memory: [u32; libc::SK_MEMINFO_DROPS as usize + 1] =
        option(socket, libc::SOL_SOCKET, libc::SO_MEMINFO)?;
    Ok(memory[libc::SK_MEMINFO_DROPS as usize].into())
}

pub(crate) fn set_option(
    socket: &Socket,
    level: i32,
    name: i32,
    value: libc::c_int,
) -> io::Result<()> {
    set_option_bytes(socket, level, name, &value.to_ne_bytes())
}

fn set_option_bytes(socket: &Socket, level: i32, name: i32, bytes: &[u8]) -> io::Result<()> {
    let length = bytes.len() as libc::socklen_t;
    // SAFETY: the pointer and the length are those of one live slice.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            bytes.as_ptr().cast(),
            length,
        )
    };
    if status == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Reads an option of integers; whatever the kernel does not write is 0.
pub(crate) fn option<const N: usize>(
    socket: &Socket,
    level: i32,
    name: i32,
) -> io::Result<[u32; N]> {
    let mut value = [0_u32; N];
    // SAFETY: the bytes are those of the live integers, for which any bits are valid.
    let bytes =
        unsafe { std::slice::from_raw_parts_mut((&raw mut value).cast(), size_of::<[u32; N]>()) };
    option_bytes(socket, level, name, bytes)?;
    Ok(value)
}

/// Reads an option as the kernel lays it out; returns how many bytes it wrote.
pub(crate) fn option_bytes(
    socket: &Socket,
    level: i32,
    name: i32,
    bytes: &mut [u8],
) -> io::Result<usize> {
    let mut length = bytes.len() as libc::socklen_t;
    // SAFETY: the pointer and the length are those of one live slice, for which any bits are valid.
    let status = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            name,
            bytes.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if status == 0 {
        Ok(length as usize)
    } else {
        Err(io::Error::last_os_error())
    }
}
