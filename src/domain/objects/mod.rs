//! The common parts of our own objects: a status that is ours to write, and questions that others answer.

pub mod asked;
pub(crate) mod form;
pub mod gates;
pub mod groups;
pub mod kept;
pub(crate) mod own_status;
pub mod status;
