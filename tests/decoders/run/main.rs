//! All fuzz targets on a stable toolchain: each file of their corpora, then inputs made from those.
//!
//! A run takes ten seconds, or `ALLCLEAR_FUZZ_SECONDS`. It has the same seed each time, so that a change fails by what it changed and not by
//! chance; `ALLCLEAR_FUZZ_SEED=any` draws one and prints it (`make fuzz`), and `ALLCLEAR_FUZZ_SEED=number` repeats that. What fails is made
//! smaller and printed; put it into `fuzz/corpus` and it is tried in every run from then on. `--nocapture` prints how much was tried.
#![allow(unsafe_code, reason = "counting bytes takes an allocator, and an allocator is unsafe")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "these are tests: what goes wrong in one shall fail it"
)]

mod corpus;
mod memory;
mod mutate;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use decoders::{Target, targets};
use mutate::{Dice, Kitchen};

/// How long all targets together are run.
const SECONDS: u64 = 10;

/// Where a run begins that was told nothing else.
const SEED: u64 = 20_261_123;

/// Inputs that each target is given at least, however slow the machine is.
const INPUTS_MIN: u64 = 32;

/// Bytes of the heap that one input may take beside [`MEMORY_FACTOR`] for each of its own: a client and its tables.
const MEMORY_BYTES_MAX: usize = 8 * 1024 * 1024;
const MEMORY_FACTOR: usize = 512;

/// Longest time of one input, of which most take less than a millisecond. A machine may be busy; what is quadratic is not saved by it.
const INPUT_WITHIN: Duration = Duration::from_secs(20);

/// Tries to make what fails smaller.
const SHRINKS_MAX: usize = 500;

/// Runs a target on one input; why that failed, if it did.
fn attempt(target: Target, input: &[u8]) -> Result<bool, String> {
    let began = Instant::now();
    let (checked, bytes) = memory::most(|| catch_unwind(AssertUnwindSafe(|| (target.check)(input))));
    let accepted = checked.map_err(|panic| {
        let words = panic.downcast_ref::<String>().cloned();
        words.or_else(|| panic.downcast_ref::<&str>().map(|words| (*words).to_owned())).unwrap_or_default()
    })?;
    let bound = MEMORY_BYTES_MAX + MEMORY_FACTOR * input.len();
    if bytes > bound {
        return Err(format!("it took {bytes} bytes of memory, of {bound}"));
    }
    let took = began.elapsed();
    if took > INPUT_WITHIN { Err(format!("it took {took:?}")) } else { Ok(accepted) }
}

/// The smallest input found that still fails.
fn shrunk(target: Target, input: &[u8]) -> Vec<u8> {
    let mut smallest = input.to_vec();
    let (mut part, mut tries) = (input.len() / 2, 0);
    while part > 0 && tries < SHRINKS_MAX {
        let mut at = 0;
        while at < smallest.len() && tries < SHRINKS_MAX {
            let end = (at + part).min(smallest.len());
            let shorter = [&smallest[..at], &smallest[end..]].concat();
            tries += 1;
            if attempt(target, &shorter).is_err() {
                smallest = shorter;
            } else {
                at = end;
            }
        }
        part /= 2;
    }
    smallest
}

fn told(target: Target, input: &[u8], why: &str) -> String {
    let input = shrunk(target, input);
    format!("{}: {why}\n    input: b\"{}\"", target.name, input.escape_ascii())
}

/// The number in a variable.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

#[test]
fn what_is_in_a_corpus_is_decoded_and_what_is_good_there_is_accepted() {
    let mut wrong = Vec::new();
    for target in targets() {
        for (file, input) in corpus::of(target.name) {
            match attempt(target, &input) {
                Ok(accepted) if accepted || !file.starts_with("valid") => {}
                Ok(_) => wrong.push(format!("{}: {file} is refused", target.name)),
                Err(why) => wrong.push(format!("{}: {file}: {why}", target.name)),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn whatever_others_send_is_decoded_within_bounds() {
    let wants_any = std::env::var("ALLCLEAR_FUZZ_SEED").is_ok_and(|seed| seed == "any");
    let seed = if wants_any { mutate::any_seed() } else { number("ALLCLEAR_FUZZ_SEED").unwrap_or(SEED) };
    let seconds = number("ALLCLEAR_FUZZ_SECONDS").unwrap_or(SECONDS);
    println!("ALLCLEAR_FUZZ_SEED={seed}");
    let all: Vec<Target> = targets().collect();
    let share = Duration::from_secs(seconds) / u32::try_from(all.len()).unwrap();
    let mut wrong = Vec::new();
    for target in all {
        let kitchen = Kitchen::new(corpus::of(target.name).into_values().collect());
        let mut dice = Dice::new(seed, target.name);
        let (began, mut inputs, mut accepted) = (Instant::now(), 0_u64, 0_u64);
        while inputs < INPUTS_MIN || began.elapsed() < share {
            let input = kitchen.cook(&mut dice);
            inputs += 1;
            match attempt(target, &input) {
                Ok(good) => accepted += u64::from(good),
                Err(why) => {
                    wrong.push(told(target, &input, &why));
                    break;
                }
            }
        }
        let rate = inputs as f64 / began.elapsed().as_secs_f64();
        println!("{:26} {inputs:7} inputs {rate:9.0}/s {accepted:7} accepted", target.name);
    }
    assert!(wrong.is_empty(), "ALLCLEAR_FUZZ_SEED={seed} repeats this\n{}", wrong.join("\n"));
}

/// The programs under `fuzz/` are those of the list, and each only names its target.
#[test]
fn every_target_has_a_program_and_a_corpus() {
    let mut wrong = Vec::new();
    let manifest = std::fs::read_to_string(corpus::folder().join("Cargo.toml")).unwrap();
    let mut names = BTreeMap::new();
    for Target { name, .. } in targets() {
        names.insert(name.to_owned(), ());
        let program =
            std::fs::read_to_string(corpus::folder().join(format!("fuzz_targets/{name}.rs"))).unwrap_or_default();
        if !program.contains(&format!("decoders::check(\"{name}\", bytes)")) {
            wrong.push(format!("fuzz/fuzz_targets/{name}.rs does not run it"));
        }
        if !manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")) {
            wrong.push(format!("fuzz/Cargo.toml does not name {name}"));
        }
        let corpus = corpus::of(name);
        for kind in ["valid", "truncated", "hostile"] {
            if !corpus.keys().any(|file| file.starts_with(kind)) {
                wrong.push(format!("fuzz/corpus/{name} has no {kind} file"));
            }
        }
        wrong.extend(corpus::too_large(&corpus).map(|file| format!("fuzz/corpus/{name}/{file} is too large")));
    }
    wrong.extend(corpus::strangers(&names));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
