//! SIGINT and SIGTERM, seen between and within trials.

use std::{
    io,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use signal_hook::{
    SigId,
    consts::{SIGINT, SIGTERM},
    flag, low_level,
};

/// Whether the user asked to stop. While it lives, the signals no longer end the process.
#[derive(Debug)]
pub struct Interrupt {
    /// Number of the last signal, 0 if none came.
    signal: Arc<AtomicUsize>,
    /// Readable once a signal came, so that a wait ends at once.
    waker: UnixStream,
    handlers: Vec<SigId>,
}

impl Interrupt {
    /// Listens to SIGINT and SIGTERM.
    ///
    /// # Errors
    /// When the process has no descriptors left or may not set handlers.
    pub fn on_signals() -> io::Result<Self> {
        let (waker, written) = UnixStream::pair()?;
        let signal = Arc::new(AtomicUsize::new(0));
        let mut handlers = Vec::new();
        for number in [SIGINT, SIGTERM] {
            // Handlers run in the order of their registration: the number is there before the waker.
            let value = usize::try_from(number).expect("signal numbers are positive");
            handlers.push(flag::register_usize(number, Arc::clone(&signal), value)?);
            handlers.push(low_level::pipe::register(number, written.try_clone()?)?);
        }
        Ok(Self { signal, waker, handlers })
    }

    /// Returns the signal that came: 2 or 15.
    pub fn signal(&self) -> Option<i32> {
        match self.signal.load(SeqCst) {
            0 => None,
            number => Some(i32::try_from(number).expect("it was stored from an i32")),
        }
    }
}

impl AsFd for Interrupt {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            low_level::unregister(handler);
        }
    }
}
