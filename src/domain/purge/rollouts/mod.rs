//! One workload from the first sight of a change to its end, and what is derived from its record.

pub mod browse;
pub mod edge;
pub mod goal;
pub mod part;
pub mod rollout;
pub mod unwell;
pub mod versions;
