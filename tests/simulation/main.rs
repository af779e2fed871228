//! The real actors on faked ports, in virtual time: supervision, loss, delay and panics, one seed to a run.

#[path = "../support/fakes.rs"]
mod fakes;

mod chaos;
mod facts;
mod stage;
