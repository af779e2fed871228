//! What is durable of a workload, as it is kept and as it is written.

pub mod late;
pub mod record;
pub mod record_codec;
pub mod rules;
