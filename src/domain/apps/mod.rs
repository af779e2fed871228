//! What Pipelines and Repos look at in this cluster and in others.

pub mod app;
pub mod clusters;
pub mod leaf;
pub mod ready;
