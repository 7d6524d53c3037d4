//! Stands in for the C library's `ptrace` in User Mode Linux, where the processor has more registers than
//! that kernel knows.
//!
//! Linux lets a tracer write a thread's extended registers only whole (`PTRACE_SETREGSET` of
//! `NT_X86_XSTATE`). The kernels of Debian 11 to 13 have a buffer of a fixed size, which ends before the tiles
//! of Intel's AMX: on processors that have them those kernels do not boot. Here such a write is filled up
//! with zeros: registers that no process in that kernel can use.
//!
//! The library is preloaded (ld.so(8)) into kernels that were linked with various C libraries. So it uses
//! nothing of them but `errno` and what fills memory, and is built on its own, without the standard library.

#![cfg_attr(panic = "abort", no_std)]
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use core::arch::asm;
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_long, c_void};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const SYSTEM_CALL: c_long = 101;
const PEEK: core::ops::RangeInclusive<c_long> = 1..=3;
const GET_REGISTERS: c_long = 0x4204;
const SET_REGISTERS: c_long = 0x4205;
const EXTENDED: usize = 0x202;
/// Several times what any processor has.
const ROOM: usize = 1 << 16;

#[repr(C)]
struct Buffer {
    base: *mut c_void,
    length: usize,
}

/// A stack of that kernel would be too small for it. The kernel traces from one thread alone.
struct Room(UnsafeCell<[u8; ROOM]>);

// SAFETY: see above.
unsafe impl Sync for Room {}

static WHOLE: Room = Room(UnsafeCell::new([0; ROOM]));
/// How long the registers are, once that is known.
static LENGTH: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" {
    fn __errno_location() -> *mut c_int;
}

/// ptrace(2) as the C library has it, but for registers that are written in part.
///
/// # Safety
///
/// That of the system call: `data` points to what the request reads or writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ptrace(
    request: c_long,
    process: c_long,
    address: usize,
    data: *mut c_void,
) -> c_long {
    // SAFETY: the caller keeps to what ptrace(2) asks.
    unsafe {
        if PEEK.contains(&request) {
            peek(request, process, address)
        } else if request == SET_REGISTERS && address == EXTENDED {
            told(write(process, data.cast()))
        } else {
            told(call(request, process, address, data))
        }
    }
}

/// The system call leaves the word that it read behind its last argument; the C library returns it.
unsafe fn peek(request: c_long, process: c_long, address: usize) -> c_long {
    let mut word: c_long = 0;
    // SAFETY: the kernel writes one word.
    let outcome = unsafe { call(request, process, address, (&raw mut word).cast()) };
    if outcome < 0 {
        return told(outcome);
    }
    // SAFETY: the C library's own place for this thread's error.
    unsafe { *__errno_location() = 0 };
    word
}

unsafe fn write(process: c_long, part: *mut Buffer) -> c_long {
    let base = WHOLE.0.get().cast::<u8>();
    // SAFETY: `part` is what the caller has written, the kernel writes at most `ROOM` bytes into the room, and
    // what lies in it after `part` is zero: only the first reading put something there.
    unsafe {
        if LENGTH.load(Relaxed) == 0 {
            let mut whole = Buffer {
                base: base.cast(),
                length: ROOM,
            };
            let outcome = call(GET_REGISTERS, process, EXTENDED, (&raw mut whole).cast());
            if outcome < 0 {
                return outcome;
            }
            base.write_bytes(0, ROOM);
            LENGTH.store(whole.length, Relaxed);
        }
        let mut whole = Buffer {
            base: base.cast(),
            length: LENGTH.load(Relaxed),
        };
        if (*part).length >= whole.length {
            return call(SET_REGISTERS, process, EXTENDED, part.cast());
        }
        base.copy_from_nonoverlapping((*part).base.cast(), (*part).length);
        call(SET_REGISTERS, process, EXTENDED, (&raw mut whole).cast())
    }
}

fn told(outcome: c_long) -> c_long {
    if outcome >= 0 {
        return outcome;
    }
    // SAFETY: the C library's own place for this thread's error.
    unsafe { *__errno_location() = -outcome as c_int };
    -1
}

unsafe fn call(request: c_long, process: c_long, address: usize, data: *mut c_void) -> c_long {
    let outcome;
    // SAFETY: a system call with the registers that Linux clobbers named.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") SYSTEM_CALL => outcome,
            in("rdi") request,
            in("rsi") process,
            in("rdx") address,
            in("r10") data,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    outcome
}

#[cfg(panic = "abort")]
#[panic_handler]
fn never(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
