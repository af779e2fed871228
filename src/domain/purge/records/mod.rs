//! The durable state of a workload, in memory and as it is written.

pub mod late;
pub mod record;
pub mod record_codec;
pub mod rules;
