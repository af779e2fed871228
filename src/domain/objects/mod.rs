//! The common parts of our own objects: a status that is ours to write, and questions that others answer.

pub mod asked;
pub mod doors;
pub mod groups;
pub mod kept;
pub(crate) mod own_status;
