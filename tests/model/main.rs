//! Exhaustive searches of the deciding half: every order of events and faults within named bounds, on the production
//! machines themselves.

mod hashed;
mod mutants;
mod purge;
mod rollout;
mod world;
