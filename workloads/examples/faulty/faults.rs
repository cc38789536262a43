//! Faults on purpose, one of a kind, so that the sanitizers can show that they would notice.

use std::{cell::UnsafeCell, hint, mem, thread};

/// Commits the fault of that name, or returns false if there is none.
pub fn commit(name: &str) -> bool {
    match name {
        "leak" => leak(),
        "use-after-free" => use_after_free(),
        "out-of-bounds" => out_of_bounds(),
        "data-race" => data_race(),
        _ => return false,
    }
    true
}

fn leak() {
    // On a thread that ends, so that no register or stale stack word still points to the block.
    let thread = thread::spawn(|| mem::forget(hint::black_box(Box::new([7_u64; 100]))));
    thread.join().expect("the thread did not panic");
}

fn use_after_free() {
    let node = Box::into_raw(Box::new(7_u64));
    // SAFETY: the pointer came from `Box::into_raw` just now.
    drop(unsafe { Box::from_raw(hint::black_box(node)) });
    // SAFETY: none, this is the fault: it reads freed memory. The process runs only under a tool whose allocator does
    // not reuse or unmap the block at once.
    hint::black_box(unsafe { node.read_volatile() });
}

fn out_of_bounds() {
    let words = hint::black_box(Box::new([7_u64; 3]));
    let end = words.as_ptr_range().end;
    // SAFETY: none, this is the fault: it reads the word behind the block, which belongs to nobody. The process runs
    // only under a tool that stops it, or leaves room there.
    hint::black_box(unsafe { end.read_volatile() });
}

/// A word that threads write without an agreement.
struct Contended(UnsafeCell<u64>);

// SAFETY: none, this is the fault: `data_race` shares the word between threads that write it.
unsafe impl Sync for Contended {}

fn data_race() {
    static WORD: Contended = Contended(UnsafeCell::new(0));
    // SAFETY: none, this is the fault: nothing orders the two writes. To the processor, each is one store.
    let write = |value| unsafe { WORD.0.get().write_volatile(value) };
    // Both run before either is joined. That one may end before the other starts is no order between them.
    let threads = [1, 2].map(|value| thread::spawn(move || write(value)));
    for thread in threads {
        thread.join().expect("the thread did not panic");
    }
}
