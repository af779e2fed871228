//! Counts the bytes that one thread has allocated and not freed, and the most there were.
//!
//! Not for what other threads take: targets do their work on the thread that calls them.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn add(bytes: usize, sign: isize) {
    let bytes = sign * isize::try_from(bytes).unwrap_or(isize::MAX);
    // A thread that ends has no counts any more.
    let _counted = HELD.try_with(|held| {
        held.set(held.get().saturating_add(bytes));
        MOST.try_with(|most| most.set(most.get().max(held.get())))
    });
}

// SAFETY: everything is handed on to the system's allocator unchanged; counting touches no memory of the caller, and allocates none.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size(), 1);
        // SAFETY: the caller's own promise about `layout`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size(), 1);
        // SAFETY: the caller's own promise about `layout`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        add(layout.size(), -1);
        // SAFETY: the caller's own promise that `pointer` came from here with this `layout`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// What some work returns, and the most bytes that it held at once.
pub fn most<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    MOST.set(before);
    let done = work();
    (done, usize::try_from(MOST.get() - before).unwrap_or_default())
}

#[test]
fn the_most_bytes_held_at_once_are_counted() {
    let (kept, bytes) = most(|| {
        drop(vec![0_u8; 3_000_000]);
        vec![1_u8; 1_000_000]
    });
    assert!((3_000_000..3_100_000).contains(&bytes) && kept.len() == 1_000_000, "{bytes}");
    assert!(most(|| vec![0_u8; 10].len()).1 < 3_000);
}
