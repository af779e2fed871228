//! One outside system each: what the ports promise, kept against real peers. Adapters carry out; they never decide.

pub mod ledger;
