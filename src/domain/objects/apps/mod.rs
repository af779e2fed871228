//! The objects that Pipelines and Repos watch in this cluster and in others.

pub mod app;
pub mod clusters;
pub mod leaf;
pub mod ready;
