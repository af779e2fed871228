//! What it costs to know ten thousand Deployments: time to decode them, and bytes kept for each.
//!
//! The bytes kept are printed first: the aim is hundreds, not thousands (60 MiB for everything at 10,000 idle workloads,
//! decision 24).
#![allow(unsafe_code, reason = "counting bytes takes an allocator, and an allocator is unsafe")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_precision_loss,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a bench is no service"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use allclear::adapters::kubernetes::workload_decoder;
use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use kernel::id::Kind;
use kernel::names::image::VersionOf;
use purge::workloads::workload::Workload;
use support::fixture::deployment;

/// Deployments in a large cluster (fault row L1).
const DEPLOYMENTS: usize = 10_000;

/// Counts the bytes that are allocated and not freed.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: everything is handed on to the system's allocator unchanged; counting touches no memory of the caller.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller's own promise about `layout`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's own promise that `pointer` came from here with this `layout`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

fn main() {
    let objects: Vec<String> = (0..DEPLOYMENTS).map(|number| deployment(number).to_string()).collect();
    let before = HELD.load(Relaxed);
    let workloads: Vec<Box<Workload>> = objects
        .iter()
        .filter_map(|json| workload_decoder(Kind::Deployment, &VersionOf::Images)(json).ok())
        .map(Box::new)
        .collect();
    let held = HELD.load(Relaxed) - before;
    assert_eq!(workloads.len(), DEPLOYMENTS);
    println!(
        "{} bytes of JSON become {} bytes kept, {} of them in the struct itself",
        objects[0].len(),
        held / DEPLOYMENTS,
        size_of::<Workload>()
    );
    drop(workloads);
    divan::main();
}

/// One Deployment, again and again.
#[divan::bench]
fn one(bencher: Bencher<'_, '_>) {
    let json = deployment(0).to_string();
    bencher
        .counter(BytesCount::of_str(&json))
        .bench(|| workload_decoder(Kind::Deployment, &VersionOf::Images)(black_box(&json)));
}

/// All of a large cluster.
#[divan::bench(sample_count = 10, sample_size = 1)]
fn ten_thousand(bencher: Bencher<'_, '_>) {
    let objects: Vec<String> = (0..DEPLOYMENTS).map(|number| deployment(number).to_string()).collect();
    bencher.counter(ItemsCount::new(DEPLOYMENTS)).bench(|| {
        objects
            .iter()
            .filter_map(|json| workload_decoder(Kind::Deployment, &VersionOf::Images)(json).ok())
            .collect::<Vec<_>>()
    });
}
